//! The guard of a connection's socket.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use super::below::{self, Did};
use super::{Connection, GuardedIo};
use crate::settings::CHUNK_BYTES;

/// A connection's transport: writes fail once what is pending was not taken in time.
///
/// The clock starts when a write or a flush has to wait. It starts anew when 64 KiB were taken since, and stops when a
/// flush completes. A byte now and then changes nothing, and a connection with nothing to write has no clock.
///
/// A socket says what it took, so it is the socket that should be guarded, whatever is spoken over it. A TLS stream has a
/// buffer of its own, of 64 KiB in rustls: it says what came into that, and its flush completes when all of it was taken,
/// but what came last has its own time. Where only the TLS stream is guarded, a reader that takes a byte now and then may
/// be cut only after two to four timeouts where new chunks are small; one that takes a chunk of 64 KiB in each is never
/// cut. See [`ConnectionGuard::io`](crate::ConnectionGuard::io).
#[derive(Debug)]
pub struct BoundedIo<I> {
    io: I,
    connection: GuardedIo,
    /// What was read already, and is to be read again.
    put_back: Vec<u8>,
    clock: Option<Clock>,
    /// Whether a write was tried since the last flush that completed.
    has_written: bool,
}

#[derive(Debug)]
struct Clock {
    overdue: Pin<Box<Sleep>>,
    /// What must be taken before it starts anew.
    remaining: usize,
    wait: Wait,
    is_prolonged: bool,
}

/// What the clock runs for. Each time that it starts anew it goes through these once at most, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// A flush; writes did not have to wait.
    Flush,
    /// A write.
    Write,
    /// The flush of what was written last.
    LastFlush,
}

impl Clock {
    fn new(write_timeout: Duration, wait: Wait) -> Self {
        Self {
            overdue: Box::pin(sleep(write_timeout)),
            remaining: CHUNK_BYTES,
            wait,
            is_prolonged: false,
        }
    }

    fn start_anew(&mut self, write_timeout: Duration, wait: Wait) {
        self.overdue.as_mut().reset(Instant::now() + write_timeout);
        self.remaining = CHUNK_BYTES;
        self.wait = wait;
        self.is_prolonged = false;
    }

    /// Whether a flush should have completed by now. What is written only then, as its timer woke the connection, is no
    /// progress.
    fn is_flush_overdue(&self) -> bool {
        self.wait != Wait::Write && self.overdue.deadline() <= Instant::now()
    }

    fn waits(&mut self, write_timeout: Duration, wait: Wait) {
        if self.is_flush_overdue() {
            return;
        }
        match (self.wait, wait) {
            (Wait::Flush, Wait::Write) => self.start_anew(write_timeout, Wait::Write),
            (Wait::Write, Wait::Flush) => self.start_anew(write_timeout, Wait::LastFlush),
            (Wait::Flush | Wait::LastFlush, Wait::Flush)
            | (Wait::Write | Wait::LastFlush, Wait::Write)
            | (Wait::Flush | Wait::Write | Wait::LastFlush, Wait::LastFlush) => {}
        }
    }

    fn poll_overdue(&mut self, write_timeout: Duration, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.overdue.as_mut().poll(cx));
        let came_meanwhile = self.remaining < CHUNK_BYTES;
        match self.wait {
            Wait::Flush | Wait::LastFlush if came_meanwhile && !self.is_prolonged => {
                self.is_prolonged = true;
                self.overdue.as_mut().reset(Instant::now() + write_timeout);
                self.overdue.as_mut().poll(cx)
            }
            Wait::Flush | Wait::Write | Wait::LastFlush => Poll::Ready(()),
        }
    }
}

impl<I> BoundedIo<I> {
    pub(super) fn new(io: I, connection: &Arc<Connection>) -> Self {
        Self {
            io,
            connection: GuardedIo::new(connection),
            put_back: Vec::new(),
            clock: None,
            has_written: false,
        }
    }

    /// The transport itself.
    pub fn get_ref(&self) -> &I {
        &self.io
    }

    /// Has these bytes read again, in front of what comes.
    pub(crate) fn put_back(&mut self, bytes: &[u8]) {
        self.put_back.splice(..0, bytes.iter().copied());
    }

    fn wrote(&mut self, bytes: usize) {
        let Some(clock) = &mut self.clock else { return };
        if clock.is_flush_overdue() {
            return;
        }
        clock.remaining = clock.remaining.saturating_sub(bytes);
        if clock.remaining == 0
            && let Some(write_timeout) = self.connection.get().write_timeout()
        {
            clock.start_anew(write_timeout, Wait::Flush);
        }
    }

    /// Something is pending and was not taken just now. A guard below keeps the time if it waits as well.
    fn waits<T>(&mut self, wait: Wait, below: Option<Did>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let connection = self.connection.get();
        below::did(connection, Did::Wait);
        if below == Some(Did::Wait) {
            self.clock = None;
            return Poll::Pending;
        }
        let Some(write_timeout) = connection.write_timeout() else {
            return Poll::Pending;
        };
        let clock = self.clock.get_or_insert_with(|| Clock::new(write_timeout, wait));
        clock.waits(write_timeout, wait);
        ready!(clock.poll_overdue(write_timeout, cx));
        connection.cut();
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "what was written was not taken within the write timeout",
        )))
    }

    /// A flush completed. A guard below sees better what it was for. Where a stream leaves, the connection is to flush once more;
    /// see [`leaving`](super::leaving).
    fn flushed(&mut self, below: Option<Did>, cx: &Context<'_>) {
        let is_idle = !std::mem::take(&mut self.has_written);
        let connection = self.connection.get();
        below::did(connection, Did::Flush);
        if below != Some(Did::Flush) && connection.flushed(is_idle) {
            cx.waker().wake_by_ref();
        }
    }

    fn wrote_or_waits(
        &mut self,
        (result, below): (Poll<io::Result<usize>>, Option<Did>),
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.has_written = true;
        match result {
            Poll::Ready(Ok(bytes)) => {
                self.wrote(bytes);
                Poll::Ready(Ok(bytes))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => self.waits(Wait::Write, below, cx),
        }
    }

    fn flushed_or_waits(
        &mut self,
        (result, below): (Poll<io::Result<()>>, Option<Did>),
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        match result {
            Poll::Ready(result) => {
                self.clock = None;
                if result.is_ok() {
                    self.flushed(below, cx);
                }
                Poll::Ready(result)
            }
            Poll::Pending => self.waits(Wait::Flush, below, cx),
        }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for BoundedIo<I> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.put_back.is_empty() {
            return Pin::new(&mut this.io).poll_read(cx, buf);
        }
        let again = this.put_back.len().min(buf.remaining());
        buf.put_slice(&this.put_back[..again]);
        this.put_back.drain(..again);
        if !this.put_back.is_empty() {
            return Poll::Ready(Ok(()));
        }
        this.put_back = Vec::new();
        // What came with it belongs to it: a reader that got these bytes alone would make room for all that may follow.
        match Pin::new(&mut this.io).poll_read(cx, buf) {
            Poll::Ready(result) => Poll::Ready(result),
            Poll::Pending => Poll::Ready(Ok(())),
        }
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for BoundedIo<I> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = below::poll(this.connection.get(), || {
            Pin::new(&mut this.io).poll_write(cx, buf)
        });
        this.wrote_or_waits(result, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = below::poll(this.connection.get(), || {
            Pin::new(&mut this.io).poll_write_vectored(cx, bufs)
        });
        this.wrote_or_waits(result, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let result = below::poll(this.connection.get(), || Pin::new(&mut this.io).poll_flush(cx));
        this.flushed_or_waits(result, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let result = below::poll(this.connection.get(), || Pin::new(&mut this.io).poll_shutdown(cx));
        this.flushed_or_waits(result, cx)
    }
}
