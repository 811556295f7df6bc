//! Clients that ask for nothing: connections are bounded in time before their first request, and between.

use std::time::Duration;

use http_body_util::BodyExt as _;
use krm_stream_http::serve_connection;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::time::{Instant, sleep};

use super::support::{Client, Host, Kind, Rate, Sizes, Throttled, eventually, request};

/// A connection on which `bytes` were sent and then nothing; how long it lives.
async fn lives(bytes: &[u8]) -> Duration {
    let host = Host::new();
    let (mut near, far) = duplex(16 * 1024);
    let server = tokio::spawn(serve_connection(far, host.gateway.clone()));
    near.write_all(bytes).await.unwrap();
    let began = Instant::now();
    let mut came = Vec::new();
    near.read_to_end(&mut came).await.unwrap();
    let _ = server.await.unwrap();
    assert_eq!(host.recorder.all(), []);
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_sends_a_whole_head_is_waited_for_ten_seconds() {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let settings = [PREFACE, &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat();
    for begun in [
        b"".as_slice(),
        b"G",
        b"GET /resource-stream/v1?version=v1 HTTP/1.1\r\nhost: loc",
        b"PRI * HT",
        PREFACE,
        &settings,
    ] {
        let lived = lives(begun).await;
        assert!(
            (Duration::from_secs(9)..Duration::from_secs(12)).contains(&lived),
            "{begun:?} lived {lived:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_that_comes_byte_by_byte_has_ten_seconds_as_a_whole() {
    let host = Host::new();
    let (mut near, far) = duplex(16 * 1024);
    let server = tokio::spawn(serve_connection(far, host.gateway.clone()));
    let began = Instant::now();
    let trickling = tokio::spawn(async move {
        loop {
            sleep(Duration::from_millis(500)).await;
            if near.write_all(b"x").await.is_err() {
                return;
            }
        }
    });
    let _ = server.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(12));
    trickling.abort();
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_was_used_and_is_idle_is_closed_after_a_while() {
    for (kind, longest) in [(Kind::Http1, 15), (Kind::Http2, 130)] {
        let host = Host::new();
        let mut client = Client::connect(kind, host.gateway.clone()).await;
        let mut not_allowed = request(kind, "/resource-stream/v1");
        *not_allowed.method_mut() = http::Method::POST;
        let response = client.send(not_allowed).await.unwrap();
        assert_eq!(response.status(), 405);
        response.into_body().collect().await.unwrap();
        let began = Instant::now();
        let closes = async {
            while !client.server.is_finished() {
                sleep(Duration::from_millis(100)).await;
            }
        };
        assert!(
            tokio::time::timeout(Duration::from_mins(10), closes)
                .await
                .is_ok()
        );
        let idle = began.elapsed();
        assert!(
            idle > Duration::from_secs(9) && idle < Duration::from_secs(longest),
            "{kind:?} {idle:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_vanished_is_found_by_a_ping() {
    let mut host = Host::new();
    let rate = Rate::unlimited();
    let link = |io| Throttled::new(io, &rate);
    let mut client = Client::connect_through(Kind::Http2, host.gateway.clone(), Sizes::SMALL, link).await;
    let (mut stream, _session) = tokio::join!(client.open(), async {
        host.script.next_open().await.accept_with([], "1")
    });
    assert_eq!(stream.types(2).await, ["reset", "synced"]);
    sleep(Duration::from_mins(10)).await;
    assert_eq!(
        host.recorder.still_open()[0],
        1,
        "a peer that answers is left alone"
    );
    rate.set(0);
    let vanished = Instant::now();
    eventually("the connection ends", || host.recorder.still_open()[0] == 0).await;
    assert!(
        vanished.elapsed() < Duration::from_secs(55),
        "{:?}",
        vanished.elapsed()
    );
    assert_eq!(host.timeouts(), 0, "nothing was overdue");
}
