//! One watch stream: the state that a controller publishes of it, and what changes that.

use std::borrow::Cow;
use std::error::Error;

use krm_stream_protocol::{FeedEnd, Start};

use crate::grade::{self, Ended, Grade, Retries};

/// What one watch stream is doing.
///
/// There is no state for a routine reconnect: an API server ends every watch after some minutes, and leaving
/// [`Streaming`](Self::Streaming) for that would flip Ready and break `kubectl wait --for=condition=Ready`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamState {
    /// A snapshot is being read. When it is complete: `Streaming`. When it cannot be read: `Blocked`.
    Replaying(ReplayReason),
    /// The snapshot is complete and changes follow it. When continuity is lost: `Replaying`.
    Streaming,
    /// It does not go on for now. When a session opens: `Replaying`, or `Streaming` if nothing was lost.
    Blocked(Blockage),
}

/// Why a snapshot is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReplayReason {
    /// It is the first.
    InitialReplay,
    /// Continuity was lost, or a blocked stream goes on.
    ResumeReplay,
    /// The API server had forgotten the version to go on from: 410.
    ExpiredResourceVersion,
}

impl ReplayReason {
    /// The reason as it is published.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InitialReplay => "InitialReplay",
            Self::ResumeReplay => "ResumeReplay",
            Self::ExpiredResourceVersion => "ExpiredResourceVersion",
        }
    }
}

/// Why a stream does not go on, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blockage {
    reason: BlockReason,
    message: Cow<'static, str>,
}

/// Why a stream does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockReason {
    /// Not allowed: 403, or a policy of the host's.
    WatchNotPermitted,
    /// Anything else.
    WatchError,
}

impl BlockReason {
    /// The reason as it is published.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WatchNotPermitted => "WatchNotPermitted",
            Self::WatchError => "WatchError",
        }
    }
}

impl Blockage {
    /// A blockage for this reason. The message must be the same for the same trouble: no versions, times, addresses or
    /// request ids, or each evaluation would be a write.
    pub fn new(reason: BlockReason, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }

    /// The reason.
    pub const fn reason(&self) -> BlockReason {
        self.reason
    }

    /// The words.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// The state of one watch stream over time. It is told what happens, in order, and holds what is to be published.
///
/// With [`Continuity`](krm_stream_protocol::Continuity), a driver tells it each session that opened, each boundary, each
/// end, each failure to open (with [`Retries::Left`] where the answer was [`Next::Open`](krm_stream_protocol::Next::Open))
/// and the end of the feed. What befell one reader of the stream is none of its business.
///
/// ```
/// use krm_stream_protocol::{SessionEnd, Start};
/// use krm_stream_status::{Ended, ReplayReason, StreamState, WatchStream};
///
/// let mut stream = WatchStream::new();
/// stream.opened(&Start::Fresh);
/// stream.synced();
/// // A watch that reached its timeout is no news.
/// stream.ended(Ended::Session(&SessionEnd::Closed));
/// assert_eq!(*stream.state(), StreamState::Streaming);
/// stream.ended(Ended::Session(&SessionEnd::Expired));
/// assert_eq!(*stream.state(), StreamState::Replaying(ReplayReason::ExpiredResourceVersion));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchStream {
    state: StreamState,
    was_synced: bool,
}

impl Default for WatchStream {
    fn default() -> Self {
        Self::new()
    }
}

impl WatchStream {
    /// A stream that begins with its first snapshot.
    pub const fn new() -> Self {
        Self {
            state: StreamState::Replaying(ReplayReason::InitialReplay),
            was_synced: false,
        }
    }

    /// A stream that cannot even begin, such as one whose kind cannot be resolved.
    pub const fn blocked(blockage: Blockage) -> Self {
        Self {
            state: StreamState::Blocked(blockage),
            was_synced: false,
        }
    }

    /// The response headers of a session arrived. One that goes on after a version has lost nothing.
    pub fn opened(&mut self, start: &Start) {
        match (start, &self.state) {
            (Start::After(_), _) => self.stream_on(),
            (Start::Fresh, StreamState::Replaying(_)) => {}
            (Start::Fresh, StreamState::Streaming | StreamState::Blocked(_)) => {
                self.state = StreamState::Replaying(if self.was_synced {
                    ReplayReason::ResumeReplay
                } else {
                    ReplayReason::InitialReplay
                });
            }
        }
    }

    /// The snapshot is complete. That of a session which was given up since changes nothing.
    pub fn synced(&mut self) {
        match &self.state {
            StreamState::Replaying(_) => self.stream_on(),
            StreamState::Streaming | StreamState::Blocked(_) => {}
        }
    }

    /// A session ended, or was left for an event that cannot be used.
    pub fn ended(&mut self, ended: Ended<'_>) {
        self.take(grade::grade_session_end(ended));
    }

    /// A session could not be opened.
    pub fn open_failed(&mut self, error: &(dyn Error + 'static), retries: Retries) {
        self.take(grade::grade_failed_open(error, retries));
    }

    /// A second early end in a row: the same as an open that failed for good.
    pub fn ended_early_again(&mut self) {
        self.take(grade::early_ends());
    }

    /// The feed is over. Whoever opens it again tells [`opened`](Self::opened).
    pub fn feed_ended(&mut self, end: &FeedEnd) {
        self.take(grade::grade_feed_end(end));
    }

    /// What is to be published.
    pub const fn state(&self) -> &StreamState {
        &self.state
    }

    fn stream_on(&mut self) {
        self.state = StreamState::Streaming;
        self.was_synced = true;
    }

    fn take(&mut self, grade: Grade) {
        match grade {
            Grade::Unchanged => {}
            Grade::Replaying(reason) => self.state = StreamState::Replaying(reason),
            Grade::Blocked(blockage) => self.state = StreamState::Blocked(blockage),
        }
    }
}

#[cfg(test)]
mod tests;
