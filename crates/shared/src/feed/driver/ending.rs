//! How a feed ends: what its registry, those who wait for it, its streams and whoever keeps it are told.

use krm_stream_protocol::{FeedEnd, StreamError, UpstreamError};

use super::{Driver, Owner};
use crate::feed::handover::Visible;
use crate::feed::reports::FeedReport;
use crate::feed::state::Over;

impl Driver {
    /// Tells the streams how the feed ended, after the registry was told.
    pub(super) fn conclude(&self, end: FeedEnd, owner: &dyn Owner) {
        let report = FeedReport::Over(end.clone());
        let over = match end {
            FeedEnd::NotOpened(error) => Over::Told(self.refuse(&error, owner)),
            FeedEnd::Unavailable(error) => {
                let hint = error.as_ref().and_then(UpstreamError::retry_after);
                let error = StreamError::unavailable("the API server cannot be reached right now", hint);
                Over::Told(owner.put_aside(&self.feed, error))
            }
            FeedEnd::Fatal(error) => {
                owner.release(&self.feed);
                Over::Told(error)
            }
            FeedEnd::Refused(error) => {
                owner.release(&self.feed);
                Over::EachByItself(Some(error.to_stream_error(self.feed.key().acts_as())))
            }
            FeedEnd::Teardown => {
                owner.release(&self.feed);
                Over::EachByItself(None)
            }
        };
        self.tell(&report);
        self.finish(over);
    }

    /// Refuses everyone who waits for the opening. Only what may pass puts the key aside.
    fn refuse(&self, error: &UpstreamError, owner: &dyn Owner) -> StreamError {
        let mut refusal = error.to_stream_error(self.feed.key().acts_as());
        if refusal.is_terminal() {
            owner.release(&self.feed);
        } else {
            refusal = owner.put_aside(&self.feed, refusal);
        }
        self.feed.opening().refuse_all(&refusal);
        refusal
    }

    pub(super) fn finish(&self, over: Over) {
        self.feed.change(|state| {
            state.over = Some(over);
            ((), Visible::Yes)
        });
    }
}
