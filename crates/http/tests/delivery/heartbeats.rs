//! H3: heartbeats stand between events only, and do not pile up, over real connections with slow readers.

use std::time::Duration;

use krm_stream_protocol::{SessionEnd, UpstreamError, UpstreamErrorKind, WatchEvent};
use tokio::time::{Instant, sleep};

use super::support::{Client, Host, Kind, Rate, Sizes, Stream, Throttled, config_map};

const HEARTBEAT: &str = ": heartbeat";

/// The blocks between blank lines: heartbeats, and events that are whole. Returns the number of heartbeats.
fn heartbeats_stand_alone(stream: &Stream, events: usize) -> usize {
    let text = std::str::from_utf8(&stream.raw).unwrap();
    assert!(text.ends_with("\n\n"));
    let blocks: Vec<_> = text.split_terminator("\n\n").collect();
    let (heartbeats, others): (Vec<_>, Vec<_>) = blocks.into_iter().partition(|block| *block == HEARTBEAT);
    assert_eq!(others.len(), events);
    for event in others {
        assert!(event.starts_with("data: {\"seq\":") && event.ends_with('}'));
        assert!(!event.contains(HEARTBEAT));
    }
    heartbeats.len()
}

#[tokio::test(start_paused = true)]
async fn a_large_event_over_a_slow_link_arrives_whole_and_heartbeats_stand_outside_of_it() {
    for kind in Kind::ALL {
        let mut host = Host::with(|builder| builder.heartbeat_interval(Duration::from_millis(100)));
        // 50 KiB/s.
        let rate = Rate::of(5 * 1024);
        let link = |io| Throttled::new(io, &rate);
        let sizes = Sizes {
            transport: 4096,
            window: 64 * 1024,
        };
        let mut client = Client::connect_through(kind, host.gateway.clone(), sizes, link).await;
        let (mut stream, session) = tokio::join!(client.open(), async {
            let opening = host.script.next_open().await;
            sleep(Duration::from_secs(1)).await;
            opening.accept()
        });
        let large = "x".repeat(3 << 20);
        session.send(WatchEvent::Added(config_map("large", 1, &large)));
        session.boundary("1");
        let began = Instant::now();
        assert_eq!(stream.types(1).await, ["reset"]);
        let event = stream.next().await.unwrap().unwrap();
        assert!(
            event.contains(&format!("\"value\":\"{large}\"")),
            "{kind:?}: not a byte is lost"
        );
        assert!(began.elapsed() > Duration::from_secs(55), "the link is slow");
        assert_eq!(stream.types(1).await, ["synced"]);
        sleep(Duration::from_secs(2)).await;
        session.send(WatchEvent::Added(config_map("a", 2, "v")));
        assert_eq!(stream.types(1).await, ["added"]);
        let heartbeats = heartbeats_stand_alone(&stream, 4);
        // Ten before the watch was open, and twenty in the end; none in the minute between.
        assert!((20..60).contains(&heartbeats), "{kind:?}: {heartbeats}");
        assert_eq!(host.timeouts(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_stalls_for_a_minute_finds_no_pile_of_heartbeats() {
    for kind in Kind::ALL {
        let mut host = Host::with(|builder| {
            builder
                .heartbeat_interval(Duration::from_millis(100))
                .write_timeout(Duration::from_mins(2))
        });
        let mut client = Client::connect(kind, host.gateway.clone()).await;
        let (mut stream, session) =
            tokio::join!(client.open(), async { host.script.next_open().await.accept() });
        session.send(WatchEvent::Added(config_map("large", 1, &"x".repeat(300_000))));
        session.boundary("1");
        sleep(Duration::from_mins(1)).await;
        assert_eq!(stream.types(3).await, ["reset", "added", "synced"]);
        session.send(WatchEvent::Added(config_map("a", 2, "v")));
        assert_eq!(stream.types(1).await, ["added"]);
        let heartbeats = heartbeats_stand_alone(&stream, 4);
        assert!(heartbeats <= 2, "{kind:?}: {heartbeats} of 600 that were due");
    }
}

#[tokio::test(start_paused = true)]
async fn heartbeats_come_while_the_upstream_is_opened_and_while_it_is_retried() {
    for kind in Kind::ALL {
        let mut host = Host::with(|builder| builder.heartbeat_interval(Duration::from_millis(500)));
        let mut client = Client::connect(kind, host.gateway.clone()).await;
        let mut stream = client.open().await;
        let opening = host.script.next_open().await;
        let beats = async |stream: &mut Stream, beats: usize| {
            for _ in 0..beats {
                let mut beat = stream.chunk().await.unwrap().unwrap().to_vec();
                while beat.len() < HEARTBEAT.len() + 2 {
                    beat.extend(stream.chunk().await.unwrap().unwrap());
                }
                assert_eq!(beat, b": heartbeat\n\n");
            }
        };
        beats(&mut stream, 10).await;
        let session = opening.accept_with([], "1");
        assert_eq!(stream.types(2).await, ["reset", "synced"]);
        tokio::select! {
            () = beats(&mut stream, 100) => panic!("that is too many"),
            () = sleep(Duration::from_millis(6_250)) => {}
        }
        session.end(SessionEnd::Closed);
        host.script.next_open().await.refuse(
            UpstreamError::new(UpstreamErrorKind::Unavailable).with_retry_after(Some(Duration::from_secs(9))),
        );
        beats(&mut stream, 12).await;
        assert!(host.script.try_next_open().is_none(), "the hint is honoured");
    }
}
