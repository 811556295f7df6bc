//! The turns of a stream from stage to stage; what each waits for is in [`stage`](super::stage).

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use krm_stream_protocol::StreamError;
use krm_stream_shared::NextCycle;
use tokio::time::Instant;

use super::GatewayStream;
use super::pace::Pace;
use super::stage::{Ending, Entered, Stage};
use crate::gateway::{Host, Joined, Place, Request};

/// An API server that opens a scope and soon after refuses it, twice within this time, would do so for ever.
const REFUSED_AGAIN_WITHIN: Duration = Duration::from_secs(10);

impl GatewayStream {
    pub(super) fn enters(&mut self, request: Request) {
        let Some(place) = &self.place else {
            return;
        };
        match enter(&self.host, place, request) {
            Ok(stage) => self.stage = stage,
            Err(error) => self.end(error),
        }
    }

    pub(super) fn is_allowed(&mut self, sent: Instant) {
        let Stage::Authorizing {
            entered,
            is_resync_due,
            ..
        } = self.leave_stage()
        else {
            return;
        };
        self.timed
            .allowed(self.host.settings.reauthorization_interval, &self.host, sent);
        self.stage = Stage::join(&self.host, entered, is_resync_due);
    }

    pub(super) fn has_joined(&mut self, joined: Joined, unsent: &mut BytesMut) {
        if let Err(error) = self.stage.finds_granted(&joined.projection) {
            return self.end_anyhow(error, unsent);
        }
        let Stage::Joining {
            entered,
            is_resync_due,
            ..
        } = self.leave_stage()
        else {
            return;
        };
        self.stage = Stage::Joined {
            entered,
            is_resync_due,
            subscription: joined.subscription,
        };
    }

    pub(super) fn begin_cycle(&mut self) {
        let Stage::Joined {
            entered,
            is_resync_due,
            subscription,
        } = self.leave_stage()
        else {
            return;
        };
        let resync = is_resync_due
            .then(|| StreamError::resync("the watch of this scope was replaced; a new snapshot follows"));
        self.reader
            .begin_cycle(subscription, resync.as_ref(), self.host.now(), &mut self.outbox);
        tracing::debug!("a cycle begins");
        self.pace = Pace::Free;
        self.waiting = None;
        self.stage = Stage::Reading(entered);
    }

    pub(super) fn next_cycle(&mut self, next: NextCycle) {
        if let Some(refusal) = self.refused_again(next.refusal) {
            return self.end(refusal);
        }
        let (Stage::Reading(mut entered), Some(place)) = (self.leave_stage(), &self.place) else {
            return;
        };
        if next.needs_new_feed {
            entered.number = self.host.feeds.next_stream();
        }
        self.stage = Stage::authorize(&self.host, place, entered, !next.is_told);
    }

    /// The refusal of a feed, if the one before it was only just refused too.
    fn refused_again(&mut self, refusal: Option<StreamError>) -> Option<StreamError> {
        let refusal = refusal?;
        let now = self.host.now();
        let before = self.refused_at.replace(now)?;
        (now.since(before) < REFUSED_AGAIN_WITHIN).then_some(refusal)
    }

    /// What is done with a stage is taken out of it; until the next one is known, the stream is as good as over.
    fn leave_stage(&mut self) -> Stage {
        std::mem::replace(&mut self.stage, Stage::Ending(Ending::default()))
    }
}

/// Lets a stream in whose caller is known.
pub(super) fn enter(host: &Arc<Host>, place: &Place, request: Request) -> Result<Stage, StreamError> {
    let entered = Entered {
        request: place.enter(request)?,
        number: place.id(),
        granted: None,
    };
    Ok(Stage::authorize(host, place, entered, false))
}
