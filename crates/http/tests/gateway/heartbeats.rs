//! Heartbeats: while nothing else comes, and between events only.

use std::time::Duration;

use krm_stream_protocol::{SessionEnd, UpstreamError, UpstreamErrorKind, WatchEvent};
use tokio::time::Instant;

use super::support::{QUERY, ScriptedUpstream, builder, config_map, get};

const HEARTBEAT: &str = ": heartbeat\n\n";

#[tokio::test(start_paused = true)]
async fn they_come_while_the_upstream_is_being_opened() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream)
        .heartbeat_interval(Duration::from_secs(3))
        .build()
        .unwrap();
    let mut connection = get(&gateway, QUERY);
    let began = Instant::now();
    for beat in 1..=4 {
        assert_eq!(connection.chunk().await.unwrap(), HEARTBEAT);
        assert_eq!(began.elapsed(), Duration::from_secs(3 * beat));
    }
    let session = script.next_open().await.accept();
    assert_eq!(connection.types(1).await, ["reset"]);
    for _ in 0..2 {
        assert_eq!(
            connection.chunk().await.unwrap(),
            HEARTBEAT,
            "a snapshot may be long in coming"
        );
    }
    session.boundary("1");
    assert_eq!(connection.types(1).await, ["synced"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_puts_the_next_one_off() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream)
        .heartbeat_interval(Duration::from_secs(20))
        .build()
        .unwrap();
    let mut connection = get(&gateway, QUERY);
    let (_, session) = tokio::join!(connection.types(2), async {
        script.next_open().await.accept_with([], "1")
    });
    for version in 2..10 {
        tokio::time::sleep(Duration::from_secs(19)).await;
        session.send(WatchEvent::Added(config_map("a", version, &version.to_string())));
        connection.events(1).await;
    }
    assert!(!String::from_utf8_lossy(connection.raw()).contains(HEARTBEAT));
    let last = Instant::now();
    assert_eq!(connection.chunk().await.unwrap(), HEARTBEAT);
    assert_eq!(last.elapsed(), Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn they_come_while_the_upstream_is_being_retried() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream)
        .heartbeat_interval(Duration::from_millis(500))
        .build()
        .unwrap();
    let mut connection = get(&gateway, QUERY);
    let (_, session) = tokio::join!(connection.types(2), async {
        script.next_open().await.accept_with([], "1")
    });
    tokio::time::sleep(Duration::from_secs(6)).await;
    session.end(SessionEnd::Closed);
    script.next_open().await.refuse(
        UpstreamError::new(UpstreamErrorKind::Unavailable).with_retry_after(Some(Duration::from_secs(9))),
    );
    for _ in 0..12 {
        assert_eq!(connection.chunk().await.unwrap(), HEARTBEAT);
    }
    assert!(script.try_next_open().is_none(), "the hint is honoured");
}

#[tokio::test(start_paused = true)]
async fn none_stands_inside_a_large_event_that_is_taken_slowly() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream)
        .heartbeat_interval(Duration::from_millis(100))
        .build()
        .unwrap();
    let large = "x".repeat(3 << 20);
    let mut connection = get(&gateway, QUERY);
    let opening = async {
        let session = script.next_open().await.accept();
        for uid in ["a", "b"] {
            session.send(WatchEvent::Added(config_map(uid, 1, &large)));
        }
        session.boundary("1");
        session
    };
    let (reset, _session) = tokio::join!(connection.chunk(), opening);
    assert!(reset.is_some());
    // A link that takes each piece only after several heartbeats were due.
    while !String::from_utf8_lossy(&connection.raw()[connection.raw().len().saturating_sub(200)..])
        .contains("synced")
    {
        tokio::time::sleep(Duration::from_millis(750)).await;
        connection.chunk().await.unwrap();
    }
    for _ in 0..3 {
        connection.chunk().await.unwrap();
    }
    let raw = String::from_utf8(connection.raw().to_vec()).unwrap();
    let blocks: Vec<_> = raw.split_terminator("\n\n").collect();
    let heartbeats = blocks.iter().filter(|block| **block == ": heartbeat").count();
    assert!(heartbeats >= 3);
    let events: Vec<_> = blocks.iter().filter(|block| **block != ": heartbeat").collect();
    assert!(
        events
            .iter()
            .all(|event| event.starts_with("data: {\"seq\":") && event.ends_with('}'))
    );
    assert_eq!(events.len(), 4, "reset, two objects, synced");
    assert_eq!(raw.matches("heartbeat").count(), heartbeats);
    assert_eq!(raw.matches(&large).count(), 2, "not a byte is lost");
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_stalls_does_not_find_a_pile_of_them() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream)
        .heartbeat_interval(Duration::from_millis(100))
        .build()
        .unwrap();
    let mut connection = get(&gateway, QUERY);
    let (_, session) = tokio::join!(connection.types(2), async {
        script.next_open().await.accept_with([], "1")
    });
    tokio::time::sleep(Duration::from_mins(1)).await;
    session.send(WatchEvent::Added(config_map("a", 2, "v")));
    tokio::time::sleep(Duration::from_millis(1)).await;
    let before = connection.raw().len();
    connection.events(1).await;
    let came = String::from_utf8_lossy(&connection.raw()[before..]).into_owned();
    assert!(came.matches("heartbeat").count() <= 1, "{came}");
}

#[tokio::test(start_paused = true)]
async fn they_come_after_an_object_of_whatever_size() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream)
        .heartbeat_interval(Duration::from_secs(20))
        .build()
        .unwrap();
    let mut connection = get(&gateway, QUERY);
    let (_, session) = tokio::join!(connection.types(2), async {
        script.next_open().await.accept_with([], "1")
    });
    // A large object's frame is handed out in pieces of 64 KiB: one of these ends within the blank line after it.
    for (version, size) in (2_u64..).zip(65_000..65_600) {
        session.send(WatchEvent::Modified(config_map("a", version, &"x".repeat(size))));
        connection.events(1).await;
        let last = Instant::now();
        let next = tokio::time::timeout(Duration::from_mins(1), connection.chunk()).await;
        assert_eq!(next.unwrap().unwrap(), HEARTBEAT, "after {size}");
        assert_eq!(last.elapsed(), Duration::from_secs(20), "after {size}");
    }
}
