//! One feed: what its streams share, from its opening to its end.

mod driver;
mod handover;
mod held;
mod limits;
mod opening;
mod reports;
mod snapshot_bytes;
mod state;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, RwLockReadGuard};
use std::task::Waker;
use std::time::Duration;

use krm_stream_projection::Projection;
use krm_stream_protocol::{ActsAs, Moment, PartitionKey, ProjectionName, Scope, Upstream};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

pub(crate) use driver::{Driver, Owner, drive};
pub(crate) use handover::Visible;
use handover::{Handover, Place};
pub(crate) use held::Held;
use opening::Opening;
pub(crate) use opening::Waiter;
use reports::Reports;
pub use reports::{FeedReport, FeedReports, Keep, Keeper};
pub(crate) use snapshot_bytes::{Chunk, Loan, NEXT_CHUNK_WITHIN, Next};
use snapshot_bytes::{GivenUp, JOINS_CEASE, SnapshotBytes};
pub(crate) use state::{FeedState, Over};

use crate::changelog::Point;
use crate::settings::FeedSettings;

/// A turn of the executor takes that long where it has nothing to do, and longer where it has.
const TURN: Duration = Duration::from_millis(1);

/// If none of the streams that were woken looks for so many turns, those that are left are stuck.
const STUCK_AFTER: u32 = 100;

/// What makes two streams share a feed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FeedKey {
    pub(crate) partition: PartitionKey,
    pub(crate) scope: Scope,
    pub(crate) projection: ProjectionName,
}

/// The shared half of a feed. Its [`Driver`] is the only one that changes the state.
#[derive(Debug)]
pub(crate) struct Feed {
    key: FeedKey,
    projection: Arc<Projection>,
    state: Handover<FeedState>,
    opening: Mutex<Opening>,
    snapshot_bytes: SnapshotBytes,
    /// There is something to tidy up after a while.
    untidy: Notify,
    reports: Reports,
    /// How many streams are attached or wait for the opening.
    occupancy: watch::Sender<usize>,
}

impl Feed {
    pub(crate) fn new(key: FeedKey, projection: Arc<Projection>, settings: &FeedSettings) -> Self {
        let streams_snapshots = key.is_isolated();
        Self {
            key,
            projection,
            state: Handover::new(FeedState::new(settings, streams_snapshots)),
            opening: Mutex::new(Opening::Waiting(VecDeque::new())),
            snapshot_bytes: SnapshotBytes::default(),
            untidy: Notify::new(),
            reports: Reports::default(),
            occupancy: watch::Sender::new(0),
        }
    }

    pub(crate) fn key(&self) -> &FeedKey {
        &self.key
    }

    pub(crate) fn projection(&self) -> &Arc<Projection> {
        &self.projection
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, FeedState> {
        self.state.read()
    }

    /// Looks at the state, and has `waker` woken when it changes.
    pub(crate) fn look(&self, attachment: &Attachment, waker: &Waker) -> RwLockReadGuard<'_, FeedState> {
        self.state.look(attachment.place, waker)
    }

    /// Has `waker` woken when all have to look, no longer at the next change. Returns `false`, and does nothing, where the
    /// stream has to look first.
    pub(crate) fn rest(&self, attachment: &Attachment, waker: &Waker) -> bool {
        self.state.rest(attachment.place, waker)
    }

    /// How often streams were woken. One that asked for this before its latest look, and is told the same again, need not look.
    pub(crate) fn wakes(&self) -> u64 {
        self.state.wakes()
    }

    /// Changes the state, and wakes the streams if there is something to see.
    fn change<R>(&self, change: impl FnOnce(&mut FeedState) -> (R, Visible)) -> R {
        self.untidy.notify_one();
        self.state.change(change)
    }

    /// Rouses the streams that rest, and waits until all that were woken have looked, as long as some of them do, and for no
    /// more turns than `patience`: those that are stuck or slow must not hold up the others. Returns how many turns went by.
    async fn settled(&self, patience: u32) -> u32 {
        self.state.rouse();
        let mut unsettled = self.state.unsettled();
        let (mut turns, mut stuck_for) = (0, 0);
        while turns < patience && stuck_for < STUCK_AFTER {
            let settled = std::future::poll_fn(|cx| self.state.poll_settled(cx));
            if timeout(TURN, settled).await.is_ok() {
                return turns;
            }
            // To the end of the queue: whatever was woken before gets to run first, however long that takes.
            tokio::task::yield_now().await;
            let before = std::mem::replace(&mut unsettled, self.state.unsettled());
            stuck_for = if unsettled < before { 0 } else { stuck_for + 1 };
            turns += 1;
        }
        self.state.give_up_unsettled();
        turns
    }

    /// Where what happens to the sessions is told.
    pub(crate) fn reports(&self) -> &Reports {
        &self.reports
    }

    pub(crate) fn opening(&self) -> std::sync::MutexGuard<'_, Opening> {
        self.opening.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes of the opening snapshot for a stream that joins now, none where it has to sweep; and what is to be dropped once
    /// `state` is no longer locked.
    pub(crate) fn lend_snapshot(
        &self,
        state: &FeedState,
        now: Moment,
    ) -> (Option<(Point, Arc<Loan>)>, GivenUp) {
        if self.key.is_isolated() {
            return (None, GivenUp::default());
        }
        let (lent, given_up) = self.snapshot_bytes.lend(&state.changelog, now);
        if lent.is_some() {
            self.untidy.notify_one();
        }
        (lent, given_up)
    }

    /// For as long as the feed lives: frees what nobody needs any more while no change comes that would.
    pub(crate) async fn keep_tidy(&self) {
        loop {
            self.untidy.notified().await;
            loop {
                sleep(JOINS_CEASE).await;
                let lends = self.snapshot_bytes.tick();
                if !self.trim() && !lends {
                    break;
                }
            }
        }
    }

    /// Drops the tombstones that all streams have taken in. Returns whether some are left.
    fn trim(&self) -> bool {
        if self.read().changelog.size().tombstones == 0 {
            return false;
        }
        self.state.change(|state| {
            state.changelog.trim();
            (state.changelog.size().tombstones > 0, Visible::No)
        })
    }

    /// Joins for as long as the attachment lives. `upstream` may be used to open the feed, if nobody has yet.
    pub(crate) fn attach(
        self: &Arc<Self>,
        stream: u64,
        upstream: Arc<dyn Upstream>,
    ) -> (Attachment, Option<Waiter>) {
        let waiter = self.opening().join(stream, upstream);
        self.occupancy.send_modify(|count| *count += 1);
        let attachment = Attachment {
            feed: Arc::clone(self),
            stream,
            place: self.state.enter(),
        };
        (attachment, waiter)
    }

    pub(crate) fn is_vacant(&self) -> bool {
        *self.occupancy.borrow() == 0
    }
}

impl FeedKey {
    pub(crate) fn is_isolated(&self) -> bool {
        match &self.partition {
            PartitionKey::Isolated(_) => true,
            PartitionKey::PerCaller(..) | PartitionKey::Shared(_) => false,
        }
    }

    /// Whose identity the upstream has.
    pub(crate) fn acts_as(&self) -> ActsAs {
        match &self.partition {
            PartitionKey::Isolated(_) | PartitionKey::PerCaller(..) => ActsAs::Caller,
            PartitionKey::Shared(_) => ActsAs::Service,
        }
    }
}

/// A stream's place at a feed. Dropping it is leaving; the last to leave ends the session.
#[derive(Debug)]
pub(crate) struct Attachment {
    feed: Arc<Feed>,
    stream: u64,
    place: Place,
}

impl Attachment {
    pub(crate) fn feed(&self) -> &Arc<Feed> {
        &self.feed
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.feed.state.leave(self.place);
        self.feed.opening().leave(self.stream);
        self.feed.occupancy.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests;
