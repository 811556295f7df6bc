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
        for event in &whole.events {
            let explicit_type = Some(event.event_type()).filter(|name| *name != "message");
            // A byte that is no UTF-8 becomes three.
            let taken = event.data().len() + explicit_type.unwrap_or_default().len();
            assert!(
                taken <= 3 * limit,
                "{taken} bytes of an event at a limit of {limit}"
            );
        }
        let expected = by_the_specification(input);
        if whole.has_failed {
            let known = &expected.0[..whole.events.len().min(expected.0.len())];
            assert!(events(&whole).eq(known.iter().cloned()));
        } else {
            assert!(events(&whole).eq(expected.0.iter().cloned()));
            assert_eq!(whole.retry, expected.1);
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

/// [The specification's][spec] own steps, over the whole stream at once: decode, split into lines, interpret.
///
/// [spec]: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
fn by_the_specification(input: &[u8]) -> (Vec<Fields>, Option<Duration>) {
    let text = String::from_utf8_lossy(input);
    let text = if input.starts_with(b"\xEF\xBB\xBF") {
        &text['\u{FEFF}'.len_utf8()..]
    } else {
        &text
    };
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<&str> = text.split('\n').collect();
    lines.pop();

    let (mut events, mut retry) = (Vec::new(), None);
    let (mut data, mut event_type, mut last_id) = (String::new(), "", "");
    for line in lines {
        if line.is_empty() {
            if let Some(lines) = data.strip_suffix('\n') {
                let name = if event_type.is_empty() {
                    "message"
                } else {
                    event_type
                };
                events.push((lines.to_owned(), name.to_owned(), last_id.to_owned()));
            }
            data.clear();
            event_type = "";
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                data.push_str(value);
                data.push('\n');
            }
            "event" => event_type = value,
            "id" if !value.contains('\0') => last_id = value,
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                retry = Some(Duration::from_millis(value.parse().unwrap_or(u64::MAX)));
            }
            _ => {}
        }
    }
    (events, retry)
}
