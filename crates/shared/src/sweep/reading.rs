//! One cycle of a stream that reads: what it has taken in, what it owes, and the order in which it sends.

use std::collections::VecDeque;

use super::frame::{Frame, Sink, Spelling};
use super::owed::Owed;
use crate::changelog::{Changelog, Entry, Identified, Point};

/// A cycle that reads the changelog's current epoch, or one that has just been replaced.
#[derive(Debug)]
pub(super) struct Reading<I> {
    epoch: u64,
    /// The position at which the cycle began.
    begin: u64,
    /// Everything up to here was taken in.
    cursor: u64,
    snapshot: Snapshot,
    owed: Owed,
    deletions: VecDeque<I>,
    /// The slot at which the sweep goes on.
    sweep: u32,
}

/// How far the cycle's snapshot is.
#[derive(Clone, Copy, Debug)]
enum Snapshot {
    /// `synced` is still to come. No slot before this one holds it up: those that do only ever become fewer, since what
    /// comes later is not waited for.
    Open {
        held_up_from: u32,
    },
    Synced,
}

/// What a stream has taken in.
pub(super) enum TakenIn {
    /// All changes are marked as owed.
    Marked,
    /// The stream was at the head: the changes from this slot's on are all it has to send, and can be sent in their order.
    Fresh { first: Option<u32>, since: u64 },
}

/// What this stream missed can no longer be told, or it owes more deletions than it may.
pub(super) struct Overflow;

impl<I: Identified + Clone> Reading<I> {
    /// Begins a cycle from the changelog's state: all that is there is owed.
    pub(super) fn begin<V, P>(changelog: &Changelog<I, V, P>) -> Self {
        let head = changelog.head();
        let mut owed = Owed::default();
        owed.reserve(changelog.slots_end());
        for (slot, entry) in changelog.slots_from(0) {
            if entry.is_live() {
                owed.owe_unsent(slot);
            }
        }
        owed.release_if_empty();
        changelog.readers().enter(head);
        Self {
            epoch: changelog.epoch(),
            begin: head,
            cursor: head,
            snapshot: Snapshot::Open { held_up_from: 0 },
            owed,
            deletions: VecDeque::new(),
            sweep: 0,
        }
    }

    /// Begins a cycle whose snapshot is the one of `point` and is read elsewhere: nothing is owed as long as that lasts. What
    /// came between that point and now holds `synced` up like all that was there before.
    pub(super) fn begin_apart<V, P>(changelog: &Changelog<I, V, P>, point: Point) -> Self {
        changelog.readers().enter(point.position);
        Self {
            epoch: point.epoch,
            begin: changelog.head(),
            cursor: point.position,
            snapshot: Snapshot::Open { held_up_from: 0 },
            owed: Owed::default(),
            deletions: VecDeque::new(),
            sweep: 0,
        }
    }

    /// Whether the changelog can still tell all that changed since the cursor.
    pub(super) fn can_go_on<V, P>(&self, changelog: &Changelog<I, V, P>) -> bool {
        self.cursor >= changelog.trimmed()
    }

    /// All that was there at the cursor, from this slot on, is owed and was never sent. An object that has left or came back
    /// since is among it, so that no deletion of it is told when that is taken in. No slot has changed hands since the cursor,
    /// as no tombstone was dropped that is newer.
    pub(super) fn owe_from<V, P>(&mut self, changelog: &Changelog<I, V, P>, slot: u32) {
        if self.epoch != changelog.epoch() || !self.can_go_on(changelog) {
            return;
        }
        self.owed.reserve(changelog.slots_end());
        for (slot, entry) in changelog.slots_from(slot) {
            let was_known = entry.first <= self.cursor;
            if was_known && (entry.is_live() || entry.position > self.cursor) {
                self.owed.owe_unsent(slot);
            }
        }
        self.owed.release_if_empty();
    }

    /// The cycle is over: nothing is kept for it any more.
    pub(super) fn leave<V, P>(&self, changelog: &Changelog<I, V, P>) {
        if self.epoch == changelog.epoch() {
            changelog.readers().leave(self.cursor);
        }
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(super) fn is_synced(&self) -> bool {
        match self.snapshot {
            Snapshot::Open { .. } => false,
            Snapshot::Synced => true,
        }
    }

    pub(super) fn owes_nothing(&self) -> bool {
        self.owed.is_empty() && self.deletions.is_empty()
    }

    pub(super) fn is_at_head<V, P>(&self, changelog: &Changelog<I, V, P>) -> bool {
        self.is_synced() && self.owes_nothing() && self.has_taken_in_all(changelog)
    }

    pub(super) fn has_taken_in_all<V, P>(&self, changelog: &Changelog<I, V, P>) -> bool {
        self.epoch == changelog.epoch() && self.cursor == changelog.head()
    }

    pub(super) fn memory(&self) -> usize {
        self.owed.memory() + self.deletions.capacity() * size_of::<I>()
    }

    /// Takes in all changes since the last time, at a cost proportional to their number. `bound` is the number of deletions
    /// that may be owed.
    pub(super) fn take_in<V, P>(
        &mut self,
        changelog: &Changelog<I, V, P>,
        bound: usize,
    ) -> Result<TakenIn, Overflow> {
        let since = self.cursor;
        if !self.can_go_on(changelog) {
            return Err(Overflow);
        }
        let at_head = self.is_synced() && self.owes_nothing();
        let first = changelog.first_change_after(since);
        if !at_head && first.is_some() {
            self.owed.reserve(changelog.slots_end());
        }
        for (slot, entry) in changelog.changes_from(first) {
            self.take_in_deletion(slot, entry, bound)?;
            if !at_head && entry.is_live() {
                self.owe(slot, entry, since);
            }
        }
        self.owed.release_if_empty();
        if since != changelog.head() {
            self.cursor = changelog.head();
            changelog.readers().advance(since, self.cursor);
        }
        Ok(if at_head {
            TakenIn::Fresh { first, since }
        } else {
            TakenIn::Marked
        })
    }

    /// Owes a deletion if the stream may hold an object of this uid that is gone. What was never sent since it came need not
    /// be taken back.
    fn take_in_deletion<V, P>(
        &mut self,
        slot: u32,
        entry: &Entry<I, V, P>,
        bound: usize,
    ) -> Result<(), Overflow> {
        let may_be_held = if entry.is_live() {
            // It came back: the consumer is told first that it had left.
            entry.came_since(self.cursor) && entry.left_since(self.cursor) && !self.owed.is_unsent(slot)
        } else {
            !self.owed.settle(slot) && entry.first <= self.cursor
        };
        if may_be_held {
            self.deletions.push_back(entry.identity.clone());
            if self.deletions.len() > bound {
                return Err(Overflow);
            }
        }
        Ok(())
    }

    fn owe<V, P>(&mut self, slot: u32, entry: &Entry<I, V, P>, since: u64) {
        if entry.came_since(since) {
            self.owed.owe_unsent(slot);
        } else {
            self.owed.owe(slot);
        }
    }

    /// Sends what the sink has room for: deletions, then what came in while at the head, then the sweep.
    pub(super) fn send<V, P>(
        &mut self,
        changelog: &Changelog<I, V, P>,
        taken_in: &TakenIn,
        out: &mut impl Sink<I, P>,
    ) {
        let deletions_sent = self.send_deletions(out);
        if let TakenIn::Fresh { first, since } = *taken_in {
            self.send_fresh(changelog, first, since, deletions_sent, out);
        }
        if deletions_sent {
            self.send_owed(changelog, out);
        }
    }

    /// Returns whether all of them were sent.
    fn send_deletions<P>(&mut self, out: &mut impl Sink<I, P>) -> bool {
        while let Some(identity) = self.deletions.front() {
            if !out.has_room_for_deletion() {
                return false;
            }
            out.push(Frame::Deleted { identity });
            self.deletions.pop_front();
        }
        self.deletions = VecDeque::new();
        true
    }

    /// At the head, changes go out in the order in which they came; what finds no room is owed as a slot.
    fn send_fresh<V, P>(
        &mut self,
        changelog: &Changelog<I, V, P>,
        first: Option<u32>,
        since: u64,
        mut may_send: bool,
        out: &mut impl Sink<I, P>,
    ) {
        for (slot, entry) in changelog.changes_from(first) {
            let Some(payload) = entry.payload() else { continue };
            may_send = may_send && out.has_room();
            if may_send {
                let spelling = if entry.came_since(since) {
                    Spelling::Added
                } else {
                    Spelling::Modified
                };
                push_upsert(spelling, entry, payload, out);
            } else {
                self.owe(slot, entry, since);
            }
        }
    }

    /// Sweeps the slots that are due, round robin, so that no object waits longer than one pass.
    fn send_owed<V, P>(&mut self, changelog: &Changelog<I, V, P>, out: &mut impl Sink<I, P>) {
        loop {
            self.sync_if_complete(changelog, out);
            if self.owed.is_empty() || !out.has_room() {
                return;
            }
            let Some(slot) = self.owed.next_due(self.sweep).or_else(|| self.owed.next_due(0)) else {
                return;
            };
            let was_unsent = self.owed.settle(slot);
            self.sweep = slot + 1;
            // A slot that is due is live: a death that was taken in settles it, one that was not is an overflow.
            if let Some((entry, payload)) = changelog
                .slot(slot)
                .and_then(|entry| Some((entry, entry.payload()?)))
            {
                let spelling = if was_unsent || !self.is_synced() {
                    Spelling::Added
                } else {
                    Spelling::Modified
                };
                push_upsert(spelling, entry, payload, out);
            }
        }
    }

    /// `synced`, once: the feed has reached its boundary, and all that was there at the cycle's begin or by the boundary was
    /// sent or is gone.
    fn sync_if_complete<V, P>(&mut self, changelog: &Changelog<I, V, P>, out: &mut impl Sink<I, P>) {
        let (Snapshot::Open { held_up_from }, Some(boundary)) = (&mut self.snapshot, changelog.boundary())
        else {
            return;
        };
        let gate = self.begin.max(boundary);
        while let Some(slot) = self.owed.next_unsent(*held_up_from) {
            *held_up_from = slot;
            if changelog.slot(slot).is_some_and(|entry| entry.back <= gate) {
                return;
            }
            *held_up_from = slot + 1;
        }
        self.snapshot = Snapshot::Synced;
        out.push(Frame::Synced);
    }
}

fn push_upsert<I, V, P>(spelling: Spelling, entry: &Entry<I, V, P>, payload: &P, out: &mut impl Sink<I, P>) {
    out.push(Frame::Upsert {
        spelling,
        identity: &entry.identity,
        payload,
        position: entry.position,
    });
}
