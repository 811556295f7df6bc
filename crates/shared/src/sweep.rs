//! A stream's memory of what it owes its reader.
//!
//! # Rules
//!
//! - A stream at the head holds a cursor and nothing else. It sends a batch's deletions, then its upserts in the order of
//!   their positions.
//! - A stream that is behind owes *slots*, not changes: it sweeps them round robin, and each is sent in its latest state at
//!   most once a pass. So no object waits longer than one pass, however hot it or others are.
//! - Deletions go first. An object that was never sent in this cycle needs none; one that left and came back is told
//!   `deleted`, then `added`.
//! - `synced` follows when the feed has reached its boundary and all that was there at the cycle's begin, or by the boundary,
//!   was sent or has gone.
//! - A stream may owe as many deletions as the feed's `queue_depth`, and must take in each before its tombstone is dropped.
//!   Past either, the cycle is over, and the next is a *recovery*, in which as many may be owed as the feed keeps. The same
//!   again before the `synced` of a recovery, and the reader cannot be served. Updates never overflow anything.
//! - A cycle that begins while the feed has no continuity waits for the new snapshot.
//! - A stream may begin *apart*: it is handed the snapshot of an earlier point by other means, in the order of slots, and takes
//!   nothing in meanwhile. Its cursor is at that point, so that tombstones are kept for it. When it
//!   [rejoins](Sweep::rejoin), the slots that it was not handed are owed and unsent, and it takes in what changed since.

mod frame;
mod owed;
mod reading;

use std::cmp::Ordering;

pub use self::frame::{Frame, ResyncReason, Sink, Spelling};
use self::reading::{Overflow, Reading};
use crate::changelog::{Changelog, Identified, Point};

/// One stream's reading of a changelog.
///
/// - *In:* [`begin_cycle`](Self::begin_cycle) begins a cycle, the first one and any later one, so that the caller can check
///   access between two cycles, and can have the next one on another changelog.
/// - *Out:* [`poll`](Self::poll) takes in what changed and sends what the sink has room for. To be called when the changelog
///   changed or the sink has room again; a spurious call is cheap and sends nothing.
/// - *End:* [`leave`](Self::leave) must be called before a sweep is dropped, or its changelog keeps tombstones for it.
///
/// From `begin_cycle` to the cycle's end or `leave`, all calls must be given the same changelog.
#[derive(Debug)]
pub struct Sweep<I> {
    state: State<I>,
    /// In the cycle that an overflow began, until it is synced.
    recovering: bool,
    cycles: u64,
}

#[derive(Debug)]
enum State<I> {
    /// No cycle yet, or the last one is over. `begin_cycle` leads to `Waiting` or `Reading`.
    BetweenCycles,
    /// The cycle has begun, and sends nothing before the changelog is in this epoch. Leads to `Reading`, or to
    /// `BetweenCycles` if the changelog is past it.
    Waiting { epoch: u64 },
    /// Leads to `BetweenCycles` when the epoch is replaced, and on an overflow; to `Ended` on an overflow in a recovery.
    Reading(Reading<I>),
    /// It reads the snapshot of an earlier point elsewhere. Leads to `Reading` by `rejoin`, and to the others as `Reading` does.
    Apart(Reading<I>),
    /// The reader cannot be served.
    Ended,
}

/// How a poll left the stream.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All that could be sent was sent. There is nothing to do before the changelog changes.
    Idle,
    /// The sink had no room for all of it. Poll again when it has.
    Owing,
    /// The stream is handed a snapshot by other means. Nothing is taken in or sent before [`Sweep::rejoin`].
    Apart,
    /// There is no cycle: after a [`Frame::Resync`], before the first cycle, and after [`Sweep::leave`]. Nothing more is
    /// sent before [`Sweep::begin_cycle`].
    BetweenCycles,
    /// [`Frame::SlowConsumer`] was the last frame.
    Ended,
}

impl<I> Default for Sweep<I> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I> Sweep<I> {
    /// A stream before its first cycle.
    pub const fn new() -> Self {
        Self {
            state: State::BetweenCycles,
            recovering: false,
            cycles: 0,
        }
    }

    /// The number of cycles that began.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Whether this is the cycle after an overflow, not yet synced.
    pub fn is_recovering(&self) -> bool {
        self.recovering
    }

    /// Whether the reader could not be served.
    pub fn is_ended(&self) -> bool {
        match self.state {
            State::Ended => true,
            State::BetweenCycles | State::Waiting { .. } | State::Reading(_) | State::Apart(_) => false,
        }
    }

    /// Whether the cycle began without continuity and waits for the new snapshot.
    pub fn is_waiting(&self) -> bool {
        match self.state {
            State::Waiting { .. } => true,
            State::BetweenCycles | State::Reading(_) | State::Apart(_) | State::Ended => false,
        }
    }
}

impl<I: Identified + Clone> Sweep<I> {
    /// Begins a cycle: sends `Reset`, and owes all that is there now. While the changelog has no continuity, the cycle waits
    /// for the new snapshot instead. Leaves the cycle it was in; does nothing once [`Frame::SlowConsumer`] was sent.
    pub fn begin_cycle<V, P>(&mut self, changelog: &Changelog<I, V, P>, out: &mut impl Sink<I, P>) {
        self.leave(changelog);
        if self.is_ended() {
            return;
        }
        self.cycles += 1;
        out.push(Frame::Reset);
        self.state = if changelog.is_continuous() {
            State::Reading(Reading::begin(changelog))
        } else {
            State::Waiting {
                epoch: changelog.epoch() + 1,
            }
        };
    }

    /// Begins a cycle apart: sends `Reset`, and leaves it to the caller to hand on the snapshot of `point`, all of it or up to
    /// some slot. Then the caller says so with [`rejoin`](Self::rejoin). Returns `false`, and does nothing, where the changelog
    /// can no longer tell what changed since that point.
    pub fn begin_cycle_apart<V, P>(
        &mut self,
        changelog: &Changelog<I, V, P>,
        point: Point,
        out: &mut impl Sink<I, P>,
    ) -> bool {
        if self.is_ended() || !changelog.can_tell_since(point) {
            return false;
        }
        self.leave(changelog);
        self.cycles += 1;
        out.push(Frame::Reset);
        self.state = State::Apart(Reading::begin_apart(changelog, point));
        true
    }

    /// The stream was handed the objects of its point's snapshot up to this slot, and none from there on: these are owed from
    /// now on. Does nothing if it is not apart.
    pub fn rejoin<V, P>(&mut self, changelog: &Changelog<I, V, P>, next_slot: u32) {
        self.state = match std::mem::replace(&mut self.state, State::BetweenCycles) {
            State::Apart(mut reading) => {
                reading.owe_from(changelog, next_slot);
                State::Reading(reading)
            }
            state @ (State::BetweenCycles | State::Waiting { .. } | State::Reading(_) | State::Ended) => {
                state
            }
        };
    }

    /// Whether it is handed a snapshot by other means.
    pub fn is_apart(&self) -> bool {
        match self.state {
            State::Apart(_) => true,
            State::BetweenCycles | State::Waiting { .. } | State::Reading(_) | State::Ended => false,
        }
    }

    /// Takes in what changed, then sends what the sink has room for.
    ///
    /// At the head, with nothing to send, this compares two numbers. Taking in costs a step for each change since the last
    /// poll; sending, a step for each object.
    pub fn poll<V, P>(&mut self, changelog: &Changelog<I, V, P>, out: &mut impl Sink<I, P>) -> Progress {
        let epoch = match &self.state {
            State::BetweenCycles => return Progress::BetweenCycles,
            State::Ended => return Progress::Ended,
            State::Waiting { epoch } => *epoch,
            State::Reading(reading) => {
                if reading.is_at_head(changelog) {
                    return Progress::Idle;
                }
                reading.epoch()
            }
            State::Apart(reading) => reading.epoch(),
        };
        match epoch.cmp(&changelog.epoch()) {
            Ordering::Greater => return Progress::Idle,
            Ordering::Less => {
                // This restart is not the reader's fault.
                self.recovering = false;
                return self.end_cycle(changelog, ResyncReason::NewEpoch, out);
            }
            Ordering::Equal => {}
        }
        if self.is_waiting() {
            self.state = State::Reading(Reading::begin(changelog));
        }
        if let State::Apart(reading) = &self.state {
            if reading.can_go_on(changelog) {
                return Progress::Apart;
            }
            // What it missed meanwhile can no longer be told: the rest of that snapshot would be of no use.
            return self.overflow(changelog, out);
        }
        self.advance(changelog, out)
    }

    fn advance<V, P>(&mut self, changelog: &Changelog<I, V, P>, out: &mut impl Sink<I, P>) -> Progress {
        let State::Reading(reading) = &mut self.state else {
            return Progress::BetweenCycles;
        };
        let bound = if self.recovering {
            changelog.tombstones_kept()
        } else {
            changelog.queue_depth()
        };
        match reading.take_in(changelog, bound) {
            Ok(taken_in) => {
                reading.send(changelog, &taken_in, out);
                self.recovering &= !reading.is_synced();
                if reading.owes_nothing() {
                    Progress::Idle
                } else {
                    Progress::Owing
                }
            }
            Err(Overflow) => self.overflow(changelog, out),
        }
    }

    fn overflow<V, P>(&mut self, changelog: &Changelog<I, V, P>, out: &mut impl Sink<I, P>) -> Progress {
        if self.recovering {
            self.leave(changelog);
            self.state = State::Ended;
            out.push(Frame::SlowConsumer);
            return Progress::Ended;
        }
        self.recovering = true;
        self.end_cycle(changelog, ResyncReason::Overflow, out)
    }

    fn end_cycle<V, P>(
        &mut self,
        changelog: &Changelog<I, V, P>,
        reason: ResyncReason,
        out: &mut impl Sink<I, P>,
    ) -> Progress {
        self.leave(changelog);
        out.push(Frame::Resync(reason));
        Progress::BetweenCycles
    }

    /// Leaves the cycle it is in, if any: the changelog keeps nothing for this stream any more. The next cycle may be on
    /// another changelog.
    pub fn leave<V, P>(&mut self, changelog: &Changelog<I, V, P>) {
        match &self.state {
            State::Reading(reading) | State::Apart(reading) => reading.leave(changelog),
            State::BetweenCycles | State::Waiting { .. } => {}
            State::Ended => return,
        }
        self.state = State::BetweenCycles;
    }

    /// Whether a poll of this stream would do anything.
    pub fn has_work<V, P>(&self, changelog: &Changelog<I, V, P>) -> bool {
        match &self.state {
            State::BetweenCycles | State::Ended => false,
            State::Waiting { epoch } => *epoch <= changelog.epoch(),
            State::Apart(reading) => reading.epoch() != changelog.epoch() || !reading.can_go_on(changelog),
            State::Reading(reading) => {
                !reading.has_taken_in_all(changelog)
                    || !reading.owes_nothing()
                    || (!reading.is_synced() && changelog.boundary().is_some())
            }
        }
    }

    /// Whether the consumer was sent all that the changelog holds, in a synced cycle. What it holds then equals the
    /// changelog's state.
    pub fn is_at_head<V, P>(&self, changelog: &Changelog<I, V, P>) -> bool {
        match &self.state {
            State::Reading(reading) => reading.is_at_head(changelog),
            State::BetweenCycles | State::Waiting { .. } | State::Apart(_) | State::Ended => false,
        }
    }

    /// Whether the current cycle has sent `synced`.
    pub fn is_synced(&self) -> bool {
        match &self.state {
            State::Reading(reading) => reading.is_synced(),
            State::BetweenCycles | State::Waiting { .. } | State::Apart(_) | State::Ended => false,
        }
    }

    /// Bytes of memory that this stream takes beside the sweep itself: none at the head.
    pub fn memory(&self) -> usize {
        match &self.state {
            State::Reading(reading) => reading.memory(),
            State::BetweenCycles | State::Waiting { .. } | State::Apart(_) | State::Ended => 0,
        }
    }
}
