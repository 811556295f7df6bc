//! What can be set about sessions, with its defaults.

use std::time::Duration;

/// The settings of every session of an upstream. Checked by the builder.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// For a TCP connection and its TLS handshake.
    pub(crate) connect_timeout: Duration,
    /// For the response headers.
    pub(crate) open_timeout: Duration,
    /// Before the boundary: the longest wait for a line.
    pub(crate) snapshot_line_timeout: Duration,
    /// Before the boundary: the longest wait in all.
    pub(crate) snapshot_timeout: Duration,
    /// The `timeoutSeconds` of watch requests.
    pub(crate) watch_timeout: WatchTimeout,
    /// The longest line of a watch and the largest item of a list, in bytes.
    pub(crate) max_line_bytes: usize,
    /// The `limit` of list requests.
    pub(crate) page_limit: u32,
}

/// The `timeoutSeconds` of watch requests.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WatchTimeout {
    /// The same for each.
    Fixed(Duration),
    /// Drawn for each, both ends included, so that sessions do not all end at once.
    Between(Duration, Duration),
}

/// A page of a list may be this many times `max_line_bytes`, for it is read whole.
const PAGE_LINES: usize = 16;

impl Settings {
    /// The largest page of a list, in bytes.
    pub(crate) const fn max_page_bytes(&self) -> usize {
        self.max_line_bytes.saturating_mul(PAGE_LINES)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            open_timeout: Duration::from_secs(30),
            snapshot_line_timeout: Duration::from_secs(30),
            snapshot_timeout: Duration::from_mins(5),
            watch_timeout: WatchTimeout::Between(Duration::from_mins(5), Duration::from_mins(10)),
            max_line_bytes: 8 * 1024 * 1024,
            page_limit: 500,
        }
    }
}
