//! The response of a watch: its body as it arrives, and how long it may be silent.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::Body as _;
use krm_stream_protocol::{UpstreamError, WatchEvent};

use crate::silence::Silence;
use crate::status::Status;
use crate::transport::Body;
use crate::watch_body::{Decoded, WatchDecoder};

/// What a response gave.
#[derive(Debug)]
pub(super) enum Reading {
    Event(WatchEvent),
    /// An `ERROR` event, or a `Status` in place of events.
    Refused(Status),
    /// It cannot be read.
    Failed(UpstreamError),
    /// It has been silent for too long.
    Silent,
    /// It has ended.
    Ended,
}

/// A watch being read. After anything but an event it is of no more use.
pub(super) struct WatchResponse {
    body: Pin<Box<Body>>,
    decoder: WatchDecoder,
    silence: Silence,
}

impl WatchResponse {
    pub(super) fn new(body: Body, limit: usize, silence: Silence) -> Self {
        Self {
            body: Box::pin(body),
            decoder: WatchDecoder::new(limit),
            silence,
        }
    }

    pub(super) fn silence(&mut self) -> &mut Silence {
        &mut self.silence
    }

    pub(super) fn poll_reading(&mut self, cx: &mut Context<'_>) -> Poll<Reading> {
        loop {
            let decoded = match self.decoder.next() {
                Decoded::NeedsMore => match self.body.as_mut().poll_frame(cx) {
                    Poll::Ready(Some(Ok(frame))) => {
                        if let Ok(data) = frame.into_data() {
                            self.decoder.push(data);
                        }
                        continue;
                    }
                    // However it ended, what came before counts.
                    Poll::Ready(Some(Err(_)) | None) => self.decoder.finish(),
                    Poll::Pending => {
                        ready!(self.silence.poll_exceeded(cx));
                        return Poll::Ready(Reading::Silent);
                    }
                },
                decoded => decoded,
            };
            return Poll::Ready(match decoded {
                Decoded::Event(event) => {
                    self.silence.line();
                    Reading::Event(event)
                }
                Decoded::Part => {
                    self.silence.line();
                    continue;
                }
                Decoded::NeedsMore => continue,
                Decoded::Refused(status) => Reading::Refused(status),
                Decoded::Failed(error) => Reading::Failed(error),
                Decoded::Ended => Reading::Ended,
            });
        }
    }
}

impl fmt::Debug for WatchResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchResponse")
            .field("silence", &self.silence)
            .finish_non_exhaustive()
    }
}
