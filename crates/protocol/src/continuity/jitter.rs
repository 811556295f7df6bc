//! Jitter from a seed: spreads what would otherwise happen everywhere at once.

use std::time::Duration;

/// A small deterministic generator ([SplitMix64](https://prng.di.unimi.it/splitmix64.c)); not for secrets.
#[derive(Clone, Debug)]
pub(super) struct Jitter(u64);

impl Jitter {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// `delay`, or up to a quarter longer. Never shorter: a spacing is a promise to the API server.
    pub(super) fn spread(&mut self, delay: Duration) -> Duration {
        let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        match nanos / 4 {
            0 => delay,
            quarter => delay + Duration::from_nanos(self.next() % quarter),
        }
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}
