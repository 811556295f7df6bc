//! A slow link.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// How many bytes a link lets through in a tick. It may change.
#[derive(Clone, Debug)]
pub(crate) struct Rate {
    bytes: Arc<AtomicUsize>,
    tick: Duration,
}

impl Rate {
    /// So many bytes in 100 ms.
    pub(crate) fn of(bytes: usize) -> Self {
        Self {
            bytes: Arc::new(AtomicUsize::new(bytes)),
            tick: Duration::from_millis(100),
        }
    }

    pub(crate) fn unlimited() -> Self {
        Self::of(usize::MAX)
    }

    pub(crate) fn with_tick(self, tick: Duration) -> Self {
        Self { tick, ..self }
    }

    pub(crate) fn set(&self, bytes: usize) {
        self.bytes.store(bytes, Ordering::SeqCst);
    }

    fn bytes(&self) -> usize {
        self.bytes.load(Ordering::SeqCst)
    }
}

/// What can be read is limited, whatever waits at the other end.
pub(crate) struct Throttled<I> {
    io: I,
    rate: Rate,
    left: usize,
    tick: Pin<Box<Sleep>>,
}

impl<I> Throttled<I> {
    pub(crate) fn new(io: I, rate: &Rate) -> Self {
        Self {
            io,
            rate: rate.clone(),
            left: 0,
            tick: Box::pin(sleep(rate.tick)),
        }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Throttled<I> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.rate.bytes() == usize::MAX {
            return Pin::new(&mut this.io).poll_read(cx, buf);
        }
        while this.left == 0 {
            ready!(this.tick.as_mut().poll(cx));
            this.tick.as_mut().reset(Instant::now() + this.rate.tick);
            this.left = this.rate.bytes();
        }
        let mut bytes = vec![0; this.left.min(buf.remaining())];
        let mut some = ReadBuf::new(&mut bytes);
        ready!(Pin::new(&mut this.io).poll_read(cx, &mut some))?;
        this.left -= some.filled().len();
        buf.put_slice(some.filled());
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Throttled<I> {
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
