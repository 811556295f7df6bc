//! What the machine says.

use crate::{StreamError, UpstreamError};

/// What to do with an event.
#[derive(Debug)]
pub enum Verdict {
    /// Hand the change on.
    Deliver,
    /// The snapshot is complete.
    Boundary,
    /// The snapshot is read again from its start: what is not seen again until the boundary is gone.
    RestartSnapshot,
    /// Do nothing: a bookmark, a replay, or a line of an unknown type.
    Ignore,
    /// Drop the session and do this.
    Leave(Next),
}

/// What follows an end.
#[derive(Debug)]
pub enum Next {
    /// Open a session, at [`next_open`](crate::Continuity::next_open). With [`Start::After`](crate::Start::After) nothing was lost; with
    /// [`Start::Fresh`](crate::Start::Fresh) continuity is lost and a new snapshot comes.
    Open,
    /// The feed is over.
    End(FeedEnd),
}

/// How a feed ends.
#[derive(Clone, Debug)]
pub enum FeedEnd {
    /// The first session could not be opened: those who wait for it are refused.
    NotOpened(UpstreamError),
    /// The API server refused a feed that was open before: each of its streams begins a cycle of its own and is
    /// refused, if so, as itself.
    Refused(UpstreamError),
    /// Retries are used up, or sessions keep ending early. Streams are told to come back.
    Unavailable(Option<UpstreamError>),
    /// Nothing that a retry could mend: all streams end with this terminal error.
    Fatal(StreamError),
    /// The driver's own wish.
    Teardown,
}
