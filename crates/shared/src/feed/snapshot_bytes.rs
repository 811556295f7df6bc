//! The opening snapshot of a warm feed as bytes, encoded once for all who join near the same position.
//!
//! # Rules
//! - The bytes are those of a connection's first cycle, in slot order: its `reset` has `seq` 1, the objects go from 2. They
//!   end before `synced`.
//! - A join that follows another within [`JOINS_CEASE`] begins a storm: it has the bytes made. A lone one sweeps, and costs
//!   no copy of the scope. Whoever joins while the feed has moved on by little takes the same bytes, and what changed since
//!   from the changelog.
//! - The objects of one position are taken down at once, which is a step for each; they are encoded later, outside the
//!   feed's lock, chunk by chunk as the first reader gets there.
//! - A chunk leads to the next one. So what no reader will read again is freed as soon as the feed has let go of the first
//!   one, which it does when joins cease, and once a reader has moved on or was made to leave.
//! - There are [two copies](COPIES) at most, however often the scope changes between joins, and none is left
//!   [some seconds](KEPT_TICKS) after the last join: readers that have not come to the end by then are made to leave, and go
//!   on as a sweep.
//! - A reader of the bytes takes in no deletion. So they are lent, and read, only as long as so few came since that it will
//!   owe less than it may.

mod chunk;
mod loan;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use krm_stream_protocol::Moment;

pub(crate) use self::chunk::Chunk;
pub(crate) use self::loan::{Loan, Next};
use super::state::FeedChangelog;
use crate::changelog::Point;

/// Joins have ceased when none came for so long.
pub(crate) const JOINS_CEASE: Duration = Duration::from_secs(1);

/// A reader that has not taken its next chunk for so long leaves the bytes.
pub(crate) const NEXT_CHUNK_WITHIN: Duration = Duration::from_secs(1);

/// The bytes are still near if no more changed since than one object of so many. Whoever joins is sent these objects twice,
/// so this is what a join may cost more than with bytes of its own; and at a given rate of changes it is how long one
/// encoding serves.
const NEAR_ONE_IN: u64 = 8;

/// As many changes are near, however small the scope: they cost less than encoding it.
const NEAR_CHANGES: u64 = 16;

/// How many copies of a scope there may be: one that is handed out, and the one before, which many may be reading.
const COPIES: u64 = 2;

/// Whoever reads is given this many times [`JOINS_CEASE`] after the last join.
const KEPT_TICKS: u32 = 10;

/// The bytes that a feed hands out at present, and who reads some.
#[derive(Debug, Default)]
pub(crate) struct SnapshotBytes(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    last_join: Option<Moment>,
    joined_since_tick: bool,
    ticks_without_join: u32,
    /// How many copies were made.
    copies: u64,
    current: Option<Current>,
    loans: Vec<Lent>,
}

/// What is not lent any more: perhaps a whole copy, which takes milliseconds to free. To be dropped outside of any lock.
#[derive(Debug, Default)]
pub(crate) struct GivenUp {
    current: Option<Current>,
    chunks: Vec<Arc<Chunk>>,
}

#[derive(Debug)]
struct Lent {
    loan: Weak<Loan>,
    /// The number of the copy.
    copy: u64,
}

#[derive(Debug)]
struct Current {
    point: Point,
    /// The changelog's count at that point.
    deletions: u64,
    objects: u64,
    /// Before the first chunk.
    start: Arc<Chunk>,
}

impl SnapshotBytes {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes for a stream that joins now, and their point; none where it has to sweep. What is given up for them comes
    /// with them.
    pub(crate) fn lend(
        &self,
        changelog: &FeedChangelog,
        now: Moment,
    ) -> (Option<(Point, Arc<Loan>)>, GivenUp) {
        let mut given_up = GivenUp::default();
        if !changelog.is_continuous() || changelog.boundary().is_none() {
            return (None, given_up);
        }
        let mut table = self.table();
        let before = table.last_join.replace(now);
        table.joined_since_tick = true;
        let is_usable = table
            .current
            .as_ref()
            .is_some_and(|current| current.is_near(changelog));
        if !is_usable {
            let is_alone = before.is_none_or(|before| now.since(before) >= JOINS_CEASE);
            let Some(next) = (!is_alone).then(|| Current::take_down(changelog)).flatten() else {
                return (None, given_up);
            };
            given_up.current = table.current.replace(next);
            given_up.chunks = table.begin_copy();
        }
        let Some(current) = &table.current else {
            return (None, given_up);
        };
        let loan = Arc::new(Loan::new(Arc::clone(&current.start), current.deletions));
        let (point, copy) = (current.point, table.copies);
        table.loans.push(Lent {
            loan: Arc::downgrade(&loan),
            copy,
        });
        (Some((point, loan)), given_up)
    }

    /// To be called about once within [`JOINS_CEASE`]: lets go of the bytes if nobody has joined since the last time, and
    /// takes them from readers that have taken nothing since then, and from all when joins ceased long ago. Returns whether
    /// there is a need to be called again.
    pub(crate) fn tick(&self) -> bool {
        let mut table = self.table();
        let has_ceased = !std::mem::take(&mut table.joined_since_tick);
        table.ticks_without_join = if has_ceased {
            table.ticks_without_join + 1
        } else {
            0
        };
        let outdated = table.current.take_if(|_| has_ceased);
        let is_long_ago = table.ticks_without_join >= KEPT_TICKS;
        let revoked = table.revoke(|_, loan| {
            if is_long_ago {
                loan.revoke()
            } else {
                loan.revoke_unless_used()
            }
        });
        let is_needed = table.current.is_some() || !table.loans.is_empty();
        if !is_needed {
            table.loans = Vec::new();
        }
        drop(table);
        drop((outdated, revoked));
        is_needed
    }
}

impl Table {
    /// Another copy is handed out from now on. Returns what was taken from the readers of copies that are too many now.
    fn begin_copy(&mut self) -> Vec<Arc<Chunk>> {
        self.copies += 1;
        let oldest = (self.copies + 1).saturating_sub(COPIES);
        self.revoke(|copy, loan| if copy < oldest { loan.revoke() } else { None })
    }

    /// Takes away what `revoke` says, and forgets who reads no more.
    fn revoke(&mut self, revoke: impl Fn(u64, &Loan) -> Option<Arc<Chunk>>) -> Vec<Arc<Chunk>> {
        let mut revoked = Vec::new();
        self.loans.retain(|lent| {
            let Some(loan) = lent.loan.upgrade() else {
                return false;
            };
            revoked.extend(revoke(lent.copy, &loan));
            loan.is_read()
        });
        revoked
    }
}

impl Current {
    /// `None` if there is nothing to encode.
    fn take_down(changelog: &FeedChangelog) -> Option<Self> {
        let mut objects = Vec::with_capacity(changelog.live());
        for object in changelog.objects() {
            objects.push((object.slot, object.payload.shared()?));
        }
        if objects.is_empty() {
            return None;
        }
        Some(Self {
            point: changelog.point(),
            deletions: changelog.deletions(),
            objects: objects.len() as u64,
            start: Arc::new(Chunk::before(objects)),
        })
    }

    fn is_near(&self, changelog: &FeedChangelog) -> bool {
        let near = NEAR_CHANGES.max(self.objects / NEAR_ONE_IN);
        changelog.can_tell_since(self.point)
            && changelog.head() - self.point.position <= near
            && changelog.deletions() - self.deletions <= changelog.queue_depth() as u64 / 4
    }
}

#[cfg(test)]
mod tests;
