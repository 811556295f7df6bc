//! Why a session was left, and what is counted and told of that.

use krm_stream_protocol::{FeedEnd, Next, SessionEnd};

use super::Driver;

/// Why a session was left.
#[derive(Debug)]
pub(super) enum Left {
    /// It ended.
    End(SessionEnd),
    /// For an event that it sent.
    ForAnEvent,
}

#[derive(Debug, thiserror::Error)]
#[error(
    "an event of the watch cannot be used: it does not say of which object it is, or begins a complete snapshot anew"
)]
struct UnusableEvent;

impl Driver {
    /// Tells the diagnostics why a session is left for an event: it counts as one that ended by an error.
    pub(super) fn report_left(&self, next: &Next) {
        let scope = Some(&self.feed.key().scope);
        match next {
            Next::End(FeedEnd::Fatal(error)) => self.diagnosing.report("watching", scope, error),
            Next::Open
            | Next::End(
                FeedEnd::NotOpened(_) | FeedEnd::Refused(_) | FeedEnd::Unavailable(_) | FeedEnd::Teardown,
            ) => self.diagnosing.report("watching", scope, &UnusableEvent),
        }
    }

    /// Tells the diagnostics of a session's end, where the API server said more than that it is over.
    pub(super) fn report_end(&self, end: &SessionEnd) {
        match end {
            SessionEnd::Failed(error) => {
                self.diagnosing
                    .report("watching", Some(&self.feed.key().scope), error);
            }
            SessionEnd::Closed | SessionEnd::Expired | SessionEnd::Teardown => {}
        }
    }
}
