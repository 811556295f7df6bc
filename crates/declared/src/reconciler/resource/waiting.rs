//! What happened to feeds while a write was out, to be published one after the other.

use std::collections::VecDeque;
use std::time::Duration;

use krm_stream_protocol::Moment;
use krm_stream_shared::FeedReport;

use crate::reconciler::FeedId;

/// How many reports may wait for a write to end; the oldest are followed without having been published.
const MOST: usize = 256;
/// What waited for longer is followed without having been published: what is written of a stream was so a moment ago.
const LONGEST: Duration = Duration::from_secs(5);

/// Reports that wait, oldest first.
#[derive(Debug, Default)]
pub(super) struct Waiting(VecDeque<(Moment, FeedId, FeedReport)>);

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= MOST
    }

    /// Whether the oldest is older than what may be published as the present state.
    pub(super) fn begins_with_history(&self, now: Moment) -> bool {
        self.0.front().is_some_and(|(since, _, _)| *since + LONGEST < now)
    }

    pub(super) fn push(&mut self, now: Moment, feed: FeedId, report: FeedReport) {
        self.0.push_back((now, feed, report));
    }

    pub(super) fn pop(&mut self) -> Option<(FeedId, FeedReport)> {
        self.0.pop_front().map(|(_, feed, report)| (feed, report))
    }

    pub(super) fn reports(&self) -> impl Iterator<Item = (FeedId, &FeedReport)> {
        self.0.iter().map(|(_, feed, report)| (*feed, report))
    }
}
