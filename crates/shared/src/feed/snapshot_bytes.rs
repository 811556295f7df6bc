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

/// The bytes that a feed hands out at present, and who reads some.
#[derive(Debug, Default)]
pub(crate) struct SnapshotBytes(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    last_join: Option<Moment>,
    joined_since_tick: bool,
    current: Option<Current>,
    loans: Vec<Weak<Loan>>,
}

#[derive(Debug)]
struct Current {
    point: Point,
    objects: u64,
    /// Before the first chunk.
    start: Arc<Chunk>,
}

impl SnapshotBytes {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes for a stream that joins now, and their point; `None` where it has to sweep.
    pub(crate) fn lend(&self, changelog: &FeedChangelog, now: Moment) -> Option<(Point, Arc<Loan>)> {
        if !changelog.is_continuous() || changelog.boundary().is_none() {
            return None;
        }
        let mut table = self.table();
        let before = table.last_join.replace(now);
        table.joined_since_tick = true;
        let is_usable = table
            .current
            .as_ref()
            .is_some_and(|current| current.is_near(changelog));
        let outdated = if is_usable {
            None
        } else {
            if before.is_none_or(|before| now.since(before) >= JOINS_CEASE) {
                return None;
            }
            let next = Current::take_down(changelog);
            std::mem::replace(&mut table.current, next)
        };
        let current = table.current.as_ref()?;
        let (point, loan) = (current.point, Arc::new(Loan::new(Arc::clone(&current.start))));
        table.loans.push(Arc::downgrade(&loan));
        drop(table);
        // Perhaps the last that held it: freed outside the lock.
        drop(outdated);
        Some((point, loan))
    }

    /// To be called about once within [`JOINS_CEASE`]: lets go of the bytes if nobody has joined since the last time, and
    /// takes them from readers that have taken nothing since then. Returns whether there is a need to be called again.
    pub(crate) fn tick(&self) -> bool {
        let mut table = self.table();
        let has_ceased = !std::mem::take(&mut table.joined_since_tick);
        let outdated = table.current.take_if(|_| has_ceased);
        let mut revoked = Vec::new();
        table.loans.retain(|loan| {
            let Some(loan) = loan.upgrade() else { return false };
            match loan.revoke_unless_used() {
                Some(chunk) => {
                    revoked.push(chunk);
                    false
                }
                None => loan.is_read(),
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
            objects: objects.len() as u64,
            start: Arc::new(Chunk::before(objects)),
        })
    }

    fn is_near(&self, changelog: &FeedChangelog) -> bool {
        let near = NEAR_CHANGES.max(self.objects / NEAR_ONE_IN);
        changelog.can_tell_since(self.point) && changelog.head() - self.point.position <= near
    }
}

#[cfg(test)]
mod tests;
