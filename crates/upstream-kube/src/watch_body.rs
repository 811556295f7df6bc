//! The body of a watch: chunks in, events out. No transport and no clock is known here.

use bytes::{Bytes, BytesMut};
use krm_stream_protocol::{SessionEnd, UpstreamError, UpstreamErrorKind, WatchEvent};

use crate::envelope::{self, Line};
use crate::lines::{Lines, NextLine};
use crate::status::Status;

/// Decodes the body of a watch that has arrived, in whatever pieces: its events, and how a session on it ends. The same
/// decoder reads the bodies of live sessions; this is for recordings and tests, and says nothing of scopes.
///
/// `max_line_bytes` is the longest line that is taken, in bytes without its LF.
///
/// The end is [`SessionEnd::Closed`] where the body just stops, half a line included; [`SessionEnd::Expired`] and
/// [`SessionEnd::Failed`] where the server says so, or where a line cannot be read or is too long. Nothing that comes
/// after such an end is looked at.
///
/// ```
/// use krm_stream_protocol::{SessionEnd, WatchEvent};
/// use krm_stream_upstream_kube::decode_watch;
///
/// let body = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}
/// {"type":"ERROR","object":{"kind":"Status","code":410}}
/// "#;
/// let (events, end) = decode_watch([body.into()], 1024);
/// assert!(matches!(&events[..], [WatchEvent::Bookmark { .. }]));
/// assert!(matches!(end, SessionEnd::Expired));
/// ```
pub fn decode_watch(
    body: impl IntoIterator<Item = Bytes>,
    max_line_bytes: usize,
) -> (Vec<WatchEvent>, SessionEnd) {
    let mut decoder = WatchDecoder::new(max_line_bytes);
    let mut chunks = body.into_iter();
    let mut events = Vec::new();
    loop {
        let decoded = match decoder.next() {
            Decoded::NeedsMore => match chunks.next() {
                Some(chunk) => {
                    decoder.push(chunk);
                    continue;
                }
                None => decoder.finish(),
            },
            decoded => decoded,
        };
        match decoded {
            Decoded::Event(event) => events.push(event),
            Decoded::Part | Decoded::NeedsMore => {}
            Decoded::Refused(status) => return (events, status.classify(None, None).into()),
            Decoded::Failed(error) => return (events, SessionEnd::Failed(error)),
            Decoded::Ended => return (events, SessionEnd::Closed),
        }
    }
}

/// Decodes one body. After anything but an event or a part it is of no more use.
#[derive(Debug)]
pub(crate) struct WatchDecoder {
    lines: Lines,
    limit: usize,
    form: Form,
}

/// What the body gave.
#[derive(Debug)]
pub(crate) enum Decoded {
    Event(WatchEvent),
    /// A line that alone means nothing yet.
    Part,
    /// An `ERROR` event, or a `Status` in place of events.
    Refused(Status),
    /// It cannot be read.
    Failed(UpstreamError),
    /// Another chunk is needed, or the end of the body.
    NeedsMore,
    /// It has ended.
    Ended,
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

impl WatchDecoder {
    /// For lines of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            lines: Lines::new(limit),
            limit,
            form: Form::Unknown,
        }
    }

    /// Adds a chunk. Only after [`Decoded::NeedsMore`].
    pub(crate) fn push(&mut self, chunk: Bytes) {
        self.lines.push(chunk);
    }

    /// What the next line is.
    pub(crate) fn next(&mut self) -> Decoded {
        loop {
            if matches!(self.form, Form::Ended) {
                return Decoded::Ended;
            }
            match self.lines.next() {
                NextLine::Line(line) => {
                    if let Some(decoded) = self.line(&line) {
                        return decoded;
                    }
                }
                NextLine::TooLong => {
                    return Decoded::Failed(UpstreamError::new(UpstreamErrorKind::LineTooLong {
                        limit: self.limit,
                    }));
                }
                NextLine::NeedsMore => return Decoded::NeedsMore,
            }
        }
    }

    /// The body has ended. Its last line counts if it is whole; half a line is dropped, and what could never have
    /// become a line is an error. Only after [`Decoded::NeedsMore`].
    pub(crate) fn finish(&mut self) -> Decoded {
        let rest = self.lines.finish();
        let form = std::mem::replace(&mut self.form, Form::Ended);
        match form {
            Form::Ended => Decoded::Ended,
            Form::Document(text) => match document_line(text, &rest) {
                Document::Begun(_) => Decoded::Ended,
                Document::Complete(decoded) => decoded,
            },
            Form::Unknown | Form::Lines => match envelope::decode(&rest) {
                Line::Event(event) => Decoded::Event(event),
                Line::Error(status) => Decoded::Refused(status),
                Line::Unreadable(cause) => unreadable(cause),
                Line::Blank | Line::Incomplete => Decoded::Ended,
            },
        }
    }

    /// A whole line; `None` where it is blank.
    fn line(&mut self, line: &Bytes) -> Option<Decoded> {
        if let Form::Document(text) = &mut self.form {
            let text = std::mem::take(text);
            return Some(self.document_line(text, line));
        }
        match envelope::decode(line) {
            Line::Blank => None,
            Line::Event(event) => {
                self.form = Form::Lines;
                Some(Decoded::Event(event))
            }
            Line::Error(status) => Some(Decoded::Refused(status)),
            Line::Unreadable(cause) => Some(unreadable(cause)),
            Line::Incomplete => Some(match self.form {
                Form::Unknown => self.document_line(BytesMut::new(), line),
                Form::Lines | Form::Document(_) | Form::Ended => unreadable(BrokenLine),
            }),
        }
    }

    fn document_line(&mut self, text: BytesMut, line: &[u8]) -> Decoded {
        match document_line(text, line) {
            Document::Begun(text) => {
                self.form = Form::Document(text);
                Decoded::Part
            }
            Document::Complete(decoded) => decoded,
        }
    }
}

/// A document after one more line.
enum Document {
    Begun(BytesMut),
    Complete(Decoded),
}

/// Adds a line to a document, which is complete when it is valid.
fn document_line(mut text: BytesMut, line: &[u8]) -> Document {
    if text.len() + line.len() > DOCUMENT_BYTES {
        return Document::Complete(unreadable(OddDocument));
    }
    text.extend_from_slice(line);
    text.extend_from_slice(b"\n");
    if !line.trim_ascii_end().ends_with(b"}") {
        return Document::Begun(text);
    }
    match envelope::decode(&Bytes::copy_from_slice(&text)) {
        Line::Error(status) => Document::Complete(Decoded::Refused(status)),
        Line::Incomplete => Document::Begun(text),
        Line::Blank | Line::Event(_) | Line::Unreadable(_) => Document::Complete(unreadable(OddDocument)),
    }
}

fn unreadable(cause: impl std::error::Error + Send + Sync + 'static) -> Decoded {
    Decoded::Failed(UpstreamError::new(UpstreamErrorKind::Unreadable).with_cause(cause))
}
