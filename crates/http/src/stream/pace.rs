//! `delivery_interval`: a stream that has all there is rests before it looks for more.

use std::time::Duration;

use tokio::time::Instant;

/// Whether a stream may look for more.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pace {
    /// It may. Something goes out: `Sending`.
    Free,
    /// It sends since then. All is sent: `Resting`, or `Free` if that took long enough.
    Sending { since: Instant },
    /// It has all there was, and is not woken by changes. Over: `Free`.
    Resting { until: Instant },
}

impl Pace {
    /// Something goes out.
    pub(super) fn sends(&mut self, interval: Duration, now: Instant) {
        match self {
            Self::Free if !interval.is_zero() => *self = Self::Sending { since: now },
            Self::Free | Self::Sending { .. } | Self::Resting { .. } => {}
        }
    }

    /// Nothing is left to send. A stream without a complete snapshot does not rest.
    pub(super) fn has_sent_all(
        &mut self,
        interval: Duration,
        now: Instant,
        is_at_head: impl FnOnce() -> bool,
    ) {
        match self {
            Self::Sending { since } => {
                let until = *since + interval;
                *self = if until > now && is_at_head() {
                    Self::Resting { until }
                } else {
                    Self::Free
                };
            }
            Self::Free | Self::Resting { .. } => {}
        }
    }

    /// Until when it rests, if it does.
    pub(super) fn rests_until(&mut self, now: Instant) -> Option<Instant> {
        match *self {
            Self::Resting { until } if until > now => Some(until),
            Self::Resting { .. } => {
                *self = Self::Free;
                None
            }
            Self::Free | Self::Sending { .. } => None,
        }
    }
}
