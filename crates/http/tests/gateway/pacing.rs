//! `delivery_interval`: a stream sends at most once per interval.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use futures_util::Stream as _;
use krm_stream_http::Gateway;
use krm_stream_protocol::{Principal, StreamError, Subject, WatchEvent};
use tokio::time::Instant;

use super::support::{
    Connection, QUERY, Script, ScriptedSession, ScriptedUpstream, Seam, builder, config_map, get,
    nothing_comes, scope,
};

const INTERVAL: Duration = Duration::from_millis(500);
const MOMENT: Duration = Duration::from_millis(1);

async fn live(gateway: &Gateway, script: &mut Script) -> (Connection, ScriptedSession) {
    let mut connection = get(gateway, QUERY);
    let (_, session) = tokio::join!(connection.types(2), async {
        script.next_open().await.accept_with([], "1")
    });
    nothing_comes(&mut connection, INTERVAL * 2).await;
    (connection, session)
}

#[tokio::test(start_paused = true)]
async fn what_changes_meanwhile_goes_out_together_and_each_object_once() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream).delivery_interval(INTERVAL).build().unwrap();
    let (mut connection, session) = live(&gateway, &mut script).await;
    let changes = async {
        for version in 2..1002_u64 {
            let uid = if version % 2 == 0 { "a" } else { "b" };
            session.send(WatchEvent::Modified(config_map(
                uid,
                version,
                &version.to_string(),
            )));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let begun = Instant::now();
    let mut at = Vec::new();
    let reading = async {
        // The first at once; then two objects every half second for five seconds.
        while at.len() < 21 {
            connection.events(1).await;
            at.push(begun.elapsed());
        }
    };
    tokio::join!(changes, reading);
    assert!(at[0] <= Duration::from_millis(5), "{at:?}");
    for (first, second) in at[1..].chunks(2).map(|pair| (pair[0], pair[1])) {
        assert_eq!(first, second, "{at:?}");
    }
    for pair in at[1..].chunks(2).collect::<Vec<_>>().windows(2) {
        let apart = pair[1][0].saturating_sub(pair[0][0]);
        assert!(
            apart >= INTERVAL && apart < INTERVAL + Duration::from_millis(20),
            "{apart:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_snapshot_comes_as_fast_as_it_can() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream)
        .delivery_interval(Duration::from_mins(1))
        .build()
        .unwrap();
    let mut connection = get(&gateway, QUERY);
    let begun = Instant::now();
    let opening = async {
        let session = script.next_open().await.accept();
        for version in 1..=20_u64 {
            session.send(WatchEvent::Added(config_map(
                &format!("o{version}"),
                version,
                &"x".repeat(30_000),
            )));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        session.boundary("20");
        session
    };
    let (types, _session) = tokio::join!(connection.types(22), opening);
    assert_eq!(types[21], "synced");
    assert!(
        begun.elapsed() < Duration::from_millis(250),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn checks_and_drains_end_a_resting_stream_at_once() {
    for is_drained in [true, false] {
        let (upstream, mut script) = ScriptedUpstream::new();
        let gateway = builder(&upstream)
            .authorizer(Seam::new(|asked| {
                Some(match asked {
                    0 => Ok(()),
                    _ => Err(StreamError::forbidden("no longer yours")),
                })
            }))
            .delivery_interval(Duration::from_mins(1))
            .build()
            .unwrap();
        let (mut connection, session) = live(&gateway, &mut script).await;
        session.send(WatchEvent::Added(config_map("a", 2, "v")));
        connection.events(1).await;
        session.send(WatchEvent::Added(config_map("b", 3, "v")));
        nothing_comes(&mut connection, MOMENT).await;
        let begun = Instant::now();
        if is_drained {
            gateway.drain(Duration::from_secs(1));
        } else {
            gateway.recheck(|_, _| true);
        }
        assert_eq!(
            connection.types(1).await,
            [if is_drained {
                "UPSTREAM_UNAVAILABLE"
            } else {
                "FORBIDDEN"
            }]
        );
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}

#[derive(Default)]
struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn a_resting_stream_is_not_woken_by_each_change() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream).delivery_interval(INTERVAL).build().unwrap();
    let principal = Principal::new(Subject::new("ada").unwrap());
    let mut frames = gateway.stream(principal, scope(QUERY), None);
    let counter = Arc::new(Counter::default());
    let waker = Waker::from(Arc::clone(&counter));
    let mut poll = || Pin::new(&mut frames).poll_next(&mut Context::from_waker(&waker));
    assert!(poll().is_pending());
    let session = script.next_open().await.accept_with([], "1");
    tokio::time::sleep(INTERVAL * 2).await;
    while poll().is_ready() {}
    tokio::time::sleep(INTERVAL * 2).await;
    session.send(WatchEvent::Added(config_map("a", 2, "v")));
    tokio::time::sleep(MOMENT).await;
    assert!(poll().is_ready());
    assert!(poll().is_pending());
    let before = counter.0.load(Ordering::SeqCst);
    let (mut polls, begun) = (0, Instant::now());
    for version in 3..1000_u64 {
        if begun.elapsed() + MOMENT * 10 >= INTERVAL {
            break;
        }
        session.send(WatchEvent::Modified(config_map(
            "a",
            version,
            &version.to_string(),
        )));
        tokio::time::sleep(MOMENT).await;
        // A task is polled when it is woken.
        if counter.0.load(Ordering::SeqCst) > before + polls {
            polls += 1;
            assert!(poll().is_pending());
        }
    }
    assert!(polls <= 1, "{polls} polls for some 490 changes");
    tokio::time::sleep(MOMENT * 20).await;
    assert!(poll().is_ready());
    assert!(poll().is_pending());
}
