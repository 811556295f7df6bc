//! What an event of a session comes to.

use super::state::{Live, State};
use super::{Continuity, FeedEnd, Verdict};
use crate::{Moment, Object, ResourceVersion, StreamError, UpstreamError, UpstreamErrorKind, WatchEvent};

impl Continuity {
    /// An event arrived.
    pub fn event(&mut self, now: Moment, event: &WatchEvent) -> Verdict {
        match (&mut self.state, event) {
            (State::Snapshot { .. }, WatchEvent::SnapshotRestarted) => Verdict::RestartSnapshot,
            (State::Live(_), WatchEvent::SnapshotRestarted) => {
                self.leave(now, "a complete snapshot begins anew")
            }
            (
                State::Snapshot { .. },
                WatchEvent::Bookmark {
                    resource_version,
                    initial_events_end: true,
                },
            ) => self.boundary(now, resource_version.as_ref()),
            (State::Live(live), WatchEvent::Bookmark { resource_version, .. }) => {
                live.delivered = true;
                self.bookmark(resource_version.as_ref())
            }
            (
                State::Snapshot { .. } | State::Live(_),
                WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object),
            ) => self.change(now, object),
            (
                State::Snapshot { .. },
                WatchEvent::Bookmark {
                    initial_events_end: false,
                    ..
                },
            )
            | (State::Snapshot { .. } | State::Live(_), WatchEvent::Unknown)
            | (State::Waiting { .. } | State::Opening { .. } | State::Ended, _) => Verdict::Ignore,
        }
    }

    fn boundary(&mut self, now: Moment, version: Option<&ResourceVersion>) -> Verdict {
        let State::Snapshot { sent, asked_timeout } = self.state else {
            return Verdict::Ignore;
        };
        if let Some(verdict) = self.refuse_unordered(version) {
            return verdict;
        }
        self.cursor.start_at(version);
        self.retries = 0;
        self.last_attempt = false;
        self.state = State::Live(Live {
            sent,
            asked_timeout,
            since: now,
            resumed: false,
            delivered: false,
        });
        Verdict::Boundary
    }

    fn bookmark(&mut self, version: Option<&ResourceVersion>) -> Verdict {
        if let Some(version) = version {
            if let Some(verdict) = self.refuse_unordered(Some(version)) {
                return verdict;
            }
            self.cursor.advance(version);
        }
        self.retries = 0;
        Verdict::Ignore
    }

    fn change(&mut self, now: Moment, object: &Object) -> Verdict {
        if object.identity().is_none() {
            return self.leave(now, "it does not say of which object it is");
        }
        let version = object.resource_version();
        if let Some(verdict) = self.refuse_unordered(Some(version.unwrap_or(&ResourceVersion::from("")))) {
            return verdict;
        }
        let State::Live(live) = &mut self.state else {
            return Verdict::Deliver;
        };
        live.delivered = true;
        self.retries = 0;
        let Some(version) = version else {
            return Verdict::Deliver;
        };
        if live.resumed && self.cursor.is_replay(version) {
            return Verdict::Ignore;
        }
        self.cursor.advance(version);
        Verdict::Deliver
    }

    fn refuse_unordered(&mut self, version: Option<&ResourceVersion>) -> Option<Verdict> {
        version.is_some_and(|version| self.cursor.refuses(version)).then(|| {
            Verdict::Leave(self.end(FeedEnd::Fatal(StreamError::internal(
                "this API server's resource versions do not order; the gateway can serve it with lenient ordering",
            ))))
        })
    }

    /// Leaves the session for an event that cannot be used.
    fn leave(&mut self, now: Moment, why: &'static str) -> Verdict {
        let error = UpstreamError::new(UpstreamErrorKind::Unreadable).with_cause(why);
        Verdict::Leave(self.lose_continuity_by(now, Some(error)))
    }
}
