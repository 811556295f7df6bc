//! The guard of a connection's socket.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::Connection;
use crate::settings::CHUNK_BYTES;

/// A connection's transport: reads and writes fail once what is pending was not taken in time.
///
/// The clock starts when a write or a flush has to wait. It starts anew when 64 KiB were taken since, and stops when a
/// flush completes: for a socket that is as soon as everything pending was taken; TLS has a buffer of its own, and bytes
/// in it are not taken yet. A byte now and then changes nothing. A connection with nothing to write has no clock.
#[derive(Debug)]
pub struct BoundedIo<I> {
    io: I,
    connection: Arc<Connection>,
    overdue: Option<Clock>,
}

#[derive(Debug)]
struct Clock {
    sleep: Pin<Box<Sleep>>,
    /// What must be taken before it starts anew.
    remaining: usize,
}

impl<I> BoundedIo<I> {
    pub(super) fn new(io: I, connection: Arc<Connection>) -> Self {
        Self {
            io,
            connection,
            overdue: None,
        }
    }

    /// The transport itself.
    pub fn get_ref(&self) -> &I {
        &self.io
    }

    fn wrote(&mut self, bytes: usize) {
        let Some(clock) = &mut self.overdue else { return };
        clock.remaining = clock.remaining.saturating_sub(bytes);
        if clock.remaining == 0
            && let Some(write_timeout) = self.connection.write_timeout()
        {
            clock.remaining = CHUNK_BYTES;
            clock.sleep.as_mut().reset(Instant::now() + write_timeout);
        }
    }

    /// Something is pending and was not taken just now.
    fn waits<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let clock = match &mut self.overdue {
            Some(clock) => clock,
            None => match self.connection.write_timeout() {
                Some(write_timeout) => self.overdue.insert(Clock {
                    sleep: Box::pin(sleep_until(Instant::now() + write_timeout)),
                    remaining: CHUNK_BYTES,
                }),
                None => return Poll::Pending,
            },
        };
        std::task::ready!(clock.sleep.as_mut().poll(cx));
        self.connection.cut();
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "what was written was not taken within the write timeout",
        )))
    }

    fn wrote_or_waits(
        &mut self,
        result: Poll<io::Result<usize>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match result {
            Poll::Ready(Ok(bytes)) => {
                self.wrote(bytes);
                Poll::Ready(Ok(bytes))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => self.waits(cx),
        }
    }

    fn flushed_or_waits(
        &mut self,
        result: Poll<io::Result<()>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        match result {
            Poll::Ready(result) => {
                self.overdue = None;
                Poll::Ready(result)
            }
            Poll::Pending => self.waits(cx),
        }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for BoundedIo<I> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_read(cx, buf)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for BoundedIo<I> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.io).poll_write(cx, buf);
        this.wrote_or_waits(result, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.io).poll_write_vectored(cx, bufs);
        this.wrote_or_waits(result, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.io).poll_flush(cx);
        this.flushed_or_waits(result, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.io).poll_shutdown(cx);
        this.flushed_or_waits(result, cx)
    }
}
