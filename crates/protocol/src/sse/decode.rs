//! Reading an event stream, piece by piece, as [its specification][spec] says.
//!
//! [spec]: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// One event of a stream.
///
/// Its `Debug` shows the length of the data only, which may hold what must not be logged.
#[derive(Clone, PartialEq, Eq)]
pub struct SseEvent {
    data: Box<str>,
    event_type: Option<Box<str>>,
    last_event_id: Arc<str>,
}

impl SseEvent {
    /// The data lines, joined by LF.
    pub fn data(&self) -> &str {
        &self.data
    }

    /// The type: `message` unless the stream gave another.
    pub fn event_type(&self) -> &str {
        self.event_type.as_deref().unwrap_or("message")
    }

    /// The last `id` that the stream had sent by then, of this event or an earlier one; empty if none.
    pub fn last_event_id(&self) -> &str {
        &self.last_event_id
    }

    /// Takes the data out.
    pub fn into_data(self) -> Box<str> {
        self.data
    }
}

impl fmt::Debug for SseEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseEvent")
            .field("event_type", &self.event_type())
            .field("data_bytes", &self.data.len())
            .field("last_event_id", &self.last_event_id)
            .finish()
    }
}

/// An event, or a line that is not complete yet, is larger than the decoder takes.
#[derive(Debug, thiserror::Error)]
#[error(
    "an event of the stream is larger than the limit of {limit} bytes: raise max_event_bytes or narrow the scope"
)]
pub struct SseError {
    limit: usize,
    decoded: Vec<SseEvent>,
}

impl SseError {
    /// The limit that was passed, in bytes.
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// The events of the same input that were complete before the one that is too large.
    pub fn into_decoded(self) -> Vec<SseEvent> {
        self.decoded
    }
}

/// Decodes one connection's event stream. Input may be cut anywhere: the events are the same for every cut.
///
/// What is not complete when the connection ends is discarded, as the specification wants it: drop the decoder. A new
/// connection needs a new one.
///
/// ```
/// use krm_stream_protocol::SseDecoder;
///
/// let mut decoder = SseDecoder::new(1 << 20);
/// assert!(decoder.push(b": heartbeat\n\ndata: {\"seq\":1").unwrap().is_empty());
/// let events = decoder.push(b"}\r\n\r\n").unwrap();
/// assert_eq!(events[0].data(), "{\"seq\":1}");
/// ```
pub struct SseDecoder {
    max_event_bytes: usize,
    /// A line whose end has not come yet.
    line: Vec<u8>,
    /// The last byte was a CR: an LF that follows belongs to it.
    after_carriage_return: bool,
    /// No line was complete yet: the first may begin with a byte order mark.
    at_start: bool,
    has_failed: bool,
    event: PartialEvent,
    retry: Option<Duration>,
}

/// The fields of the event that is being read. Data and type are forgotten at its blank line, the id stays.
#[derive(Default)]
struct PartialEvent {
    data: String,
    event_type: String,
    last_event_id: Arc<str>,
}

impl SseDecoder {
    /// A decoder that refuses an event of more than `max_event_bytes`: its data and type, and the line being read.
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            max_event_bytes,
            line: Vec::new(),
            after_carriage_return: false,
            at_start: true,
            has_failed: false,
            event: PartialEvent::default(),
            retry: None,
        }
    }

    /// Takes the next bytes of the connection and returns the events that they complete.
    ///
    /// # Errors
    /// [`SseError`] when an event is larger than the limit. The decoder then refuses all further input, since it cannot
    /// know where the next event begins; events completed before are in the error.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<Vec<SseEvent>, SseError> {
        let mut events = Vec::new();
        if self.has_failed {
            return Err(self.fail(events));
        }
        while let Some(first) = bytes.first() {
            if std::mem::take(&mut self.after_carriage_return) && *first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let line_end = memchr::memchr2(b'\r', b'\n', bytes);
            let part = &bytes[..line_end.unwrap_or(bytes.len())];
            if self.event.len() + self.line.len() + part.len() > self.max_event_bytes {
                return Err(self.fail(events));
            }
            let Some(line_end) = line_end else {
                self.line.extend_from_slice(part);
                break;
            };
            self.after_carriage_return = bytes[line_end] == b'\r';
            bytes = &bytes[line_end + 1..];
            if self.line.is_empty() {
                events.extend(self.take_line(part));
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(part);
                events.extend(self.take_line(&line));
                line.clear();
                self.line = line;
            }
        }
        Ok(events)
    }

    /// The reconnection time that the stream asked for last, if it did.
    pub const fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn fail(&mut self, decoded: Vec<SseEvent>) -> SseError {
        self.has_failed = true;
        self.line = Vec::new();
        self.event = PartialEvent::default();
        SseError {
            limit: self.max_event_bytes,
            decoded,
        }
    }

    /// Interprets one line, without its end.
    fn take_line(&mut self, mut line: &[u8]) -> Option<SseEvent> {
        if std::mem::take(&mut self.at_start) {
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        if line.is_empty() {
            return self.event.dispatch();
        }
        // A line end is never part of a multi-byte sequence, so each line is decoded by itself.
        let (field, value) = match memchr::memchr(b':', line) {
            Some(0) => return None,
            Some(colon) => {
                let value = &line[colon + 1..];
                (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &b""[..]),
        };
        match field {
            b"data" => {
                self.event.data.push_str(&String::from_utf8_lossy(value));
                self.event.data.push('\n');
            }
            b"event" => {
                self.event.event_type.clear();
                self.event.event_type.push_str(&String::from_utf8_lossy(value));
            }
            b"id" if !value.contains(&0) => {
                self.event.last_event_id = match String::from_utf8_lossy(value) {
                    Cow::Borrowed(id) => id.into(),
                    Cow::Owned(id) => id.into(),
                };
            }
            b"retry" => self.retry = reconnection_time(value).or(self.retry),
            _ => {}
        }
        None
    }
}

impl fmt::Debug for SseDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseDecoder")
            .field("max_event_bytes", &self.max_event_bytes)
            .field("buffered_bytes", &(self.event.len() + self.line.len()))
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

impl PartialEvent {
    fn len(&self) -> usize {
        self.data.len() + self.event_type.len()
    }

    /// What a blank line does: hands the event out if it has any data line, and forgets its type either way.
    fn dispatch(&mut self) -> Option<SseEvent> {
        let event_type = std::mem::take(&mut self.event_type);
        let mut data = std::mem::take(&mut self.data);
        data.pop()?;
        Some(SseEvent {
            data: data.into_boxed_str(),
            event_type: (!event_type.is_empty()).then(|| event_type.into_boxed_str()),
            last_event_id: Arc::clone(&self.last_event_id),
        })
    }
}

/// ASCII digits and nothing else, in milliseconds; a number beyond all use is as long as can be said.
fn reconnection_time(value: &[u8]) -> Option<Duration> {
    if value.is_empty() {
        return None;
    }
    let mut milliseconds = 0_u64;
    for byte in value {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        milliseconds = milliseconds.saturating_mul(10).saturating_add(digit);
    }
    Some(Duration::from_millis(milliseconds))
}

#[cfg(test)]
mod tests;
