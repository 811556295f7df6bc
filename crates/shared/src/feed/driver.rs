//! The task that drives a feed: it opens sessions, applies what they yield, and does what the continuity machine says.

mod ending;
mod leaving;
mod living;
mod pace;
mod projecting;
mod reopening;
mod session;
mod taking;

use std::sync::Arc;

use krm_stream_projection::DigestKey;
use krm_stream_protocol::{
    ActsAs, Continuity, Diagnosing, FeedEnd, Moment, Next, Observing, OpenError, Session, SessionEndReason,
    SessionItem, Start, StreamError, Upstream, UpstreamErrorKind, Verdict,
};
use tokio::time::{Instant, sleep, sleep_until};

use self::leaving::Left;
use self::living::Living;
use self::pace::Pace;
use self::reopening::Reopening;
use self::session::{SessionCount, next_batch};
use self::taking::Step;
use super::Feed;
use super::reports::FeedReport;
use super::state::Over;
use crate::settings::FeedSettings;

/// What a feed's task needs beside the feed.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) feed: Arc<Feed>,
    pub(crate) settings: FeedSettings,
    pub(crate) digest_key: Arc<DigestKey>,
    pub(crate) observing: Observing,
    pub(crate) diagnosing: Diagnosing,
    pub(crate) seed: u64,
    /// Where the feed's moments are counted from.
    pub(crate) origin: Instant,
}

/// What the registry that owns the feeds has to do at a feed's turns.
pub(crate) trait Owner: Send + Sync {
    /// Takes the feed out if nobody is attached; nobody can join it afterwards. Returns whether it did.
    fn release_if_vacant(&self, feed: &Arc<Feed>) -> bool;
    /// Takes the feed out: nobody can join it any more.
    fn release(&self, feed: &Arc<Feed>);
    /// Takes the feed out and puts its key into backoff. Returns what its streams are told.
    fn put_aside(&self, feed: &Arc<Feed>, error: StreamError) -> StreamError;
}

/// Drives a feed from its opening to its end.
pub(crate) fn drive(driver: Driver, owner: Arc<dyn Owner>) -> impl Future<Output = ()> + Send + 'static {
    // Here already, since a future may be dropped before it is ever polled.
    let task = Task { driver, owner };
    async move {
        let (driver, owner) = (&task.driver, &*task.owner);
        let abandoned = abandoned(driver, owner);
        tokio::select! {
            biased;
            () = driver.feed.keep_tidy() => {}
            () = abandoned => {
                driver.finish(Over::EachByItself(None));
            }
            end = driver.run(owner) => {
                driver.conclude(end, owner);
            }
        }
    }
}

/// A feed's task. One that goes away without having ended its feed (an upstream panicked, the runtime is gone) must leave
/// nobody waiting for it, now or later.
struct Task {
    driver: Driver,
    owner: Arc<dyn Owner>,
}

impl Drop for Task {
    fn drop(&mut self) {
        let feed = &self.driver.feed;
        if feed.read().over.is_some() {
            return;
        }
        let error = StreamError::unavailable("the gateway has lost the watch of this scope", None);
        let error = self.owner.put_aside(feed, error);
        feed.reports()
            .tell(&FeedReport::Over(FeedEnd::Fatal(error.clone())));
        feed.opening().refuse_all(&error);
        self.driver.finish(Over::Told(error));
    }
}

/// Resolves when nobody is attached and the linger time is over; the feed is out of the registry then.
async fn abandoned(driver: &Driver, owner: &dyn Owner) {
    let mut occupancy = driver.feed.occupancy.subscribe();
    loop {
        // The sender lives in the feed, which this task holds.
        if occupancy.wait_for(|count| *count == 0).await.is_err() {
            return;
        }
        if driver.feed.opening().is_done() && !driver.feed.key().is_isolated() {
            tokio::select! {
                () = sleep(driver.settings.linger) => {}
                // Any change, not a count above none: a visit may be over before this task looks.
                _ = occupancy.changed() => continue,
            }
        }
        if owner.release_if_vacant(&driver.feed) {
            return;
        }
    }
}

impl Driver {
    fn now(&self) -> Moment {
        Moment::after_origin(self.origin.elapsed())
    }

    /// Opens the feed with one waiter's upstream after the other, then drives its sessions.
    async fn run(&self, owner: &dyn Owner) -> FeedEnd {
        loop {
            let (stream, upstream) = self.next_waiter().await;
            let mut continuity = Continuity::new(self.settings.ordering, self.now(), self.seed ^ stream);
            let end = self.sessions(&mut continuity, &*upstream).await;
            let FeedEnd::NotOpened(error) = &end else {
                return end;
            };
            let acts_as = self.feed.key().acts_as();
            if !is_refused_alone(error.kind(), acts_as) {
                return end;
            }
            self.feed.opening().refuse(stream, error.to_stream_error(acts_as));
            if self.feed.opening().first().is_none() {
                // Whoever joined meanwhile has its turn; nobody else joins a feed that was refused to all.
                owner.release(&self.feed);
                if self.feed.opening().first().is_none() {
                    return end;
                }
            }
        }
    }

    /// The next one whose upstream is tried. Where all have left, somebody may still come.
    async fn next_waiter(&self) -> (u64, Arc<dyn Upstream>) {
        let mut occupancy = self.feed.occupancy.subscribe();
        loop {
            let waiter = self.feed.opening().first();
            if let Some(waiter) = waiter {
                return waiter;
            }
            // Who joins is queued before it is counted. One that was refused may still be counted, for as long as it does
            // not look at its answer.
            if occupancy.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    async fn sessions(&self, continuity: &mut Continuity, upstream: &dyn Upstream) -> FeedEnd {
        let mut is_first = true;
        let mut reopening = Reopening::default();
        // Streams may rest for longer than a session lives.
        let mut pace = Pace::new(self.settings.queue_depth, self.now());
        while let Some((at, start)) = continuity.next_open() {
            sleep_until(self.origin + at.since_origin()).await;
            continuity.request_sent(self.now());
            if start == Start::Fresh {
                self.begin_snapshot();
            }
            let next = match upstream.open(&self.feed.key().scope, start.clone()).await {
                Ok(session) => {
                    let count = SessionCount::open(&self.observing);
                    continuity.opened(self.now(), session.asked_timeout());
                    self.tell(&FeedReport::Opened(start.clone()));
                    self.feed.opening().opened();
                    let (next, left) = self.session(continuity, session, count, &mut pace).await;
                    if let Next::Open = next {
                        for report in reopening.after_session(&start, left, continuity) {
                            self.tell(&report);
                        }
                    }
                    if std::mem::take(&mut is_first) {
                        refused_midway(next)
                    } else {
                        next
                    }
                }
                Err(error) => {
                    self.report_open(&error);
                    let next = continuity.open_failed(self.now(), error.clone());
                    if let Next::Open = next {
                        self.tell(&reopening.after_failure(&start, error, continuity));
                    }
                    next
                }
            };
            match next {
                Next::Open => {}
                Next::End(end) => return end,
            }
        }
        FeedEnd::Teardown
    }

    fn tell(&self, report: &FeedReport) {
        self.feed.reports().tell(report);
    }

    /// Drives one session until it is left. Returns what follows, and why it was left.
    async fn session(
        &self,
        continuity: &mut Continuity,
        mut session: Box<dyn Session>,
        mut count: SessionCount<'_>,
        pace: &mut Pace,
    ) -> (Next, Left) {
        let mut batch = Vec::new();
        let mut living = Living::default();
        loop {
            // Before anything is taken from the session: what waits there is not delivered yet.
            if pace.remaining() == 0 {
                self.settle(pace).await;
            }
            let lives = living.until_due(self, continuity);
            tokio::select! {
                biased;
                () = next_batch(&mut *session, &mut batch, pace.remaining()) => {}
                () = lives => {}
            }
            let (steps, mut left) = self.judge(continuity, &mut batch, &mut count, &mut living);
            if let Err(exceeded) = self.take(steps, pace).await {
                let next = Next::End(FeedEnd::Fatal(exceeded.to_stream_error()));
                count.reason = SessionEndReason::Error;
                self.report_left(&next);
                left = Some((next, Left::ForAnEvent));
            }
            living.tell(self);
            if let Some(left) = left {
                return left;
            }
            // A session that always has more must not starve the other tasks of this thread.
            tokio::task::yield_now().await;
        }
    }

    /// Finds out what a batch comes to, and what follows if the session is over with it.
    fn judge(
        &self,
        continuity: &mut Continuity,
        batch: &mut Vec<SessionItem>,
        count: &mut SessionCount<'_>,
        living: &mut Living,
    ) -> (Vec<Step>, Option<(Next, Left)>) {
        let now = self.now();
        living.note(continuity, now);
        let mut steps = Vec::with_capacity(batch.len());
        let mut next = None;
        for item in batch.drain(..) {
            let event = match item {
                SessionItem::Event(event) => event,
                SessionItem::End(end) => {
                    living.note_end(continuity, now, &end);
                    count.reason = end.reason();
                    self.report_end(&end);
                    next = Some((continuity.ended(now, end.clone()), Left::End(end)));
                    break;
                }
            };
            match continuity.event(now, &event) {
                Verdict::Ignore => {}
                Verdict::Boundary => steps.push(Step::Boundary),
                Verdict::RestartSnapshot => steps.push(Step::RestartSnapshot),
                Verdict::Leave(leave) => {
                    count.reason = SessionEndReason::Error;
                    self.report_left(&leave);
                    next = Some((leave, Left::ForAnEvent));
                    break;
                }
                Verdict::Deliver => match self.project(event) {
                    Ok(change) => steps.extend(change.map(Step::Change)),
                    Err(error) => {
                        count.reason = SessionEndReason::Error;
                        next = Some((Next::End(FeedEnd::Fatal(error)), Left::ForAnEvent));
                        break;
                    }
                },
            }
        }
        (steps, next)
    }

    fn report_open(&self, error: &OpenError) {
        match error {
            OpenError::Expired => {}
            OpenError::Failed(error) => {
                self.diagnosing
                    .report("opening a watch session", Some(&self.feed.key().scope), error);
            }
        }
    }
}

/// Whether a failed opening refuses only the stream whose upstream it was.
fn is_refused_alone(kind: &UpstreamErrorKind, acts_as: ActsAs) -> bool {
    match (kind, acts_as) {
        (UpstreamErrorKind::Forbidden { .. } | UpstreamErrorKind::Unauthenticated, ActsAs::Caller) => true,
        (UpstreamErrorKind::Forbidden { .. } | UpstreamErrorKind::Unauthenticated, ActsAs::Service)
        | (
            UpstreamErrorKind::NotFound
            | UpstreamErrorKind::Unavailable
            | UpstreamErrorKind::VersionTooLarge
            | UpstreamErrorKind::Rejected
            | UpstreamErrorKind::LineTooLong { .. }
            | UpstreamErrorKind::Unreadable
            | UpstreamErrorKind::OutOfScope,
            ActsAs::Caller | ActsAs::Service,
        ) => false,
    }
}

/// A first session that the API server refuses midway counts as never opened: where the caller may list but not watch, the
/// list is served and the watch that follows it is refused. Were its streams to begin a cycle of their own, as after a
/// refused reopen, they would list again and again.
fn refused_midway(next: Next) -> Next {
    match next {
        Next::End(FeedEnd::Refused(error)) => Next::End(FeedEnd::NotOpened(error)),
        Next::Open
        | Next::End(
            FeedEnd::NotOpened(_) | FeedEnd::Unavailable(_) | FeedEnd::Fatal(_) | FeedEnd::Teardown,
        ) => next,
    }
}
