//! One stream's place at its connection, shared by its body and the guards outside of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use krm_stream_protocol::{Observation, Observing};
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(crate) struct StreamSlot {
    /// Whether a guard watches the future of this stream.
    is_watched: AtomicBool,
    is_cut: AtomicBool,
    observing: OnceLock<Observing>,
    /// Until when the chunk under way must be taken.
    deadline: Mutex<Option<Instant>>,
}

impl StreamSlot {
    /// A gateway's stream begins.
    pub(super) fn begin(&self, observing: Observing) {
        // A request is answered once.
        let _ = self.observing.set(observing);
    }

    /// Whether it is a gateway's stream, which cuts its chunks by itself.
    pub(super) fn is_of_gateway(&self) -> bool {
        self.observing.get().is_some()
    }

    pub(super) fn watch(&self) {
        self.is_watched.store(true, Ordering::Release);
    }

    pub(super) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Acquire)
    }

    /// A chunk is on its way; none is with `None`.
    pub(super) fn expect_by(&self, deadline: Option<Instant>) {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = deadline;
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream's chunk was not taken in time. Observed once, whichever guard finds it.
    pub(super) fn cut(&self) {
        if let Some(observing) = self.observing.get()
            && !self.is_cut.swap(true, Ordering::AcqRel)
        {
            observing.observe(&Observation::DeliveryTimeout);
        }
    }
}
