//! What follows when a watch session ends: the continuity machine of a feed.

mod cursor;
mod events;
mod jitter;
mod outcome;
mod pace;
mod state;

use std::time::Duration;

use cursor::Cursor;
use jitter::Jitter;
pub use outcome::{FeedEnd, Next, Verdict};
use pace::Pace;
use state::{Live, State};

use crate::{
    Moment, OpenError, Ordering, ResourceVersion, SessionEnd, Start, UpstreamError, UpstreamErrorKind,
};

/// How many early ends in a row are tolerated.
const TOLERATED_EARLY_ENDS: u32 = 1;

/// What follows when a watch session ends, for one feed: without I/O and without a clock.
///
/// # Why
/// An API server closes every watch after some minutes, restarts, forgets old versions and answers nonsense under
/// load. None of it is visible to a browser unless it must be.
///
/// # How it is driven
/// A driver keeps one [`Continuity`] per feed and does what it says:
/// 1. [`next_open`](Continuity::next_open) says when to open which session; when that time has come the driver calls
///    [`request_sent`](Continuity::request_sent), opens, and reports [`opened`](Continuity::opened) or
///    [`open_failed`](Continuity::open_failed);
/// 2. each event goes through [`event`](Continuity::event), whose [`Verdict`] says what to do with it;
/// 3. the session's end goes to [`ended`](Continuity::ended).
///
/// Where the answer is [`Next::Open`] it starts over at 1; [`Next::End`] ends the feed. `now` must not go backwards;
/// if it does, nothing breaks but waits are longer.
///
/// # Rules and precedence
/// - A transport that ends after the boundary is resumed from the cursor; nobody is told. The cursor is the greatest
///   version the API server sent on an event or bookmark, taken before anything else looks at the event.
/// - A reopen that fails is retried three times, then a fresh cycle is tried once, then the feed ends as unavailable.
/// - 410 in any form begins a fresh cycle, spaced from the second in a row; so does an object without identity.
/// - A fresh session that ends before its boundary, or within a second of it, is *early*: one is tolerated.
/// - What the server said about our right or request (401, 403, 404, 400, 422) ends the feed at once: each stream
///   then goes through a cycle of its own. What cannot be read ends it for all.
/// - Session starts are spaced, whatever the end was, unless the session lived or reached its asked timeout.
/// - Where spacing, a hint of the API server and a retry delay meet, the longest wins.
#[derive(Debug)]
pub struct Continuity {
    jitter: Jitter,
    state: State,
    cursor: Cursor,
    /// Whether any session of this feed was ever open: before that, a failure is a failure to open.
    was_open: bool,
    retries: usize,
    /// The fresh cycle that was tried after the retries is the last attempt.
    last_attempt: bool,
    early_ends: u32,
    pace: Pace,
}

impl Continuity {
    /// The delays before the retries of a watch that could not be opened after a known version, each to be lengthened by up to a
    /// quarter.
    pub const RETRY_DELAYS: [Duration; 3] = [
        Duration::from_millis(250),
        Duration::from_secs(1),
        Duration::from_secs(4),
    ];

    /// The longest hint of an API server that is waited for.
    pub const LONGEST_HINT: Duration = Duration::from_secs(30);

    /// A feed that is to be opened at once. `seed` is for jitter; two feeds should have different ones.
    pub fn new(ordering: Ordering, now: Moment, seed: u64) -> Self {
        Self {
            jitter: Jitter::new(seed),
            state: State::Waiting {
                at: now,
                start: Start::Fresh,
            },
            cursor: Cursor::new(ordering),
            was_open: false,
            retries: 0,
            last_attempt: false,
            early_ends: 0,
            pace: Pace::new(),
        }
    }

    /// When to send which request, if one is due.
    #[must_use]
    pub fn next_open(&self) -> Option<(Moment, Start)> {
        match &self.state {
            State::Waiting { at, start } => Some((*at, start.clone())),
            State::Opening { .. } | State::Snapshot { .. } | State::Live(_) | State::Ended => None,
        }
    }

    /// The version a new session would resume after.
    pub fn cursor(&self) -> Option<&ResourceVersion> {
        self.cursor.version()
    }

    /// When the open session will have lived, if it goes on until then: 5 s past its boundary or headers, or at its asked
    /// timeout. That ends the row of early ends, so whoever publishes how the feed is knows then that it works. There is no
    /// such moment before the boundary, nor while no session is open.
    #[must_use]
    pub fn lives_at(&self) -> Option<Moment> {
        self.state.lives_at()
    }

    /// Whether the open session, if its transport ends at `now`, will have shown that it works: it has lived, or it is 1 s
    /// past its boundary or headers, delivered an event or a bookmark after them, and can be gone on after. Something before
    /// an API server may end every watch after a few seconds, so that none ever lives, and lose nothing. Unlike a session
    /// that lived, one that worked does not end the row of early ends, nor the spacing.
    #[must_use]
    pub fn has_worked(&self, now: Moment) -> bool {
        self.lives_at().is_some_and(|at| at <= now)
            || (self.state.has_delivered(now) && self.cursor.version().is_some())
    }

    /// The request goes out now. Does nothing unless one was due.
    pub fn request_sent(&mut self, now: Moment) {
        if let State::Waiting { start, .. } = &self.state {
            self.state = State::Opening {
                sent: now,
                start: start.clone(),
            };
            self.pace.session_starts(now);
        }
    }

    /// The response headers of the session arrived. Does nothing unless a request was out.
    pub fn opened(&mut self, now: Moment, asked_timeout: Option<Duration>) {
        let State::Opening { sent, start } = &self.state else {
            return;
        };
        let sent = *sent;
        self.was_open = true;
        self.state = match start {
            Start::Fresh => State::Snapshot { sent, asked_timeout },
            Start::After(_) => State::Live(Live {
                sent,
                asked_timeout,
                since: now,
                resumed: true,
                delivered: false,
            }),
        };
    }

    /// The session could not be opened.
    pub fn open_failed(&mut self, now: Moment, error: OpenError) -> Next {
        let error = match error {
            OpenError::Expired if self.was_open => return self.expired(now),
            // A snapshot asks for no version that could have expired: this API server is not in order.
            OpenError::Expired => UpstreamError::new(UpstreamErrorKind::Unavailable),
            OpenError::Failed(error) => error,
        };
        if self.was_open {
            self.failed(now, error)
        } else {
            // A first opening is never repeated unasked: its waiters are told.
            self.end(FeedEnd::NotOpened(error))
        }
    }

    /// The session ended.
    pub fn ended(&mut self, now: Moment, end: SessionEnd) -> Next {
        match end {
            SessionEnd::Teardown => self.end(FeedEnd::Teardown),
            SessionEnd::Expired => self.expired(now),
            SessionEnd::Closed => self.closed(now, None),
            SessionEnd::Failed(error) => self.failed(now, error),
        }
    }

    /// An object that cannot be placed arrived where the driver found it, after [`event`](Self::event) said
    /// [`Verdict::Deliver`]; or the driver wants a new cycle for a reason of its own.
    pub fn lose_continuity(&mut self, now: Moment) -> Next {
        self.lose_continuity_by(now, None)
    }

    fn lose_continuity_by(&mut self, now: Moment, error: Option<UpstreamError>) -> Next {
        if self.state.is_early(now) {
            return self.early(now, error, Start::Fresh);
        }
        self.settle(now);
        self.wait(now, Duration::ZERO, None, Start::Fresh)
    }

    /// The server said something, or what it said cannot be read.
    fn failed(&mut self, now: Moment, error: UpstreamError) -> Next {
        match error.kind() {
            UpstreamErrorKind::Unavailable => self.closed(now, Some(error)),
            UpstreamErrorKind::VersionTooLarge => self.begin_again(now, error),
            UpstreamErrorKind::Forbidden { .. }
            | UpstreamErrorKind::Unauthenticated
            | UpstreamErrorKind::NotFound
            | UpstreamErrorKind::Rejected => self.end(FeedEnd::Refused(error)),
            UpstreamErrorKind::LineTooLong { .. }
            | UpstreamErrorKind::Unreadable
            | UpstreamErrorKind::OutOfScope => self.unreadable(&error),
        }
    }

    fn closed(&mut self, now: Moment, error: Option<UpstreamError>) -> Next {
        match &self.state {
            State::Snapshot { .. } => self.early(now, error, Start::Fresh),
            State::Live(live) if self.cursor.version().is_none() => {
                debug_assert!(!live.resumed, "a session is resumed from a cursor only");
                self.lose_continuity_by(now, error)
            }
            State::Live(_) if self.state.is_early(now) => {
                let start = self.cursor.resume();
                self.early(now, error, start)
            }
            State::Live(live) => {
                let is_in_vain = live.is_in_vain(now);
                if self.state.is_healthy(now) {
                    // What failed before it is over and done with.
                    self.retries = 0;
                }
                if error.is_some() || is_in_vain {
                    return self.retry(now, error);
                }
                self.retries = 0;
                self.settle(now);
                let start = self.cursor.resume();
                self.wait(now, Duration::ZERO, None, start)
            }
            State::Waiting { .. } | State::Opening { .. } => self.retry(now, error),
            State::Ended => self.end(FeedEnd::Teardown),
        }
    }

    /// A reopen or relist failed: three retries, then one fresh cycle, then the end.
    fn retry(&mut self, now: Moment, error: Option<UpstreamError>) -> Next {
        if self.last_attempt {
            return self.end(FeedEnd::Unavailable(error));
        }
        match self.state {
            State::Waiting { .. } | State::Opening { .. } => self.pace.failed_to_open(),
            State::Snapshot { .. } | State::Live(_) | State::Ended => self.settle(now),
        }
        let hint = error.as_ref().and_then(UpstreamError::retry_after);
        if let Some(delay) = Self::RETRY_DELAYS.get(self.retries) {
            self.retries += 1;
            let start = self.cursor.resume();
            return self.wait(now, *delay, hint, start);
        }
        self.last_attempt = true;
        self.wait(now, Duration::ZERO, hint, Start::Fresh)
    }

    fn expired(&mut self, now: Moment) -> Next {
        self.settle(now);
        let delay = self.pace.expired(now);
        self.wait(now, delay, None, Start::Fresh)
    }

    /// The API server asks to come back later, and without the version.
    fn begin_again(&mut self, now: Moment, error: UpstreamError) -> Next {
        if !matches!(self.state, State::Live(_)) && self.retries >= Self::RETRY_DELAYS.len() {
            return self.retry(now, Some(error));
        }
        self.settle(now);
        let delay = Self::RETRY_DELAYS[self.retries.min(Self::RETRY_DELAYS.len() - 1)];
        self.retries += 1;
        self.wait(now, delay, error.retry_after(), Start::Fresh)
    }

    fn early(&mut self, now: Moment, error: Option<UpstreamError>, start: Start) -> Next {
        self.early_ends += 1;
        if self.early_ends > TOLERATED_EARLY_ENDS {
            return self.end(FeedEnd::Unavailable(error));
        }
        let hint = error.as_ref().and_then(UpstreamError::retry_after);
        self.settle(now);
        self.wait(now, Duration::ZERO, hint, start)
    }

    fn unreadable(&mut self, error: &UpstreamError) -> Next {
        // None of these texts names an identity, so it does not matter whose the upstream has.
        self.end(FeedEnd::Fatal(error.to_stream_error(crate::ActsAs::Service)))
    }

    /// Closes the account of the session that ends at `now`: a healthy one resets the spacing and the row of early
    /// ends, any other widens the spacing.
    fn settle(&mut self, now: Moment) {
        if self.state.is_healthy(now) {
            self.early_ends = 0;
            self.pace.lived();
        } else {
            self.pace.widen();
        }
    }

    fn wait(&mut self, now: Moment, delay: Duration, hint: Option<Duration>, start: Start) -> Next {
        let after_delay = now + self.jitter.spread(delay);
        let after_hint = now + hint.unwrap_or_default().min(Self::LONGEST_HINT);
        let after_spacing = self.pace.earliest(&mut self.jitter);
        if start == Start::Fresh {
            // The new cycle's first request must not carry an old version.
            self.cursor.forget();
        }
        self.state = State::Waiting {
            at: after_delay.max(after_hint).max(after_spacing).max(now),
            start,
        };
        Next::Open
    }

    fn end(&mut self, end: FeedEnd) -> Next {
        self.state = State::Ended;
        Next::End(end)
    }
}

#[cfg(test)]
mod tests;
