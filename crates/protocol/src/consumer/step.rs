//! What an event did, and what the consumer does next.

use std::sync::Arc;
use std::time::Duration;

use crate::ErrorCode;

/// What an event did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "an error's decision says whether the connection goes on"]
pub enum Step {
    /// A cycle began; all that is held is unseen.
    Reset,
    /// The object of this uid was put in place.
    Upserted {
        /// The uid.
        uid: Arc<str>,
    },
    /// The object of this uid was dropped.
    Deleted {
        /// The uid.
        uid: Arc<str>,
        /// Whether it was held.
        was_held: bool,
    },
    /// The snapshot is complete.
    Synced {
        /// The uids that this cycle did not tell of, dropped now.
        pruned: Vec<Arc<str>>,
    },
    /// Trouble, to be shown.
    Error {
        /// What the stream said.
        error: ReportedError,
        /// What to do.
        decision: Decision,
    },
    /// An event of a type that this consumer does not know; there is nothing to do.
    Ignored,
}

/// What a consumer does after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Read on: a new cycle follows on this connection.
    Continue,
    /// Close, and open again.
    Reopen {
        /// After this time; `None` leaves it to a jittered backoff of the consumer's own.
        after: Option<Duration>,
    },
    /// Close, and do not come back.
    Close,
}

/// An error as the stream told it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedError {
    pub(super) code: Box<str>,
    pub(super) message: Box<str>,
    pub(super) is_terminal: bool,
    pub(super) retry_after: Option<Duration>,
}

impl ReportedError {
    /// The code, if it is a known one.
    pub fn code(&self) -> Option<ErrorCode> {
        ErrorCode::ALL
            .into_iter()
            .find(|code| code.as_str() == &*self.code)
    }

    /// The code as it was spelled.
    pub fn code_text(&self) -> &str {
        &self.code
    }

    /// The sentence for people.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the consumer must not come back.
    pub const fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// How long the consumer is asked to wait.
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}
