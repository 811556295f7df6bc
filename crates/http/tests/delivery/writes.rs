//! What is pending goes out in one write over HTTP/1.1, with the framing of its chunk.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use krm_stream_protocol::WatchEvent;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

use super::support::{Client, Guarded, Host, Kind, Sizes, config_map};

/// A socket that takes several slices at once, as a real one does, and counts the calls.
struct Counting {
    io: DuplexStream,
    writes: Arc<AtomicUsize>,
}

impl AsyncRead for Counting {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_read(cx, buf)
    }
}

impl AsyncWrite for Counting {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.writes.fetch_add(1, Ordering::SeqCst);
        Pin::new(&mut this.io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let whole: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
        self.poll_write(cx, &whole)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}

/// How many writes `events` changes of objects of this size need that come one after the other, and as many that come at once.
async fn writes(kind: Kind, events: usize, bytes: usize) -> (usize, usize) {
    let mut host = Host::new();
    let writes = Arc::new(AtomicUsize::new(0));
    let counting = |io| Counting {
        io,
        writes: writes.clone(),
    };
    let sizes = Sizes {
        transport: 4 << 20,
        window: 4 << 20,
    };
    let gateway = host.gateway.clone();
    let mut client = Client::connect_guarding(kind, Guarded::Socket, gateway, sizes, |io| io, counting).await;
    let (mut stream, session) = tokio::join!(client.open(), async {
        host.script.next_open().await.accept_with([], "1")
    });
    assert_eq!(stream.types(2).await, ["reset", "synced"]);
    let before = writes.load(Ordering::SeqCst);
    let mut version = 1;
    let mut change = || {
        version += 1;
        let uid = format!("o{version}");
        session.send(WatchEvent::Added(config_map(&uid, version, &"v".repeat(bytes))));
    };
    for _ in 0..events {
        change();
        stream.types(1).await;
    }
    let after = writes.load(Ordering::SeqCst);
    for _ in 0..events {
        change();
    }
    stream.types(events).await;
    (after - before, writes.load(Ordering::SeqCst) - after)
}

#[tokio::test(start_paused = true)]
async fn over_http1_an_event_is_one_write_and_so_are_twenty_that_are_pending() {
    for kind in [Kind::Http1, Kind::Http1Tls] {
        let (one_by_one, at_once) = writes(kind, 20, 2000).await;
        assert_eq!(one_by_one, 20, "{kind:?}");
        assert!(at_once <= 2, "{kind:?}: {at_once}");
    }
}

#[tokio::test(start_paused = true)]
async fn over_http2_the_last_byte_of_a_chunk_costs_no_round_trip() {
    for kind in Kind::MULTIPLEXED {
        let (one_by_one, at_once) = writes(kind, 20, 2000).await;
        assert!(one_by_one <= 20 * 3, "{kind:?}: {one_by_one}");
        // 41 KB in frames of 16 KiB.
        assert!(at_once <= 12, "{kind:?}: {at_once}");
    }
}

/// From 16 KiB on an object goes out as the same memory for all, between the beginning and the end of its event; where several are
/// pending, they are copied into one chunk as far as they fit into 64 KiB.
#[tokio::test(start_paused = true)]
async fn over_http1_an_event_up_to_64_kib_is_one_write_and_those_that_are_pending_go_out_64_kib_at_a_time() {
    for kind in [Kind::Http1, Kind::Http1Tls] {
        for bytes in [2_000_usize, 10_000, 16_000, 20_000, 30_000, 60_000] {
            let (one_by_one, at_once) = writes(kind, 20, bytes).await;
            assert_eq!(one_by_one, 20, "{kind:?}: {bytes}");
            // What does not fit into the first 64 KiB may be a small rest.
            let fewest = (20 * bytes).div_ceil(64 * 1024);
            assert!(at_once <= 2 * fewest, "{kind:?}: {bytes}: {at_once}");
        }
        // Records of TLS are of 16 KiB, and the buffer for them of 64 KiB.
        let most = if kind.is_tls() { 60 } else { 40 };
        let (one_by_one, at_once) = writes(kind, 20, 100_000).await;
        assert!(one_by_one <= most, "{kind:?}: {one_by_one}");
        assert!(at_once <= most, "{kind:?}: {at_once}");
    }
}

/// Each frame of HTTP/2 holds 16 KiB, and h2 writes what its buffer of 16 KiB holds.
#[tokio::test(start_paused = true)]
async fn over_http2_a_large_event_is_a_write_for_each_frame_and_two_more() {
    for kind in Kind::MULTIPLEXED {
        for bytes in [20_000_usize, 60_000, 100_000] {
            let frames = bytes.div_ceil(16 * 1024);
            let (one_by_one, at_once) = writes(kind, 20, bytes).await;
            assert!(one_by_one <= 20 * (frames + 2), "{kind:?}: {bytes}: {one_by_one}");
            assert!(at_once <= one_by_one, "{kind:?}: {bytes}: {at_once}");
        }
    }
}
