//! All that one epoch remembers: entries by uid, in slots, and in the order of their last change.

use std::collections::HashMap;

use super::entry::{Entry, Life};
use super::identity::{ByUid, Identified};
use super::order::SlotOrder;
use super::slots::Slots;

/// Entries, live or kept tombstones, each with one slot, one node in `by_uid` and one node in `changes`.
#[derive(Debug)]
pub(super) struct Memory<I, V, P> {
    by_uid: HashMap<ByUid<I>, u32>,
    slots: Slots<Entry<I, V, P>>,
    /// All entries in the order of their positions.
    changes: SlotOrder,
    /// The kept tombstones in the order of their positions.
    tombstones: SlotOrder,
    /// The position of the last change.
    head: u64,
    /// Tombstones up to this position are gone.
    trimmed: u64,
    live: usize,
    most_live: usize,
}

/// Whether an upsert is a change that streams have to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Upsert {
    Changed,
    Suppressed,
}

impl<I, V, P> Memory<I, V, P> {
    /// Knows nothing; the next change is at the position after `head`.
    pub(super) fn after(head: u64) -> Self {
        Self {
            by_uid: HashMap::new(),
            slots: Slots::new(),
            changes: SlotOrder::new(),
            tombstones: SlotOrder::new(),
            head,
            trimmed: head,
            live: 0,
            most_live: 0,
        }
    }

    /// Moves all positions up by `head`, so that they follow those of the memory that this one replaces.
    pub(super) fn rebase(&mut self, head: u64) {
        for entry in self.slots.values_mut() {
            entry.position += head;
            entry.first += head;
            entry.back += head;
            entry.died += head;
        }
        self.head += head;
        self.trimmed += head;
    }

    fn move_to_head(&mut self, slot: u32) {
        self.head += 1;
        if let Some(entry) = self.slots.get_mut(slot) {
            entry.position = self.head;
        }
        self.changes.push_last(slot);
    }

    /// Whether nothing can be trimmed any more without dropping what a stream has not taken in.
    fn may_trim(&self, slot: u32, taken_in: u64) -> bool {
        self.slots
            .get(slot)
            .is_some_and(|entry| entry.position <= taken_in)
    }

    pub(super) fn slot(&self, slot: u32) -> Option<&Entry<I, V, P>> {
        self.slots.get(slot)
    }

    pub(super) fn slots_from(&self, slot: u32) -> impl Iterator<Item = (u32, &Entry<I, V, P>)> {
        self.slots.from(slot)
    }

    pub(super) fn slots_end(&self) -> u32 {
        self.slots.end()
    }

    /// The slot whose last change is the first after `cursor`. Costs a step for each change after it.
    pub(super) fn first_change_after(&self, cursor: u64) -> Option<u32> {
        let is_newer = |slot: &u32| self.slots.get(*slot).is_some_and(|entry| entry.position > cursor);
        std::iter::successors(self.changes.last(), |&slot| self.changes.before(slot))
            .take_while(is_newer)
            .last()
    }

    /// This slot's last change and all that came after it, in the order of their positions.
    pub(super) fn changes_from(&self, slot: Option<u32>) -> impl Iterator<Item = (u32, &Entry<I, V, P>)> {
        std::iter::successors(slot, |&slot| self.changes.after(slot))
            .filter_map(|slot| Some((slot, self.slots.get(slot)?)))
    }

    pub(super) fn head(&self) -> u64 {
        self.head
    }

    pub(super) fn trimmed(&self) -> u64 {
        self.trimmed
    }

    pub(super) fn live(&self) -> usize {
        self.live
    }

    pub(super) fn most_live(&self) -> usize {
        self.most_live
    }

    pub(super) fn tombstones(&self) -> usize {
        self.tombstones.len()
    }

    pub(super) fn index_nodes(&self) -> usize {
        self.changes.len()
    }

    pub(super) fn uids(&self) -> usize {
        self.by_uid.len()
    }
}

impl<I: Identified + Clone, V, P> Memory<I, V, P> {
    pub(super) fn entry(&self, uid: &str) -> Option<&Entry<I, V, P>> {
        self.slots.get(*self.by_uid.get(uid)?)
    }

    /// Returns whether the head moved.
    pub(super) fn upsert(&mut self, identity: I, version: V, payload: P, upsert: Upsert) -> bool {
        let next = self.head + 1;
        let Some(&slot) = self.by_uid.get(identity.uid()) else {
            let slot = self.slots.insert(Entry {
                identity: identity.clone(),
                version,
                position: next,
                first: next,
                back: next,
                died: 0,
                life: Life::Live(payload),
            });
            self.by_uid.insert(ByUid(identity), slot);
            self.count_live();
            self.move_to_head(slot);
            return true;
        };
        let Some(entry) = self.slots.get_mut(slot) else {
            return false;
        };
        entry.version = version;
        match std::mem::replace(&mut entry.life, Life::Live(payload)) {
            Life::Live(_) if upsert == Upsert::Suppressed => return false,
            Life::Live(_) => {}
            Life::Tombstone => {
                entry.back = next;
                self.tombstones.remove(slot);
                self.count_live();
            }
        }
        self.changes.remove(slot);
        self.move_to_head(slot);
        true
    }

    fn count_live(&mut self) {
        self.live += 1;
        self.most_live = self.most_live.max(self.live);
    }

    /// Returns whether the head moved: not for a uid that is unknown or dead already.
    pub(super) fn delete(&mut self, uid: &str, version: V) -> bool {
        let Some(&slot) = self.by_uid.get(uid) else {
            return false;
        };
        let Some(entry) = self.slots.get_mut(slot) else {
            return false;
        };
        entry.version = version;
        match std::mem::replace(&mut entry.life, Life::Tombstone) {
            Life::Tombstone => return false,
            Life::Live(_) => entry.died = self.head + 1,
        }
        self.live -= 1;
        self.tombstones.push_last(slot);
        self.changes.remove(slot);
        self.move_to_head(slot);
        true
    }

    /// Drops the oldest tombstones: those that all streams have taken in, and those beyond the number kept.
    pub(super) fn trim(&mut self, taken_in: u64, kept: usize) {
        let mut dropped = false;
        while let Some(slot) = self.tombstones.first() {
            if self.tombstones.len() <= kept && !self.may_trim(slot, taken_in) {
                break;
            }
            self.tombstones.remove(slot);
            self.changes.remove(slot);
            if let Some(entry) = self.slots.vacate(slot) {
                self.by_uid.remove(entry.identity.uid());
                self.trimmed = entry.position;
            }
            dropped = true;
        }
        if dropped {
            self.give_back();
        }
    }

    fn give_back(&mut self) {
        self.slots.give_back();
        let slots = self.slots.end() as usize;
        self.changes.truncate(slots);
        self.tombstones.truncate(slots);
        if self.by_uid.len() < self.by_uid.capacity() / 8 {
            self.by_uid.shrink_to(self.by_uid.len() * 2);
        }
    }
}
