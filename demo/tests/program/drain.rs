//! The end of the program, with readers of every kind, and the end of those that read nothing.

use std::time::Duration;

use http_body_util::Empty;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, sleep, timeout};

use crate::CONFIG_MAPS;
use crate::demo::Demo;
use crate::stream::Stream;

const WITHIN: Duration = Duration::from_mins(1);
const GRACE: Duration = Duration::from_secs(10);
/// The scope of the simulator's many objects: more than the kernel's buffers take.
const BULK: &str = "version=v1&resource=configmaps&namespace=bulk";

/// Sends a request and reads nothing, with as little room for the answer as the kernel grants.
async fn stalled(demo: &Demo) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut reader = socket.connect(demo.address().parse().unwrap()).await.unwrap();
    let request = format!("GET /resource-stream/v1?{BULK} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    reader.write_all(request.as_bytes()).await.unwrap();
    // It is stalled once nothing more is handed on for it, in the middle of a snapshot of megabytes.
    let deadline = Instant::now() + WITHIN;
    let mut before = 0;
    loop {
        assert!(Instant::now() < deadline, "it is sent more and more");
        let status = demo.json("/status").await;
        let delivered = status["bytes"]["delivered"].as_u64().unwrap();
        if delivered == before && delivered > 10_000 {
            return reader;
        }
        before = delivered;
        sleep(Duration::from_millis(100)).await;
    }
}

/// An HTTP/2 connection without a stream, as its frames.
struct Frames(TcpStream);

impl Frames {
    const GOAWAY: u8 = 7;

    async fn connect(demo: &Demo) -> Self {
        let mut connection = TcpStream::connect(demo.address()).await.unwrap();
        // The preface and empty settings (RFC 9113, section 3.4).
        connection
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
            .await
            .unwrap();
        let mut frames = Self(connection);
        let (kind, _) = frames.next().await.unwrap();
        assert_eq!(kind, 4, "the server's settings come first");
        frames
    }

    /// The type and the payload of the next frame; `None` once the connection is closed.
    async fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).await.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.0.read_exact(&mut payload).await.ok()?;
        Some((head[3], payload))
    }
}

/// Case H6.
#[tokio::test]
async fn at_the_end_every_reader_is_told_and_one_that_takes_nothing_is_not_waited_for() {
    let mut demo = Demo::start(&[
        "--simulator-objects",
        "5000",
        "--simulator-tick",
        "0",
        "--drain-timeout",
        "10s",
        "--drain-spread",
        "5s",
    ])
    .await;
    let mut idle = Vec::new();
    for _ in 0..3 {
        let mut stream = Stream::open(&demo, CONFIG_MAPS, &[]).await;
        stream.until(|event| event["type"] == "synced").await;
        idle.push(stream);
    }
    let mut multiplexed = Stream::open_http2(&demo, CONFIG_MAPS).await;
    multiplexed.until(|event| event["type"] == "synced").await;
    idle.push(multiplexed);
    let _stalled = stalled(&demo).await;
    let mut frames = Frames::connect(&demo).await;

    let asked = Instant::now();
    demo.signal("TERM");
    let mut hints = Vec::new();
    for stream in &mut idle {
        let last: Value = timeout(WITHIN, stream.until(|event| event["type"] == "error"))
            .await
            .unwrap();
        assert_eq!(last["code"], "UPSTREAM_UNAVAILABLE");
        hints.push(last["retryAfterMs"].as_u64().unwrap());
        assert!(stream.ends().await);
    }
    assert!(
        asked.elapsed() < GRACE,
        "nobody waits for the one that is stalled"
    );
    let distinct: std::collections::BTreeSet<_> = hints.iter().collect();
    assert!(distinct.len() > 1, "readers come back one by one: {hints:?}");

    let mut kinds = Vec::new();
    while let Some((kind, _)) = timeout(WITHIN, frames.next()).await.unwrap() {
        kinds.push(kind);
    }
    assert!(kinds.contains(&Frames::GOAWAY), "{kinds:?}");

    // New ones are refused: nobody listens any more.
    let refused = async {
        let socket = TcpStream::connect(demo.address()).await?;
        let io = hyper_util::rt::TokioIo::new(socket);
        let (mut requests, connection) = hyper::client::conn::http1::handshake(io)
            .await
            .map_err(std::io::Error::other)?;
        tokio::spawn(connection);
        let request = http::Request::get("/livez")
            .header("host", "localhost")
            .body(Empty::<bytes::Bytes>::new())
            .map_err(std::io::Error::other)?;
        requests
            .send_request(request)
            .await
            .map_err(std::io::Error::other)
    };
    assert!(timeout(WITHIN, refused).await.unwrap().is_err());

    let status = timeout(WITHIN, demo.wait()).await.unwrap();
    assert!(status.success(), "{status}");
    let ended = asked.elapsed();
    assert!(
        ended >= GRACE,
        "the one that takes nothing has its time: {ended:?}"
    );
    // Long before its write timeout of 30 s is over.
    assert!(ended < GRACE * 2, "{ended:?}");
}

/// A client that asks for the page again and again and reads nothing is cut as a stream's reader is.
#[tokio::test]
async fn a_client_that_takes_no_answer_is_cut_on_every_route() {
    let demo = Demo::start(&["--write-timeout", "1s"]).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut client = socket.connect(demo.address().parse().unwrap()).await.unwrap();
    let request = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let asked = Instant::now();
    // Its requests wait in the kernel while it is not answered; the end of the connection ends the writing.
    let cut = async { while client.write_all(request).await.is_ok() {} };
    // Before the write timeout that it has by default.
    timeout(Duration::from_secs(20), cut).await.unwrap();
    assert!(asked.elapsed() >= Duration::from_secs(1));
    assert_eq!(demo.read("/livez", &[]).await.1, "ok\n", "others are served");
}
