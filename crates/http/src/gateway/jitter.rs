//! Spreads in time what would otherwise happen everywhere at once.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Draws durations, seeded by the process's hash keys. Not for secrets.
pub(crate) struct Jitter {
    keys: RandomState,
    drawn: AtomicU64,
}

impl Jitter {
    pub(super) fn new() -> Self {
        Self {
            keys: RandomState::new(),
            drawn: AtomicU64::new(0),
        }
    }

    /// A duration between zero and `width`.
    pub(crate) fn within(&self, width: Duration) -> Duration {
        let drawn = self.keys.hash_one(self.drawn.fetch_add(1, Ordering::Relaxed));
        // The upper half of the draw: what an f64 holds exactly.
        let fraction = f64::from(u32::try_from(drawn >> 32).unwrap_or(u32::MAX)) / f64::from(u32::MAX);
        width.mul_f64(fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_spread_over_the_whole_width() {
        let (jitter, width) = (Jitter::new(), Duration::from_secs(10));
        let mut tenths = [0_u32; 10];
        for _ in 0..10_000 {
            let drawn = jitter.within(width);
            assert!(drawn <= width);
            tenths[usize::try_from(drawn.as_secs().min(9)).unwrap()] += 1;
        }
        assert!(
            tenths.iter().all(|count| (700..1300).contains(count)),
            "{tenths:?}"
        );
        assert_eq!(jitter.within(Duration::ZERO), Duration::ZERO);
    }
}
