//! What is observed of a stream, and observers at fault.

use std::sync::Arc;

use krm_stream_protocol::{
    Diagnostic, Diagnostics, EventType, Observation, Observer, SessionEnd, UpstreamError, WatchEvent,
};

use super::support::{QUERY, Recorder, ScriptedUpstream, builder, config_map, eventually, get};

struct Panics;

impl Observer for Panics {
    fn observe(&self, _: &Observation) {
        panic!("an observer's own fault");
    }
}

impl Diagnostics for Panics {
    fn report(&self, _: &Diagnostic<'_>) {
        panic!("a log's own fault");
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_and_diagnostics_that_panic_harm_nothing() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream)
        .observer(Arc::new(Panics))
        .diagnostics(Arc::new(Panics))
        .build()
        .unwrap();
    let mut connection = get(&gateway, QUERY);
    let (types, session) = tokio::join!(connection.types(3), async {
        script
            .next_open()
            .await
            .accept_with([config_map("a", 1, "v")], "1")
    });
    assert_eq!(types, ["reset", "added", "synced"]);
    session.send(WatchEvent::Deleted(config_map("a", 2, "v")));
    assert_eq!(connection.types(1).await, ["deleted"]);
    session.end(SessionEnd::Failed(UpstreamError::forbidden(None)));
    assert_eq!(connection.types(1).await, ["FORBIDDEN"]);
    assert_eq!(connection.next().await, None);
    assert_eq!(gateway.feeds().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_streams_life_is_observed_from_its_entry_to_its_end() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let recorder = Arc::new(Recorder::default());
    let gateway = builder(&upstream).observer(recorder.clone()).build().unwrap();
    let mut connection = get(&gateway, QUERY);
    let (_, session) = tokio::join!(connection.types(3), async {
        script
            .next_open()
            .await
            .accept_with([config_map("a", 1, "v")], "1")
    });
    session.send(WatchEvent::Modified(config_map("a", 2, "v")));
    session.send(WatchEvent::Modified(config_map("a", 3, "w")));
    assert_eq!(connection.types(1).await, ["modified"]);
    assert_eq!(recorder.still_open(), [1, 1, 1]);
    let delivered: u64 = recorder
        .all()
        .iter()
        .map(|seen| match seen {
            Observation::BytesDelivered { bytes } => *bytes,
            _ => 0,
        })
        .sum();
    assert_eq!(delivered, connection.raw().len() as u64);
    drop(connection);
    eventually("all that was opened is closed", || {
        recorder.still_open() == [0, 0, 0]
    })
    .await;

    for event_type in [
        EventType::Reset,
        EventType::Added,
        EventType::Modified,
        EventType::Synced,
    ] {
        assert_eq!(
            recorder.count(|seen| *seen == Observation::EventEmitted { event_type, count: 1 }),
            1
        );
    }
    assert_eq!(recorder.count(|seen| *seen == Observation::EventSuppressed), 1);
    let is_snapshot = |seen: &Observation| matches!(seen, Observation::SnapshotDelivered { objects: 1, .. });
    assert_eq!(recorder.count(is_snapshot), 1);
    let has_projection = |seen: &Observation| matches!(seen, Observation::CycleStarted { projection } if projection.as_str() == "krm-full/v1");
    assert_eq!(recorder.count(has_projection), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_closed_when_its_last_event_was_taken_and_not_before() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let recorder = Arc::new(Recorder::default());
    let gateway = builder(&upstream).observer(recorder.clone()).build().unwrap();
    let mut connection = get(&gateway, QUERY);
    let (_, session) = tokio::join!(connection.types(2), async {
        script.next_open().await.accept_with([], "1")
    });
    session.end(SessionEnd::Failed(UpstreamError::forbidden(None)));
    assert_eq!(connection.types(1).await, ["FORBIDDEN"]);
    assert_eq!(recorder.still_open()[0], 1);
    assert_eq!(connection.next().await, None);
    assert_eq!(recorder.still_open()[0], 0);
}
