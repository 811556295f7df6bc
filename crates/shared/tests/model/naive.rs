//! The model of a feed and its streams in plain data structures, line by line, with a switch that breaks one rule.
//!
//! What is new against the model: an optional budget for deletions, and a stream that pauses between two cycles.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use krm_stream_shared::{ResyncReason, Spelling};

use crate::broken::Rule;
use crate::frames::{Budget, Frame, State, Uid};

/// The latest state of one uid, live or a kept tombstone.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) uid: Uid,
    pub(crate) slot: usize,
    pub(crate) first: u64,
    pub(crate) died: u64,
    pub(crate) back: u64,
    pub(crate) position: u64,
    pub(crate) state: State,
    pub(crate) live: bool,
}

/// What the feed knows of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    pub(crate) cursor: u64,
    pub(crate) epoch: u64,
    pub(crate) waiting: bool,
}

pub(crate) struct Feed {
    broken: Option<Rule>,
    pub(crate) queue_depth: usize,
    pub(crate) head: u64,
    pub(crate) epoch: u64,
    pub(crate) readers: BTreeMap<usize, Reader>,
    pub(crate) entries: BTreeMap<Uid, Entry>,
    pub(crate) slots: Vec<Option<Uid>>,
    free: Vec<usize>,
    pub(crate) index: BTreeMap<u64, Uid>,
    pub(crate) boundary: Option<u64>,
    pub(crate) trimmed: u64,
    pub(crate) live: usize,
    pub(crate) most_live: usize,
    pub(crate) continuous: bool,
}

impl Feed {
    pub(crate) fn new(queue_depth: usize, broken: Option<Rule>) -> Self {
        Self {
            broken,
            queue_depth,
            head: 0,
            epoch: 1,
            readers: BTreeMap::new(),
            entries: BTreeMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            index: BTreeMap::new(),
            boundary: None,
            trimmed: 0,
            live: 0,
            most_live: 0,
            continuous: true,
        }
    }

    fn breaks(&self, rule: Rule) -> bool {
        self.broken == Some(rule)
    }

    pub(crate) fn begin_epoch(&mut self) {
        self.epoch += 1;
        (self.entries, self.slots, self.free) = (BTreeMap::new(), Vec::new(), Vec::new());
        self.index = BTreeMap::new();
        self.boundary = None;
        self.trimmed = self.head;
        (self.live, self.most_live) = (0, 0);
        self.continuous = true;
    }

    pub(crate) fn reach_boundary(&mut self) {
        if self.boundary.is_none() || self.breaks(Rule::BoundaryStays) {
            self.boundary = Some(self.head);
        }
    }

    pub(crate) fn lose_continuity(&mut self) {
        self.continuous = false;
    }

    pub(crate) fn swap(&mut self, state: &[(Uid, State)]) {
        if self.breaks(Rule::SwapReplacesAll) {
            self.epoch += 1;
            self.continuous = true;
        } else {
            self.begin_epoch();
        }
        if self.breaks(Rule::SwapBeginsAnEpoch) {
            self.epoch -= 1;
        }
        for (uid, state) in state {
            self.upsert(uid, *state, false);
        }
        if !self.breaks(Rule::SwapIsAtItsBoundary) {
            self.reach_boundary();
        }
    }

    pub(crate) fn upsert(&mut self, uid: &Uid, state: State, suppressed: bool) {
        self.trim();
        let next = self.head + 1;
        if let Some(entry) = self.entries.get_mut(uid).filter(|entry| entry.live && suppressed) {
            if self.broken != Some(Rule::SuppressedReplacesTheState) {
                entry.state = state;
            }
            if self.broken == Some(Rule::SuppressedDoesNotMove) {
                self.place(uid);
            }
            return;
        }
        if !self.entries.contains_key(uid) {
            let slot = self.free.pop().unwrap_or(self.slots.len());
            if slot == self.slots.len() {
                self.slots.push(None);
            }
            self.slots[slot] = Some(uid.clone());
            let uid = uid.clone();
            let entry = Entry {
                uid,
                slot,
                first: next,
                died: 0,
                back: 0,
                position: 0,
                state,
                live: false,
            };
            self.entries.insert(entry.uid.clone(), entry);
        }
        let broken = self.broken;
        let entry = self.entries.get_mut(uid).unwrap();
        if !entry.live {
            entry.live = true;
            let returned = entry.back != 0;
            if !(returned && broken == Some(Rule::ReturnMovesBack)) {
                entry.back = next;
            }
            if returned && broken == Some(Rule::FirstIsKept) {
                entry.first = next;
            }
            self.live += 1;
            self.most_live = self.most_live.max(self.live);
        }
        entry.state = state;
        self.place(uid);
    }

    pub(crate) fn delete(&mut self, uid: &Uid) {
        let next = self.head + 1;
        let broken = self.broken;
        let Some(entry) = self.entries.get_mut(uid) else {
            return;
        };
        if !entry.live && broken != Some(Rule::DeadDeletionMovesNothing) {
            return;
        }
        self.live -= usize::from(entry.live);
        entry.live = false;
        if broken != Some(Rule::DeathIsDated) {
            entry.died = next;
        }
        self.place(uid);
        self.trim();
    }

    /// `_move`: the entry's last change is the newest of all.
    fn place(&mut self, uid: &Uid) {
        let entry = self.entries.get_mut(uid).unwrap();
        if self.broken != Some(Rule::OneNodeAnEntry) {
            self.index.remove(&entry.position);
        }
        self.head += 1;
        entry.position = self.head;
        self.index.insert(self.head, uid.clone());
    }

    pub(crate) fn tombstones_kept(&self) -> usize {
        if self.breaks(Rule::KeepsAsManyAsWereLive) {
            return self.queue_depth;
        }
        self.queue_depth.max(self.most_live)
    }

    pub(crate) fn tombstones(&self) -> Vec<&Entry> {
        self.index
            .values()
            .filter_map(|uid| self.entries.get(uid))
            .filter(|entry| !entry.live)
            .collect()
    }

    pub(crate) fn taken_in(&self) -> u64 {
        let current = self
            .readers
            .values()
            .filter(|r| r.epoch == self.epoch && !r.waiting);
        current.map(|r| r.cursor).min().unwrap_or(self.head)
    }

    fn trim(&mut self) {
        let mut surplus = self
            .entries
            .len()
            .saturating_sub(self.live + self.tombstones_kept());
        let taken_in = match self.broken {
            Some(Rule::TrimWaitsForReaders) => self.head,
            Some(Rule::TrimDropsWhatAllTookIn) => 0,
            _ => self.taken_in(),
        };
        if self.breaks(Rule::TombstonesAreBounded) {
            surplus = 0;
        }
        let dead: Vec<Entry> = self.tombstones().into_iter().cloned().collect();
        for entry in dead {
            if surplus == 0 && entry.position > taken_in {
                break;
            }
            surplus = surplus.saturating_sub(1);
            self.entries.remove(&entry.uid);
            self.index.remove(&entry.position);
            self.slots[entry.slot] = None;
            self.free.push(entry.slot);
            if !self.breaks(Rule::TrimIsRecorded) {
                self.trimmed = entry.position;
            }
        }
        while self.slots.last().is_some_and(Option::is_none) && !self.breaks(Rule::FreeSlotsAreGivenBack) {
            let last = self.slots.len() - 1;
            self.free.retain(|&slot| slot != last);
            self.slots.pop();
        }
    }

    fn changes_after(&self, cursor: u64) -> Vec<Entry> {
        self.index
            .range(cursor + 1..)
            .filter_map(|(_, uid)| self.entries.get(uid))
            .cloned()
            .collect()
    }

    pub(crate) fn in_slot(&self, slot: usize) -> Option<&Entry> {
        self.entries.get(self.slots.get(slot)?.as_ref()?)
    }
}

/// What this stream missed can no longer be told.
struct Overflow;

/// What a stream does when its cycle is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtCycleEnd {
    Begin,
    Pause,
}

/// One connection.
pub(crate) struct Stream {
    broken: Option<Rule>,
    pub(crate) id: usize,
    pub(crate) cycles: u64,
    pub(crate) frames: Vec<Frame>,
    pub(crate) ended: bool,
    pub(crate) recovering: bool,
    pub(crate) is_synced: bool,
    pub(crate) due: BTreeSet<usize>,
    unsent: BTreeSet<usize>,
    pub(crate) deletions: VecDeque<Uid>,
    sweep: usize,
    pub(crate) begin: u64,
    /// What is left of the shared bytes that it reads.
    pub(crate) apart: Option<VecDeque<Entry>>,
}

/// The objects of a feed at one position, in the order of their slots: what shared bytes hold.
#[derive(Clone, Debug)]
pub(crate) struct Bytes {
    pub(crate) epoch: u64,
    pub(crate) position: u64,
    pub(crate) objects: Vec<Entry>,
}

impl Bytes {
    pub(crate) fn of(feed: &Feed) -> Self {
        let mut objects: Vec<Entry> = feed
            .entries
            .values()
            .filter(|entry| entry.live)
            .cloned()
            .collect();
        objects.sort_unstable_by_key(|entry| entry.slot);
        Self {
            epoch: feed.epoch,
            position: feed.head,
            objects,
        }
    }

    /// They are handed out only while no tombstone newer than they are was dropped.
    pub(crate) fn may_be_handed_out(&self, feed: &Feed) -> bool {
        let trimmed = feed.trimmed > self.position && !feed.breaks(Rule::OldBytesAreNotHandedOut);
        feed.continuous && self.epoch == feed.epoch && !trimmed
    }
}

impl Stream {
    /// The cycle that has just begun reads shared bytes, as far as it gets with them.
    pub(crate) fn hand_out(&mut self, feed: &mut Feed, bytes: &Bytes) {
        let cursor = if self.breaks(Rule::BytesHaveTheirOwnCursor) {
            feed.head
        } else {
            bytes.position
        };
        feed.readers.get_mut(&self.id).unwrap().cursor = cursor;
        (self.due, self.unsent) = (BTreeSet::new(), BTreeSet::new());
        self.apart = Some(bytes.objects.iter().cloned().collect());
    }

    /// Sends what there is room for of the bytes. Returns whether it still reads them.
    fn read_bytes(&mut self, feed: &Feed, budget: &mut Budget, leaves: bool) -> bool {
        let Some(mut left) = self.apart.take() else {
            return false;
        };
        while budget.objects > 0
            && let Some(entry) = left.pop_front()
        {
            budget.objects -= 1;
            self.frames.push(Frame::Upsert {
                spelling: Spelling::Added,
                uid: entry.uid,
                state: entry.state,
                position: entry.position,
            });
        }
        if !left.is_empty() && !leaves {
            self.apart = Some(left);
            return true;
        }
        let Some(next) = left.front().map(|entry| entry.slot) else {
            return false;
        };
        // It leaves them: all that was there, from the next slot on, is owed and unsent.
        let cursor = feed.readers[&self.id].cursor;
        let was_there = |entry: &&Entry| {
            entry.slot >= next && entry.first <= cursor && (entry.live || entry.position > cursor)
        };
        for entry in feed.entries.values().filter(was_there) {
            if !self.breaks(Rule::LeavingBytesOwesTheRest) {
                self.due.insert(entry.slot);
            }
            if !self.breaks(Rule::RestOfBytesIsUnsent) {
                self.unsent.insert(entry.slot);
            }
        }
        false
    }

    pub(crate) fn new(feed: &mut Feed, id: usize) -> Self {
        let mut stream = Self {
            broken: feed.broken,
            id,
            cycles: 0,
            frames: Vec::new(),
            ended: false,
            recovering: false,
            is_synced: false,
            due: BTreeSet::new(),
            unsent: BTreeSet::new(),
            deletions: VecDeque::new(),
            sweep: 0,
            begin: 0,
            apart: None,
        };
        stream.begin_cycle(feed);
        stream
    }

    fn breaks(&self, rule: Rule) -> bool {
        self.broken == Some(rule)
    }

    pub(crate) fn leave(&mut self, feed: &mut Feed) {
        feed.readers.remove(&self.id);
    }

    /// Whether it is in no cycle.
    pub(crate) fn is_paused(&self, feed: &Feed) -> bool {
        !self.ended && !feed.readers.contains_key(&self.id)
    }

    pub(crate) fn reader(&self, feed: &Feed) -> Option<Reader> {
        feed.readers.get(&self.id).copied()
    }

    pub(crate) fn begin_cycle(&mut self, feed: &mut Feed) {
        self.cycles += 1;
        self.frames.push(Frame::Reset);
        self.is_synced = false;
        self.apart = None;
        (self.due, self.unsent, self.sweep, self.begin) = (BTreeSet::new(), BTreeSet::new(), 0, 0);
        if !self.breaks(Rule::CycleForgetsDeletions) {
            self.deletions = VecDeque::new();
        }
        let waiting = !feed.continuous && !self.breaks(Rule::CycleWaitsForContinuity);
        let reader = Reader {
            cursor: 0,
            epoch: feed.epoch + u64::from(waiting),
            waiting,
        };
        feed.readers.insert(self.id, reader);
        if !waiting {
            self.owe_all(feed);
        }
    }

    fn owe_all(&mut self, feed: &mut Feed) {
        let reader = feed.readers.get_mut(&self.id).unwrap();
        (reader.waiting, reader.cursor) = (false, feed.head);
        self.begin = feed.head;
        if !self.breaks(Rule::CycleOwesAll) {
            self.due = feed
                .entries
                .values()
                .filter(|entry| entry.live)
                .map(|entry| entry.slot)
                .collect();
        }
        self.unsent = self.due.clone();
    }

    /// `leaves`: a stream that reads shared bytes has waited too long for the next of them.
    pub(crate) fn poll(
        &mut self,
        feed: &mut Feed,
        mut budget: Budget,
        at_end: AtCycleEnd,
        leaves: bool,
    ) -> Result<(), String> {
        let Some(reader) = self.reader(feed) else {
            return Ok(());
        };
        if self.ended || reader.epoch > feed.epoch {
            return Ok(());
        }
        let fresh = if reader.epoch < feed.epoch {
            if !self.breaks(Rule::NewEpochForgivesOverflow) {
                self.recovering = false;
            }
            if self.next_cycle(feed, ResyncReason::NewEpoch, at_end) {
                return Ok(());
            }
            self.take_in(feed)
        } else {
            if reader.waiting {
                self.owe_all(feed);
            }
            let is_lost = reader.cursor < feed.trimmed && !self.breaks(Rule::LagIsNoticed);
            if self.apart.is_some() && !is_lost && self.read_bytes(feed, &mut budget, leaves) {
                return Ok(());
            }
            self.apart = None;
            self.take_in(feed)
        };
        let fresh = match fresh {
            Ok(fresh) => fresh,
            Err(Overflow) if self.recovering => {
                self.frames.push(Frame::SlowConsumer);
                self.ended = true;
                self.leave(feed);
                return Ok(());
            }
            Err(Overflow) => {
                self.recovering = !self.breaks(Rule::RecoveryIsRemembered);
                if self.next_cycle(feed, ResyncReason::Overflow, at_end) {
                    return Ok(());
                }
                Vec::new()
            }
        };
        self.send(feed, &fresh, budget)
    }

    /// Returns whether nothing can be sent now.
    fn next_cycle(&mut self, feed: &mut Feed, reason: ResyncReason, at_end: AtCycleEnd) -> bool {
        self.apart = None;
        self.frames.push(Frame::Resync(reason));
        if at_end == AtCycleEnd::Pause {
            self.is_synced = false;
            self.leave(feed);
            return true;
        }
        self.begin_cycle(feed);
        feed.readers[&self.id].waiting
    }

    fn take_in(&mut self, feed: &mut Feed) -> Result<Vec<Entry>, Overflow> {
        let cursor = feed.readers[&self.id].cursor;
        if cursor < feed.trimmed && !self.breaks(Rule::LagIsNoticed) {
            return Err(Overflow);
        }
        let at_head = self.is_synced && self.due.is_empty() && self.deletions.is_empty();
        let mut fresh = Vec::new();
        let recovery_bound = self.recovering && !self.breaks(Rule::RecoveryMayOweAllKept);
        let bound = if recovery_bound {
            feed.tombstones_kept()
        } else {
            feed.queue_depth
        };
        for entry in feed.changes_after(cursor) {
            let slot = entry.slot;
            if entry.live {
                if entry.back > cursor {
                    let unsent = self.unsent.contains(&slot) && !self.breaks(Rule::UnsentReturnIsNotTold);
                    if entry.first <= cursor
                        && cursor < entry.died
                        && !unsent
                        && !self.breaks(Rule::ReturnIsTold)
                    {
                        self.owe_deletion(&entry, bound)?;
                    }
                    if !self.breaks(Rule::ReturnIsUnsent) {
                        self.unsent.insert(slot);
                    }
                }
                if at_head && !self.breaks(Rule::HeadSendsInOrder) {
                    fresh.push(entry);
                }
                self.due.insert(slot);
            } else {
                if !self.breaks(Rule::DeathSettlesDue) {
                    self.due.remove(&slot);
                }
                let unsent = self.unsent.contains(&slot);
                if !self.breaks(Rule::DeathSettlesUnsent) {
                    self.unsent.remove(&slot);
                }
                let was_told = !unsent || self.breaks(Rule::UnsentDeletionIsNotTold);
                let was_seen = entry.first <= cursor || self.breaks(Rule::UnseenDeletionIsNotTold);
                if was_told && was_seen && !self.breaks(Rule::DeletionIsTold) {
                    self.owe_deletion(&entry, bound)?;
                }
            }
        }
        if !self.breaks(Rule::CursorMoves) {
            feed.readers.get_mut(&self.id).unwrap().cursor = feed.head;
        }
        Ok(fresh)
    }

    fn owe_deletion(&mut self, entry: &Entry, bound: usize) -> Result<(), Overflow> {
        self.deletions.push_back(entry.uid.clone());
        let bound = match self.broken {
            Some(Rule::QueueHoldsItsDepth) => bound - 1,
            Some(Rule::QueueHoldsNoMore) => bound + 1,
            _ => bound,
        };
        if self.deletions.len() > bound {
            Err(Overflow)
        } else {
            Ok(())
        }
    }

    fn send(&mut self, feed: &Feed, fresh: &[Entry], budget: Budget) -> Result<(), String> {
        let Budget {
            objects: mut budget,
            deletions: mut room,
        } = budget;
        if self.breaks(Rule::DeletionsGoFirst) {
            for entry in &fresh[..fresh.len().min(budget)] {
                self.send_slot(feed, entry.slot)?;
            }
        }
        while room > 0 && !self.deletions.is_empty() {
            self.frames.extend(self.deletions.pop_front().map(Frame::Deleted));
            room -= 1;
        }
        if !self.deletions.is_empty() {
            return Ok(());
        }
        let most = if self.breaks(Rule::BudgetHolds) {
            fresh.len()
        } else {
            fresh.len().min(budget)
        };
        if !self.breaks(Rule::DeletionsGoFirst) {
            for entry in &fresh[..most] {
                self.send_slot(feed, entry.slot)?;
            }
        }
        budget = budget.saturating_sub(most);
        loop {
            self.sync_if_complete(feed)?;
            if budget == 0 || self.due.is_empty() {
                return Ok(());
            }
            let from = if self.breaks(Rule::SweepIsRoundRobin) {
                0
            } else {
                self.sweep
            };
            let slot = self
                .due
                .range(from..)
                .next()
                .or(self.due.first())
                .copied()
                .unwrap();
            self.send_slot(feed, slot)?;
            self.sweep = slot + 1;
            budget -= 1;
        }
    }

    fn send_slot(&mut self, feed: &Feed, slot: usize) -> Result<(), String> {
        let entry = feed.in_slot(slot).ok_or("a vacant slot is due")?;
        if !entry.live {
            return Err("a tombstone is due".to_owned());
        }
        let before = !self.is_synced && !self.breaks(Rule::AddedBeforeSynced);
        let spelling = if self.unsent.contains(&slot) && !self.breaks(Rule::UnsentIsSpelledAdded) || before {
            Spelling::Added
        } else {
            Spelling::Modified
        };
        let (uid, state, position) = (entry.uid.clone(), entry.state, entry.position);
        self.frames.push(Frame::Upsert {
            spelling,
            uid,
            state,
            position,
        });
        self.due.remove(&slot);
        if !self.breaks(Rule::SendingSettlesUnsent) {
            self.unsent.remove(&slot);
        }
        Ok(())
    }

    fn sync_if_complete(&mut self, feed: &Feed) -> Result<(), String> {
        let boundary = match feed.boundary {
            None if self.breaks(Rule::SyncedWaitsForBoundary) => 0,
            None => return Ok(()),
            Some(_) if self.breaks(Rule::SyncedCoversBoundary) => 0,
            Some(boundary) => boundary,
        };
        if self.is_synced {
            return Ok(());
        }
        let begin = if self.breaks(Rule::SyncedCoversBegin) {
            0
        } else {
            self.begin
        };
        let gate = if self.breaks(Rule::SyncedWaitsForNoMore) {
            u64::MAX
        } else {
            begin.max(boundary)
        };
        for &slot in &self.unsent {
            if feed.in_slot(slot).ok_or("a vacant slot is unsent")?.back <= gate {
                return Ok(());
            }
        }
        self.is_synced = true;
        self.recovering &= self.breaks(Rule::SyncedEndsRecovery);
        self.frames.push(Frame::Synced);
        Ok(())
    }
}
