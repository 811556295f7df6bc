//! Form encoding of a query, in both directions.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::ScopeField;

/// What is percent-encoded in a canonical query: everything but the unreserved characters of [RFC 3986].
///
/// [RFC 3986]: https://www.rfc-editor.org/rfc/rfc3986#section-2.3
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A decoded name or value.
pub(super) struct Decoded<'a> {
    pub(super) text: Cow<'a, str>,
    /// Whether a letter or digit was percent-encoded.
    pub(super) is_disguised: bool,
}

/// Decodes strictly: `%` must be followed by two hexadecimal digits and the bytes must be UTF-8. `+` is a space.
pub(super) fn decode(encoded: &str) -> Option<Decoded<'_>> {
    if !encoded.contains(['%', '+']) {
        return Some(Decoded {
            text: Cow::Borrowed(encoded),
            is_disguised: false,
        });
    }
    let mut plain = Vec::with_capacity(encoded.len());
    let mut is_disguised = false;
    let mut bytes = encoded.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => plain.push(b' '),
            b'%' => {
                let escaped = hex_digit(bytes.next()?)? << 4 | hex_digit(bytes.next()?)?;
                is_disguised |= escaped.is_ascii_alphanumeric();
                plain.push(escaped);
            }
            _ => plain.push(byte),
        }
    }
    Some(Decoded {
        text: Cow::Owned(String::from_utf8(plain).ok()?),
        is_disguised,
    })
}

/// Appends one parameter to a canonical query.
pub(super) fn push(query: &mut String, field: ScopeField, value: &str) {
    if !query.is_empty() {
        query.push('&');
    }
    query.push_str(field.as_str());
    query.push('=');
    query.extend(utf8_percent_encode(value, ESCAPED));
}

const fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}
