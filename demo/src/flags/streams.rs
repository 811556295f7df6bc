//! How streams behave, and what bounds them.

use std::num::NonZeroUsize;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::durations::{delivery_interval, duration, positive_duration};

/// How streams behave.
#[derive(Debug, Args)]
#[command(next_help_heading = "Streams")]
pub(crate) struct StreamFlags {
    /// How many deletions a stream may owe before it begins anew.
    #[arg(long, value_name = "DELETIONS", env = "KRM_QUEUE_DEPTH", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) queue_depth: u32,
    /// How long a watch outlives its last stream.
    #[arg(long, value_name = "DURATION", env = "KRM_LINGER", default_value = "5s", value_parser = duration)]
    pub(crate) linger: Duration,
    /// How long a stream may be silent before a heartbeat is sent.
    #[arg(long, value_name = "DURATION", env = "KRM_HEARTBEAT_INTERVAL", default_value = "20s", value_parser = positive_duration)]
    pub(crate) heartbeat_interval: Duration,
    /// A stream sends changes at most once in this time; what changed meanwhile is merged. 0 for at once.
    #[arg(long, value_name = "DURATION", env = "KRM_DELIVERY_INTERVAL", default_value = "0", value_parser = delivery_interval)]
    pub(crate) delivery_interval: Duration,
    /// What to do with resourceVersions that do not order: end the stream, or deliver what came.
    #[arg(long, value_enum, env = "KRM_ORDERING", default_value_t = OrderingFlag::Strict)]
    pub(crate) ordering: OrderingFlag,
    /// The most streams that may be open at once [default: no limit].
    #[arg(long, value_name = "STREAMS", env = "KRM_MAX_STREAMS")]
    pub(crate) max_streams: Option<NonZeroUsize>,
    /// The most streams that one caller may have open at once [default: no limit].
    #[arg(long, value_name = "STREAMS", env = "KRM_MAX_STREAMS_PER_CALLER")]
    pub(crate) max_streams_per_caller: Option<NonZeroUsize>,
    /// The most objects that a scope may hold [default: no limit].
    #[arg(long, value_name = "OBJECTS", env = "KRM_MAX_SNAPSHOT_OBJECTS")]
    pub(crate) max_snapshot_objects: Option<NonZeroUsize>,
    /// The most bytes that the objects of a scope may take, as they are sent [default: no limit].
    #[arg(long, value_name = "BYTES", env = "KRM_MAX_SNAPSHOT_BYTES")]
    pub(crate) max_snapshot_bytes: Option<NonZeroUsize>,
}

/// How bytes go to readers, and how the end comes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Delivery")]
pub(crate) struct DeliveryFlags {
    /// How long a reader may take for each chunk of at most 64 KiB before it is cut; 0 for as long as it likes.
    #[arg(long, value_name = "DURATION", env = "KRM_WRITE_TIMEOUT", default_value = "30s", value_parser = duration)]
    write_timeout: Duration,
    /// How long the program goes on after it was told to end, so that readers learn of it and connections close.
    #[arg(long, value_name = "DURATION", env = "KRM_DRAIN_TIMEOUT", default_value = "10s", value_parser = duration)]
    pub(crate) drain_timeout: Duration,
    /// Readers are told at the end to come back at a random moment within this time, so that they do not all come at once.
    #[arg(long, value_name = "DURATION", env = "KRM_DRAIN_SPREAD", default_value = "10s", value_parser = duration)]
    pub(crate) drain_spread: Duration,
}

/// What to do with resourceVersions that do not order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderingFlag {
    /// End the stream with an error.
    Strict,
    /// Deliver what cannot be ordered.
    Lenient,
}

impl DeliveryFlags {
    /// How long a reader may take for a chunk, if that is bounded.
    pub(crate) fn write_timeout(&self) -> Option<Duration> {
        (!self.write_timeout.is_zero()).then_some(self.write_timeout)
    }
}
