//! What happens to the sessions of a feed, as facts for whoever publishes how it is.
//!
//! # Why
//! A reader of a feed sees objects, and learns of trouble only what concerns it. Whoever publishes the state of a feed must
//! know of each session how it began and ended, and must neither be a reader for that nor hold the feed up.
//!
//! # Bounds
//! Telling never waits. Each listener has a queue of [`QUEUED_REPORTS`]; one that does not read loses the oldest. That is
//! sound: between two openings of a session there are a few reports only, so what is left always holds an opening or an end,
//! which tells how the feed is at present. What came before, such as how often sessions ended, is lost with the reports of it.

mod keeper;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use krm_stream_protocol::{FeedEnd, OpenError, SessionEnd, Start};
use tokio::sync::Notify;

pub use keeper::{Keep, Keeper};

/// How many reports wait for one listener.
const QUEUED_REPORTS: usize = 64;

/// Something that happened to a feed.
#[derive(Clone, Debug)]
pub enum FeedReport {
    /// The response headers of a session arrived. One that goes on after a version has lost nothing.
    Opened(Start),
    /// The snapshot is complete.
    Synced,
    /// The session lived: it is 5 s past its boundary or headers, or has reached the timeout that it asked for; or its
    /// transport ends now, more than 1 s past them, and it [delivered something](krm_stream_protocol::Continuity::has_worked)
    /// since. What was wrong with sessions before it is over.
    Lived,
    /// A session ended, and another one follows.
    SessionEnded(SessionEnd),
    /// A session was left for an event that cannot be used (a partial object, or one without identity), and another one
    /// follows.
    UnusableEvent,
    /// A session could not be opened, and another attempt follows.
    OpenFailed {
        /// Why.
        error: OpenError,
        /// Whether the attempt that follows is a retry in place. After the last of these a fresh cycle is tried.
        retries_left: bool,
    },
    /// Sessions that go on after a version were opened and ended at once, until the retries in place were used up.
    ReopenedInVain,
    /// The feed is over. If a session's end is the reason, this is the only report of it.
    Over(FeedEnd),
}

/// The reports of a feed, or of the feeds that a [`Keeper`] opens one after the other: first what tells its present state,
/// then whatever happens.
#[derive(Debug)]
pub struct FeedReports(Arc<Queue>);

impl FeedReports {
    /// The next report.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> FeedReport {
        loop {
            if let Some(report) = self.try_next() {
                return report;
            }
            self.0.filled.notified().await;
        }
    }

    /// A report that is there already.
    pub fn try_next(&mut self) -> Option<FeedReport> {
        self.0.waiting().reports.pop_front()
    }

    /// How many reports were lost so far, because they were not read in time.
    pub fn missed(&self) -> u64 {
        self.0.waiting().missed
    }
}

/// The reports that one listener has not read yet.
#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    filled: Notify,
    over: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    reports: VecDeque<FeedReport>,
    missed: u64,
}

impl Queue {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, report: FeedReport) {
        let is_over = matches!(report, FeedReport::Over(_));
        let mut waiting = self.waiting();
        if waiting.reports.len() == QUEUED_REPORTS {
            waiting.reports.pop_front();
            waiting.missed += 1;
        }
        waiting.reports.push_back(report);
        drop(waiting);
        self.filled.notify_one();
        if is_over {
            self.over.notify_one();
        }
    }

    /// Resolves when a feed was over since the last call.
    async fn until_over(&self) {
        self.over.notified().await;
    }
}

/// A feed's side.
#[derive(Debug, Default)]
pub(crate) struct Reports(Mutex<Told>);

#[derive(Debug, Default)]
struct Told {
    /// From the last opening on: what tells the present state to one who comes now.
    since_opening: Vec<FeedReport>,
    listeners: Vec<Weak<Queue>>,
}

impl Reports {
    /// Tells all listeners.
    pub(super) fn tell(&self, report: &FeedReport) {
        let mut told = self.told();
        if matches!(report, FeedReport::Opened(_)) {
            told.since_opening.clear();
        }
        // An opening is followed by a few reports at most; the bound is for an upstream that is not in order.
        if told.since_opening.len() < QUEUED_REPORTS || matches!(report, FeedReport::Over(_)) {
            told.since_opening.push(report.clone());
        }
        told.listeners.retain(|listener| {
            let listener = listener.upgrade();
            if let Some(listener) = &listener {
                listener.push(report.clone());
            }
            listener.is_some()
        });
    }

    /// Begins to listen.
    pub(crate) fn listen(&self) -> FeedReports {
        let queue = Arc::default();
        self.add(&queue);
        FeedReports(queue)
    }

    fn add(&self, listener: &Arc<Queue>) {
        let mut told = self.told();
        for report in &told.since_opening {
            listener.push(report.clone());
        }
        told.listeners.push(Arc::downgrade(listener));
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(reports: &mut FeedReports) -> Vec<String> {
        std::iter::from_fn(|| reports.try_next())
            .map(|report| format!("{report:?}"))
            .collect()
    }

    #[test]
    fn one_who_comes_late_is_told_what_the_present_state_follows_from() {
        let reports = Reports::default();
        for report in [
            FeedReport::Opened(Start::Fresh),
            FeedReport::Synced,
            FeedReport::SessionEnded(SessionEnd::Closed),
            FeedReport::Opened(Start::After("7".into())),
            FeedReport::SessionEnded(SessionEnd::Expired),
        ] {
            reports.tell(&report);
        }
        let mut late = reports.listen();
        assert_eq!(
            labels(&mut late),
            ["Opened(After(ResourceVersion(7)))", "SessionEnded(Expired)"]
        );
        reports.tell(&FeedReport::Opened(Start::Fresh));
        assert_eq!(labels(&mut late), ["Opened(Fresh)"]);
    }

    #[test]
    fn one_who_does_not_read_loses_the_oldest_and_costs_a_bounded_queue() {
        let reports = Reports::default();
        let mut idle = reports.listen();
        for _ in 0..QUEUED_REPORTS {
            reports.tell(&FeedReport::Opened(Start::Fresh));
            reports.tell(&FeedReport::SessionEnded(SessionEnd::Expired));
        }
        reports.tell(&FeedReport::Synced);
        assert_eq!(idle.missed(), u64::try_from(QUEUED_REPORTS).unwrap() + 1);
        let left = labels(&mut idle);
        assert_eq!(left.len(), QUEUED_REPORTS);
        assert_eq!(left.last().map(String::as_str), Some("Synced"));
    }

    #[test]
    fn one_who_has_left_is_forgotten() {
        let reports = Reports::default();
        drop(reports.listen());
        reports.tell(&FeedReport::Synced);
        assert!(reports.told().listeners.is_empty());
    }
}
