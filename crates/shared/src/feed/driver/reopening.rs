//! What is told of a session's end or of a failure to open: whether the retries in place are used up.

use krm_stream_protocol::{Continuity, OpenError, SessionEnd, Start, UpstreamErrorKind};

use super::Left;
use crate::feed::reports::FeedReport;

/// How many failures in a row use up the retries in place: the attempt itself and three retries.
const ATTEMPTS_IN_PLACE: u32 = 4;

/// Follows the attempts that failed in a row.
#[derive(Debug, Default)]
pub(super) struct Reopening {
    failed_in_a_row: u32,
}

impl Reopening {
    /// A session that began at `start` was left, and `continuity` says what follows.
    pub(super) fn after_session(
        &mut self,
        start: &Start,
        left: Left,
        continuity: &Continuity,
    ) -> Vec<FeedReport> {
        let Left::End(end) = left else {
            self.failed_in_a_row = 0;
            return vec![FeedReport::UnusableEvent];
        };
        // Transport alone never costs continuity, unless it was tried in vain too often.
        let is_in_vain = is_transport(&end) && gives_up(start, continuity);
        if !is_in_vain {
            self.failed_in_a_row = 0;
        }
        let mut reports = vec![FeedReport::SessionEnded(end)];
        if is_in_vain {
            reports.push(FeedReport::ReopenedInVain);
        }
        reports
    }

    /// A session that was to begin at `start` could not be opened, and `continuity` says what follows.
    pub(super) fn after_failure(
        &mut self,
        start: &Start,
        error: OpenError,
        continuity: &Continuity,
    ) -> FeedReport {
        match &error {
            OpenError::Expired => self.failed_in_a_row = 0,
            OpenError::Failed(_) => self.failed_in_a_row += 1,
        }
        let gave_up = match &error {
            OpenError::Expired => false,
            // A version that the API server has not seen yet is left aside at once.
            OpenError::Failed(error) => {
                *error.kind() != UpstreamErrorKind::VersionTooLarge && gives_up(start, continuity)
            }
        };
        let is_used_up = gave_up || self.failed_in_a_row >= ATTEMPTS_IN_PLACE;
        FeedReport::OpenFailed {
            error,
            retries_left: !is_used_up,
        }
    }
}

/// Whether a fresh cycle follows where the session was to go on after a version.
fn gives_up(start: &Start, continuity: &Continuity) -> bool {
    let is_fresh = |(_, start)| start == Start::Fresh;
    matches!(start, Start::After(_)) && continuity.next_open().is_some_and(is_fresh)
}

fn is_transport(end: &SessionEnd) -> bool {
    match end {
        SessionEnd::Closed => true,
        SessionEnd::Failed(error) => *error.kind() == UpstreamErrorKind::Unavailable,
        SessionEnd::Expired | SessionEnd::Teardown => false,
    }
}
