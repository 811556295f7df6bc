//! Where the publishing of one resource's status stands.

use std::time::Duration;

use krm_stream_protocol::{Moment, ResourceVersion};
use krm_stream_status::WritePlan;

use crate::DeclaredStreamStatus;

/// The backoff after a conflict or a failed write, doubled up to the longest.
const FIRST_BACKOFF: Duration = Duration::from_millis(250);
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);

/// Where publishing stands.
#[derive(Debug)]
pub(super) enum Publishing {
    /// Nothing is out. On a plan: `Writing`.
    Idle,
    /// This status was sent. Stored: `Idle`. Conflict or failure: `Backoff`. Not found: `Gone`.
    Writing(Box<Sent>),
    /// Until then. After it: `Reading`.
    Backoff(Moment),
    /// The resource is being read again. Read: `Idle`. Failed: `Backoff`. Not found: `Gone`.
    Reading,
    /// It is gone, or going: there is nothing to publish. Read again all the same: `Idle`.
    Gone,
}

/// A write.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) status: DeclaredStreamStatus,
    pub(super) plan: WritePlan,
    /// The version that it replaces.
    pub(super) replaces: ResourceVersion,
}

/// How long to wait after another failure, where there were `failures` in a row before it.
pub(super) fn backoff(failures: u32, seed: u64) -> Duration {
    let doubled = FIRST_BACKOFF.saturating_mul(1_u32.checked_shl(failures).unwrap_or(u32::MAX));
    let delay = doubled.min(LONGEST_BACKOFF);
    // Up to a quarter more, another for each failure of each resource.
    let drawn = seed
        .wrapping_add(u64::from(failures) + 1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let thousandths = u32::try_from((drawn >> 33) % 250).unwrap_or_default();
    delay + delay * thousandths / 1000
}
