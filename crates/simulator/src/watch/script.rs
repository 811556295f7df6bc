//! The steps of a watch that goes wrong, and how far they have come.

use std::{collections::VecDeque, time::Duration};

use crate::faults::{StreamAction, StreamPoint, StreamStep};

/// What a watch has sent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Progress {
    pub(super) events: u64,
    pub(super) lines: u64,
    pub(super) boundary_is_next: bool,
    pub(super) boundary_sent: bool,
}

/// The steps that are still to come, in order.
#[derive(Debug)]
pub(super) struct Script {
    steps: VecDeque<StreamStep>,
}

impl Script {
    pub(super) fn new(steps: Vec<StreamStep>) -> Self {
        Self { steps: steps.into() }
    }

    /// The next action, if its point is reached.
    pub(super) fn due(&mut self, progress: &Progress, elapsed: Duration) -> Option<StreamAction> {
        let reached = match self.steps.front()?.at {
            StreamPoint::Start => true,
            StreamPoint::AfterEvents(events) => progress.events >= events,
            StreamPoint::AfterLines(lines) => progress.lines >= lines,
            StreamPoint::BeforeBoundary => progress.boundary_is_next,
            StreamPoint::AfterBoundary => progress.boundary_sent,
            StreamPoint::Elapsed(after) => elapsed >= after,
        };
        if reached {
            self.steps.pop_front().map(|step| step.action)
        } else {
            None
        }
    }

    /// When the next step is due by time alone, counted from the headers.
    pub(super) fn wake_after(&self) -> Option<Duration> {
        match self.steps.front()?.at {
            StreamPoint::Elapsed(after) => Some(after),
            StreamPoint::Start
            | StreamPoint::AfterEvents(_)
            | StreamPoint::AfterLines(_)
            | StreamPoint::BeforeBoundary
            | StreamPoint::AfterBoundary => None,
        }
    }
}
