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

    /// Whether one more may come beside so many, whoever it is.
    ///
    /// # Errors
    /// What the stream ends with.
    pub(super) fn admit(&self, streams: usize, jitter: &Jitter) -> Result<(), StreamError> {
        if self.streams.is_some_and(|limit| streams >= limit) {
            return Err(refusal("the gateway serves as many streams as it may", jitter));
        }
        Ok(())
    }

    /// Whether a caller may have one more beside so many.
    ///
    /// # Errors
    /// What the stream ends with.
    pub(super) fn admit_of_caller(&self, of_caller: usize, jitter: &Jitter) -> Result<(), StreamError> {
        if self.streams_per_caller.is_some_and(|limit| of_caller >= limit) {
            return Err(refusal(
                "you have as many streams open as one caller may have; close one",
                jitter,
            ));
        }
        Ok(())
    }
}

fn refusal(message: &'static str, jitter: &Jitter) -> StreamError {
    StreamError::unavailable(message, Some(RETRY_AFTER + jitter.within(RETRY_AFTER)))
}
