//! How fast deletions are applied, and how long slow streams may hold them up.
//!
//! What streams are waited for is counted in turns of the executor, not in time: where a machine is busy, or a process is
//! stopped for a while, all streams look late, and none of them is slow.

use std::time::Duration;

use krm_stream_protocol::Moment;

/// The most turns that are spent waiting for streams that are slow to look, and what is had of them at first: 2 s where the
/// executor has nothing else to do.
const MOST_PATIENCE: u32 = 2_000;

/// Streams that keep up look within so many turns. They have them for each portion of deletions, also when all patience was
/// spent.
const LEAST_PATIENCE: u32 = 20;

/// One turn of patience is given back each time so long has gone by.
const REFILL: Duration = Duration::from_millis(10);

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
    /// In turns.
    patience: u32,
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

    /// How many turns streams are waited for now.
    pub(super) fn patience(&mut self, now: Moment) -> u32 {
        let refill = now.since(self.counted_at).as_nanos() / REFILL.as_nanos();
        let refill = u32::try_from(refill).unwrap_or(u32::MAX);
        self.patience = self.patience.saturating_add(refill).min(MOST_PATIENCE);
        // What is less than a whole turn counts the next time.
        self.counted_at = self.counted_at + REFILL.saturating_mul(refill);
        self.patience.max(LEAST_PATIENCE)
    }

    /// After so many turns all streams have looked, or are waited for no longer.
    pub(super) fn settled(&mut self, turns: u32) {
        self.applied = 0;
        let for_the_slow = turns.saturating_sub(LEAST_PATIENCE);
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
        pace.settled(0);
        assert_eq!(pace.remaining(), 128);
        assert_eq!((Pace::new(1, at(0)).most(), Pace::new(0, at(0)).most()), (1, 1));
    }

    #[test]
    fn patience_with_slow_streams_is_used_up_and_comes_back_slowly() {
        let mut pace = Pace::new(256, at(0));
        for spent in 0..20 {
            assert_eq!(pace.patience(at(0)), 2_000 - 100 * spent);
            pace.settled(LEAST_PATIENCE + 100);
        }
        assert_eq!(pace.patience(at(9)), LEAST_PATIENCE);
        pace.settled(LEAST_PATIENCE);
        for part_of_a_turn in 1..300 {
            pace.patience(at(10 * part_of_a_turn + 9));
        }
        assert_eq!(pace.patience(at(3_000)), 300);
        assert_eq!(pace.patience(at(3_000)), 300);
        assert_eq!(pace.patience(at(100_000)), MOST_PATIENCE);
        pace.settled(0);
        assert_eq!(pace.patience(at(100_000)), MOST_PATIENCE);
    }
}
