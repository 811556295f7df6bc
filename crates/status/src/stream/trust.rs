//! Whether a sign of recovery counts at once, or only once it was borne out.
//!
//! # Why
//! A session that opens, or even completes its snapshot, is a sign that a watch works and no proof of it: an API server may
//! accept each one and end it a moment later, for ever. A status that believed each sign would flip at each attempt. A
//! session that [lived](super::WatchStream::lived) is the proof.

/// How much a sign of recovery is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// All signs before were borne out: the next one counts. On one: `Pending`. On early ends in a row: `Lost`.
    Given,
    /// A sign was counted, and what follows it is not known yet; more of the same recovery count too. When a session
    /// lives: `Given`. On bad news: `Lost`.
    Pending,
    /// The sign that was counted last came to nothing: no sign counts. When a session lives: `Given`.
    Lost,
}

impl Trust {
    /// A sign of recovery. Returns whether it counts.
    pub(super) const fn takes_sign(&mut self) -> bool {
        match self {
            Self::Given | Self::Pending => {
                *self = Self::Pending;
                true
            }
            Self::Lost => false,
        }
    }

    /// The stream got worse.
    pub(super) const fn disappointed(&mut self) {
        match self {
            Self::Given => {}
            Self::Pending | Self::Lost => *self = Self::Lost,
        }
    }
}
