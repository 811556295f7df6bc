//! Feeds and the tasks that drive them: what is left when one goes away, and what stays between two cycles.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed"
)]

mod browser;
mod bursts;
mod joining;
mod limits;
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use krm_stream_protocol::{
    BoxFuture, ErrorCode, OpenError, Partition, Scope, Session, SessionEnd, Start, Upstream,
};

use support::{ScriptedUpstream, Stream, feeds, object};

const SECOND: Duration = Duration::from_secs(1);

/// Has a host's own fault at its first use.
#[derive(Debug)]
struct PanicsOnce {
    has_panicked: AtomicBool,
    upstream: Arc<dyn Upstream>,
}

impl Upstream for PanicsOnce {
    fn open<'a>(
        &'a self,
        scope: &'a Scope,
        start: Start,
    ) -> BoxFuture<'a, Result<Box<dyn Session>, OpenError>> {
        assert!(
            self.has_panicked.swap(true, Ordering::SeqCst),
            "an upstream's own fault"
        );
        self.upstream.open(scope, start)
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_an_upstream_refuses_who_waits_and_leaves_no_feed() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let upstream = Arc::new(PanicsOnce {
        has_panicked: AtomicBool::new(false),
        upstream,
    });
    let feeds = feeds(5 * SECOND);
    let mut stream = Stream::new(&feeds, upstream.clone(), Partition::per_caller());
    let error = stream.begin().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::UpstreamUnavailable);
    assert_eq!(error.retry_after(), Some(SECOND));
    assert_eq!(feeds.count(), 0);
    tokio::time::sleep(SECOND).await;
    let (joined, _session) = tokio::join!(stream.begin(), script.open_with(object("a")));
    joined.expect("the next one is served as if nothing had happened");
}

#[test]
fn a_feed_whose_runtime_has_ended_ends_its_streams_and_is_opened_again_elsewhere() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let (upstream, mut script) = ScriptedUpstream::new();
    let (first, second) = (runtime(), runtime());
    let feeds = first.block_on(async { feeds(60 * SECOND) });
    let mut stream = Stream::new(&feeds, upstream.clone(), Partition::per_caller());
    let (joined, _session) =
        first.block_on(async { tokio::join!(stream.begin(), script.open_with(object("a"))) });
    joined.unwrap();
    drop(first);
    second.block_on(async {
        let error = stream.read().await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::UpstreamUnavailable);
        assert_eq!(feeds.count(), 0);
        tokio::time::sleep(error.retry_after().unwrap()).await;
        let (joined, _session) = tokio::join!(stream.begin(), script.open_with(object("a")));
        joined.unwrap();
    });
}

/// How many sessions one stream causes in ten minutes of an API server that says 410 two seconds after each boundary.
async fn sessions_of_a_server_that_always_expires(partition: Partition, linger: Duration) -> usize {
    let (upstream, mut script) = ScriptedUpstream::new();
    let feeds = feeds(linger);
    let stream = Stream::new(&feeds, upstream, partition);
    let mut opened = 0;
    let serve = async {
        loop {
            let session = script.open_with(object("a")).await;
            opened += 1;
            tokio::spawn(async move {
                tokio::time::sleep(2 * SECOND).await;
                session.end(SessionEnd::Expired);
            });
        }
    };
    tokio::select! {
        error = stream.follow(Duration::from_millis(20)) => panic!("{error}"),
        () = serve => {}
        () = tokio::time::sleep(600 * SECOND) => {}
    }
    opened
}

#[tokio::test(start_paused = true)]
async fn the_last_stream_of_a_feed_keeps_it_between_two_cycles_and_with_it_the_spacing_of_sessions() {
    for (partition, linger) in [
        (Partition::per_caller(), 5 * SECOND),
        (Partition::per_caller(), Duration::ZERO),
        (Partition::Isolated, 5 * SECOND),
    ] {
        let opened = sessions_of_a_server_that_always_expires(partition.clone(), linger).await;
        assert!(
            (10..40).contains(&opened),
            "{opened} sessions with {partition:?} and {linger:?}"
        );
    }
}
