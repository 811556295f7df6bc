//! Reading an event stream: any split gives the events that the specification wants, and no more than the limit is
//! taken.

use std::time::Duration;

use krm_stream_protocol::{SseDecoder, SseEvent};

use super::splits::splits;

/// The limits that each input is read with: one that no input reaches, and one that many do.
const LIMITS: [usize; 2] = [1 << 24, 24];

/// What a decoder made of a stream.
#[derive(Debug, PartialEq)]
struct Decoded {
    events: Vec<SseEvent>,
    retry: Option<Duration>,
    has_failed: bool,
}

/// Checks [`SseDecoder`].
///
/// # Panics
/// When a rule does not hold.
pub fn sse_decode(input: &[u8]) {
    for limit in LIMITS {
        let whole = decode(&[input], limit);
        for pieces in splits(input) {
            assert_eq!(decode(&pieces, limit), whole, "the same for every split");
        }
        let expected = by_the_specification(input, limit);
        assert!(events(&whole).eq(expected.events.iter().cloned()));
        assert_eq!(
            whole.has_failed, expected.has_failed,
            "the limit of {limit} holds"
        );
        if !whole.has_failed {
            assert_eq!(whole.retry, expected.retry);
        }
        assert!(limit == LIMITS[1] || !whole.has_failed);
    }
}

fn decode(pieces: &[&[u8]], limit: usize) -> Decoded {
    let mut decoder = SseDecoder::new(limit);
    let mut stream = Decoded {
        events: Vec::new(),
        retry: None,
        has_failed: false,
    };
    for piece in pieces {
        match decoder.push(piece) {
            Ok(events) => {
                assert!(!stream.has_failed, "a decoder that failed takes nothing more");
                stream.events.extend(events);
            }
            Err(error) => {
                assert_eq!(error.limit(), limit);
                stream.has_failed = true;
                stream.events.extend(error.into_decoded());
            }
        }
    }
    stream.retry = decoder.retry();
    stream
}

/// Data, type and last id of an event.
type Fields = (String, String, String);

fn events(decoded: &Decoded) -> impl Iterator<Item = Fields> {
    decoded.events.iter().map(|event| {
        (
            event.data().to_owned(),
            event.event_type().to_owned(),
            event.last_event_id().to_owned(),
        )
    })
}

/// What the specification, and the limit, make of a stream.
#[derive(Debug, Default)]
struct Expected {
    events: Vec<Fields>,
    retry: Option<Duration>,
    has_failed: bool,
}

/// [The specification's][spec] own steps, over the whole stream at once: split into lines, decode, interpret. On the way
/// no event may be larger than the limit, together with the line that is read.
///
/// [spec]: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
fn by_the_specification(input: &[u8], limit: usize) -> Expected {
    let mut expected = Expected::default();
    let (mut data, mut event_type, mut last_id) = (String::new(), String::new(), String::new());
    let mut lines = lines(input);
    let incomplete = lines.pop().unwrap_or_default();
    for (index, line) in lines.into_iter().enumerate() {
        if data.len() + event_type.len() + line.len() > limit {
            expected.has_failed = true;
            return expected;
        }
        let mark: &[u8] = if index == 0 { b"\xEF\xBB\xBF" } else { b"" };
        let line = String::from_utf8_lossy(line.strip_prefix(mark).unwrap_or(line));
        if line.is_empty() {
            if let Some(lines) = data.strip_suffix('\n') {
                let name = if event_type.is_empty() {
                    "message"
                } else {
                    &event_type
                };
                let event = (lines.to_owned(), name.to_owned(), last_id.clone());
                expected.events.push(event);
            }
            data.clear();
            event_type.clear();
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                data.push_str(value);
                data.push('\n');
            }
            "event" => value.clone_into(&mut event_type),
            "id" if !value.contains('\0') => value.clone_into(&mut last_id),
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                expected.retry = Some(Duration::from_millis(value.parse().unwrap_or(u64::MAX)));
            }
            _ => {}
        }
    }
    // Bytes that are no UTF-8 grow when they are decoded, which shows with the next byte.
    let size = data.len() + event_type.len() + incomplete.len();
    expected.has_failed = size > limit && !incomplete.is_empty();
    expected
}

/// The lines of a stream, at CR LF, LF or CR; the last has no end yet.
fn lines(input: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut rest = input;
    while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
        let (line, after) = rest.split_at(end);
        lines.push(line);
        rest = after.strip_prefix(b"\r\n").unwrap_or(&after[1..]);
    }
    lines.push(rest);
    lines
}
