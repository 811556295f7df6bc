//! What happens to a stream besides its own steps: news from outside, and checks of a stream that is open.

use std::task::{Context, Poll};

use bytes::BytesMut;
use krm_stream_protocol::{ProjectionName, StreamError};
use tokio::time::Instant;

use super::GatewayStream;
use super::checking::{Found, Timed};
use super::stage::{Ending, Stage};
use crate::gateway::{News, Place};

impl GatewayStream {
    /// Heeds what the stream is told from outside, begins a check that is due, and hears the answer of one.
    pub(crate) fn attend(&mut self, cx: &mut Context<'_>, unsent: &mut BytesMut) {
        match self.place.as_ref().map_or(News::None, Place::news) {
            News::None => {}
            News::Recheck(trigger) => {
                self.waiting = None;
                self.check(trigger, unsent);
            }
            News::End { error, is_in_doubt } => {
                self.waiting = None;
                self.is_told_to_end(error, is_in_doubt, unsent);
            }
        }
        self.check_on_time(unsent);
        while let Poll::Ready(found) = self.standing.poll_found(cx) {
            match found {
                Found::Allowed(granted) => self.is_allowed_again(&granted, unsent),
                Found::AllowedTooLate => self.check(Instant::now(), unsent),
                Found::Refused(error) => self.cut_off(error, unsent),
            }
        }
    }

    fn is_allowed_again(&mut self, granted: &ProjectionName, unsent: &mut BytesMut) {
        match self.stage.finds_granted(granted) {
            Ok(()) => self
                .timed
                .answered(self.host.settings.reauthorization_interval, Instant::now()),
            Err(error) => self.cut_off(error, unsent),
        }
    }

    /// There is a reason to check the stream, since `trigger`. One that is still to be let in, or begins a cycle, looks for
    /// rechecks by itself.
    fn check(&mut self, trigger: Instant, unsent: &mut BytesMut) {
        if let Some(entered) = self.stage.checked() {
            self.standing.begin(&self.host, &entered.request, trigger);
        } else {
            self.end_without_check(unsent);
        }
    }

    fn is_told_to_end(&mut self, error: StreamError, is_in_doubt: bool, unsent: &mut BytesMut) {
        if !is_in_doubt {
            self.end_anyhow(error, unsent);
        } else if self.stage.is_ending() {
            self.end_without_check(unsent);
        } else {
            self.cut_off(error, unsent);
        }
    }

    /// A stream that ends anyway is not checked: where there is a reason to, what was not handed out is dropped.
    fn end_without_check(&mut self, unsent: &mut BytesMut) {
        if let Stage::Ending(Ending {
            error: Some(error),
            last: None,
        }) = &self.stage
        {
            let error = (**error).clone();
            self.cut_off(error, unsent);
        }
    }

    fn check_on_time(&mut self, unsent: &mut BytesMut) {
        if self.is_held() || matches!(self.timed, Timed::Never) {
            return;
        }
        let now = Instant::now();
        if self.timed.is_due(now) && (self.stage.checked().is_some() || self.stage.is_ending()) {
            self.waiting = None;
            self.timed
                .begins(self.host.settings.reauthorization_interval, now);
            self.check(now, unsent);
        }
    }
}
