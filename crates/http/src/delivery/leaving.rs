//! Streams whose last event was handed out and may not be written yet: they are there until it is.
//!
//! A body ends with its last event, and hyper drops it then, whatever became of the event. So what must outlive it waits at
//! the connection until the transport's guard has seen the event off.
//!
//! A flush that completes does not tell by itself: over HTTP/2 one that has begun before the event was queued may complete
//! after. An *idle* flush, without a write since the flush before, tells that nothing was left of what was queued before that
//! one completed. h2 takes what is queued, and has room in its window, before each flush; a body that ends has all of it
//! queued so; see [`pieces`](super::pieces).

use std::fmt;
use std::sync::Arc;

use super::StreamSlot;

/// The streams of one connection that leave.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    /// No flush has completed since their last events were handed out.
    handed_out: Vec<LastEvent>,
    /// Some flush has.
    flushed: Vec<LastEvent>,
}

/// What of a stream outlives its body. Dropping it is being gone.
pub(super) struct LastEvent {
    /// Told where the event is not taken in time.
    _slot: Arc<StreamSlot>,
    _stream: Box<dyn Send>,
}

impl LastEvent {
    pub(super) fn new(slot: Arc<StreamSlot>, stream: impl Send + 'static) -> Self {
        Self {
            _slot: slot,
            _stream: Box::new(stream),
        }
    }
}

impl Leaving {
    pub(super) fn push(&mut self, last: LastEvent) {
        self.handed_out.push(last);
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.handed_out.is_empty() && self.flushed.is_empty()
    }

    /// A flush completed. Returns what was written.
    pub(super) fn flushed(&mut self, is_idle: bool) -> Vec<LastEvent> {
        let written = if is_idle {
            std::mem::take(&mut self.flushed)
        } else {
            Vec::new()
        };
        self.flushed.append(&mut self.handed_out);
        written
    }
}

impl fmt::Debug for LastEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LastEvent").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use tokio::io::{AsyncWrite, DuplexStream, duplex};

    use super::super::{BoundedIo, Connection, ConnectionGuard};
    use super::*;

    struct Held {
        guard: ConnectionGuard,
        io: BoundedIo<DuplexStream>,
        _far: DuplexStream,
    }

    impl Held {
        fn new() -> Self {
            let guard = ConnectionGuard::new();
            let (near, far) = duplex(1024);
            let io = guard.io(near);
            Self { guard, io, _far: far }
        }

        fn connection(&self) -> &Arc<Connection> {
            self.guard.connection()
        }

        /// A stream leaves.
        fn hold(&self) -> Arc<()> {
            let stream = Arc::new(());
            let last = LastEvent::new(Arc::default(), Arc::clone(&stream));
            self.connection().hold(last);
            stream
        }

        fn write(&mut self) {
            let mut cx = Context::from_waker(Waker::noop());
            let written = Pin::new(&mut self.io).poll_write(&mut cx, b"x");
            assert!(matches!(written, Poll::Ready(Ok(1))));
        }

        fn flush(&mut self) {
            let mut cx = Context::from_waker(Waker::noop());
            let flushed = Pin::new(&mut self.io).poll_flush(&mut cx);
            assert!(matches!(flushed, Poll::Ready(Ok(()))));
        }
    }

    fn is_there(stream: &Arc<()>) -> bool {
        Arc::strong_count(stream) > 1
    }

    #[tokio::test]
    async fn a_stream_is_there_until_an_idle_flush_follows_another_one() {
        let mut held = Held::new();
        held.flush();
        let stream = held.hold();
        // It may have begun before.
        held.flush();
        assert!(is_there(&stream));
        held.write();
        held.flush();
        assert!(is_there(&stream), "what was written may have been another's");
        let other = held.hold();
        held.flush();
        assert!(!is_there(&stream));
        assert!(is_there(&other));
        held.flush();
        assert!(!is_there(&other));
        assert!(!held.connection().flushed(true), "nobody waits");
    }

    #[tokio::test]
    async fn a_connection_is_woken_to_flush_once_more_only_where_a_stream_leaves() {
        let mut held = Held::new();
        assert!(!held.connection().flushed(false));
        let stream = held.hold();
        assert!(held.connection().flushed(false));
        held.write();
        held.flush();
        held.flush();
        assert!(!is_there(&stream));
    }

    #[tokio::test]
    async fn a_stream_goes_with_its_transport_and_is_not_held_where_there_is_none() {
        let held = Held::new();
        let stream = held.hold();
        let Held { guard, io, _far } = held;
        drop(io);
        assert!(!is_there(&stream));
        let late = Arc::new(());
        let last = LastEvent::new(Arc::default(), Arc::clone(&late));
        guard.connection().hold(last);
        assert!(!is_there(&late));
    }

    #[tokio::test]
    async fn of_two_guards_one_over_the_other_the_lower_one_counts_a_flush() {
        let guard = ConnectionGuard::new();
        let (near, _far) = duplex(1024);
        let mut io = guard.io(guard.io(near));
        let stream = Arc::new(());
        let last = LastEvent::new(Arc::default(), Arc::clone(&stream));
        guard.connection().hold(last);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut io).poll_flush(&mut cx).is_ready());
        assert!(is_there(&stream), "it is one flush");
        assert!(Pin::new(&mut io).poll_flush(&mut cx).is_ready());
        assert!(!is_there(&stream));
    }
}
