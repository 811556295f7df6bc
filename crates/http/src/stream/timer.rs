//! The one timer of a stream.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::{Instant, Sleep, sleep_until};

/// Wakes the stream's task at the earliest of what is due.
///
/// It is set forward at once, and put off lazily: an event that goes out puts the heartbeat off without touching the
/// timer, which finds out when it fires. So a busy stream pays for it once an interval, not once an event.
pub(super) struct Timer {
    sleep: Pin<Box<Sleep>>,
    at: Instant,
}

impl Timer {
    pub(super) fn new(at: Instant) -> Self {
        Self {
            sleep: Box::pin(sleep_until(at)),
            at,
        }
    }

    /// Ready at `due` or later; otherwise the task is woken then, or before.
    pub(super) fn poll_until(&mut self, due: Instant, cx: &mut Context<'_>) -> Poll<()> {
        if due < self.at {
            self.set(due);
        }
        while self.sleep.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            if now >= due {
                return Poll::Ready(());
            }
            self.set(due);
        }
        Poll::Pending
    }

    /// Whether it has woken the task, or is about to, and has not been polled since.
    pub(super) fn has_fired(&self) -> bool {
        self.sleep.is_elapsed()
    }

    fn set(&mut self, at: Instant) {
        self.at = at;
        self.sleep.as_mut().reset(at);
    }
}
