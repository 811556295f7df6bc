//! How many streams there may be.

use std::time::Duration;

use krm_stream_protocol::StreamError;

use super::jitter::Jitter;

/// The limits on streams; none unless the host sets one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) streams: Option<usize>,
    pub(crate) streams_per_caller: Option<usize>,
}

/// How soon to come back at the earliest, and how far clients are spread beyond that.
const RETRY_AFTER: Duration = Duration::from_secs(5);

impl Limits {
    pub(super) fn has_per_caller(&self) -> bool {
        self.streams_per_caller.is_some()
    }

    /// Whether one more may come.
    pub(super) fn admit(&self, streams: usize, of_caller: usize, jitter: &Jitter) -> Result<(), StreamError> {
        let refuse = |message| {
            Err(StreamError::unavailable(
                message,
                Some(RETRY_AFTER + jitter.within(RETRY_AFTER)),
            ))
        };
        if self.streams_per_caller.is_some_and(|limit| of_caller >= limit) {
            return refuse("you have as many streams open as one caller may have; close one");
        }
        if self.streams.is_some_and(|limit| streams >= limit) {
            return refuse("the gateway serves as many streams as it may");
        }
        Ok(())
    }
}
