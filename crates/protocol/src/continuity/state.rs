//! Where a feed's session stands, and whether an end there is routine.

use std::time::Duration;

use crate::{Moment, Start};

/// A session that lived this long past its boundary or headers is a healthy one.
const HEALTHY_AFTER: Duration = Duration::from_secs(5);
/// A fresh session that ends this soon after its boundary is early; a resumed one that ends this soon after its
/// headers without having delivered anything counts as a failed reopen.
const EARLY_WITHIN: Duration = Duration::from_secs(1);
/// How far before its asked timeout an end still counts as routine.
const TIMEOUT_TOLERANCE: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub(super) enum State {
    /// Waits for `at`; then the driver sends the request. On teardown: `Ended`.
    Waiting { at: Moment, start: Start },
    /// The request is out. Opened: `Snapshot` or `Live`. Failed: `Waiting` or `Ended`.
    Opening { sent: Moment, start: Start },
    /// A fresh session before its boundary. At the boundary: `Live`. On an end: `Waiting` for a fresh one.
    Snapshot {
        sent: Moment,
        asked_timeout: Option<Duration>,
    },
    /// Continuous. On a routine end: `Waiting` to resume. On 410 or an unusable object: `Waiting` for a fresh one.
    Live(Live),
    /// The feed is over.
    Ended,
}

#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) sent: Moment,
    pub(super) asked_timeout: Option<Duration>,
    /// The boundary of a fresh session, the headers of a resumed one.
    pub(super) since: Moment,
    pub(super) resumed: bool,
    /// Whether an event or a bookmark came after that.
    pub(super) delivered: bool,
}

impl State {
    /// Whether an end of the open session at `now` is early.
    pub(super) fn is_early(&self, now: Moment) -> bool {
        match self {
            Self::Snapshot { .. } => true,
            Self::Live(live) => !live.resumed && live.ends_at_once(now),
            Self::Waiting { .. } | Self::Opening { .. } | Self::Ended => false,
        }
    }

    /// When the open session, if it goes on until then, will have shown that it works. Before its boundary nothing does.
    pub(super) fn lives_at(&self) -> Option<Moment> {
        match self {
            Self::Live(live) => Some(live.lives_at()),
            Self::Waiting { .. } | Self::Opening { .. } | Self::Snapshot { .. } | Self::Ended => None,
        }
    }

    /// Whether the open session delivered something and would not end at once at `now`.
    pub(super) fn has_delivered(&self, now: Moment) -> bool {
        match self {
            Self::Live(live) => live.delivered && !live.ends_at_once(now),
            Self::Waiting { .. } | Self::Opening { .. } | Self::Snapshot { .. } | Self::Ended => false,
        }
    }

    /// Whether the open session lived, or reached its asked timeout.
    pub(super) fn is_healthy(&self, now: Moment) -> bool {
        match self {
            Self::Live(live) => now >= live.lives_at(),
            Self::Snapshot { sent, asked_timeout } => reached_timeout(now, *sent, *asked_timeout),
            Self::Waiting { .. } | Self::Opening { .. } | Self::Ended => false,
        }
    }
}

impl Live {
    /// 5 s past its boundary or headers, or at its asked timeout, whichever is first.
    fn lives_at(&self) -> Moment {
        let long_enough = self.since + HEALTHY_AFTER;
        let timeout = self
            .asked_timeout
            .map(|asked| self.sent + asked.saturating_sub(TIMEOUT_TOLERANCE));
        timeout.map_or(long_enough, |timeout| timeout.min(long_enough))
    }

    /// Whether a resumed session that ends at `now` was reopened in vain.
    pub(super) fn is_in_vain(&self, now: Moment) -> bool {
        self.resumed && !self.delivered && self.ends_at_once(now)
    }

    fn ends_at_once(&self, now: Moment) -> bool {
        now.since(self.since) < EARLY_WITHIN && !reached_timeout(now, self.sent, self.asked_timeout)
    }
}

/// Whether a session that was asked for at `sent` has reached the timeout it asked for.
fn reached_timeout(now: Moment, sent: Moment, asked_timeout: Option<Duration>) -> bool {
    asked_timeout.is_some_and(|asked| now.since(sent) + TIMEOUT_TOLERANCE >= asked)
}
