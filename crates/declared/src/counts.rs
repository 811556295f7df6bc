//! How declared streams are and whether their status is published, for the figures of a host.

use std::iter::Sum;
use std::sync::Arc;

use krm_stream_status::StreamState;
use tokio::sync::watch;

/// How many declared streams there are, by state. What stands in their status too; unlike it, it is up to date also where no
/// status can be written, and on each replica, also on those that do not publish.
///
/// A resource whose specification cannot be read counts as one stream that is blocked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCounts {
    /// They have a complete snapshot and follow it.
    pub ready: usize,
    /// They read a snapshot.
    pub replaying: usize,
    /// They do not go on for now.
    pub blocked: usize,
}

impl StreamCounts {
    /// These, and one in this state.
    #[must_use]
    pub(crate) const fn and(mut self, state: &StreamState) -> Self {
        match state {
            StreamState::Streaming => self.ready += 1,
            StreamState::Replaying(_) => self.replaying += 1,
            StreamState::Blocked(_) => self.blocked += 1,
        }
        self
    }
}

impl Sum for StreamCounts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |sum, counts| Self {
            ready: sum.ready + counts.ready,
            replaying: sum.replaying + counts.replaying,
            blocked: sum.blocked + counts.blocked,
        })
    }
}

/// Whether what is known of declared streams gets into their status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublishingCounts {
    /// This replica is the one that publishes: it holds the Lease, or there is none to hold.
    pub publishes: bool,
    /// The resources whose latest write did not succeed, and which it tries to write again. None where it does not publish.
    pub unwritten: usize,
}

/// Reads the [`StreamCounts`] and [`PublishingCounts`] of a controller at any time, also while it runs. After its end they are
/// the last ones.
#[derive(Clone, Debug)]
pub struct DeclaredCounts(watch::Receiver<Counted>);

impl DeclaredCounts {
    /// How streams are now. Does not block but for the moment in which it is written.
    pub fn now(&self) -> StreamCounts {
        self.0.borrow().streams
    }

    /// How publishing goes now. Does not block but for the moment in which it is written.
    pub fn publishing(&self) -> PublishingCounts {
        self.0.borrow().publishing
    }
}

/// All that is counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) streams: StreamCounts,
    pub(crate) publishing: PublishingCounts,
}

/// Where a controller writes them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counting(Arc<watch::Sender<Counted>>);

impl Counting {
    pub(crate) fn set(&self, counted: Counted) {
        self.0.send_replace(counted);
    }

    pub(crate) fn reader(&self) -> DeclaredCounts {
        DeclaredCounts(self.0.subscribe())
    }
}
