//! Time as an argument.

use std::time::Duration;

/// A point in monotonic time, as a distance from an origin that the driver chose once.
///
/// The state machines of this crate read no clock: a driver measures with the clock of its runtime and hands the
/// moment in, so that a test can let years pass at once. Moments of different origins must not be mixed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(Duration);

impl Moment {
    /// The origin itself.
    pub const ORIGIN: Self = Self(Duration::ZERO);

    /// The moment `elapsed` after the origin.
    pub const fn after_origin(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// The distance from the origin.
    pub const fn since_origin(self) -> Duration {
        self.0
    }

    /// The time from `earlier` to this moment, zero if `earlier` is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl std::ops::Add<Duration> for Moment {
    type Output = Self;

    fn add(self, distance: Duration) -> Self {
        Self(self.0.saturating_add(distance))
    }
}
