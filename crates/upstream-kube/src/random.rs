//! A small source of spread for timeouts and waits. Not for secrets.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// [`SplitMix64`](https://prng.di.unimi.it/splitmix64.c), seeded by the process's hash keys.
#[derive(Debug)]
pub(crate) struct Spread {
    state: AtomicU64,
}

/// The increment of the generator: the golden ratio in 64 bits.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

impl Spread {
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicU64::new(RandomState::new().hash_one(STEP)),
        }
    }

    /// Whole seconds between `from` and `to`, both included.
    pub(crate) fn seconds_between(&self, from: Duration, to: Duration) -> Duration {
        let width = to.as_secs().saturating_sub(from.as_secs()).saturating_add(1);
        Duration::from_secs(from.as_secs() + self.next() % width)
    }

    /// `delay`, or up to a quarter longer. Never shorter: a wait is a promise to the API server.
    pub(crate) fn lengthen(&self, delay: Duration) -> Duration {
        let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        match nanos / 4 {
            0 => delay,
            quarter => delay + Duration::from_nanos(self.next() % quarter),
        }
    }

    fn next(&self) -> u64 {
        let mut mixed = self.state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_stay_in_their_bounds_and_differ() {
        let spread = Spread::new();
        let (from, to) = (Duration::from_mins(5), Duration::from_mins(10));
        let drawn: Vec<_> = (0..1000).map(|_| spread.seconds_between(from, to)).collect();
        assert!(drawn.iter().all(|seconds| (from..=to).contains(seconds)));
        assert!(drawn.iter().any(|seconds| *seconds != drawn[0]));
        assert_eq!(spread.seconds_between(from, from), from);
    }

    #[test]
    fn delays_are_lengthened_by_less_than_a_quarter_and_differ() {
        let spread = Spread::new();
        let delay = Duration::from_secs(4);
        let drawn: Vec<_> = (0..1000).map(|_| spread.lengthen(delay)).collect();
        assert!(drawn.iter().all(|longer| (delay..delay * 5 / 4).contains(longer)));
        assert!(drawn.iter().any(|longer| *longer != drawn[0]));
        assert_eq!(spread.lengthen(Duration::ZERO), Duration::ZERO);
    }
}
