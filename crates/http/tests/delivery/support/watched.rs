//! A socket that remembers since when it has not taken what is pending.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

const CHUNK_BYTES: usize = 64 * 1024;

/// What a socket was seen to take.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    is_write_waiting: bool,
    /// Since when a chunk, or all that is pending, was not taken.
    pending_since: Option<Instant>,
    since_then: usize,
}

impl Seen {
    /// How long a chunk has been waiting, or all that is pending.
    pub(crate) fn waiting(&self) -> Option<Duration> {
        Some(self.0.lock().unwrap().pending_since?.elapsed())
    }

    fn write(&self, result: &Poll<io::Result<usize>>) {
        let mut taken = self.0.lock().unwrap();
        taken.is_write_waiting = result.is_pending();
        match result {
            Poll::Ready(Ok(bytes)) => {
                taken.since_then += bytes;
                if taken.pending_since.is_some() && taken.since_then >= CHUNK_BYTES {
                    taken.since_then = 0;
                    taken.pending_since = Some(Instant::now());
                }
            }
            Poll::Ready(Err(_)) => {}
            Poll::Pending => {
                if taken.pending_since.is_none() {
                    taken.since_then = 0;
                    taken.pending_since = Some(Instant::now());
                }
            }
        }
    }

    fn flush(&self, result: &Poll<io::Result<()>>) {
        let mut taken = self.0.lock().unwrap();
        if matches!(result, Poll::Ready(Ok(()))) && !taken.is_write_waiting {
            taken.pending_since = None;
        }
    }
}

/// A socket that is seen.
#[derive(Debug)]
pub(crate) struct Watched<I> {
    io: I,
    seen: Seen,
}

impl<I> Watched<I> {
    pub(crate) fn new(io: I, seen: &Seen) -> Self {
        Self {
            io,
            seen: seen.clone(),
        }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Watched<I> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_read(cx, buf)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Watched<I> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.io).poll_write(cx, buf);
        this.seen.write(&result);
        result
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.io).poll_write_vectored(cx, bufs);
        this.seen.write(&result);
        result
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.io).poll_flush(cx);
        this.seen.flush(&result);
        result
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}
