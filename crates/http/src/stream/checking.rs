//! Checks of a stream that is open: on time, and at a recheck.

use std::task::{Context, Poll};
use std::time::Duration;

use krm_stream_protocol::{BoxFuture, ProjectionName, StreamError};
use tokio::time::Instant;

use std::sync::Arc;

use crate::gateway::{Host, Request};

/// Whether the caller of an open stream is known to be allowed.
pub(super) enum Standing {
    /// As far as is known. A reason to ask: `Checking`.
    Good,
    /// It is being found out: nothing passes. Allowed: `Good`. Otherwise the stream ends.
    Checking {
        /// Until when the earliest reason that is still open must be answered.
        deadline: Instant,
        /// The projection that is granted now.
        answer: BoxFuture<'static, Result<ProjectionName, StreamError>>,
    },
}

/// What a check found.
pub(super) enum Found {
    /// The caller is allowed, with this projection.
    Allowed(ProjectionName),
    /// The caller was allowed, and that came to be heard only after the time that the answer had: as nobody polls a stream whose
    /// reader takes nothing. It is as old as that, and says nothing of now.
    AllowedTooLate,
    /// The stream ends with this.
    Refused(StreamError),
}

/// When a stream is checked for no other reason than that time has passed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Timed {
    /// The host does not want that, or the first check of all is not answered.
    Never,
    At(Instant),
}

impl Standing {
    pub(super) const fn is_checking(&self) -> bool {
        match self {
            Self::Good => false,
            Self::Checking { .. } => true,
        }
    }

    /// There is a reason to ask since `trigger`. A check that was under way no longer counts.
    pub(super) fn begin(&mut self, host: &Arc<Host>, request: &Arc<Request>, trigger: Instant) {
        let by = trigger + host.settings.check_timeout;
        let deadline = match self {
            Self::Good => by,
            Self::Checking { deadline, .. } => by.min(*deadline),
        };
        let answer = Arc::clone(host).check_again(Arc::clone(request), trigger, deadline);
        *self = Self::Checking {
            deadline,
            answer: Box::pin(answer),
        };
    }

    /// What the check found, if that has just come.
    pub(super) fn poll_found(&mut self, cx: &mut Context<'_>) -> Poll<Found> {
        match self {
            Self::Good => Poll::Pending,
            Self::Checking { deadline, answer } => {
                let found = match std::task::ready!(answer.as_mut().poll(cx)) {
                    Ok(_) if *deadline < Instant::now() => Found::AllowedTooLate,
                    Ok(granted) => Found::Allowed(granted),
                    Err(error) => Found::Refused(error),
                };
                *self = Self::Good;
                Poll::Ready(found)
            }
        }
    }
}

impl Timed {
    pub(super) fn is_due(self, now: Instant) -> bool {
        match self {
            Self::Never => false,
            Self::At(at) => at <= now,
        }
    }

    /// A check at a cycle's begin was sent then, and allowed. The first of a stream decides when in the interval its timed
    /// checks are, so that those of many streams are spread over it.
    pub(super) fn allowed(&mut self, interval: Option<Duration>, host: &Host, sent: Instant) {
        let Some(interval) = interval else {
            return;
        };
        let is_settled = match self {
            Self::Never => false,
            Self::At(at) => *at > Instant::now(),
        };
        if !is_settled {
            *self = Self::At(sent + host.streams.jitter().within(interval));
        }
    }

    /// A timed check begins.
    pub(super) fn begins(&mut self, interval: Option<Duration>, now: Instant) {
        *self = interval.map_or(Self::Never, |interval| Self::At(now + interval));
    }

    /// A check ended well. Where checks take longer than the interval, something is delivered in between all the same.
    pub(super) fn answered(&mut self, interval: Option<Duration>, now: Instant) {
        if let (Self::At(at), Some(interval)) = (&mut *self, interval) {
            *at = (*at).max(now + interval / 2);
        }
    }
}
