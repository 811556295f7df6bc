//! The figures that a status page shows.

/// What an observer has counted, for a host's own status page. Each figure is right by itself; together they need not be
/// of one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Streams that are open now.
    pub streams_open: u64,
    /// Streams opened since start.
    pub streams_opened: u64,
    /// Streams that are attached to a feed now.
    pub subscriptions_open: u64,
    /// Attachments of a stream to a feed since start.
    pub subscriptions_opened: u64,
    /// Upstream sessions that are open now.
    pub upstream_sessions_open: u64,
    /// Upstream sessions opened since start.
    pub upstream_sessions_opened: u64,
    /// Snapshots delivered to a stream, complete, since start.
    pub snapshots_delivered: u64,
    /// Events of all types handed to a transport since start.
    pub events_emitted: u64,
    /// Bytes handed to a transport since start.
    pub bytes_delivered: u64,
}
