//! H1 and H2, one stream at a time: a reader that takes nothing, or almost nothing, is cut when a chunk is overdue, over
//! each kind of connection; one that has nothing to take is not.

use std::time::Duration;

use krm_stream_protocol::WatchEvent;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::time::{Instant, sleep};

use super::support::{
    Client, Guarded, Host, Kind, PATH, Rate, Seam, Sizes, Stream, Throttled, WRITE_TIMEOUT, config_map,
    eventually, is_in_time,
};

/// A stream that has read its `reset` and has 2 MiB ahead of it.
async fn with_much_ahead(host: &mut Host, client: &mut Client) -> Stream {
    let (mut stream, session) = tokio::join!(client.open(), async { host.script.next_open().await.accept() });
    assert_eq!(stream.types(1).await, ["reset"]);
    session.send(WatchEvent::Added(config_map("large", 1, &"x".repeat(2 << 20))));
    session.boundary("1");
    // The watch goes on, in silence.
    tokio::spawn(async move {
        std::future::pending::<()>().await;
        drop(session);
    });
    stream
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_stops_before_one_large_event_is_cut_in_time_and_released_at_once() {
    for kind in Kind::ALL {
        let mut host = Host::new();
        let mut client = Client::connect(kind, host.gateway.clone()).await;
        let mut stream = with_much_ahead(&mut host, &mut client).await;
        is_in_time(host.cut().await);
        assert_eq!(host.timeouts(), 1, "{kind:?}");
        host.is_left_alone().await;
        assert!(host.bytes_handed_out() < 4 << 20);
        stream.break_of().await;
        if kind.is_multiplexed() {
            assert!(!client.server.is_finished(), "the connection goes on");
        } else {
            eventually("the connection is dropped", || client.server.is_finished()).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_a_byte_now_and_then_is_cut_as_if_it_took_none() {
    for kind in Kind::ALL {
        let mut host = Host::new();
        let rate = Rate::unlimited();
        let link = |io| Throttled::new(io, &rate);
        let mut client = Client::connect_through(kind, host.gateway.clone(), Sizes::SMALL, link).await;
        let mut stream = with_much_ahead(&mut host, &mut client).await;
        rate.set(1);
        let began = Instant::now();
        let reading = tokio::spawn(async move {
            while let Some(Ok(_)) = stream.chunk().await {}
            stream.raw.len()
        });
        host.cut().await;
        rate.set(usize::MAX);
        is_in_time(began.elapsed());
        host.is_left_alone().await;
        let read = reading.await.unwrap();
        assert!(read < 200 * 1024, "{kind:?}: {read}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_with_nothing_to_say_lives_for_ever() {
    for kind in Kind::ALL {
        let mut host = Host::with(|builder| {
            builder
                .write_timeout(Duration::from_secs(1))
                .heartbeat_interval(Duration::from_secs(20))
        });
        let mut client = Client::connect(kind, host.gateway.clone()).await;
        let (mut stream, session) = tokio::join!(client.open(), async {
            host.script.next_open().await.accept_with([], "1")
        });
        assert_eq!(stream.types(2).await, ["reset", "synced"]);
        let before = stream.raw.len();
        let quiet = async {
            loop {
                stream.chunk().await.unwrap().unwrap();
            }
        };
        assert!(
            tokio::time::timeout(Duration::from_hours(6), quiet)
                .await
                .is_err()
        );
        let heartbeats = String::from_utf8_lossy(&stream.raw[before..])
            .matches(": heartbeat")
            .count();
        assert_eq!(heartbeats, 6 * 180 - 1, "{kind:?}");
        session.send(WatchEvent::Added(config_map("a", 2, "v")));
        assert_eq!(stream.types(1).await, ["added"]);
        assert_eq!(host.timeouts(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_link_that_is_slow_and_keeps_the_pace_of_a_chunk_a_timeout_is_served() {
    for (kind, guarded) in Kind::ALL
        .into_iter()
        .flat_map(|kind| Guarded::ALL.map(|guarded| (kind, guarded)))
    {
        let mut host = Host::new();
        // 64 KiB within 4 of the 5 s.
        let sizes = Sizes {
            transport: 1024,
            window: 64 * 1024,
        };
        let rate = Rate::of(1_639);
        let link = |io| Throttled::new(io, &rate);
        let gateway = host.gateway.clone();
        let mut client = Client::connect_guarding(kind, guarded, gateway, sizes, link, |io| io).await;
        let mut stream = with_much_ahead(&mut host, &mut client).await;
        let types = stream.types(2).await;
        assert_eq!(types, ["added", "synced"], "{kind:?} {guarded:?}");
        assert_eq!(host.timeouts(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_that_is_not_taken_ends_its_stream() {
    for kind in Kind::ALL {
        let host = Host::with(|builder| {
            builder
                .resolver(Seam::hangs())
                .reauthorization_timeout(Duration::from_hours(1))
                .heartbeat_interval(Duration::from_secs(1))
        });
        let rate = Rate::unlimited();
        let link = |io| Throttled::new(io, &rate);
        let sizes = Sizes {
            transport: 256,
            window: 256,
        };
        let mut client = Client::connect_through(kind, host.gateway.clone(), sizes, link).await;
        let response = client.open().await;
        rate.set(0);
        let began = Instant::now();
        let took = async {
            while host.timeouts() == 0 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let found = tokio::time::timeout(Duration::from_mins(1), took).await;
        assert!(found.is_ok(), "{kind:?}");
        assert!(began.elapsed() >= WRITE_TIMEOUT);
        drop(response);
    }
}

#[tokio::test(start_paused = true)]
async fn headers_that_are_not_taken_end_the_connection() {
    let host = Host::new();
    let (mut near, far) = duplex(64);
    let server = tokio::spawn(krm_stream_http::serve_connection(far, host.gateway.clone()));
    let request = format!("GET {PATH} HTTP/1.1\r\nhost: localhost\r\nx-user: ada\r\n\r\n");
    near.write_all(request.as_bytes()).await.unwrap();
    is_in_time(host.cut().await);
    assert!(server.await.unwrap().is_err());
    host.is_left_alone().await;
    let mut came = Vec::new();
    near.read_to_end(&mut came).await.unwrap();
    assert_eq!(came.len(), 64);
}
