//! The body of a watch: chunks in, events out. No transport and no clock is known here.

use std::fmt;

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
        let step = match decoder.next() {
            Decoded::NeedsMore => match chunks.next() {
                Some(chunk) => {
                    decoder.push(chunk);
                    continue;
                }
                None => decoder.finish(),
            },
            step => step,
        };
        match step {
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
    Document(Document),
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
            Form::Document(mut document) => document.last_line(&rest).unwrap_or(Decoded::Ended),
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
        if let Form::Document(document) = &mut self.form {
            return Some(document.line(line).unwrap_or(Decoded::Part));
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
                Form::Unknown => {
                    let mut document = Document::default();
                    let decoded = document.line(line).unwrap_or(Decoded::Part);
                    self.form = Form::Document(document);
                    decoded
                }
                Form::Lines | Form::Document(_) | Form::Ended => unreadable(BrokenLine),
            }),
        }
    }
}

/// One document over several lines, as far as it has come.
#[derive(Default)]
struct Document {
    text: BytesMut,
    /// How many objects and arrays are open. A document is decoded when none is: to try at each line that might be the last
    /// would take time quadratic in the lines.
    depth: usize,
}

impl Document {
    /// Adds what stood after the last line end. Within a string it was cut off, which is nothing that was said.
    fn last_line(&mut self, rest: &[u8]) -> Option<Decoded> {
        depth_after(self.depth, rest)?;
        self.line(rest)
    }

    /// Adds a line. `None` as long as more is to come.
    fn line(&mut self, line: &[u8]) -> Option<Decoded> {
        if self.text.len() + line.len() > DOCUMENT_BYTES {
            return Some(unreadable(OddDocument));
        }
        self.text.extend_from_slice(line);
        self.text.extend_from_slice(b"\n");
        let Some(depth) = depth_after(self.depth, line) else {
            return Some(unreadable(OddDocument));
        };
        self.depth = depth;
        if self.depth > 0 || !line.trim_ascii_end().ends_with(b"}") {
            return None;
        }
        match envelope::decode(&Bytes::copy_from_slice(&self.text)) {
            Line::Error(status) => Some(Decoded::Refused(status)),
            Line::Incomplete => None,
            Line::Blank | Line::Event(_) | Line::Unreadable(_) => Some(unreadable(OddDocument)),
        }
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document")
            .field("bytes", &self.text.len())
            .finish_non_exhaustive()
    }
}

/// How many objects and arrays are open after `line`, if `depth` were before it; `None` if a string is, for none goes over
/// a line end: nothing that follows could complete it.
fn depth_after(mut depth: usize, line: &[u8]) -> Option<usize> {
    let (mut in_string, mut is_escaped) = (false, false);
    for byte in line {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    (!in_string).then_some(depth)
}

fn unreadable(cause: impl std::error::Error + Send + Sync + 'static) -> Decoded {
    Decoded::Failed(UpstreamError::new(UpstreamErrorKind::Unreadable).with_cause(cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_complete_at_the_brace_that_closes_it_and_at_no_other() {
        let text = concat!(
            "{\n    \"kind\": \"Status\",\n    \"details\": {\n        \"name\": \"a \\\"brace\\\" }\",\n        \"kind\": \"x\"\n    },\n",
            "    \"message\": \"no } and no { counts here \\\\\",\n    \"code\": 410\n}\n",
        );
        let mut decoder = WatchDecoder::new(1024);
        decoder.push(Bytes::from_static(text.as_bytes()));
        let lines = text.lines().count();
        for _ in 1..lines {
            assert!(matches!(decoder.next(), Decoded::Part));
        }
        assert!(matches!(decoder.next(), Decoded::Refused(status) if status.code == Some(410)));
    }

    #[test]
    fn a_document_of_many_closing_braces_takes_no_quadratic_time() {
        // 16,000 lines that each end with a brace: decoded at each, this is half a gigabyte of JSON.
        let text = format!("{{\"a\":[\n{{}}\n{}", ",{}\n".repeat(16_000));
        let began = tokio::time::Instant::now();
        let (events, end) = decode_watch([text.into()], 1024);
        assert!(events.is_empty() && matches!(end, SessionEnd::Closed));
        assert!(began.elapsed().as_millis() < 1000, "{:?}", began.elapsed());
    }

    #[test]
    fn debug_shows_no_content() {
        let mut decoder = WatchDecoder::new(1024);
        decoder.push(Bytes::from_static(b"{\"canary\":\n[\"canary"));
        assert!(matches!(decoder.next(), Decoded::Part));
        assert!(!format!("{decoder:?}").contains("canary"));
        assert!(matches!(decoder.next(), Decoded::NeedsMore));
        assert!(!format!("{decoder:?}").contains("canary"));
        let list = Bytes::from_static(br#"{"metadata":{},"items":[{"canary":"canary"}]}"#);
        assert!(!format!("{:?}", crate::page::Page::read(list).unwrap()).contains("canary"));
    }
}
