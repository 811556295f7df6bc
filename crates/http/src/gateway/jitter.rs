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

    /// A duration between zero and `width`, whatever that is.
    pub(crate) fn within(&self, width: Duration) -> Duration {
        let drawn = self.keys.hash_one(self.drawn.fetch_add(1, Ordering::Relaxed));
        // The upper half of the draw: what an f64 holds exactly.
        let fraction = f64::from(u32::try_from(drawn >> 32).unwrap_or(u32::MAX)) / f64::from(u32::MAX);
        part(width, fraction)
    }
}

/// This part of a duration. In floating point the longest is a little longer than itself.
fn part(width: Duration, fraction: f64) -> Duration {
    Duration::try_from_secs_f64(width.as_secs_f64() * fraction).map_or(width, |part| part.min(width))
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

    #[test]
    fn the_longest_width_is_drawn_from_as_well() {
        let jitter = Jitter::new();
        let longest = (0..10_000).map(|_| jitter.within(Duration::MAX)).max();
        assert!(longest > Some(Duration::MAX / 2));
    }

    #[test]
    fn a_draw_from_the_end_of_the_longest_width_is_the_width() {
        for fraction in [1.0, f64::from(u32::MAX - 1) / f64::from(u32::MAX)] {
            assert!(part(Duration::MAX, fraction) > Duration::MAX / 2);
        }
        assert_eq!(part(Duration::MAX, 1.0), Duration::MAX);
        assert_eq!(part(Duration::from_secs(10), 0.5), Duration::from_secs(5));
    }
}
