//! H6: a server that ends while streams of HTTP/2 connections are open. Each that reads gets its last event, every connection
//! its GOAWAY, and nothing outlives the grace time.

use std::future::pending;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use krm_stream_http::serve;
use krm_stream_protocol::{SessionEnd, UpstreamError, UpstreamErrorKind, WatchEvent, json};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::serve::InMemory;
use super::support::{Client, Host, Kind, PATH, Sizes, Stream, config_map, request};

const GRACE: Duration = Duration::from_secs(10);
const SPREAD: Duration = Duration::from_secs(30);
const OTHER: &str = "/resource-stream/v1?version=v1&resource=configmaps&namespace=other";
/// <https://www.rfc-editor.org/rfc/rfc9113#section-6.8>.
const GOAWAY: u8 = 7;

/// What a client's transport brought.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<(Vec<u8>, Option<Instant>)>>);

impl Heard {
    /// The types of all frames that came whole: <https://www.rfc-editor.org/rfc/rfc9113#section-4.1>.
    fn frames(&self) -> Vec<u8> {
        let heard = self.0.lock().unwrap();
        let mut rest = &heard.0[..];
        let mut kinds = Vec::new();
        while let [a, b, c, kind, ..] = *rest {
            let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
            let Some(next) = rest.get(9 + length..) else { break };
            kinds.push(kind);
            rest = next;
        }
        kinds
    }

    /// When the connection was closed.
    fn closed_at(&self) -> Option<Instant> {
        self.0.lock().unwrap().1
    }
}

struct Tapped {
    io: DuplexStream,
    heard: Heard,
}

/// A client closes a connection that was told to go and has nothing open.
impl Drop for Tapped {
    fn drop(&mut self) {
        self.heard.0.lock().unwrap().1.get_or_insert_with(Instant::now);
    }
}

impl AsyncRead for Tapped {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.io).poll_read(cx, buf))?;
        let came = &buf.filled()[before..];
        let mut heard = this.heard.0.lock().unwrap();
        heard.0.extend_from_slice(came);
        if came.is_empty() {
            heard.1.get_or_insert_with(Instant::now);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Tapped {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}

/// The stream says farewell and is over. When to come back.
async fn says_farewell(mut stream: Stream) -> u64 {
    let event = stream.next().await.unwrap().unwrap();
    assert!(
        event.contains("\"code\":\"UPSTREAM_UNAVAILABLE\"") && event.contains("\"terminal\":false"),
        "{event}"
    );
    assert!(stream.next().await.is_none(), "it ends, and does not break");
    let wait = json::last_member(event.as_bytes(), "retryAfterMs").unwrap();
    let wait = String::from_utf8_lossy(wait).parse().unwrap();
    let most = 500 + u64::try_from(SPREAD.as_millis()).unwrap();
    assert!((500..=most).contains(&wait), "{event}");
    wait
}

#[tokio::test(start_paused = true)]
async fn open_streams_of_http2_get_their_last_event_and_goaway_and_the_stalled_one_only_the_grace_time() {
    let mut host = Host::with(|builder| builder.write_timeout(Duration::from_hours(1)));
    let (connections, accepted) = mpsc::unbounded_channel();
    let (end, ended) = oneshot::channel::<()>();
    let draining = host.gateway.clone();
    let end_of_service = async move {
        let _ = ended.await;
        draining.drain(SPREAD);
    };
    let server = serve(InMemory { accepted }, host.gateway.clone())
        .with_graceful_shutdown(end_of_service, GRACE)
        .into_future();
    let server = tokio::spawn(server);
    let connect = async || {
        let (near, far) = duplex(64 * 1024);
        connections.send(Ok(far)).unwrap();
        let heard = Heard::default();
        let io = Tapped {
            io: near,
            heard: heard.clone(),
        };
        let client = Client::over(Kind::Http2, io, Sizes::SMALL.window, tokio::spawn(pending())).await;
        (client, heard)
    };

    // Three that are idle and one whose feed is in backoff, on one connection.
    let (mut readable, heard) = connect().await;
    let (mut first, session) = tokio::join!(readable.open(), async {
        host.script.next_open().await.accept_with([], "1")
    });
    assert_eq!(first.types(2).await, ["reset", "synced"]);
    let mut streams = vec![first];
    for _ in 0..2 {
        let mut stream = readable.open().await;
        assert_eq!(stream.types(2).await, ["reset", "synced"]);
        streams.push(stream);
    }
    let (response, of_other) = tokio::join!(readable.send(request(Kind::Http2, OTHER)), async {
        host.script.next_open().await.accept_with([], "1")
    });
    let mut in_backoff = Stream::new(response.unwrap().into_body());
    assert_eq!(in_backoff.types(2).await, ["reset", "synced"]);
    of_other.end(SessionEnd::Closed);
    let error = UpstreamError::new(UpstreamErrorKind::Unavailable);
    let error = error.with_retry_after(Some(Duration::from_mins(1)));
    host.script.next_open().await.refuse(error);
    streams.push(in_backoff);

    // One that takes nothing of a large object, and one that reads, on another.
    let (mut other, heard_by_other) = connect().await;
    let mut stalled = other.open().await;
    let mut idle = other.open().await;
    for stream in [&mut stalled, &mut idle] {
        assert_eq!(stream.types(2).await, ["reset", "synced"]);
    }
    session.send(WatchEvent::Added(config_map("large", 2, &"x".repeat(100_000))));
    streams.push(idle);
    for stream in streams.iter_mut().take(3) {
        assert_eq!(stream.types(1).await, ["added"]);
    }
    assert_eq!(streams[4].types(1).await, ["added"]);
    assert_eq!(host.recorder.still_open()[0], 6);
    for heard in [&heard, &heard_by_other] {
        assert!(!heard.frames().contains(&GOAWAY));
        assert_eq!(heard.closed_at(), None);
    }

    let began = Instant::now();
    end.send(()).unwrap();
    let mut waits = Vec::new();
    for stream in streams {
        waits.push(says_farewell(stream).await);
    }
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "nobody waits for an event"
    );
    waits.sort_unstable();
    waits.dedup();
    assert!(waits.len() > 1, "they come back at different times: {waits:?}");
    tokio::time::sleep(Duration::from_secs(1)).await;
    for heard in [&heard, &heard_by_other] {
        assert!(heard.frames().contains(&GOAWAY), "{:?}", heard.frames());
    }
    let closed = heard.closed_at().expect("nothing is open on it any more") - began;
    assert!(closed < Duration::from_secs(1), "{closed:?}");
    assert_eq!(
        heard_by_other.closed_at(),
        None,
        "the one that stalls has the grace time"
    );
    for client in [&mut readable, &mut other] {
        assert!(client.send(request(Kind::Http2, PATH)).await.is_err());
    }

    server.await.unwrap();
    let took = began.elapsed();
    assert!(took.abs_diff(GRACE) < Duration::from_secs(1), "{took:?}");
    stalled.break_of().await;
    assert!(heard_by_other.closed_at().is_some());
    drop(session);
    host.is_left_alone().await;
}
