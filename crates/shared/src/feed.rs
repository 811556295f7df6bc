//! One feed: what its streams share, from its opening to its end.

mod driver;
mod held;
mod opening;
mod state;
mod wakers;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::task::Waker;

use krm_stream_projection::Projection;
use krm_stream_protocol::{ActsAs, PartitionKey, ProjectionName, Scope, Upstream};
use tokio::sync::watch;

pub(crate) use driver::{Driver, Owner, drive};
pub(crate) use held::Held;
use opening::Opening;
pub(crate) use opening::Waiter;
pub(crate) use state::{FeedState, Over};
use wakers::Wakers;

use crate::settings::FeedSettings;

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
    state: RwLock<FeedState>,
    opening: Mutex<Opening>,
    wakers: Wakers,
    /// How many streams are attached or wait for the opening.
    occupancy: watch::Sender<usize>,
}

impl Feed {
    pub(crate) fn new(key: FeedKey, projection: Arc<Projection>, settings: &FeedSettings) -> Self {
        let streams_snapshots = key.is_isolated();
        Self {
            key,
            projection,
            state: RwLock::new(FeedState::new(
                settings.queue_depth,
                settings.ordering,
                streams_snapshots,
            )),
            opening: Mutex::new(Opening::Waiting(VecDeque::new())),
            wakers: Wakers::default(),
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
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, FeedState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the streams that wait for a change.
    fn wake_all(&self) {
        self.wakers.wake_all();
    }

    pub(crate) fn opening(&self) -> std::sync::MutexGuard<'_, Opening> {
        self.opening.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn register(&self, stream: u64, waker: &Waker) {
        self.wakers.register(stream, waker);
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
}

impl Attachment {
    pub(crate) fn feed(&self) -> &Arc<Feed> {
        &self.feed
    }

    pub(crate) fn stream(&self) -> u64 {
        self.stream
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.feed.wakers.forget(self.stream);
        self.feed.opening().leave(self.stream);
        self.feed.occupancy.send_modify(|count| *count -= 1);
    }
}
