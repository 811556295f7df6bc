//! `delivery_interval`: a stream that has all there is rests before it looks for more.
//!
//! Deletions do not merge, and a stream may owe only so many. So the feed rouses those that rest before it applies more: the
//! stream sends at once what there is, and rests anew.

use std::time::Duration;

use tokio::time::Instant;

/// Whether a stream may look for more.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pace {
    /// It may. Something goes out: `Sending`.
    Free,
    /// It sends since then. All is sent: `Resting`, or `Free` if that took long enough.
    Sending { since: Instant },
    /// It has all there was, and is not woken by changes. Over: `Free`. Roused, with something to send: `Sending`.
    Resting { until: Instant },
}

impl Pace {
    /// Something goes out.
    pub(super) fn sends(&mut self, interval: Duration, now: Instant) {
        match self {
            Self::Free | Self::Resting { .. } if !interval.is_zero() => *self = Self::Sending { since: now },
            Self::Free | Self::Resting { .. } | Self::Sending { .. } => {}
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

    /// Whether it rests. One whose time is over is free.
    pub(super) fn rests(&mut self, now: Instant) -> bool {
        match *self {
            Self::Resting { until } if until > now => true,
            Self::Resting { .. } => {
                *self = Self::Free;
                false
            }
            Self::Free | Self::Sending { .. } => false,
        }
    }

    /// When its rest is over, if it rests. That may be past, as long as nobody asked whether it [rests](Self::rests).
    pub(super) fn rests_until(&self) -> Option<Instant> {
        match *self {
            Self::Resting { until } => Some(until),
            Self::Free | Self::Sending { .. } => None,
        }
    }
}
