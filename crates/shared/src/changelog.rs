//! A feed's memory: each object's latest state once, in the order of its last change.
//!
//! # Rules
//!
//! - *Positions* number the changes of a feed, across epochs; they only grow. An entry has one node in the index of
//!   positions, which a change moves to the end. A suppressed upsert replaces what is sent and moves nothing.
//! - A *deletion* leaves a tombstone. A uid that comes back while its tombstone is kept keeps its slot and its first
//!   position, so that a stream can tell whether it may hold the object that left. The deletion of an unknown or dead uid
//!   moves nothing.
//! - *Tombstones* are dropped once all streams have taken them in, and beyond
//!   [`tombstones_kept`](Changelog::tombstones_kept) even before: a stream that missed one finds its cursor before
//!   [`trimmed`](Changelog::trimmed) and begins a new cycle.
//! - An *epoch* is one continuous history. A new one begins when upstream's history was lost, either with nothing
//!   ([`begin_epoch`](Changelog::begin_epoch): the new snapshot is streamed as it arrives) or with a complete snapshot that
//!   was built aside ([`swap`](Changelog::swap)). Between [`lose_continuity`](Changelog::lose_continuity) and the swap the
//!   old state is served to those who are in a cycle, and no new cycle begins from it, since it may hold ghosts.

mod entry;
mod identity;
mod memory;
mod order;
mod readers;
mod slots;
mod snapshot;
#[cfg(test)]
mod tests;

use std::fmt;

pub(crate) use self::entry::Entry;
pub use self::identity::Identified;
use self::memory::{Memory, Upsert};
pub(crate) use self::readers::Readers;
pub use self::snapshot::{Retired, Snapshot};

/// The compacted changelog of one feed.
///
/// `I` is an object's identity, as a `deleted` frame tells it; `V` its version, which the changelog stores and never
/// compares; `P` what a stream sends of it. All three are best cheap to clone, such as an `Arc` or `Bytes`.
///
/// Those who apply upstream's events need it exclusively. Streams need it shared: [`Sweep`](crate::Sweep) moves nothing here
/// but its own cursor.
pub struct Changelog<I, V, P> {
    queue_depth: usize,
    epoch: u64,
    continuity: Continuity,
    boundary: Option<u64>,
    memory: Memory<I, V, P>,
    readers: Readers,
    deletions: u64,
}

/// Whether upstream's history is known from the epoch's begin to now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Continuity {
    Kept,
    /// The state may hold objects that are gone; a new snapshot is on its way.
    Lost,
}

/// A moment in a changelog's life, by which a snapshot of it is told from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The epoch.
    pub epoch: u64,
    /// The position of the last change that the snapshot holds.
    pub position: u64,
}

/// What a changelog holds, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Objects that are there.
    pub live: usize,
    /// The most objects that were there at once in this epoch.
    pub most_live: usize,
    /// Deletions that are still remembered.
    pub tombstones: usize,
    /// Slots, used or free. A stream that is behind needs two bits for each.
    pub slots: usize,
    /// Uids known: one for each object and each tombstone.
    pub uids: usize,
    /// Nodes of the index of positions: one for each object and each tombstone.
    pub index_nodes: usize,
    /// Streams that read this epoch.
    pub readers: usize,
}

/// The latest state of an object that is there.
#[derive(Debug)]
pub struct Object<'a, I, V, P> {
    /// Its slot, which is its place in the order of a snapshot.
    pub slot: u32,
    /// The position of its last change.
    pub position: u64,
    /// Its identity.
    pub identity: &'a I,
    /// The version last given.
    pub version: &'a V,
    /// What streams send of it.
    pub payload: &'a P,
}

impl<I: Identified + Clone, V, P> Changelog<I, V, P> {
    /// A changelog that knows nothing yet, in its first epoch.
    ///
    /// `queue_depth` is the number of deletions that a stream may owe; zero is taken as one.
    pub fn new(queue_depth: usize) -> Self {
        Self {
            queue_depth: queue_depth.max(1),
            epoch: 1,
            continuity: Continuity::Kept,
            boundary: None,
            memory: Memory::after(0),
            readers: Readers::default(),
            deletions: 0,
        }
    }

    /// Forgets everything: a new snapshot begins to arrive and is streamed as it does. Every stream begins a new cycle.
    pub fn begin_epoch(&mut self) -> Retired<I, V, P> {
        let next = Memory::after(self.memory.head());
        self.replace(next)
    }

    /// The snapshot is complete: from here on a cycle can become synced. Only the first call in an epoch counts.
    pub fn reach_boundary(&mut self) {
        self.boundary.get_or_insert(self.memory.head());
    }

    /// Upstream's history is lost; a new snapshot is built aside while this state is still served.
    pub fn lose_continuity(&mut self) {
        self.continuity = Continuity::Lost;
    }

    /// The new snapshot is complete and replaces everything at once, as a new epoch at its boundary.
    pub fn swap(&mut self, next: Snapshot<I, V, P>) -> Retired<I, V, P> {
        let mut memory = next.memory;
        memory.rebase(self.memory.head());
        let retired = self.replace(memory);
        self.reach_boundary();
        retired
    }

    fn replace(&mut self, memory: Memory<I, V, P>) -> Retired<I, V, P> {
        self.epoch += 1;
        self.continuity = Continuity::Kept;
        self.boundary = None;
        self.readers.clear();
        Retired {
            memory: std::mem::replace(&mut self.memory, memory),
        }
    }

    /// Here is the complete state of this uid, which streams are now to take in.
    pub fn upsert(&mut self, identity: I, version: V, payload: P) {
        self.trim();
        self.memory.upsert(identity, version, payload, Upsert::Changed);
    }

    /// As [`upsert`](Self::upsert), for a state that differs from the previous one in nothing that a browser would see:
    /// what is sent of the object is replaced, its position does not move. A uid that is not there is a change all the same.
    /// Returns whether streams have something to take in.
    pub fn upsert_suppressed(&mut self, identity: I, version: V, payload: P) -> bool {
        self.trim();
        self.memory.upsert(identity, version, payload, Upsert::Suppressed)
    }

    /// The object has left the scope. A uid that is unknown or has left already moves nothing, but a kept tombstone takes
    /// the version. Returns whether streams have something to take in.
    pub fn delete(&mut self, uid: &str, version: V) -> bool {
        let moved = self.memory.delete(uid, version);
        if moved {
            self.deletions += 1;
            self.trim();
        }
        moved
    }

    /// Drops the tombstones that nobody needs any more. Each upsert and deletion does this; it is worth a call of its own
    /// only for a feed that has fallen silent.
    pub fn trim(&mut self) {
        let taken_in = self.readers.taken_in().unwrap_or(self.memory.head());
        self.memory.trim(taken_in, self.tombstones_kept());
    }

    /// The greatest version of a uid that is there, or whose tombstone is kept.
    pub fn version_of(&self, uid: &str) -> Option<&V> {
        self.memory.entry(uid).map(|entry| &entry.version)
    }

    /// What streams send of a uid that is there.
    pub fn payload_of(&self, uid: &str) -> Option<&P> {
        self.memory.entry(uid)?.payload()
    }
}

impl<I, V, P> Changelog<I, V, P> {
    /// The objects that are there, in the order of their slots.
    pub fn objects(&self) -> impl Iterator<Item = Object<'_, I, V, P>> {
        self.memory.slots_from(0).filter_map(|(slot, entry)| {
            let Entry {
                position,
                identity,
                version,
                ..
            } = entry;
            Some(Object {
                slot,
                position: *position,
                identity,
                version,
                payload: entry.payload()?,
            })
        })
    }

    /// The position of the last change.
    pub fn head(&self) -> u64 {
        self.memory.head()
    }

    /// Where the changelog is now.
    pub fn point(&self) -> Point {
        Point {
            epoch: self.epoch,
            position: self.head(),
        }
    }

    /// Whether a cycle may begin with the snapshot of this point: its history is unbroken, and every deletion since is still
    /// known.
    pub fn can_tell_since(&self, point: Point) -> bool {
        self.is_continuous()
            && point.epoch == self.epoch
            && (self.trimmed()..=self.head()).contains(&point.position)
    }

    /// How many objects have left in all epochs. Only the difference between two moments says anything.
    pub fn deletions(&self) -> u64 {
        self.deletions
    }

    /// The number of the epoch, from 1.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The position at which the snapshot of this epoch was complete.
    pub fn boundary(&self) -> Option<u64> {
        self.boundary
    }

    /// Tombstones up to this position are gone.
    pub fn trimmed(&self) -> u64 {
        self.memory.trimmed()
    }

    /// Whether new cycles begin from this state; not between [`lose_continuity`](Self::lose_continuity) and the new epoch.
    pub fn is_continuous(&self) -> bool {
        match self.continuity {
            Continuity::Kept => true,
            Continuity::Lost => false,
        }
    }

    /// The number of deletions that a stream may owe; at least 1.
    pub fn queue_depth(&self) -> usize {
        self.queue_depth
    }

    /// At most so many tombstones are kept, so that a namespace emptied at once overflows no reader that can take it.
    pub fn tombstones_kept(&self) -> usize {
        self.queue_depth.max(self.memory.most_live())
    }

    /// What is held, in numbers.
    pub fn size(&self) -> Size {
        Size {
            live: self.memory.live(),
            most_live: self.memory.most_live(),
            tombstones: self.memory.tombstones(),
            slots: self.memory.slots_end() as usize,
            uids: self.memory.uids(),
            index_nodes: self.memory.index_nodes(),
            readers: self.readers.count(),
        }
    }

    /// The number of objects that are there.
    pub fn live(&self) -> usize {
        self.memory.live()
    }

    pub(crate) fn readers(&self) -> &Readers {
        &self.readers
    }

    pub(crate) fn slot(&self, slot: u32) -> Option<&Entry<I, V, P>> {
        self.memory.slot(slot)
    }

    pub(crate) fn slots_from(&self, slot: u32) -> impl Iterator<Item = (u32, &Entry<I, V, P>)> {
        self.memory.slots_from(slot)
    }

    pub(crate) fn slots_end(&self) -> u32 {
        self.memory.slots_end()
    }

    pub(crate) fn first_change_after(&self, cursor: u64) -> Option<u32> {
        self.memory.first_change_after(cursor)
    }

    pub(crate) fn changes_from(&self, slot: Option<u32>) -> impl Iterator<Item = (u32, &Entry<I, V, P>)> {
        self.memory.changes_from(slot)
    }
}

/// Numbers only: payloads may be large, and are nobody's business in a log.
impl<I, V, P> fmt::Debug for Changelog<I, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changelog")
            .field("epoch", &self.epoch)
            .field("continuity", &self.continuity)
            .field("head", &self.head())
            .field("boundary", &self.boundary)
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}
