//! What the parts of one guarded connection share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;

use http::Version;

use super::StreamSlot;
use super::leaving::{LastEvent, Leaving};

/// A longer wait than this is none, and adding it to a clock may overflow.
const LONGEST_WRITE_TIMEOUT: Duration = Duration::from_hours(24);

#[derive(Debug, Default)]
pub(crate) struct Connection {
    state: Mutex<State>,
    /// Whether any stream leaves: looked at with each flush.
    has_leaving: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// How many transports are guarded: by TLS two, the socket and what is spoken over it.
    guarded_ios: usize,
    /// The shortest of the host's own and those of gateways whose streams are or were on the connection.
    write_timeout: Option<Duration>,
    streams: Vec<Weak<StreamSlot>>,
    leaving: Leaving,
    /// The stream whose future hyper hands to the executor next: it calls the service and spawns in the same poll.
    next: Option<Arc<StreamSlot>>,
    work: Work,
    waker: Option<Waker>,
}

/// What a connection is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Work {
    /// No request has come whole.
    #[default]
    None,
    /// HTTP/1.1: hyper bounds the wait for each head.
    OneByOne,
    /// HTTP/2, with this many streams open.
    Multiplexed { open: usize },
}

impl Connection {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a transport of the connection is guarded.
    pub(super) fn is_io_guarded(&self) -> bool {
        self.state().guarded_ios > 0
    }

    /// A request came.
    pub(super) fn begin_request(&self, version: Version) -> Arc<StreamSlot> {
        let slot = Arc::new(StreamSlot::default());
        let mut state = self.state();
        if version >= Version::HTTP_2 {
            state.next = Some(Arc::clone(&slot));
            if let Work::None | Work::OneByOne = state.work {
                state.work = Work::Multiplexed { open: 0 };
            }
        } else {
            state.work = Work::OneByOne;
        }
        slot
    }

    /// The stream whose future was just handed over; `None` where it is no stream's.
    pub(super) fn begin_stream(self: &Arc<Self>) -> Option<(Arc<StreamSlot>, OpenStream)> {
        let mut state = self.state();
        let slot = state.next.take()?;
        if let Work::Multiplexed { open } = &mut state.work {
            *open += 1;
        }
        Some((slot, OpenStream(Arc::clone(self))))
    }

    /// A gateway's stream is bounded from here on, and with it whatever else is written to the socket.
    pub(super) fn bound(&self, write_timeout: Duration, slot: &Arc<StreamSlot>) {
        let mut state = self.state();
        let shortest = state
            .write_timeout
            .map_or(write_timeout, |known| known.min(write_timeout));
        state.write_timeout = Some(shortest);
        state.streams.retain(|stream| stream.strong_count() > 0);
        state.streams.push(Arc::downgrade(slot));
    }

    /// All that is written is bounded, also before a gateway's stream is.
    pub(super) fn bound_all(&self, write_timeout: Duration) {
        let write_timeout = write_timeout.min(LONGEST_WRITE_TIMEOUT);
        let mut state = self.state();
        state.write_timeout = Some(
            state
                .write_timeout
                .map_or(write_timeout, |known| known.min(write_timeout)),
        );
    }

    pub(super) fn write_timeout(&self) -> Option<Duration> {
        self.state().write_timeout
    }

    /// The socket does not take what is pending.
    pub(super) fn cut(&self) {
        let streams = std::mem::take(&mut self.state().streams);
        for stream in streams.iter().filter_map(Weak::upgrade) {
            stream.cut();
        }
        self.release();
    }

    /// A stream has handed out its last event: it is there until that is written, or a guarded transport is gone.
    pub(super) fn hold(&self, last: LastEvent) {
        let mut state = self.state();
        if state.guarded_ios > 0 {
            state.leaving.push(last);
            self.has_leaving.store(true, Ordering::Release);
        } else {
            // Dropping it calls the host.
            drop(state);
            drop(last);
        }
    }

    /// A flush completed, an idle one if nothing was written since the one before. Whether another one has to tell more.
    pub(super) fn flushed(&self, is_idle: bool) -> bool {
        if !self.has_leaving.load(Ordering::Acquire) {
            return false;
        }
        let mut state = self.state();
        let written = state.leaving.flushed(is_idle);
        let has_leaving = !state.leaving.is_empty();
        self.has_leaving.store(has_leaving, Ordering::Release);
        drop(state);
        drop(written);
        has_leaving
    }

    /// What was not written never will be.
    fn release(&self) {
        let mut state = self.state();
        let gone = std::mem::take(&mut state.leaving);
        self.has_leaving.store(false, Ordering::Release);
        drop(state);
        drop(gone);
    }

    /// What the connection is doing. `waker` is woken when its last stream ends.
    pub(crate) fn work(&self, waker: &Waker) -> Work {
        let mut state = self.state();
        let work = state.work;
        if let Work::Multiplexed { open: 1.. } = work
            && !state.waker.as_ref().is_some_and(|known| known.will_wake(waker))
        {
            state.waker = Some(waker.clone());
        }
        work
    }
}

/// Counts a guarded transport as long as it lives.
#[derive(Debug)]
pub(super) struct GuardedIo(Arc<Connection>);

impl GuardedIo {
    pub(super) fn new(connection: &Arc<Connection>) -> Self {
        connection.state().guarded_ios += 1;
        Self(Arc::clone(connection))
    }

    pub(super) const fn get(&self) -> &Arc<Connection> {
        &self.0
    }
}

impl Drop for GuardedIo {
    fn drop(&mut self) {
        self.0.state().guarded_ios -= 1;
        self.0.release();
    }
}

/// Counts a stream of an HTTP/2 connection as long as it lives.
#[derive(Debug)]
pub(super) struct OpenStream(Arc<Connection>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if let Work::Multiplexed { open } = &mut state.work {
            *open = open.saturating_sub(1);
            if *open == 0
                && let Some(waker) = state.waker.take()
            {
                drop(state);
                waker.wake();
            }
        }
    }
}
