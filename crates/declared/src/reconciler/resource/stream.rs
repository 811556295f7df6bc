//! One declared stream, and what it makes of what happens to its feed.

use krm_stream_protocol::Moment;
use krm_stream_shared::FeedReport;
use krm_stream_status::{Ended, Retries, WatchStream};

use crate::WarmScope;
use crate::reconciler::FeedId;

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
