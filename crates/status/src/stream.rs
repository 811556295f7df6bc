//! One watch stream: the state that a controller publishes of it, and what changes that.

mod trust;

use std::borrow::Cow;
use std::error::Error;

use krm_stream_protocol::{FeedEnd, Start};

use self::trust::Trust;
use crate::grade::{self, Ended, Grade, Retries};

/// What one watch stream is doing.
///
/// There is no state for a routine reconnect: an API server ends every watch after some minutes, and leaving
/// [`Streaming`](Self::Streaming) for that would flip Ready and break `kubectl wait --for=condition=Ready`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamState {
    /// A snapshot is being read, or is not yet believed to last. When it is complete, and
    /// [that is believed](WatchStream#it-does-not-flap), or when a session lived: `Streaming`. When it cannot be read: `Blocked`.
    Replaying(ReplayReason),
    /// The snapshot is complete and changes follow it. When continuity is lost: `Replaying`. When it cannot go on:
    /// `Blocked`.
    Streaming,
    /// It does not go on for now. Another attempt alone changes nothing. When a session has its snapshot, or goes on after a
    /// version, and [that is believed](WatchStream#it-does-not-flap), or when a session lived: `Streaming`. When the API
    /// server answers that a snapshot is needed, and that is believed: `Replaying`.
    Blocked(Blockage),
}

/// Why a snapshot is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReplayReason {
    /// It is the first.
    InitialReplay,
    /// Continuity was lost.
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
/// session that [lived](Self::lived), each end, each failure to open (with [`Retries::Left`]
/// where the answer was [`Next::Open`](krm_stream_protocol::Next::Open)) and the end of the feed. What befell one reader of
/// the stream is none of its business.
///
/// # It does not flap
/// A boundary, and a session that goes on after a version, are signs of recovery: they count at once. If what they promised
/// does not last until a session has lived, the next such sign does not count any more, nor does one after early ends in a
/// row: the state stays what it is, or gets worse, until a session lived. So between two sessions that lived it turns to
/// [`Streaming`](StreamState::Streaming) at most once, however often an API server accepts a watch and ends it.
///
/// So **a host must call [`lived`](Self::lived)**, at the [moment](krm_stream_protocol::Continuity::lives_at) at which a
/// session has lived and not only when it ends. Without that one recovery is published and no other: a stream that works
/// stays [`Blocked`](StreamState::Blocked) or [`Replaying`](StreamState::Replaying) for ever.
///
/// ```
/// use krm_stream_protocol::{SessionEnd, Start};
/// use krm_stream_status::{Ended, ReplayReason, StreamState, WatchStream};
///
/// let mut stream = WatchStream::new();
/// stream.opened(&Start::Fresh);
/// stream.synced();
/// stream.lived();
/// // A watch that reached its timeout is no news.
/// stream.ended(Ended::Session(&SessionEnd::Closed));
/// assert_eq!(*stream.state(), StreamState::Streaming);
/// stream.ended(Ended::Session(&SessionEnd::Expired));
/// assert_eq!(*stream.state(), StreamState::Replaying(ReplayReason::ExpiredResourceVersion));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchStream {
    state: StreamState,
    trust: Trust,
    session: Latest,
}

/// The latest session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Latest {
    /// There is none, or it ended without a word.
    Over,
    /// It ended in words, which are published.
    Failed,
    /// It is open.
    Open,
}

impl Default for WatchStream {
    fn default() -> Self {
        Self::new()
    }
}

impl WatchStream {
    /// A stream that begins with its first snapshot.
    pub const fn new() -> Self {
        Self::beginning(StreamState::Replaying(ReplayReason::InitialReplay))
    }

    /// A stream that cannot even begin, such as one whose kind cannot be resolved.
    pub const fn blocked(blockage: Blockage) -> Self {
        Self::beginning(StreamState::Blocked(blockage))
    }

    const fn beginning(state: StreamState) -> Self {
        Self {
            state,
            trust: Trust::Given,
            session: Latest::Over,
        }
    }

    /// The response headers of a session arrived. One that goes on after a version has lost nothing.
    pub fn opened(&mut self, start: &Start) {
        self.session = Latest::Open;
        match (start, &self.state) {
            (Start::After(_), _) => self.recovers(),
            (Start::Fresh, StreamState::Streaming) => self.replays(ReplayReason::ResumeReplay),
            (Start::Fresh, StreamState::Replaying(_) | StreamState::Blocked(_)) => {}
        }
    }

    /// The snapshot is complete. To a blocked stream, that of a session which was given up since changes nothing.
    pub fn synced(&mut self) {
        match (&self.state, self.session) {
            (StreamState::Blocked(_), Latest::Over | Latest::Failed) => {}
            (StreamState::Blocked(_), Latest::Open)
            | (
                StreamState::Replaying(_) | StreamState::Streaming,
                Latest::Over | Latest::Failed | Latest::Open,
            ) => self.recovers(),
        }
    }

    /// The open session lived: it is 5 s past its boundary or headers, or has reached the timeout that it asked for
    /// ([`Continuity::lives_at`](krm_stream_protocol::Continuity::lives_at)). So did one whose transport ends before that and
    /// that [has worked](krm_stream_protocol::Continuity::has_worked) until then; its end is told after this. That of a
    /// session which has ended since changes nothing.
    pub fn lived(&mut self) {
        match self.session {
            Latest::Over | Latest::Failed => {}
            Latest::Open => {
                self.trust = Trust::Given;
                self.state = StreamState::Streaming;
            }
        }
    }

    /// A session ended, or was left for an event that cannot be used.
    pub fn ended(&mut self, ended: Ended<'_>) {
        let grade = grade::grade_session_end(ended);
        self.session = match &grade {
            Grade::Blocked(_) => Latest::Failed,
            Grade::Unchanged | Grade::Replaying(_) => Latest::Over,
        };
        self.take(grade);
    }

    /// A session could not be opened.
    pub fn open_failed(&mut self, error: &(dyn Error + 'static), retries: Retries) {
        self.session = Latest::Over;
        self.take(grade::grade_failed_open(error, retries));
    }

    /// A second early end in a row: the same as an open that failed for good, but that sessions open is no sign any more.
    pub fn ended_early_again(&mut self) {
        match self.session {
            // What the API server said tells more.
            Latest::Failed => {}
            Latest::Over | Latest::Open => self.take(grade::early_ends()),
        }
        self.session = Latest::Over;
        self.trust = Trust::Lost;
    }

    /// The feed is over. Whoever opens it again tells [`opened`](Self::opened).
    pub fn feed_ended(&mut self, end: &FeedEnd) {
        let latest = std::mem::replace(&mut self.session, Latest::Over);
        self.take(grade::grade_feed_end(end));
        // With a session still open, it was the early end of that.
        if let (Latest::Open, FeedEnd::Unavailable(_)) = (latest, end) {
            self.trust = Trust::Lost;
        }
    }

    /// What is to be published.
    pub const fn state(&self) -> &StreamState {
        &self.state
    }

    /// A sign that it works.
    fn recovers(&mut self) {
        match &self.state {
            StreamState::Streaming => {}
            StreamState::Replaying(_) | StreamState::Blocked(_) => {
                if self.trust.takes_sign() {
                    self.state = StreamState::Streaming;
                }
            }
        }
    }

    fn take(&mut self, grade: Grade) {
        match grade {
            Grade::Unchanged => {}
            Grade::Replaying(reason) => self.replays(reason),
            Grade::Blocked(blockage) => {
                self.trust.disappointed();
                self.state = StreamState::Blocked(blockage);
            }
        }
    }

    /// A new snapshot is needed. To a blocked stream that is a sign of recovery: the API server knows what it says.
    fn replays(&mut self, reason: ReplayReason) {
        let counts = match &self.state {
            StreamState::Streaming => {
                self.trust.disappointed();
                true
            }
            StreamState::Replaying(_) => true,
            StreamState::Blocked(_) => self.trust.takes_sign(),
        };
        if counts {
            self.state = StreamState::Replaying(reason);
        }
    }
}

#[cfg(test)]
mod tests;
