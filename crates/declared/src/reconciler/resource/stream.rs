//! One declared stream, and what it makes of what happens to its feed.

use std::time::Duration;

use krm_stream_protocol::Moment;
use krm_stream_shared::FeedReport;
use krm_stream_status::{Ended, ReplayReason, Retries, StreamState, WatchStream};

use crate::WarmScope;
use crate::reconciler::FeedId;

/// How long a first snapshot may take.
const FIRST_SNAPSHOT: Duration = Duration::from_mins(5);

/// One declared stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) name: String,
    /// None, if it cannot be watched.
    pub(super) feed: Option<(FeedId, WarmScope)>,
    /// When its feed was first asked for.
    pub(super) since: Moment,
    pub(super) state: WatchStream,
}

impl Stream {
    /// Whether it has this name, and keeps a feed of this scope.
    pub(super) fn keeps(&self, name: &str, scope: Option<&WarmScope>) -> bool {
        self.name == name && scope.is_some() && self.feed.as_ref().map(|(_, kept)| kept) == scope
    }

    /// How it is once these reports are taken in.
    pub(super) fn after<'a>(
        &self,
        reports: impl IntoIterator<Item = (FeedId, &'a FeedReport)>,
    ) -> WatchStream {
        let mut state = self.state.clone();
        if let Some((kept, _)) = &self.feed {
            let own = reports.into_iter().filter(|(feed, _)| feed == kept);
            own.for_each(|(_, report)| tell(&mut state, report));
        }
        state
    }
}

/// Until when the first of these streams whose first snapshot is being read may take for that. None, if there is no such
/// stream, or if anything is known of one that speaks against its being ready.
pub(super) fn first_snapshots(streams: &[Stream]) -> Option<Moment> {
    let mut until: Option<Moment> = None;
    for stream in streams {
        match stream.state.state() {
            StreamState::Streaming => {}
            StreamState::Replaying(ReplayReason::InitialReplay) => {
                let end = stream.since + FIRST_SNAPSHOT;
                until = Some(until.map_or(end, |until| until.min(end)));
            }
            StreamState::Replaying(ReplayReason::ResumeReplay | ReplayReason::ExpiredResourceVersion)
            | StreamState::Blocked(_) => return None,
        }
    }
    until
}

/// Tells the state of a stream what happened to its feed.
pub(super) fn tell(stream: &mut WatchStream, report: &FeedReport) {
    match report {
        FeedReport::Opened(start) => stream.opened(start),
        FeedReport::Synced => stream.synced(),
        FeedReport::Lived => stream.lived(),
        FeedReport::SessionEnded(end) => stream.ended(Ended::Session(end)),
        FeedReport::UnusableEvent => stream.ended(Ended::UnusableEvent),
        FeedReport::OpenFailed { error, retries_left } => {
            let retries = if *retries_left {
                Retries::Left
            } else {
                Retries::UsedUp
            };
            stream.open_failed(error, retries);
        }
        FeedReport::ReopenedInVain => stream.ended_early_again(),
        FeedReport::Over(end) => stream.feed_ended(end),
    }
}
