//! The one place where this crate reads clocks.

use std::time::SystemTime;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff;
use krm_stream_protocol::Moment;
use krm_stream_status::Timestamp;
use tokio::time::Instant;

use crate::Now;

/// Moments since a controller began, and the time on the wall.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            origin: Instant::now(),
        }
    }

    pub(crate) fn moment(self) -> Moment {
        Moment::after_origin(self.origin.elapsed())
    }

    pub(crate) fn now(self) -> Now {
        Now {
            moment: self.moment(),
            time: Timestamp::from(wall()),
        }
    }

    pub(crate) fn instant(self, moment: Moment) -> Instant {
        self.origin + moment.since_origin()
    }
}

/// The time on the wall in microseconds, as Kubernetes writes it in Leases and Events.
pub(crate) fn micro_time() -> MicroTime {
    let now = jiff::Timestamp::try_from(wall()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    MicroTime(jiff::Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now))
}

/// Nanoseconds since the beginning of 1970: a number that no other Event about the same object has.
pub(crate) fn unix_nanos() -> u128 {
    let since = wall().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_nanos()
}

#[expect(
    clippy::disallowed_methods,
    reason = "what is published tells the time; nothing is decided by it"
)]
fn wall() -> SystemTime {
    SystemTime::now()
}
