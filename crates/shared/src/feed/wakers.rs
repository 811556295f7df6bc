//! The tasks that wait for a feed to change.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::task::Waker;

/// One waker for each stream that waits, by the stream's number.
#[derive(Debug, Default)]
pub(super) struct Wakers(Mutex<HashMap<u64, Waker>>);

impl Wakers {
    /// Has `waker` woken at the next change. A stream must look at the feed once more after this, since a change may
    /// have come just before.
    pub(super) fn register(&self, stream: u64, waker: &Waker) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match waiting.get_mut(&stream) {
            Some(known) => known.clone_from(waker),
            None => {
                waiting.insert(stream, waker.clone());
            }
        }
    }

    pub(super) fn forget(&self, stream: u64) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&stream);
    }

    /// Wakes all that wait. They are woken outside the lock, since a woken task may run at once and register again.
    pub(super) fn wake_all(&self) {
        let waiting = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for waker in waiting.into_values() {
            waker.wake();
        }
    }
}
