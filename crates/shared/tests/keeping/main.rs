//! Feeds that are kept warm: what is told of them, and that they are opened again.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed"
)]

#[path = "../feeds/support.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod support;

mod backoff;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use krm_stream_projection::{DigestKey, Projection};
use krm_stream_protocol::{
    Diagnosing, Diagnostic, Diagnostics, FeedEnd, Object, Observation, Observer, Observing, OpenError,
    Partition, Scope, Session, SessionEnd, SessionEndReason, SessionItem, UpstreamError, UpstreamErrorKind,
    WatchEvent,
};
use krm_stream_shared::{FeedReport, FeedSettings, Feeds, Keep, Keeper};
use tokio::time::{Instant, timeout};

use support::{Script, ScriptedSession, ScriptedUpstream, Stream, object};

const SECOND: Duration = Duration::from_secs(1);

/// Counts what is observed of streams.
#[derive(Debug, Default)]
struct Streams(AtomicUsize);

impl Observer for Streams {
    fn observe(&self, observation: &Observation) {
        if matches!(
            observation,
            Observation::SharedSubscriptionOpened | Observation::SharedSubscriptionClosed
        ) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn feeds(observing: Observing) -> Feeds {
    Feeds::new(
        FeedSettings::default(),
        DigestKey::new([7; 32]),
        observing,
        Diagnosing::default(),
    )
}

fn keep(feeds: &Feeds) -> (Keeper, Script) {
    keep_as(feeds, &Projection::full())
}

fn keep_as(feeds: &Feeds, projection: &Arc<Projection>) -> (Keeper, Script) {
    let (upstream, script) = ScriptedUpstream::new();
    let scope = Scope::builder("v1", "configmaps")
        .namespace("app")
        .build()
        .unwrap();
    let keeper = feeds.keep(Keep {
        scope: &scope,
        projection,
        upstream,
        partition: Arc::from("declared"),
    });
    (keeper, script)
}

/// A feed that is kept and has its first snapshot.
async fn kept_warm(feeds: &Feeds) -> (Keeper, Script, ScriptedSession) {
    let (mut keeper, mut script) = keep(feeds);
    let session = script.open_with(object("a")).await;
    expect(&mut keeper, &["Opened(Fresh)", "Synced"]).await;
    (keeper, script, session)
}

fn unavailable() -> OpenError {
    UpstreamError::new(UpstreamErrorKind::Unavailable).into()
}

async fn told(keeper: &mut Keeper) -> FeedReport {
    timeout(Duration::from_mins(10), keeper.reports().next())
        .await
        .unwrap()
}

/// Reads these reports, by their names.
async fn expect(keeper: &mut Keeper, expected: &[&str]) {
    for expected in expected {
        let report = format!("{:?}", told(keeper).await);
        assert!(report.starts_with(expected), "{report} instead of {expected}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kept_feed_tells_of_its_sessions_and_is_no_stream() {
    let streams = Arc::new(Streams::default());
    let feeds = feeds(Observing::with(streams.clone()));
    let (mut keeper, mut script, session) = kept_warm(&feeds).await;
    assert_eq!(feeds.count(), 1);

    tokio::time::sleep(10 * SECOND).await;
    session.end(SessionEnd::Closed);
    expect(&mut keeper, &["Lived", "SessionEnded(Closed)"]).await;
    let session = script.open_with(object("a")).await;
    expect(&mut keeper, &["Opened(After"]).await;

    tokio::time::sleep(10 * SECOND).await;
    session.end(SessionEnd::Expired);
    let session = script.open_with(object("a")).await;
    expect(
        &mut keeper,
        &["Lived", "SessionEnded(Expired)", "Opened(Fresh)", "Synced"],
    )
    .await;

    tokio::time::sleep(10 * SECOND).await;
    let partial = Object::parse(Bytes::from_static(b"{}")).unwrap();
    session.send(WatchEvent::Modified(partial));
    let _session = script.open_with(object("a")).await;
    expect(
        &mut keeper,
        &["Lived", "UnusableEvent", "Opened(Fresh)", "Synced"],
    )
    .await;

    drop(keeper);
    while feeds.count() > 0 {
        tokio::time::sleep(SECOND).await;
    }
    assert_eq!(streams.0.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_lived_is_told_once_and_one_that_ended_before_is_not() {
    let feeds = feeds(Observing::default());
    let (mut keeper, mut script, session) = kept_warm(&feeds).await;
    let began = Instant::now();
    expect(&mut keeper, &["Lived"]).await;
    assert!(began.elapsed() >= 5 * SECOND && began.elapsed() < 5 * SECOND + SECOND / 100);
    tokio::time::sleep(60 * SECOND).await;
    session.end(SessionEnd::Closed);
    expect(&mut keeper, &["SessionEnded(Closed)"]).await;

    // 5 s past the headers, where a session goes on after a version.
    let session = script.answer().await;
    expect(&mut keeper, &["Opened(After"]).await;
    tokio::time::sleep(Duration::from_millis(4_900)).await;
    session.end(SessionEnd::Closed);
    expect(&mut keeper, &["SessionEnded(Closed)"]).await;
    let _session = script.answer().await;
    let began = Instant::now();
    expect(&mut keeper, &["Opened(After", "Lived"]).await;
    assert!(began.elapsed() >= 5 * SECOND && began.elapsed() < 5 * SECOND + SECOND / 100);
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_transport_ends_after_it_delivered_has_lived_for_as_long_as_it_could() {
    let bookmark = |version: &str| WatchEvent::Bookmark {
        resource_version: Some(version.into()),
        initial_events_end: false,
    };
    let away = || SessionEnd::Failed(UpstreamError::new(UpstreamErrorKind::Unavailable));
    let feeds = feeds(Observing::default());
    let (mut keeper, mut script, mut session) = kept_warm(&feeds).await;
    for (millis, end, expected) in [
        (
            1_100,
            SessionEnd::Closed,
            &["Lived", "SessionEnded(Closed)"] as &[_],
        ),
        (900, SessionEnd::Closed, &["SessionEnded(Closed)"]),
        (3_000, SessionEnd::Closed, &["Lived", "SessionEnded(Closed)"]),
        (3_000, away(), &["SessionEnded(Failed"]),
        (3_000, SessionEnd::Expired, &["SessionEnded(Expired)"]),
    ] {
        session.send(bookmark("7"));
        tokio::time::sleep(Duration::from_millis(millis)).await;
        session.end(end);
        expect(&mut keeper, expected).await;
        session = script.answer().await;
        expect(&mut keeper, &["Opened("]).await;
    }
    // A boundary alone is not enough.
    session.send(WatchEvent::Bookmark {
        resource_version: Some("9".into()),
        initial_events_end: true,
    });
    tokio::time::sleep(3 * SECOND).await;
    session.end(SessionEnd::Closed);
    expect(&mut keeper, &["Synced", "SessionEnded(Closed)"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_has_no_boundary_yet_does_not_live_and_its_asked_timeout_is_long_enough() {
    let feeds = feeds(Observing::default());
    let (mut keeper, mut script) = keep(&feeds);
    let session = script.answer().await;
    expect(&mut keeper, &["Opened(Fresh)"]).await;
    let silence = timeout(60 * SECOND, keeper.reports().next()).await;
    assert!(silence.is_err(), "{silence:?}");
    session.end(SessionEnd::Closed);
    expect(&mut keeper, &["SessionEnded(Closed)"]).await;

    // One that asked for a second has reached that as soon as it is there, however it is read.
    let answer = script.next_open().await;
    let _ = answer.send(Ok(Box::new(EndsAtOnce::after_its_boundary(SECOND))));
    expect(
        &mut keeper,
        &["Opened(Fresh)", "Synced", "Lived", "SessionEnded(Closed)"],
    )
    .await;
}

/// Counts the ends of sessions by their reasons.
#[derive(Debug, Default)]
struct Ends(Mutex<Vec<SessionEndReason>>);

impl Observer for Ends {
    fn observe(&self, observation: &Observation) {
        if let Observation::UpstreamSessionEnded { reason } = observation {
            self.0.lock().unwrap().push(*reason);
        }
    }
}

/// What was told to the diagnostics.
#[derive(Debug, Default)]
struct Log(Mutex<Vec<String>>);

impl Diagnostics for Log {
    fn report(&self, diagnostic: &Diagnostic<'_>) {
        let line = format!("{}: {}", diagnostic.operation, diagnostic.cause);
        self.0.lock().unwrap().push(line);
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_left_for_what_it_sent_is_an_error_and_one_that_nobody_wants_is_a_teardown() {
    let (ends, log) = (Arc::new(Ends::default()), Arc::new(Log::default()));
    let feeds = Feeds::new(
        FeedSettings::default(),
        DigestKey::new([7; 32]),
        Observing::with(ends.clone()),
        Diagnosing::with(log.clone()),
    );
    let parsed = |text: &'static str| Object::parse(Bytes::from_static(text.as_bytes())).unwrap();
    let partial = parsed(r#"{"kind":"PartialObjectMetadata","canary":"canary"}"#);
    let unordered = parsed(r#"{"metadata":{"uid":"a","name":"a","namespace":"app","resourceVersion":"x7"}}"#);
    let elsewhere =
        parsed(r#"{"metadata":{"uid":"b","name":"b","namespace":"other","resourceVersion":"9"}}"#);
    let (mut keeper, mut script, mut session) = kept_warm(&feeds).await;
    for (event, expected) in [
        (partial, "UnusableEvent"),
        (unordered, "Over(Fatal"),
        (elsewhere, "Over(Fatal"),
    ] {
        expect(&mut keeper, &["Lived"]).await;
        session.send(WatchEvent::Modified(event));
        expect(&mut keeper, &[expected]).await;
        session = script.open_with(object("a")).await;
        expect(&mut keeper, &["Opened(Fresh)", "Synced"]).await;
    }
    assert_eq!(*ends.0.lock().unwrap(), [SessionEndReason::Error; 3]);
    let said = log.0.lock().unwrap().clone();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(
        said[0].starts_with("watching: an event of the watch cannot be used"),
        "{said:?}"
    );
    assert!(said[1].contains("do not order"), "{said:?}");
    assert!(said[2].contains("outside the scope"), "{said:?}");
    assert!(!said.concat().contains("canary"));

    drop(keeper);
    while feeds.count() > 0 {
        tokio::time::sleep(SECOND).await;
    }
    assert_eq!(ends.0.lock().unwrap()[3..], [SessionEndReason::Teardown]);
    drop(session);
}

#[tokio::test(start_paused = true)]
async fn a_failed_reopen_is_told_with_whether_retries_in_place_are_left() {
    let feeds = feeds(Observing::default());
    let (mut keeper, mut script, session) = kept_warm(&feeds).await;
    tokio::time::sleep(10 * SECOND).await;
    session.end(SessionEnd::Closed);
    expect(&mut keeper, &["Lived", "SessionEnded(Closed)"]).await;
    let began = Instant::now();
    for is_left in [true, true, true, false] {
        let _ = script.next_open().await.send(Err(unavailable()));
        let report = told(&mut keeper).await;
        assert!(
            matches!(report, FeedReport::OpenFailed { retries_left, .. } if retries_left == is_left),
            "{report:?}"
        );
    }
    assert!(began.elapsed() >= Duration::from_millis(5_250));
    let _ = script.next_open().await.send(Err(unavailable()));
    expect(&mut keeper, &["Over(Unavailable(Some"]).await;

    // After the feed's backoff it is opened again; what fails then is told each time.
    let _ = script.next_open().await.send(Err(unavailable()));
    expect(&mut keeper, &["Over(NotOpened"]).await;
    let _session = script.open_with(object("a")).await;
    expect(&mut keeper, &["Opened(Fresh)", "Synced"]).await;
}

#[tokio::test(start_paused = true)]
async fn reopens_that_end_at_once_are_told_when_the_retries_in_place_are_used_up() {
    let feeds = feeds(Observing::default());
    let (mut keeper, mut script, session) = kept_warm(&feeds).await;
    tokio::time::sleep(10 * SECOND).await;
    session.end(SessionEnd::Closed);
    expect(&mut keeper, &["Lived", "SessionEnded(Closed)"]).await;
    for round in 0..4 {
        script.open_and_close().await;
        expect(&mut keeper, &["Opened(After", "SessionEnded(Closed)"]).await;
        if round == 3 {
            expect(&mut keeper, &["ReopenedInVain"]).await;
        }
    }
    let _session = script.open_with(object("a")).await;
    expect(&mut keeper, &["Opened(Fresh)", "Synced"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_feed_is_tried_again_at_a_growing_pace_up_to_half_a_minute() {
    let feeds = feeds(Observing::default());
    let (mut keeper, mut script) = keep(&feeds);
    let mut attempts = Vec::new();
    for _ in 0..8 {
        let answer = script.next_open().await;
        attempts.push(Instant::now());
        let _ = answer.send(Err(UpstreamError::forbidden(Some("no")).into()));
        let report = told(&mut keeper).await;
        assert!(
            matches!(report, FeedReport::Over(FeedEnd::NotOpened(_))),
            "{report:?}"
        );
    }
    let pauses: Vec<u64> = attempts
        .windows(2)
        .map(|pair| pair[1].duration_since(pair[0]).as_secs())
        .collect();
    for (pause, expected) in pauses.iter().zip([1, 2, 4, 8, 16, 30, 30]) {
        assert!(
            (expected..=expected + expected / 4 + 1).contains(pause),
            "{pauses:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_the_partition_joins_the_kept_feed_and_its_subscription_tells_the_same() {
    let feeds = feeds(Observing::default());
    let (_keeper, _script, _session) = kept_warm(&feeds).await;

    let (unused, mut never_asked) = ScriptedUpstream::new();
    let mut stream = Stream::new(&feeds, unused, Partition::shared("declared"));
    stream.begin().await.unwrap();
    assert_eq!(feeds.count(), 1);
    let asked = timeout(SECOND, never_asked.next_open()).await;
    assert!(asked.is_err(), "a warm feed asks no upstream");

    let (other, mut asked) = ScriptedUpstream::new();
    let mut stranger = Stream::new(&feeds, other, Partition::shared("another"));
    let (joined, _session) = tokio::join!(stranger.begin(), asked.open_with(object("a")));
    joined.unwrap();
    assert_eq!(feeds.count(), 2, "another partition has a feed of its own");
}

impl Script {
    async fn open_and_close(&mut self) {
        let answer = self.next_open().await;
        let _ = answer.send(Ok(Box::new(EndsAtOnce {
            boundary: false,
            asked: Duration::from_secs(400),
        })));
    }
}

/// A session that ends as soon as it is read, after its boundary if it has one.
struct EndsAtOnce {
    boundary: bool,
    asked: Duration,
}

impl EndsAtOnce {
    const fn after_its_boundary(asked: Duration) -> Self {
        let boundary = true;
        Self { boundary, asked }
    }
}

impl Session for EndsAtOnce {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<SessionItem> {
        Poll::Ready(if std::mem::take(&mut self.boundary) {
            SessionItem::Event(WatchEvent::Bookmark {
                resource_version: Some("1".into()),
                initial_events_end: true,
            })
        } else {
            SessionItem::End(SessionEnd::Closed)
        })
    }

    fn asked_timeout(&self) -> Option<Duration> {
        Some(self.asked)
    }
}
