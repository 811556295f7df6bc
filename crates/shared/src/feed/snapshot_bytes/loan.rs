//! One reader's place in the bytes, which the feed may take away.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::state::FeedChangelog;
use super::chunk::Chunk;

/// Shared by a reader and its feed, so that a reader that is stuck does not keep a copy of the scope in memory.
#[derive(Debug)]
pub(crate) struct Loan {
    place: Mutex<Place>,
    used: AtomicBool,
    /// The changelog's count of deletions at the bytes' point.
    deletions: u64,
}

#[derive(Debug)]
enum Place {
    /// This chunk was taken last. Leads to `Left`.
    After(Arc<Chunk>),
    /// It reads them no more. The objects from this slot on were not taken.
    Left { next_slot: u32 },
}

impl Place {
    fn next_slot(&self) -> u32 {
        match self {
            Self::After(chunk) => chunk.next_slot(),
            Self::Left { next_slot } => *next_slot,
        }
    }
}

/// What a reader gets next.
#[derive(Debug)]
pub(crate) enum Next {
    /// These bytes.
    Chunk(Arc<Chunk>),
    /// No more. The objects from this slot on were not taken.
    Left { next_slot: u32 },
}

impl Loan {
    pub(super) fn new(start: Arc<Chunk>, deletions: u64) -> Self {
        Self {
            place: Mutex::new(Place::After(start)),
            used: AtomicBool::new(true),
            deletions,
        }
    }

    /// Whether so many deletions came since that the reader has to leave the bytes and take them in. Half of what it may owe
    /// is left for those that come before it looks again.
    pub(crate) fn is_left_behind(&self, changelog: &FeedChangelog) -> bool {
        changelog.deletions() - self.deletions > changelog.queue_depth() as u64 / 2
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the next chunk.
    pub(crate) fn take(&self) -> Next {
        self.used.store(true, Ordering::Relaxed);
        let mut place = self.place();
        let next = match &*place {
            Place::After(chunk) => chunk.next(),
            Place::Left { next_slot } => {
                return Next::Left {
                    next_slot: *next_slot,
                };
            }
        };
        let (after, answer) = match next {
            Some(chunk) => (Place::After(Arc::clone(&chunk)), Next::Chunk(chunk)),
            None => (
                Place::Left { next_slot: u32::MAX },
                Next::Left { next_slot: u32::MAX },
            ),
        };
        let before = std::mem::replace(&mut *place, after);
        drop(place);
        drop(before);
        answer
    }

    /// The slot from which on nothing was taken so far.
    pub(crate) fn next_slot(&self) -> u32 {
        self.place().next_slot()
    }

    /// Leaves the bytes. Returns the slot from which on nothing was taken.
    pub(crate) fn leave(&self) -> u32 {
        let mut place = self.place();
        let next_slot = place.next_slot();
        let before = std::mem::replace(&mut *place, Place::Left { next_slot });
        drop(place);
        drop(before);
        next_slot
    }

    /// Takes the bytes away from a reader that has taken none since the last call. Returns what it held, to be dropped.
    pub(super) fn revoke_unless_used(&self) -> Option<Arc<Chunk>> {
        if self.used.swap(false, Ordering::Relaxed) {
            return None;
        }
        self.revoke()
    }

    /// Takes the bytes away. Returns what the reader held, to be dropped.
    pub(super) fn revoke(&self) -> Option<Arc<Chunk>> {
        let mut place = self.place();
        let next_slot = match &*place {
            Place::After(chunk) => chunk.next_slot(),
            Place::Left { .. } => return None,
        };
        match std::mem::replace(&mut *place, Place::Left { next_slot }) {
            Place::After(chunk) => Some(chunk),
            Place::Left { .. } => None,
        }
    }

    pub(super) fn is_read(&self) -> bool {
        match &*self.place() {
            Place::After(_) => true,
            Place::Left { .. } => false,
        }
    }
}
