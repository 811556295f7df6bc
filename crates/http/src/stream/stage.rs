//! Where a stream is between its request and its end.

use std::sync::Arc;

use bytes::Bytes;
use krm_stream_protocol::{BoxFuture, ProjectionName, StreamError};
use krm_stream_shared::Subscription;
use tokio::time::Instant;

use crate::gateway::{Host, Joined, Place, Request};

pub(super) enum Stage {
    /// Who is calling, and for what? Known: `Authorizing`. Refused: `Ending`.
    Resolving(BoxFuture<'static, Result<Request, StreamError>>),
    /// A cycle begins: may the caller see the scope? Allowed: `Joining`. Refused: `Ending`.
    Authorizing {
        entered: Entered,
        /// Whether the consumer is still to be told that a new cycle begins.
        is_resync_due: bool,
        check: BoxFuture<'static, Result<Instant, StreamError>>,
    },
    /// The further steps of a cycle. Joined: `Joined`. Refused: `Ending`.
    Joining {
        entered: Entered,
        is_resync_due: bool,
        steps: BoxFuture<'static, Result<Joined, StreamError>>,
    },
    /// It has its place at a feed. As soon as no check holds it: `Reading`.
    Joined {
        entered: Entered,
        is_resync_due: bool,
        subscription: Subscription,
    },
    /// In a cycle. Over: `Authorizing`. The feed or the stream ends: `Ending`.
    Reading(Entered),
    /// What is in the outbox is the last of it.
    Ending(Ending),
}

/// A request that was let in.
pub(super) struct Entered {
    pub(super) request: Arc<Request>,
    /// The number that an isolated stream's feed has.
    pub(super) number: u64,
    /// The projection of this cycle, once a check or the place at a feed has settled it.
    pub(super) granted: Option<ProjectionName>,
}

/// How a stream ends.
#[derive(Default)]
pub(super) struct Ending {
    /// With this error. Boxed, since most streams are not ending; none only while the next stage is made.
    pub(super) error: Option<Box<StreamError>>,
    /// The last event, where it is not in the outbox.
    pub(super) last: Option<Bytes>,
}

impl Stage {
    /// Begins a cycle.
    pub(super) fn authorize(host: &Arc<Host>, place: &Place, entered: Entered, is_resync_due: bool) -> Self {
        let check =
            Arc::clone(host).authorize_cycle(Arc::clone(place.member()), Arc::clone(&entered.request));
        Self::Authorizing {
            entered,
            is_resync_due,
            check: Box::pin(check),
        }
    }

    /// Takes the further steps of a cycle. What projection the one before had does not matter any more.
    pub(super) fn join(host: &Arc<Host>, mut entered: Entered, is_resync_due: bool) -> Self {
        entered.granted = None;
        let steps = Arc::clone(host).join_cycle(Arc::clone(&entered.request), entered.number);
        Self::Joining {
            entered,
            is_resync_due,
            steps: Box::pin(steps),
        }
    }

    pub(super) const fn is_ending(&self) -> bool {
        match self {
            Self::Ending(_) => true,
            Self::Resolving(_)
            | Self::Authorizing { .. }
            | Self::Joining { .. }
            | Self::Joined { .. }
            | Self::Reading(_) => false,
        }
    }

    /// The stream's caller, once its right is found out: from then on it is checked in between.
    pub(super) const fn checked(&self) -> Option<&Entered> {
        match self {
            Self::Joining { entered, .. } | Self::Joined { entered, .. } | Self::Reading(entered) => {
                Some(entered)
            }
            Self::Resolving(_) | Self::Authorizing { .. } | Self::Ending(_) => None,
        }
    }

    /// This projection was found to be granted: by a check, or in joining the feed, which may have asked before the check or
    /// after it.
    ///
    /// # Errors
    /// What the stream ends with, where another one was found in this cycle.
    pub(super) fn finds_granted(&mut self, found: &ProjectionName) -> Result<(), StreamError> {
        let granted = match self {
            Self::Joining { entered, .. } | Self::Joined { entered, .. } | Self::Reading(entered) => {
                entered.granted.get_or_insert_with(|| found.clone())
            }
            Self::Resolving(_) | Self::Authorizing { .. } | Self::Ending(_) => return Ok(()),
        };
        if granted == found {
            return Ok(());
        }
        Err(StreamError::internal_passing(
            "another view of this is granted to you now; connect again",
            None,
        ))
    }
}
