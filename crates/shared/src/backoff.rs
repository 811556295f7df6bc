//! Who may not try again yet: the backoff after a failed opening or repeated early ends.
//!
//! # Policy
//! - A failure puts its key aside for 1 s, doubling to 30 s; a longer hint of the API server is honoured up to 30 s.
//! - What was tried before a key was put aside and fails after it (another projection of the scope, another isolated stream
//!   of the caller) is the same failure: it may lengthen the wait by its hint, and doubles nothing.
//! - Until then streams of that key are refused with the time that is left; nobody asks the API server.
//! - It is kept apart from the feed, which is gone by then, and bounded in number: past the bound the entry that runs
//!   out first is forgotten, so that a flood of bad scopes costs no memory.
//! - An entry is forgotten 60 s after it ran out: an API server that fails again sooner is still the same trouble. Terminal refusals never put anything aside.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use krm_stream_protocol::Moment;

const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(30);
const FORGOTTEN_AFTER: Duration = Duration::from_mins(1);

/// Keys that are put aside, each with when it may be tried again.
#[derive(Debug)]
pub(crate) struct Backoff<K> {
    entries: HashMap<K, Entry>,
    capacity: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    delay: Duration,
    until: Moment,
}

impl<K: Eq + Hash + Clone> Backoff<K> {
    /// Remembers at most `capacity` keys, at least one.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            entries: HashMap::new(),
            capacity: capacity.max(1),
        }
    }

    /// How long `key` still has to wait, if at all.
    pub(crate) fn remaining(&self, key: &K, now: Moment) -> Option<Duration> {
        let remaining = self.entries.get(key)?.until.since(now);
        (!remaining.is_zero()).then_some(remaining)
    }

    /// `key` failed: puts it aside and returns for how long.
    pub(crate) fn failed(&mut self, key: &K, now: Moment, hint: Option<Duration>) -> Duration {
        self.forget_old(now);
        let hint = hint.unwrap_or_default().min(LONGEST_DELAY);
        let (delay, wait) = match self.entries.get(key) {
            Some(entry) if now < entry.until => (entry.delay, entry.until.since(now)),
            Some(entry) => {
                let delay = (entry.delay * 2).min(LONGEST_DELAY);
                (delay, delay)
            }
            None => (FIRST_DELAY, FIRST_DELAY),
        };
        if !self.entries.contains_key(key) && self.entries.len() >= self.capacity {
            self.forget_soonest();
        }
        let wait = wait.max(hint);
        self.entries.insert(
            key.clone(),
            Entry {
                delay,
                until: now + wait,
            },
        );
        wait
    }

    fn forget_old(&mut self, now: Moment) {
        self.entries
            .retain(|_, entry| now.since(entry.until) < FORGOTTEN_AFTER);
    }

    fn forget_soonest(&mut self) {
        let soonest = self
            .entries
            .iter()
            .min_by_key(|(_, entry)| entry.until)
            .map(|(key, _)| key.clone());
        if let Some(key) = soonest {
            self.entries.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Moment = Moment::ORIGIN;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn failures_in_a_row_double_up_to_thirty_seconds() {
        let mut backoff = Backoff::new(8);
        let mut now = START;
        for expected in [1, 2, 4, 8, 16, 30, 30] {
            assert_eq!(backoff.failed(&"k", now, None), secs(expected));
            now = now + secs(expected);
            assert_eq!(backoff.remaining(&"k", now), None);
        }
        assert_eq!(backoff.failed(&"k", now, None), secs(30));
        assert_eq!(backoff.remaining(&"k", now + secs(29)), Some(secs(1)));
        assert_eq!(backoff.remaining(&"other", now), None);
    }

    #[test]
    fn attempts_that_fail_together_are_one_failure() {
        let mut backoff = Backoff::new(8);
        let later = START + Duration::from_millis(100);
        assert_eq!(backoff.failed(&"k", START, None), secs(1));
        for _ in 0..6 {
            assert_eq!(backoff.failed(&"k", later, None), Duration::from_millis(900));
        }
        assert_eq!(
            backoff.failed(&"k", later, Some(secs(7))),
            secs(7),
            "a longer hint"
        );
        assert_eq!(
            backoff.failed(&"k", later + secs(7), None),
            secs(2),
            "the next attempt"
        );
    }

    #[test]
    fn a_longer_hint_is_honoured_up_to_its_cap() {
        let mut backoff = Backoff::new(8);
        assert_eq!(backoff.failed(&1, START, Some(secs(7))), secs(7));
        assert_eq!(backoff.failed(&2, START, Some(secs(999_999))), secs(30));
        assert_eq!(backoff.failed(&3, START, Some(Duration::ZERO)), secs(1));
    }

    #[test]
    fn a_minute_of_quiet_forgets_it() {
        let mut backoff = Backoff::new(8);
        assert_eq!(backoff.failed(&1, START, None), secs(1));
        assert_eq!(backoff.failed(&1, START + secs(2), None), secs(2));
        assert_eq!(
            backoff.failed(&1, START + secs(64), None),
            secs(1),
            "sixty seconds after it ran out"
        );
    }

    #[test]
    fn a_flood_of_keys_stays_within_the_bound() {
        let mut backoff = Backoff::new(3);
        for key in 0..100 {
            backoff.failed(&key, START + Duration::from_millis(key), None);
        }
        assert_eq!(backoff.entries.len(), 3);
        assert!(
            backoff
                .remaining(&99, START + Duration::from_millis(100))
                .is_some()
        );
    }
}
