//! Waiting for a condition with a deadline: the one place of this crate that reads a clock or sleeps.

use std::time::{Duration, Instant, SystemTime};

/// Asks `condition` every 50 ms until it answers `Some`, or `None` once `limit` has passed.
///
/// The condition is asked once more at the deadline, so a slow last step is not missed.
#[expect(
    clippy::disallowed_methods,
    reason = "commands poll other processes, which have no runtime to wait on; this is the poll with the deadline"
)]
pub(crate) fn until<T>(limit: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + limit;
    loop {
        let last = Instant::now() >= deadline;
        if let Some(value) = condition() {
            return Some(value);
        }
        if last {
            return None;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A clock started now; call it for the seconds since.
#[expect(
    clippy::disallowed_methods,
    reason = "how long a step of a command took is told to its user"
)]
pub(crate) fn stopwatch() -> impl Fn() -> f64 {
    let start = Instant::now();
    move || start.elapsed().as_secs_f64()
}

/// The time now, for deadlines.
#[expect(
    clippy::disallowed_methods,
    reason = "a command's own deadlines; see the top of this file"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Nanoseconds since 1970: the one clock that all processes of a machine read alike.
#[expect(
    clippy::disallowed_methods,
    reason = "stamps that one process writes and another compares"
)]
pub(crate) fn unix_nanos() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// Does nothing for so long: the pace of a slow link, or a time that is measured.
#[expect(
    clippy::disallowed_methods,
    reason = "the time itself is what is wanted, not a condition"
)]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_that_holds_is_asked_once_even_with_no_time_at_all() {
        let mut asked = 0;
        let answer = until(Duration::ZERO, || {
            asked += 1;
            Some(asked)
        });
        assert_eq!((answer, asked), (Some(1), 1));
    }

    #[test]
    fn a_condition_that_never_holds_ends_at_the_deadline() {
        assert_eq!(until(Duration::from_millis(1), || None::<()>), None);
    }
}
