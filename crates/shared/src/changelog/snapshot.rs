//! A new snapshot that is built aside while the old state is still served, and what is left of the old one.

use std::fmt;

use super::identity::Identified;
use super::memory::{Memory, Upsert};

/// The state of a scope that is still being listed. [`Changelog::swap`](super::Changelog::swap) puts it in place at once.
///
/// No stream reads it, so it keeps no tombstones: an object that is deleted while the snapshot arrives is simply gone.
pub struct Snapshot<I, V, P> {
    pub(super) memory: Memory<I, V, P>,
}

impl<I: Identified + Clone, V, P> Snapshot<I, V, P> {
    /// An empty snapshot.
    pub fn new() -> Self {
        Self {
            memory: Memory::after(0),
        }
    }

    /// Here is the state of this uid, whether it is new or replaces an earlier one.
    pub fn upsert(&mut self, identity: I, version: V, payload: P) {
        self.memory.upsert(identity, version, payload, Upsert::Changed);
    }

    /// The object has left the scope. Returns whether it was there.
    pub fn delete(&mut self, uid: &str, version: V) -> bool {
        let was_live = self.memory.delete(uid, version);
        self.memory.trim(self.memory.head(), 0);
        was_live
    }

    /// The version that was last given for a uid that is there.
    pub fn version_of(&self, uid: &str) -> Option<&V> {
        self.memory.entry(uid).map(|entry| &entry.version)
    }

    /// The payload that was last given for a uid that is there.
    pub fn payload_of(&self, uid: &str) -> Option<&P> {
        self.memory.entry(uid)?.payload()
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.memory.live()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<I: Identified + Clone, V, P> Default for Snapshot<I, V, P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I, V, P> fmt::Debug for Snapshot<I, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("objects", &self.memory.live())
            .finish_non_exhaustive()
    }
}

/// The state that a new epoch replaced. It has no use any more; a caller that holds a lock drops it after releasing the
/// lock, since freeing a large collection takes milliseconds.
pub struct Retired<I, V, P> {
    pub(super) memory: Memory<I, V, P>,
}

impl<I, V, P> fmt::Debug for Retired<I, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retired")
            .field("objects", &self.memory.live())
            .finish_non_exhaustive()
    }
}
