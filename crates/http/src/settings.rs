//! The controls of a gateway's streams.

use std::time::Duration;

/// How streams are kept alive and bounded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamSettings {
    /// How long a stream may be silent before a heartbeat is sent.
    pub(crate) heartbeat_interval: Duration,
    /// How long each of a host's seams may take at a cycle's begin, and a check of an open stream in all.
    pub(crate) check_timeout: Duration,
    /// How long a chunk may wait for its transport to take it, where delivery is bounded.
    pub(crate) write_timeout: Option<Duration>,
    /// How often an open stream is checked.
    pub(crate) reauthorization_interval: Option<Duration>,
    /// How long a stream that has all there is rests after it sent something.
    pub(crate) delivery_interval: Duration,
}

/// A browser's or proxy's idle timeout is rarely below a minute.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(20);
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// What is pending for a stream is handed to its transport in chunks of about this size.
pub(crate) const CHUNK_BYTES: usize = 64 * 1024;

impl Default for StreamSettings {
    fn default() -> Self {
        Self {
            heartbeat_interval: HEARTBEAT_INTERVAL,
            check_timeout: CHECK_TIMEOUT,
            write_timeout: None,
            reauthorization_interval: None,
            delivery_interval: Duration::ZERO,
        }
    }
}
