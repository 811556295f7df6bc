//! What a session's events come to in the feed: applied in portions that its streams can take in.

use krm_stream_protocol::Observation;

use super::Driver;
use super::pace::Pace;
use crate::feed::Visible;
use crate::feed::limits::Exceeded;
use crate::feed::reports::FeedReport;
use crate::feed::state::{Applied, Change};

/// One step of a batch.
#[derive(Debug)]
pub(super) enum Step {
    Change(Change),
    Boundary,
    RestartSnapshot,
}

impl Step {
    fn is_boundary(&self) -> bool {
        match self {
            Self::Boundary => true,
            Self::Change(_) | Self::RestartSnapshot => false,
        }
    }

    fn is_deletion(&self) -> bool {
        match self {
            Self::Change(Change::Delete { .. }) => true,
            Self::Change(Change::Upsert { .. }) | Self::Boundary | Self::RestartSnapshot => false,
        }
    }
}

impl Driver {
    /// Takes the steps of a batch, and the deletions that they imply.
    pub(super) async fn take(&self, mut steps: Vec<Step>, pace: &mut Pace) -> Result<(), Exceeded> {
        if let Some(boundary) = steps.iter().position(Step::is_boundary) {
            let rest = steps.split_off(boundary);
            self.take_paced(steps, pace).await?;
            // What a snapshot that was read again no longer holds may be any number of objects.
            let mut unseen = self.feed.read().unseen().into_iter().peekable();
            while unseen.peek().is_some() {
                let portion = unseen.by_ref().take(pace.most()).map(Step::Change);
                self.take_paced(portion.collect(), pace).await?;
            }
            steps = rest;
        }
        self.take_paced(steps, pace).await
    }

    /// Takes steps with no more deletions among them than a stream may owe.
    async fn take_paced(&self, steps: Vec<Step>, pace: &mut Pace) -> Result<(), Exceeded> {
        let deletions = steps.iter().filter(|step| step.is_deletion()).count();
        if deletions > pace.remaining() {
            self.settle(pace).await;
        }
        pace.applies(deletions);
        if steps.is_empty() {
            return Ok(());
        }
        self.apply(steps)
    }

    /// Waits until all streams have looked, or are waited for no longer.
    pub(super) async fn settle(&self, pace: &mut Pace) {
        let turns = self.feed.settled(pace.patience(self.now())).await;
        pace.settled(turns);
    }

    /// A fresh session is about to be asked for.
    pub(super) fn begin_snapshot(&self) {
        let retired = self.feed.change(|state| {
            let retired = state.begin_snapshot();
            let visible = Visible::from(retired.is_some());
            (retired, visible)
        });
        drop(retired);
    }

    /// Applies steps under one lock and one wake-up.
    fn apply(&self, steps: Vec<Step>) -> Result<(), Exceeded> {
        let (mut suppressed, mut is_synced) = (0_usize, false);
        // What a new epoch replaced is freed after the lock is released.
        let mut retired = Vec::new();
        let taken = self.feed.change(|state| {
            let mut is_visible = false;
            for step in steps {
                match step {
                    Step::Boundary => {
                        (is_visible, is_synced) = (true, true);
                        retired.extend(state.reach_boundary());
                    }
                    Step::RestartSnapshot => state.restart_snapshot(),
                    Step::Change(change) => match state.apply(change) {
                        Applied::Changed => is_visible = true,
                        Applied::Suppressed => suppressed += 1,
                        Applied::Dropped | Applied::Aside => {}
                        // The feed ends: what follows is of no use to anyone.
                        Applied::OverLimit(exceeded) => return (Err(exceeded), is_visible.into()),
                    },
                }
            }
            (Ok(()), is_visible.into())
        });
        drop(retired);
        if is_synced {
            self.tell(&FeedReport::Synced);
        }
        for _ in 0..suppressed {
            self.observing.observe(&Observation::EventSuppressed);
        }
        taken
    }
}
