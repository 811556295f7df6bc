//! How fast deletions are applied, and how long slow streams may hold them up.

use std::time::Duration;

use krm_stream_protocol::Moment;

/// The most time that is spent waiting for streams that are slow to look, and what is had of it at first.
const MOST_PATIENCE: Duration = Duration::from_secs(2);

/// Streams that keep up look within that time. They have it for each portion of deletions, also when all patience was spent.
const LEAST_PATIENCE: Duration = Duration::from_millis(20);

/// Of the time that goes by, one part of so many is given back.
const REFILL: u32 = 10;

/// How fast deletions are applied: no faster than streams that keep up can take them in, since each may owe only so many.
///
/// A stream that is at the head takes in all there is at its next look. So once half as many deletions were applied as a
/// stream may owe, those that rest are roused, and every stream that was woken gets to look before more is taken from the
/// session. Updates need no such thing: they coalesce. One that is slow is waited for as long as there is
/// [patience](Self::patience) left, so that any number of deletions is held up by seconds at most.
#[derive(Debug)]
pub(super) struct Pace {
    most: usize,
    /// Deletions that were applied since all streams had looked.
    applied: usize,
    patience: Duration,
    /// When that was so much.
    counted_at: Moment,
}

impl Pace {
    pub(super) fn new(queue_depth: usize, now: Moment) -> Self {
        Self {
            // A stream that reads shared bytes looks without taking in, until as many came as half of what it may owe.
            most: (queue_depth / 2).max(1),
            applied: 0,
            patience: MOST_PATIENCE,
            counted_at: now,
        }
    }

    /// How many deletions may be applied before the streams that were woken have to look; none if they have to look now.
    pub(super) fn remaining(&self) -> usize {
        self.most.saturating_sub(self.applied)
    }

    /// How many deletions may be applied at once, if nothing was applied before.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// So many deletions are applied.
    pub(super) fn applies(&mut self, deletions: usize) {
        self.applied += deletions;
    }

    /// How long streams are waited for now.
    pub(super) fn patience(&mut self, now: Moment) -> Duration {
        let refill = now.since(self.counted_at) / REFILL;
        self.patience = (self.patience + refill).min(MOST_PATIENCE);
        self.counted_at = now;
        self.patience.max(LEAST_PATIENCE)
    }

    /// After this time all streams have looked, or are waited for no longer.
    pub(super) fn settled(&mut self, waited: Duration) {
        self.applied = 0;
        let for_the_slow = waited.saturating_sub(LEAST_PATIENCE);
        self.patience = self.patience.saturating_sub(for_the_slow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Moment {
        Moment::after_origin(Duration::from_millis(milliseconds))
    }

    #[test]
    fn as_many_deletions_as_half_the_queue_are_applied_between_two_looks() {
        let mut pace = Pace::new(256, at(0));
        assert_eq!((pace.most(), pace.remaining()), (128, 128));
        pace.applies(100);
        assert_eq!(pace.remaining(), 28);
        pace.applies(100);
        assert_eq!(pace.remaining(), 0);
        pace.settled(Duration::ZERO);
        assert_eq!(pace.remaining(), 128);
        assert_eq!((Pace::new(1, at(0)).most(), Pace::new(0, at(0)).most()), (1, 1));
    }

    #[test]
    fn patience_with_slow_streams_is_used_up_and_comes_back_slowly() {
        let mut pace = Pace::new(256, at(0));
        for spent in 0..20 {
            assert_eq!(pace.patience(at(0)), Duration::from_millis(2_000 - 100 * spent));
            pace.settled(LEAST_PATIENCE + Duration::from_millis(100));
        }
        assert_eq!(pace.patience(at(0)), LEAST_PATIENCE);
        pace.settled(LEAST_PATIENCE);
        assert_eq!(pace.patience(at(3_000)), Duration::from_millis(300));
        assert_eq!(pace.patience(at(3_000)), Duration::from_millis(300));
        assert_eq!(pace.patience(at(100_000)), MOST_PATIENCE);
        pace.settled(Duration::ZERO);
        assert_eq!(pace.patience(at(100_000)), MOST_PATIENCE);
    }
}
