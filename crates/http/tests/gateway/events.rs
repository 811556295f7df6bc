//! The events without HTTP are the events with it.

use krm_stream_http::{Frame, Frames};
use krm_stream_protocol::{Principal, SessionEnd, Subject, UpstreamError, UpstreamErrorKind, WatchEvent};

use super::support::{
    Connection, QUERY, Script, ScriptedSession, ScriptedUpstream, builder, code_of, config_map, get, scope,
    secret, type_of,
};

fn ada() -> Principal {
    Principal::new(Subject::new("ada").unwrap())
}

async fn next(frames: &mut Frames) -> Option<Frame> {
    std::future::poll_fn(|cx| futures_core::Stream::poll_next(std::pin::Pin::new(&mut *frames), cx)).await
}

async fn take(frames: &mut Frames, count: usize) -> Vec<Frame> {
    let mut taken = Vec::new();
    for _ in 0..count {
        taken.push(next(frames).await.unwrap());
    }
    taken
}

/// What came over HTTP, heartbeats aside, is what these frames spell.
fn agree(connection: &Connection, events: &[String], frames: &[Frame]) {
    let data: Vec<_> = frames
        .iter()
        .map(|frame| String::from_utf8(frame.json().to_vec()).unwrap())
        .collect();
    assert_eq!(data, events);
    let spelled: Vec<u8> = frames.iter().flat_map(|frame| frame.sse().to_vec()).collect();
    let over_http = String::from_utf8_lossy(connection.raw()).replace(": heartbeat\n\n", "");
    assert!(over_http.as_bytes() == spelled);
}

async fn open_with(script: &mut Script, large: &str) -> ScriptedSession {
    script
        .next_open()
        .await
        .accept_with([config_map("a", 1, "v"), config_map("large", 2, large)], "2")
}

#[tokio::test(start_paused = true)]
async fn frames_are_the_events_of_http_byte_for_byte_large_ones_too() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream).build().unwrap();
    let large = "x".repeat(1 << 20);
    let mut connection = get(&gateway, QUERY);
    let mut frames = gateway.stream(ada(), scope(QUERY), None);
    let (mut events, mut taken, session) = tokio::join!(
        connection.events(4),
        take(&mut frames, 4),
        open_with(&mut script, &large)
    );
    session.send(WatchEvent::Modified(config_map("large", 3, &format!("{large}y"))));
    session.send(WatchEvent::Added(config_map("b", 4, "line\\r\\nend")));
    session.send(WatchEvent::Deleted(config_map("a", 5, "v")));
    events.extend(connection.events(3).await);
    taken.extend(take(&mut frames, 3).await);
    session.end(SessionEnd::Expired);
    let _session = script
        .next_open()
        .await
        .accept_with([config_map("b", 9, "w")], "9");
    events.extend(connection.events(4).await);
    taken.extend(take(&mut frames, 4).await);
    let types: Vec<_> = events.iter().map(|event| type_of(event)).collect();
    assert_eq!(types[..4], ["reset", "added", "added", "synced"]);
    assert_eq!(types[7..], ["RESYNC_REQUIRED", "reset", "added", "synced"]);
    agree(&connection, &events, &taken);
    assert_eq!(script.asked(), 2, "both are on one feed");
}

#[tokio::test(start_paused = true)]
async fn frames_of_secrets_hold_no_value_and_count_its_changes_as_http_does() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream).build().unwrap();
    let query = "version=v1&resource=secrets&namespace=app";
    let mut connection = get(&gateway, query);
    let mut frames = gateway.stream(ada(), scope(query), None);
    let (mut events, mut taken, session) = tokio::join!(connection.events(3), take(&mut frames, 3), async {
        script
            .next_open()
            .await
            .accept_with([secret("s", 1, "Y2FuYXJ5")], "1")
    });
    session.send(WatchEvent::Modified(secret("s", 2, "Y2FuYXJ5MQ==")));
    events.extend(connection.events(1).await);
    taken.extend(take(&mut frames, 1).await);
    assert!(
        events[1].ends_with(r#""redacted":[{"path":"/data/value","rev":1}]}"#),
        "{}",
        events[1]
    );
    assert!(
        events[3].ends_with(r#""redacted":[{"path":"/data/value","rev":2}]}"#),
        "{}",
        events[3]
    );
    agree(&connection, &events, &taken);
    assert!(!String::from_utf8_lossy(connection.raw()).contains("Y2FuYXJ5"));
    assert!(!format!("{taken:?} {connection:?} {gateway:?}").contains("Y2FuYXJ5"));
}

#[tokio::test(start_paused = true)]
async fn heartbeats_are_no_frames() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream).build().unwrap();
    let mut frames = gateway.stream(ada(), scope(QUERY), None);
    let quiet = tokio::time::timeout(std::time::Duration::from_mins(5), next(&mut frames)).await;
    assert!(quiet.is_err());
    let _session = script.next_open().await.accept_with([], "1");
    let taken = take(&mut frames, 2).await;
    assert!(taken[0].sse().starts_with(b"data: {\"seq\":1,\"type\":\"reset\""));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_one_frame_with_the_time_to_wait_beside_its_json() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream).build().unwrap();
    let mut frames = gateway.stream(ada(), scope("version=v1&resource=pods&namespace=app"), None);
    let refusal = next(&mut frames).await.unwrap();
    assert_eq!(
        code_of(&String::from_utf8_lossy(&refusal.json())),
        "SCOPE_INVALID"
    );
    assert!(next(&mut frames).await.is_none());
    assert_eq!(script.asked(), 0);

    let mut frames = gateway.stream(ada(), scope(QUERY), Some("krm-raw/v1".into()));
    let refusal = next(&mut frames).await.unwrap();
    assert_eq!(code_of(&String::from_utf8_lossy(&refusal.json())), "FORBIDDEN");

    let mut frames = gateway.stream(ada(), scope(QUERY), None);
    let (refusal, ()) = tokio::join!(next(&mut frames), async {
        let error = UpstreamErrorKind::Unavailable;
        script.next_open().await.refuse(UpstreamError::new(error));
    });
    let refusal = refusal.unwrap();
    assert!(refusal.sse().starts_with(b"retry: 1000\ndata: {"));
    assert!(
        refusal.json().starts_with(b"{\"seq\":1,") && refusal.json().ends_with(b"\"retryAfterMs\":1000}")
    );
    assert!(next(&mut frames).await.is_none());
}
