//! What an end of a session, or a session that could not be opened, changes in what is published.
//!
//! # Why
//! Most ends are routine, and a status that tells of each of them flaps. Whether anything is wrong is what the next
//! open answers, so a closed transport changes nothing.
//!
//! # What wins
//! Errors are seen through: of a chain of sources the most telling link counts, an expired version before a refusal
//! before the class that the outermost one gives. The words are fixed for each class and hold no text of the API
//! server's, so the same trouble is the same message each time and names no identity.

use std::error::Error;
use std::io;
use std::sync::Arc;

use krm_stream_protocol::{ErrorCode, FeedEnd, OpenError, SessionEnd, UpstreamError, UpstreamErrorKind};

use crate::{BlockReason, Blockage, ReplayReason};

/// How a session came to its end.
#[derive(Clone, Copy, Debug)]
pub enum Ended<'a> {
    /// It ended.
    Session(&'a SessionEnd),
    /// It was left for an event that cannot be used: a partial object, or one without identity.
    UnusableEvent,
}

/// What is to be published of an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grade {
    /// Nothing: the state stays what it is.
    Unchanged,
    /// A new snapshot is needed.
    Replaying(ReplayReason),
    /// The stream does not go on for now.
    Blocked(Blockage),
}

/// Whether an open that failed is tried again in place, without anybody being told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retries {
    /// Another attempt follows.
    Left,
    /// None follows.
    UsedUp,
}

/// Grades the end of a session.
///
/// | end | published |
/// |---|---|
/// | `Closed`, `Teardown` | nothing |
/// | `Expired` | Replaying, `ExpiredResourceVersion` |
/// | an event that cannot be used | Replaying, `ResumeReplay` |
/// | anything else | Blocked, `WatchError` |
pub fn grade_session_end(ended: Ended<'_>) -> Grade {
    match ended {
        Ended::UnusableEvent => Grade::Replaying(ReplayReason::ResumeReplay),
        Ended::Session(SessionEnd::Closed | SessionEnd::Teardown) => Grade::Unchanged,
        Ended::Session(SessionEnd::Expired) => Grade::Replaying(ReplayReason::ExpiredResourceVersion),
        Ended::Session(SessionEnd::Failed(error)) => match Cause::of(error) {
            Cause::Expired => Grade::Replaying(ReplayReason::ExpiredResourceVersion),
            Cause::Forbidden => watch_error(in_words(&UpstreamErrorKind::Forbidden { message: None })),
            Cause::Upstream(kind) => watch_error(in_words(kind)),
            Cause::Unknown => watch_error(UNKNOWN),
        },
    }
}

/// Grades a session that could not be opened: a 403 counts at once, an expired version asks for a snapshot, anything
/// else counts when no retry is left.
pub fn grade_failed_open(error: &(dyn Error + 'static), retries: Retries) -> Grade {
    match (Cause::of(error), retries) {
        (Cause::Expired, _) => Grade::Replaying(ReplayReason::ExpiredResourceVersion),
        (Cause::Forbidden, _) => not_permitted(),
        (Cause::Upstream(_) | Cause::Unknown, Retries::Left) => Grade::Unchanged,
        (Cause::Upstream(kind), Retries::UsedUp) => watch_error(in_words(kind)),
        (Cause::Unknown, Retries::UsedUp) => watch_error(UNKNOWN),
    }
}

/// Grades the end of a feed.
///
/// A reader that was too slow says nothing about the feed that it read.
pub fn grade_feed_end(end: &FeedEnd) -> Grade {
    match end {
        FeedEnd::Teardown => Grade::Unchanged,
        FeedEnd::NotOpened(error) | FeedEnd::Refused(error) | FeedEnd::Unavailable(Some(error)) => {
            grade_failed_open(error, Retries::UsedUp)
        }
        FeedEnd::Unavailable(None) => early_ends(),
        FeedEnd::Fatal(error) => match error.code() {
            ErrorCode::SlowConsumer => Grade::Unchanged,
            ErrorCode::Forbidden => not_permitted(),
            ErrorCode::Unauthenticated
            | ErrorCode::ScopeInvalid
            | ErrorCode::UpstreamUnavailable
            | ErrorCode::ResyncRequired
            | ErrorCode::Internal => {
                Grade::Blocked(Blockage::new(BlockReason::WatchError, error.message().to_owned()))
            }
        },
    }
}

/// Sessions that keep ending early, which nothing explains.
pub(crate) fn early_ends() -> Grade {
    watch_error("watches keep ending before or right after their snapshot, or right after they are resumed")
}

/// What stands for an error of a kind that this crate does not know.
const UNKNOWN: &str = "the watch cannot be opened";

fn watch_error(message: &'static str) -> Grade {
    Grade::Blocked(Blockage::new(BlockReason::WatchError, message))
}

fn not_permitted() -> Grade {
    Grade::Blocked(Blockage::new(
        BlockReason::WatchNotPermitted,
        in_words(&UpstreamErrorKind::Forbidden { message: None }),
    ))
}

const fn in_words(kind: &UpstreamErrorKind) -> &'static str {
    match kind {
        UpstreamErrorKind::Forbidden { .. } => {
            "the API server does not allow this: grant the watching identity list and watch on this resource"
        }
        UpstreamErrorKind::Unauthenticated => {
            "the API server rejected the credential: give the watching identity a valid one"
        }
        UpstreamErrorKind::NotFound => {
            "the API server does not serve this group, version and resource: correct it, or install what serves it"
        }
        UpstreamErrorKind::Unavailable => "the API server cannot be reached right now",
        UpstreamErrorKind::VersionTooLarge => "the API server is behind the version that was asked for",
        UpstreamErrorKind::Rejected => "the API server rejected the watch request",
        UpstreamErrorKind::LineTooLong { .. } => {
            "an object is larger than the limit max_line_bytes: raise the limit or narrow the scope"
        }
        UpstreamErrorKind::Unreadable => "the API server sent something that cannot be read",
        UpstreamErrorKind::OutOfScope => "the API server sent an object outside the scope",
    }
}

/// What is behind an error and all that it wraps.
enum Cause<'a> {
    Expired,
    Forbidden,
    Upstream(&'a UpstreamErrorKind),
    Unknown,
}

impl<'a> Cause<'a> {
    fn of(error: &'a (dyn Error + 'static)) -> Self {
        std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| (*error).source())
            .map(Self::of_one)
            .fold(Self::Unknown, Self::more_telling)
    }

    fn of_one(error: &'a (dyn Error + 'static)) -> Self {
        if let Some(content) = content(error) {
            Self::of_one(content)
        } else if let Some(error) = error.downcast_ref::<OpenError>() {
            match error {
                OpenError::Expired => Self::Expired,
                OpenError::Failed(error) => Self::of_upstream(error),
            }
        } else if let Some(error) = error.downcast_ref::<UpstreamError>() {
            Self::of_upstream(error)
        } else {
            Self::Unknown
        }
    }

    fn of_upstream(error: &'a UpstreamError) -> Self {
        match error.kind() {
            UpstreamErrorKind::Forbidden { .. } => Self::Forbidden,
            kind @ (UpstreamErrorKind::Unauthenticated
            | UpstreamErrorKind::NotFound
            | UpstreamErrorKind::Unavailable
            | UpstreamErrorKind::VersionTooLarge
            | UpstreamErrorKind::Rejected
            | UpstreamErrorKind::LineTooLong { .. }
            | UpstreamErrorKind::Unreadable
            | UpstreamErrorKind::OutOfScope) => Self::Upstream(kind),
        }
    }

    /// `self` stands further out than `inner`.
    fn more_telling(self, inner: Self) -> Self {
        match (self, inner) {
            (Self::Expired, _) | (_, Self::Expired) => Self::Expired,
            (Self::Forbidden, _) | (_, Self::Forbidden) => Self::Forbidden,
            (Self::Upstream(kind), Self::Upstream(_) | Self::Unknown) => Self::Upstream(kind),
            (Self::Unknown, inner @ (Self::Upstream(_) | Self::Unknown)) => inner,
        }
    }
}

/// What is in a wrapper that shows the source of its content as its own, so that the content is in no chain of sources.
fn content<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    fn held<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
        let shared = error.downcast_ref::<Arc<E>>().map(|error| &**error as _);
        shared.or_else(|| error.downcast_ref::<Box<E>>().map(|error| &**error as _))
    }

    let shared = error.downcast_ref::<Arc<dyn Error + Send + Sync>>();
    shared
        .map(|error| &**error as _)
        .or_else(|| held::<UpstreamError>(error))
        .or_else(|| held::<OpenError>(error))
        .or_else(|| held::<io::Error>(error))
        .or_else(|| Some(error.downcast_ref::<io::Error>()?.get_ref()? as _))
}

#[cfg(test)]
mod tests;
