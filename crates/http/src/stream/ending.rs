//! The end of a stream: after what was written, or in front of it.

use bytes::BytesMut;
use krm_stream_protocol::StreamError;

use super::checking::Standing;
use super::stage::{Ending, Stage};
use super::{GatewayStream, cut};

impl GatewayStream {
    /// Ends after what was written.
    pub(super) fn end(&mut self, error: StreamError) {
        tracing::debug!(code = error.code().as_str(), "the stream ends");
        self.reader.end(&error, &mut self.outbox);
        self.stage = Stage::Ending(Ending {
            error: Some(Box::new(error)),
            last: None,
        });
    }

    /// Ends after what was written, unless a check holds that back.
    pub(super) fn end_anyhow(&mut self, error: StreamError, unsent: &mut BytesMut) {
        if self.is_held() {
            self.cut_off(error, unsent);
        } else if !self.stage.is_ending() {
            self.end(error);
        }
    }

    /// Ends in the place of what was not handed out. Where an event was handed out in part, nothing more comes: the consumer
    /// drops what it has of it, comes back, and is refused then.
    pub(super) fn cut_off(&mut self, error: StreamError, unsent: &mut BytesMut) {
        self.standing = Standing::Good;
        let rest = std::mem::take(&mut self.rest);
        let behind = cut::discard(&mut self.outbox);
        let written = if rest.is_empty() { behind } else { Some(rest) };
        let first = match (cut::after_heartbeats(unsent), &written) {
            ([], None) if self.is_between_events => None,
            ([], Some(first)) if self.is_between_events => Some(&**first),
            ([], _) => Some(&[][..]),
            (unsent, _) => Some(unsent),
        };
        let place = first.map_or(cut::Place::Next, cut::Place::of_first);
        unsent.clear();
        if !self.stage.is_ending() {
            tracing::debug!(code = error.code().as_str(), "the stream is cut off");
            self.reader.end(&error, &mut self.outbox);
        }
        let last = match place {
            cut::Place::Next => None,
            cut::Place::Number(seq) => {
                cut::discard(&mut self.outbox);
                Some(cut::last_event(&error, seq))
            }
            cut::Place::Nowhere => {
                cut::discard(&mut self.outbox);
                None
            }
        };
        self.stage = Stage::Ending(Ending {
            error: Some(Box::new(error)),
            last,
        });
    }
}
