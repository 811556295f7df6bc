//! Watches the resource itself, through the same seam and the same continuity machine as every feed.

use std::sync::Arc;
use std::time::Duration;

use krm_stream_protocol::{
    Continuity, Diagnosing, FeedEnd, Moment, Next, OpenError, Ordering, Scope, Session, SessionItem, Start,
    Upstream, UpstreamError, UpstreamErrorKind, Verdict, WatchEvent,
};
use tokio::sync::mpsc;
use tokio::time::{sleep, sleep_until};

use crate::ReadResource;
use crate::clock::Clock;

/// The pause after a watch that is over, doubled up to the longest while none reads a whole snapshot.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How many watches in a row that ended before they had lived are told of, and how often at most.
const RESTLESS: u32 = 3;
const RESTLESS_PACE: Duration = Duration::from_mins(5);

/// What is seen of the resources.
#[derive(Debug)]
pub(crate) enum Seen {
    SnapshotBegan,
    SnapshotComplete,
    Read(Box<ReadResource>),
    Deleted {
        uid: Box<str>,
    },
    /// The API server does not serve the resource.
    NotServed,
}

/// What the task needs.
#[derive(Debug)]
pub(crate) struct Watching {
    pub(crate) upstream: Arc<dyn Upstream>,
    pub(crate) scope: Scope,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    pub(crate) diagnosing: Diagnosing,
    /// How often it is asked whether the definition has been installed.
    pub(crate) absent_pace: Duration,
    pub(crate) seen: mpsc::Sender<Seen>,
}

/// Whoever listened is gone.
struct NobodyListens;

/// The API server, or something before it, ends each watch soon after it was opened, which no single end tells. The watch of
/// the resources is no feed, so it is in no counter of sessions.
#[derive(Debug, thiserror::Error)]
#[error(
    "the last {0} watches ended within 5 s after their snapshot or headers, or before that: what is declared may be taken up \
     late; look for what ends them between the gateway and the API server"
)]
struct Restless(u32);

/// What is known of the watches so far.
#[derive(Debug, Default)]
struct Course {
    /// Whether a whole snapshot was read since the last pause.
    was_complete: bool,
    /// How many in a row ended before they had lived.
    short: u32,
    /// When that was last told.
    told: Option<Moment>,
}

impl Course {
    /// A watch ended. Returns what is to be told of that.
    fn ended(&mut self, now: Moment, has_lived: bool) -> Option<Restless> {
        self.short = if has_lived {
            0
        } else {
            self.short.saturating_add(1)
        };
        let is_time = self.told.is_none_or(|told| told + RESTLESS_PACE <= now);
        let is_told = self.short >= RESTLESS && is_time;
        is_told.then(|| {
            self.told = Some(now);
            Restless(self.short)
        })
    }
}

impl Watching {
    /// Watches until nobody listens.
    pub(crate) async fn run(self) {
        let mut pause = FIRST_PAUSE;
        let mut is_absent = false;
        let mut course = Course::default();
        loop {
            let Ok(end) = self.watch(&mut course).await else {
                return;
            };
            if std::mem::take(&mut course.was_complete) {
                (pause, is_absent) = (FIRST_PAUSE, false);
            }
            match &end {
                FeedEnd::NotOpened(error) | FeedEnd::Refused(error)
                    if *error.kind() == UpstreamErrorKind::NotFound =>
                {
                    if !std::mem::replace(&mut is_absent, true) {
                        tracing::info!(
                            "the API server does not serve DeclaredStream: streams can be declared once its definition is \
                             installed"
                        );
                    }
                    if self.tell(Seen::NotServed).await.is_err() {
                        return;
                    }
                    sleep(self.absent_pace).await;
                    continue;
                }
                FeedEnd::NotOpened(error) | FeedEnd::Refused(error) | FeedEnd::Unavailable(Some(error)) => {
                    self.report(error);
                }
                FeedEnd::Fatal(error) => {
                    self.diagnosing
                        .report("watching declared streams", Some(&self.scope), error);
                }
                FeedEnd::Unavailable(None) | FeedEnd::Teardown => {}
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Watches for as long as that goes on by itself.
    async fn watch(&self, course: &mut Course) -> Result<FeedEnd, NobodyListens> {
        // A resource is compared by its version wherever that orders, so nothing here depends on it.
        let mut continuity = Continuity::new(Ordering::Lenient, self.clock.moment(), self.seed);
        while let Some((at, start)) = continuity.next_open() {
            sleep_until(self.clock.instant(at)).await;
            continuity.request_sent(self.clock.moment());
            let is_fresh = start == Start::Fresh;
            let next = match self.upstream.open(&self.scope, start).await {
                Ok(session) => {
                    continuity.opened(self.clock.moment(), session.asked_timeout());
                    if is_fresh {
                        self.tell(Seen::SnapshotBegan).await?;
                    }
                    self.session(&mut continuity, session, course).await?
                }
                Err(error) => {
                    let failed = match &error {
                        OpenError::Failed(error) => Some(error.clone()),
                        OpenError::Expired => None,
                    };
                    let next = continuity.open_failed(self.clock.moment(), error);
                    // What ends the watch is told by whoever learns of the end.
                    if let (Next::Open, Some(error)) = (&next, &failed) {
                        self.report(error);
                    }
                    next
                }
            };
            match next {
                Next::Open => {}
                Next::End(end) => return Ok(end),
            }
        }
        Ok(FeedEnd::Teardown)
    }

    async fn session(
        &self,
        continuity: &mut Continuity,
        mut session: Box<dyn Session>,
        course: &mut Course,
    ) -> Result<Next, NobodyListens> {
        loop {
            let item = std::future::poll_fn(|cx| session.poll_next(cx)).await;
            let now = self.clock.moment();
            let has_lived = continuity.lives_at().is_some_and(|at| at <= now);
            let event = match item {
                SessionItem::Event(event) => event,
                SessionItem::End(end) => {
                    self.watch_ended(course, has_lived);
                    return Ok(continuity.ended(now, end));
                }
            };
            match continuity.event(now, &event) {
                Verdict::Ignore => {}
                Verdict::Boundary => {
                    course.was_complete = true;
                    self.tell(Seen::SnapshotComplete).await?;
                }
                Verdict::RestartSnapshot => self.tell(Seen::SnapshotBegan).await?,
                Verdict::Leave(next) => {
                    self.watch_ended(course, has_lived);
                    return Ok(next);
                }
                Verdict::Deliver => self.deliver(event).await?,
            }
        }
    }

    async fn deliver(&self, event: WatchEvent) -> Result<(), NobodyListens> {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                match ReadResource::parse(object.json()) {
                    Ok(read) => self.tell(Seen::Read(Box::new(read))).await?,
                    Err(error) => {
                        self.diagnosing
                            .report("reading a declared stream", Some(&self.scope), &error);
                    }
                }
            }
            WatchEvent::Deleted(object) => {
                if let Some(identity) = object.identity() {
                    let uid = identity.uid.clone();
                    self.tell(Seen::Deleted { uid }).await?;
                }
            }
            WatchEvent::Bookmark { .. } | WatchEvent::SnapshotRestarted | WatchEvent::Unknown => {}
        }
        Ok(())
    }

    async fn tell(&self, seen: Seen) -> Result<(), NobodyListens> {
        self.seen.send(seen).await.map_err(|_| NobodyListens)
    }

    fn watch_ended(&self, course: &mut Course, has_lived: bool) {
        if let Some(restless) = course.ended(self.clock.moment(), has_lived) {
            self.diagnosing
                .report("watching declared streams", Some(&self.scope), &restless);
        }
    }

    fn report(&self, error: &UpstreamError) {
        self.diagnosing
            .report("watching declared streams", Some(&self.scope), error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::after_origin(Duration::from_secs(seconds))
    }

    #[test]
    fn watches_that_keep_ending_are_told_of_now_and_then_and_routine_ends_are_not() {
        let mut course = Course::default();
        for routine in 0..100 {
            assert!(course.ended(at(routine), true).is_none());
        }
        assert!(course.ended(at(200), false).is_none());
        assert!(course.ended(at(201), false).is_none());
        assert!(course.ended(at(202), true).is_none(), "the row has ended");
        assert!(course.ended(at(203), false).is_none());
        assert!(course.ended(at(204), false).is_none());
        assert!(matches!(course.ended(at(205), false), Some(Restless(3))));
        for second in 206..505 {
            assert!(course.ended(at(second), false).is_none());
        }
        assert!(matches!(course.ended(at(505), false), Some(Restless(303))));
    }

    #[test]
    fn one_that_lives_now_and_then_makes_them_be_told_of_no_more_often() {
        let mut course = Course::default();
        let told = (0..3000).filter(|second| course.ended(at(*second), second % 10 == 0).is_some());
        assert_eq!(told.count(), 10);
    }
}
