//! The response of a watch: chunks in, events out.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use krm_stream_protocol::{UpstreamError, UpstreamErrorKind, WatchEvent};

use crate::envelope::{self, Line};
use crate::lines::{Lines, NextLine};
use crate::silence::Silence;
use crate::status::Status;
use crate::transport::Body;

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
    lines: Lines,
    limit: usize,
    silence: Silence,
    form: Form,
}

/// What the body turned out to be.
#[derive(Debug)]
enum Form {
    /// Nothing has come yet.
    Unknown,
    /// One event a line.
    Lines,
    /// One document over several lines: an error that was printed for people.
    Document(BytesMut),
    /// The body has ended; its last line has been handed out.
    Ended,
}

/// The most of a document that is read: it can only be an error.
const DOCUMENT_BYTES: usize = 64 * 1024;

#[derive(Debug, thiserror::Error)]
#[error("the api server answered a watch with a document that is no Status")]
struct OddDocument;

#[derive(Debug, thiserror::Error)]
#[error("a watch line ends in the middle of its json")]
struct BrokenLine;

impl WatchResponse {
    pub(super) fn new(body: Body, limit: usize, silence: Silence) -> Self {
        Self {
            body: Box::pin(body),
            lines: Lines::new(limit),
            limit,
            silence,
            form: Form::Unknown,
        }
    }

    pub(super) fn silence(&mut self) -> &mut Silence {
        &mut self.silence
    }

    pub(super) fn poll_reading(&mut self, cx: &mut Context<'_>) -> Poll<Reading> {
        loop {
            if matches!(self.form, Form::Ended) {
                return Poll::Ready(Reading::Ended);
            }
            match self.lines.next() {
                NextLine::Line(line) => {
                    if let Some(reading) = self.line(&line) {
                        return Poll::Ready(reading);
                    }
                }
                NextLine::TooLong => {
                    return Poll::Ready(Reading::Failed(UpstreamError::new(
                        UpstreamErrorKind::LineTooLong { limit: self.limit },
                    )));
                }
                NextLine::NeedsMore => match self.body.as_mut().poll_frame(cx) {
                    Poll::Ready(Some(Ok(frame))) => {
                        if let Ok(data) = frame.into_data() {
                            self.lines.push(data);
                        }
                    }
                    // However it ended, what came before counts.
                    Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(self.finish()),
                    Poll::Pending => {
                        ready!(self.silence.poll_exceeded(cx));
                        return Poll::Ready(Reading::Silent);
                    }
                },
            }
        }
    }

    /// A whole line.
    fn line(&mut self, line: &Bytes) -> Option<Reading> {
        if let Form::Document(_) = self.form {
            self.silence.line();
            return self.document_line(line);
        }
        match envelope::decode(line) {
            Line::Blank => None,
            Line::Event(event) => {
                self.silence.line();
                self.form = Form::Lines;
                Some(Reading::Event(event))
            }
            Line::Error(status) => Some(Reading::Refused(status)),
            Line::Unreadable(cause) => Some(unreadable(cause)),
            Line::Incomplete if matches!(self.form, Form::Unknown) => {
                self.silence.line();
                self.form = Form::Document(BytesMut::new());
                self.document_line(line)
            }
            Line::Incomplete => Some(unreadable(BrokenLine)),
        }
    }

    /// A line of a document that is complete when it is valid.
    fn document_line(&mut self, line: &[u8]) -> Option<Reading> {
        let Form::Document(text) = &mut self.form else {
            return None;
        };
        if text.len() + line.len() > DOCUMENT_BYTES {
            return Some(unreadable(OddDocument));
        }
        text.extend_from_slice(line);
        text.extend_from_slice(b"\n");
        if !line.trim_ascii_end().ends_with(b"}") {
            return None;
        }
        match envelope::decode(&Bytes::copy_from_slice(text)) {
            Line::Error(status) => Some(Reading::Refused(status)),
            Line::Incomplete => None,
            Line::Blank | Line::Event(_) | Line::Unreadable(_) => Some(unreadable(OddDocument)),
        }
    }

    /// The body has ended. Its last line counts if it is whole; half a line is dropped, and what could never have
    /// become a line is an error.
    fn finish(&mut self) -> Reading {
        let rest = self.lines.finish();
        let document = self.document_line(&rest);
        let form = std::mem::replace(&mut self.form, Form::Ended);
        match (form, document) {
            (_, Some(reading)) => reading,
            (Form::Document(_) | Form::Ended, None) => Reading::Ended,
            (Form::Unknown | Form::Lines, None) => match envelope::decode(&rest) {
                Line::Event(event) => Reading::Event(event),
                Line::Error(status) => Reading::Refused(status),
                Line::Unreadable(cause) => unreadable(cause),
                Line::Blank | Line::Incomplete => Reading::Ended,
            },
        }
    }
}

impl fmt::Debug for WatchResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchResponse")
            .field("limit", &self.limit)
            .field("silence", &self.silence)
            .finish_non_exhaustive()
    }
}

fn unreadable(cause: impl std::error::Error + Send + Sync + 'static) -> Reading {
    Reading::Failed(UpstreamError::new(UpstreamErrorKind::Unreadable).with_cause(cause))
}
