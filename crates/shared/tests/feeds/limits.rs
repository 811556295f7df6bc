//! Scopes that are larger than the host allows.

use std::sync::Arc;

use krm_stream_protocol::{ErrorCode, SessionEnd, StreamError, Upstream, WatchEvent};
use krm_stream_shared::FeedSettings;

use crate::browser::{Browser, applied, at, state, uid};
use crate::support::{Script, ScriptedSession, ScriptedUpstream, feeds_with};

fn settings(objects: Option<usize>, bytes: Option<u64>) -> FeedSettings {
    FeedSettings {
        max_snapshot_objects: objects,
        max_snapshot_bytes: bytes,
        ..FeedSettings::default()
    }
}

async fn open(settings: FeedSettings) -> (Browser, ScriptedSession, Script) {
    let (upstream, mut script) = ScriptedUpstream::new();
    let upstream: Arc<dyn Upstream> = upstream;
    let feeds = feeds_with(settings);
    let (browser, session) = script
        .next_open_when(Browser::join(&feeds, &upstream, at(0)))
        .await;
    (browser, session, script)
}

async fn ended(browser: &mut Browser) -> StreamError {
    applied().await;
    browser.take_all();
    browser.error.take().expect("the stream goes on")
}

fn names(error: &StreamError, limit: &str) {
    assert!(error.code() == ErrorCode::Internal && error.is_terminal());
    assert!(error.message().contains(limit), "{}", error.message());
}

#[tokio::test(start_paused = true)]
async fn one_object_too_many_ends_the_streams_while_the_snapshot_arrives_and_later() {
    let (mut browser, session, _script) = open(settings(Some(3), None)).await;
    session.fill("ConfigMap", 4, 10);
    names(&ended(&mut browser).await, "3 objects");

    let (mut browser, session, _script) = open(settings(Some(3), None)).await;
    let version = session.fill("ConfigMap", 3, 10);
    session.boundary(version);
    session.modify("ConfigMap", &uid(0), version + 1, "second");
    session.delete("ConfigMap", &uid(0), version + 2);
    session.send(WatchEvent::Added(state("ConfigMap", "v", version + 3, "new", 1)));
    applied().await;
    browser.take_all();
    assert!(browser.consumer.is_synced() && browser.error.is_none());
    assert_eq!(browser.values().len(), 3);
    session.send(WatchEvent::Added(state("ConfigMap", "w", version + 4, "new", 1)));
    names(&ended(&mut browser).await, "3 objects");
}

#[tokio::test(start_paused = true)]
async fn bytes_are_counted_as_objects_grow_shrink_and_go() {
    let (mut browser, session, _script) = open(settings(None, Some(20_000))).await;
    let version = session.fill("ConfigMap", 10, 1_000);
    session.boundary(version);
    for round in 0..50 {
        let version = version + 10 * round;
        session.send(WatchEvent::Modified(state(
            "ConfigMap",
            &uid(0),
            version + 1,
            "large",
            7_000,
        )));
        session.modify("ConfigMap", &uid(0), version + 2, "small");
        session.delete("ConfigMap", &uid(1), version + 3);
        session.send(WatchEvent::Added(state(
            "ConfigMap",
            &uid(1),
            version + 4,
            "back",
            1_000,
        )));
    }
    applied().await;
    browser.take_all();
    assert!(browser.consumer.is_synced() && browser.error.is_none());
    session.send(WatchEvent::Modified(state(
        "ConfigMap",
        &uid(0),
        version + 1_000,
        "large",
        9_500,
    )));
    names(&ended(&mut browser).await, "20000 bytes");
}

#[tokio::test(start_paused = true)]
async fn a_new_snapshot_aside_has_the_limits_too() {
    let (mut browser, session, mut script) = open(settings(Some(3), None)).await;
    let version = session.fill("ConfigMap", 3, 10);
    session.boundary(version);
    applied().await;
    browser.take_all();
    session.end(SessionEnd::Expired);
    let session = script.answer().await;
    session.fill("ConfigMap", 3, 10);
    session.boundary(version);
    applied().await;
    browser.take_all();
    assert!(browser.error.is_none(), "as many as before");
    session.end(SessionEnd::Expired);
    let session = script.answer().await;
    session.fill("ConfigMap", 4, 10);
    names(&ended(&mut browser).await, "3 objects");
}
