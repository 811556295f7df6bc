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
    /// The most objects that a feed may hold; a scope with more ends its streams with a terminal `INTERNAL` that names the
    /// limit. Default none.
    pub max_snapshot_objects: Option<usize>,
    /// The most bytes of projected objects that a feed may hold, in the same way. Default none.
    pub max_snapshot_bytes: Option<u64>,
}

impl Default for FeedSettings {
    fn default() -> Self {
        Self {
            queue_depth: 256,
            linger: Duration::from_secs(5),
            ordering: Ordering::Strict,
            max_snapshot_objects: None,
            max_snapshot_bytes: None,
        }
    }
}
