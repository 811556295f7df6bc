//! How often a feed may start sessions.

use std::time::Duration;

use super::jitter::Jitter;
use crate::Moment;

const FIRST_SPACING: Duration = Duration::from_millis(250);
const WIDEST_SPACING: Duration = Duration::from_secs(30);
/// A row of 410s ends after this long without one.
const EXPIRED_ROW_ENDS: Duration = Duration::from_mins(1);

/// The spacing of a feed's session starts, and its row of 410s.
#[derive(Debug)]
pub(super) struct Pace {
    last_start: Option<Moment>,
    /// How many sessions in a row neither lived nor reached their asked timeout.
    short_lived: u32,
    last_expired: Option<Moment>,
    expired_in_a_row: u32,
}

impl Pace {
    pub(super) const fn new() -> Self {
        Self {
            last_start: None,
            short_lived: 0,
            last_expired: None,
            expired_in_a_row: 0,
        }
    }

    pub(super) fn session_starts(&mut self, now: Moment) {
        self.last_start = Some(now);
    }

    /// The session lived, or reached its asked timeout: the next one starts at once.
    pub(super) fn lived(&mut self) {
        self.short_lived = 0;
    }

    pub(super) fn widen(&mut self) {
        self.short_lived = self.short_lived.saturating_add(1);
    }

    /// No session came of a request. The delays between retries are the pace of these: were they counted as short lives,
    /// an API server that fails again soon after it came back would be waited for in silence, for minutes.
    pub(super) fn failed_to_open(&mut self) {
        self.short_lived = self.short_lived.max(1);
    }

    /// The earliest start of the next session.
    pub(super) fn earliest(&self, jitter: &mut Jitter) -> Moment {
        match (self.last_start, self.short_lived) {
            (None, _) | (_, 0) => Moment::ORIGIN,
            (Some(start), row) => start + jitter.spread(doubled(row - 1)),
        }
    }

    /// Notes a 410 and returns the delay it asks for: none for the first of a row.
    pub(super) fn expired(&mut self, now: Moment) -> Duration {
        if self
            .last_expired
            .is_some_and(|last| now.since(last) >= EXPIRED_ROW_ENDS)
        {
            self.expired_in_a_row = 0;
        }
        self.last_expired = Some(now);
        self.expired_in_a_row = self.expired_in_a_row.saturating_add(1);
        match self.expired_in_a_row {
            1 => Duration::ZERO,
            row => doubled(row - 2),
        }
    }
}

/// 250 ms doubled `times`, at most 30 s.
fn doubled(times: u32) -> Duration {
    FIRST_SPACING
        .saturating_mul(1_u32.checked_shl(times).unwrap_or(u32::MAX))
        .min(WIDEST_SPACING)
}
