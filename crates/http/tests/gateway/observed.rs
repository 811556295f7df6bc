//! All that is observed of a stream in the situations that there are, counted: nothing is missing, and nothing comes besides.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use krm_stream_http::Gateway;
use krm_stream_protocol::{
    EventType, Observation, Partition, SessionEnd, StreamError, UpstreamError, UpstreamErrorKind, WatchEvent,
};

use super::support::{
    AsCaller, Connection, QUERY, Recorder, Script, ScriptedSession, ScriptedUpstream, Seam, builder,
    config_map, eventually, get,
};

/// One stream, and all that is beside it.
struct Scene {
    gateway: Gateway,
    connection: Connection,
    script: Script,
    recorder: Arc<Recorder>,
}

impl Scene {
    fn new(partition: Partition) -> Self {
        Self::authorized(partition, |_| Some(Ok(())))
    }

    fn authorized(
        partition: Partition,
        answer: impl Fn(usize) -> Option<Result<(), StreamError>> + Send + Sync + 'static,
    ) -> Self {
        let (upstream, script) = ScriptedUpstream::new();
        let recorder = Arc::new(Recorder::default());
        let gateway = builder(&upstream)
            .client_for(AsCaller::partitioned(&upstream, partition))
            .authorizer(Seam::new(answer))
            .queue_depth(1)
            .observer(recorder.clone())
            .build()
            .unwrap();
        Self {
            connection: get(&gateway, QUERY),
            gateway,
            script,
            recorder,
        }
    }

    /// Answers the next session with these objects, and reads these events meanwhile.
    async fn open(&mut self, objects: &[&str], value: &str, types: &[&str]) -> ScriptedSession {
        let objects = objects.iter().map(|uid| config_map(uid, 1, value));
        let (came, session) = tokio::join!(self.connection.types(types.len()), async {
            self.script.next_open().await.accept_with(objects, "1")
        });
        assert_eq!(came, types);
        session
    }

    async fn reads(&mut self, types: &[&str]) {
        assert_eq!(self.connection.types(types.len()).await, types);
    }

    /// Checks what was observed by the time that the stream has left, either way.
    async fn leaves(self, expected: &[(&str, u64)]) {
        drop((self.connection, self.script));
        eventually("the feed ends", || self.gateway.feeds().count() == 0).await;
        eventually("all that was opened is closed", || {
            self.recorder.still_open() == [0, 0, 0]
        })
        .await;
        observed(&self.recorder, expected);
    }
}

/// These observations came, each as often as is said, and no other.
#[track_caller]
fn observed(recorder: &Recorder, expected: &[(&str, u64)]) {
    let mut counts = BTreeMap::new();
    for (word, count) in recorder.all().iter().filter_map(word) {
        *counts.entry(word).or_default() += count;
    }
    let expected: BTreeMap<String, u64> = expected
        .iter()
        .map(|(word, count)| ((*word).to_owned(), *count))
        .collect();
    assert_eq!(counts, expected);
    told_before_it_is_sent(&recorder.all());
}

/// An error is observed before its frame is attempted.
#[track_caller]
fn told_before_it_is_sent(all: &[Observation]) {
    let mut announced = false;
    for one in all {
        match one {
            Observation::ConsumerResync
            | Observation::RetryableError { .. }
            | Observation::TerminalError { .. } => announced = true,
            Observation::EventEmitted {
                event_type: EventType::Error,
                ..
            } => assert!(std::mem::take(&mut announced), "{all:?}"),
            _ => {}
        }
    }
}

/// A word for it, and how often it counts. Bytes are counted by a test of their own.
fn word(observation: &Observation) -> Option<(String, u64)> {
    let word = match observation {
        Observation::StreamOpened => "stream opened".to_owned(),
        Observation::StreamClosed => "stream closed".to_owned(),
        Observation::SharedSubscriptionOpened => "subscription opened".to_owned(),
        Observation::SharedSubscriptionClosed => "subscription closed".to_owned(),
        Observation::CycleStarted { projection } => format!("cycle of {projection}"),
        Observation::EventEmitted { event_type, count } => {
            return Some((event_type.as_str().to_owned(), *count));
        }
        Observation::EventSuppressed => "suppressed".to_owned(),
        Observation::ConsumerResync => "resync".to_owned(),
        Observation::SharedOverflow => "overflow".to_owned(),
        Observation::RetryableError { code } => format!("retryable {code}"),
        Observation::TerminalError { code } => format!("terminal {code}"),
        Observation::HttpTransportRejected => "transport rejected".to_owned(),
        Observation::DeliveryTimeout => "delivery timeout".to_owned(),
        Observation::UpstreamSessionOpened => "session opened".to_owned(),
        Observation::UpstreamSessionEnded { reason } => format!("session {}", reason.as_str()),
        Observation::SnapshotDelivered { objects, .. } => format!("snapshot of {objects}"),
        Observation::AuthorizationChecked { outcome, .. } => format!("check {}", outcome.as_str()),
        Observation::BytesDelivered { .. } => return None,
    };
    Some((word, 1))
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_and_each_kind_of_change() {
    let mut scene = Scene::new(Partition::per_caller());
    let session = scene
        .open(&["a", "b"], "v", &["reset", "added", "added", "synced"])
        .await;
    session.send(WatchEvent::Modified(config_map("a", 2, "w")));
    scene.reads(&["modified"]).await;
    session.send(WatchEvent::Modified(config_map("a", 3, "w")));
    session.send(WatchEvent::Deleted(config_map("b", 4, "v")));
    scene.reads(&["deleted"]).await;
    let expected = [
        ("stream opened", 1),
        ("check allowed", 1),
        ("subscription opened", 1),
        ("session opened", 1),
        ("cycle of krm-full/v1", 1),
        ("reset", 1),
        ("added", 2),
        ("synced", 1),
        ("snapshot of 2", 1),
        ("modified", 1),
        ("suppressed", 1),
        ("deleted", 1),
        ("subscription closed", 1),
        ("session teardown", 1),
        ("stream closed", 1),
    ];
    scene.leaves(&expected).await;
}

#[tokio::test(start_paused = true)]
async fn an_overflow_is_a_resync_and_no_retryable_error_and_ends_its_subscription_once() {
    for (partition, sessions) in [
        (Partition::shared("gateway"), 1),
        (Partition::per_caller(), 1),
        // What such a stream missed can be had from the API server alone.
        (Partition::Isolated, 2),
    ] {
        let mut scene = Scene::new(partition.clone());
        let session = scene
            .open(&["a", "b"], "v", &["reset", "added", "added", "synced"])
            .await;
        for uid in ["a", "b"] {
            session.send(WatchEvent::Deleted(config_map(uid, 2, "v")));
        }
        // Nothing is read, and more is owed than the queue holds.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let next_cycle = ["RESYNC_REQUIRED", "reset", "synced"];
        if sessions == 1 {
            scene.reads(&next_cycle).await;
        } else {
            scene.open(&[], "v", &next_cycle).await;
        }
        let closed = scene
            .recorder
            .count(|seen| *seen == Observation::SharedSubscriptionClosed);
        assert_eq!(closed, 1, "{partition:?}");
        let expected = [
            ("stream opened", 1),
            ("check allowed", 2),
            ("subscription opened", 2),
            ("session opened", sessions),
            ("cycle of krm-full/v1", 2),
            ("reset", 2),
            ("added", 2),
            ("synced", 2),
            ("snapshot of 2", 1),
            ("snapshot of 0", 1),
            ("overflow", 1),
            ("resync", 1),
            ("error", 1),
            ("subscription closed", 2),
            ("session teardown", sessions),
            ("stream closed", 1),
        ];
        scene.leaves(&expected).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_overflow_in_the_recovery_from_one_is_an_overflow_and_a_terminal_error() {
    let mut scene = Scene::new(Partition::shared("gateway"));
    // More than a stream writes ahead of its reader.
    let large = "v".repeat(256 * 1024);
    let snapshot = ["reset", "added", "added", "added", "added", "synced"];
    let session = scene.open(&["a", "b", "c", "d"], &large, &snapshot).await;
    for uid in ["a", "b"] {
        session.send(WatchEvent::Deleted(config_map(uid, 2, "v")));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    scene.reads(&["RESYNC_REQUIRED", "reset", "added"]).await;
    // More deletions than the feed keeps in mind, which are as many as it ever had objects.
    for uid in ["e", "f", "g", "h", "i", "j"] {
        session.send(WatchEvent::Added(config_map(uid, 3, "v")));
        session.send(WatchEvent::Deleted(config_map(uid, 4, "v")));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    scene.reads(&["SLOW_CONSUMER"]).await;
    assert_eq!(scene.connection.next().await, None);
    let expected = [
        ("stream opened", 1),
        ("check allowed", 2),
        ("subscription opened", 2),
        ("session opened", 1),
        ("cycle of krm-full/v1", 2),
        ("reset", 2),
        ("added", 5),
        ("synced", 1),
        ("snapshot of 4", 1),
        ("overflow", 2),
        ("resync", 1),
        ("terminal SLOW_CONSUMER", 1),
        ("error", 2),
        ("subscription closed", 2),
        ("session teardown", 1),
        ("stream closed", 1),
    ];
    scene.leaves(&expected).await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_history_is_a_resync_without_an_overflow() {
    let mut scene = Scene::new(Partition::shared("gateway"));
    let session = scene.open(&["a"], "v", &["reset", "added", "synced"]).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    session.end(SessionEnd::Expired);
    let session = scene
        .open(&["a"], "v", &["RESYNC_REQUIRED", "reset", "added", "synced"])
        .await;
    let expected = [
        ("stream opened", 1),
        ("check allowed", 2),
        ("subscription opened", 2),
        ("session opened", 2),
        ("session expired", 1),
        ("cycle of krm-full/v1", 2),
        ("reset", 2),
        ("added", 2),
        ("synced", 2),
        ("snapshot of 1", 2),
        ("resync", 1),
        ("error", 1),
        ("subscription closed", 2),
        ("session teardown", 1),
        ("stream closed", 1),
    ];
    scene.leaves(&expected).await;
    drop(session);
}

#[tokio::test(start_paused = true)]
async fn the_death_of_a_feed_ends_its_subscription_once() {
    let mut scene = Scene::new(Partition::shared("gateway"));
    let session = scene.open(&["a"], "v", &["reset", "added", "synced"]).await;
    session.end(SessionEnd::Failed(UpstreamError::new(
        UpstreamErrorKind::Unreadable,
    )));
    scene.reads(&["INTERNAL"]).await;
    assert_eq!(scene.connection.next().await, None);
    let expected = [
        ("stream opened", 1),
        ("check allowed", 1),
        ("subscription opened", 1),
        ("session opened", 1),
        ("session error", 1),
        ("cycle of krm-full/v1", 1),
        ("reset", 1),
        ("added", 1),
        ("synced", 1),
        ("snapshot of 1", 1),
        ("terminal INTERNAL", 1),
        ("error", 1),
        ("subscription closed", 1),
        ("stream closed", 1),
    ];
    scene.leaves(&expected).await;
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_cannot_be_opened_is_no_subscription() {
    let mut scene = Scene::new(Partition::shared("gateway"));
    let (came, ()) = tokio::join!(scene.connection.types(1), async {
        let opening = scene.script.next_open().await;
        opening.refuse(UpstreamError::new(UpstreamErrorKind::Unavailable));
    });
    assert_eq!(came, ["UPSTREAM_UNAVAILABLE"]);
    assert_eq!(scene.connection.next().await, None);
    let expected = [
        ("stream opened", 1),
        ("check allowed", 1),
        ("retryable UPSTREAM_UNAVAILABLE", 1),
        ("error", 1),
        ("stream closed", 1),
    ];
    scene.leaves(&expected).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_denied_is_entered_and_left() {
    let denied = StreamError::forbidden("not yours");
    let mut scene = Scene::authorized(Partition::per_caller(), move |_| Some(Err(denied.clone())));
    scene.reads(&["FORBIDDEN"]).await;
    assert_eq!(scene.connection.next().await, None);
    let expected = [
        ("stream opened", 1),
        ("check denied", 1),
        ("terminal FORBIDDEN", 1),
        ("error", 1),
        ("stream closed", 1),
    ];
    scene.leaves(&expected).await;
}
