//! The pieces of a frame, for whoever builds one with an object.
//!
//! A frame is `data: {"seq":N,"type":"…"`, further members that each begin with a comma, and `}` with a blank line:
//!
//! ```
//! use krm_stream_protocol::{EventType, frame};
//!
//! let mut wire = Vec::new();
//! frame::begin(&mut wire, 7, EventType::Added);
//! wire.extend_from_slice(br#","object":"#);
//! frame::put_json(&mut wire, b"{\n  \"kind\": \"ConfigMap\"\n}");
//! wire.extend_from_slice(br#","redacted":[]"#);
//! frame::end(&mut wire);
//! assert_eq!(
//!     wire,
//!     b"data: {\"seq\":7,\"type\":\"added\",\"object\":{\"kind\": \"ConfigMap\"},\"redacted\":[]}\n\n",
//! );
//! ```

use bytes::BufMut;

use crate::EventType;
pub use crate::sse::put_json;

/// What stands on an idle stream, between events only: a comment and a blank line.
pub const HEARTBEAT: &[u8] = b": heartbeat\n\n";

/// What ends every frame.
pub const END: &[u8] = b"}\n\n";

/// The most bytes that [`begin`] appends.
pub const LONGEST_BEGIN: usize = b"data: {\"seq\":,\"type\":\"modified\"".len() + LONGEST_INTEGER;

/// The digits of the greatest `u64`.
const LONGEST_INTEGER: usize = 20;

/// Appends the beginning of a frame, up to and including its type.
pub fn begin(out: &mut impl BufMut, seq: u64, event_type: EventType) {
    out.put_slice(b"data: {\"seq\":");
    put_integer(out, seq);
    out.put_slice(match event_type {
        EventType::Reset => b",\"type\":\"reset\"",
        EventType::Added => b",\"type\":\"added\"",
        EventType::Modified => b",\"type\":\"modified\"",
        EventType::Deleted => b",\"type\":\"deleted\"",
        EventType::Synced => b",\"type\":\"synced\"",
        EventType::Error => b",\"type\":\"error\"",
    });
}

/// Appends the end of a frame.
pub fn end(out: &mut impl BufMut) {
    out.put_slice(END);
}

/// Appends an integer in decimal.
pub fn put_integer(out: &mut impl BufMut, mut value: u64) {
    let mut digits = [0; LONGEST_INTEGER];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.put_slice(&digits[at..]);
}

/// Appends a JSON string with its quotes: `"`, `\` and control characters escaped, all else as it is. It holds no raw
/// CR or LF, whatever the text.
pub fn put_string(out: &mut impl BufMut, text: &str) {
    out.put_slice(b"\"");
    let bytes = text.as_bytes();
    let mut copied = 0;
    for (at, byte) in bytes.iter().copied().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.put_slice(&bytes[copied..at]);
        copied = at + 1;
        match byte {
            b'"' => out.put_slice(b"\\\""),
            b'\\' => out.put_slice(b"\\\\"),
            b'\n' => out.put_slice(b"\\n"),
            b'\r' => out.put_slice(b"\\r"),
            b'\t' => out.put_slice(b"\\t"),
            control => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.put_slice(b"\\u00");
                out.put_u8(HEX[usize::from(control >> 4)]);
                out.put_u8(HEX[usize::from(control & 15)]);
            }
        }
    }
    out.put_slice(&bytes[copied..]);
    out.put_slice(b"\"");
}
