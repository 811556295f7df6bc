//! What a host may set about its feeds.

use std::time::Duration;

use krm_stream_protocol::Ordering;

/// The settings of all feeds of one [`Feeds`](crate::Feeds).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedSettings {
    /// How many deletions a stream may owe before it must begin a new cycle; at least 1. Default 256.
    pub queue_depth: usize,
    /// How long a feed outlives its last stream, so that a reload of a page joins it warm. Default 5 s. Isolated feeds
    /// end at once.
    pub linger: Duration,
    /// What to do with resourceVersions that do not order. Default strict.
    pub ordering: Ordering,
}

impl Default for FeedSettings {
    fn default() -> Self {
        Self {
            queue_depth: 256,
            linger: Duration::from_secs(5),
            ordering: Ordering::Strict,
        }
    }
}
