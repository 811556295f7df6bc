//! Reading JSON without rewriting it: borrowed slices of the text as it was sent.
//!
//! Numbers, escapes, key order, duplicate keys and nesting of any depth stay as they are, since nothing is parsed into
//! a tree. [`validate`] checks a text once; the readers below then walk it and never fail, and on a text that was not
//! validated they stop early instead of panicking.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde_json::value::RawValue;

/// Why a text is not JSON.
#[derive(Debug, thiserror::Error)]
#[error("not valid json")]
pub struct JsonError(#[source] serde_json::Error);

/// Checks that `text` is exactly one JSON value in UTF-8, of any nesting depth, lone surrogate escapes included.
///
/// # Errors
/// [`JsonError`] if it is not. The error names a position, never content.
pub fn validate(text: &[u8]) -> Result<(), JsonError> {
    serde_json::from_slice::<&RawValue>(text)
        .map(drop)
        .map_err(JsonError)
}

/// One member of an object. Its `Debug` shows where it stands, no content.
#[derive(Clone, PartialEq, Eq)]
pub struct Member<'a> {
    /// The key as it was spelled, without its quotes.
    pub key: &'a [u8],
    /// Where the key stands in the text, quotes included.
    pub key_range: Range<usize>,
    /// The value as it was spelled, without the white space around it.
    pub value: &'a [u8],
    /// Where the value stands in the text.
    pub value_range: Range<usize>,
}

impl fmt::Debug for Member<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("key_range", &self.key_range)
            .field("value_range", &self.value_range)
            .finish_non_exhaustive()
    }
}

impl Member<'_> {
    /// Whether the key is `name`, however it was escaped.
    pub fn key_is(&self, name: &str) -> bool {
        string_is(self.key, name)
    }
}

/// The members of the object that `text` is, in order, duplicates included. Nothing if it is no object.
pub fn members(text: &[u8]) -> Members<'_> {
    let start = skip_space(text, 0);
    let at = if text.get(start) == Some(&b'{') {
        start + 1
    } else {
        text.len()
    };
    Members { text, at }
}

/// Iterator of [`members`].
#[derive(Clone)]
pub struct Members<'a> {
    text: &'a [u8],
    at: usize,
}

impl fmt::Debug for Members<'_> {
    /// Shows lengths only: the text may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Members")
            .field("bytes", &self.text.len())
            .field("at", &self.at)
            .finish()
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = Member<'a>;

    fn next(&mut self) -> Option<Member<'a>> {
        let text = self.text;
        let mut at = skip_space(text, self.at);
        if text.get(at) == Some(&b',') {
            at = skip_space(text, at + 1);
        }
        if text.get(at) != Some(&b'"') {
            self.at = text.len();
            return None;
        }
        let key_range = at..string_end(text, at);
        at = skip_space(text, key_range.end);
        if text.get(at) != Some(&b':') {
            self.at = text.len();
            return None;
        }
        at = skip_space(text, at + 1);
        let value_range = at..value_end(text, at);
        self.at = value_range.end;
        Some(Member {
            key: text.get(key_range.start + 1..key_range.end - 1)?,
            key_range,
            value: &text[value_range.clone()],
            value_range,
        })
    }
}

/// The elements of the array that `text` is, in order, each with where it stands. Nothing if it is no array.
pub fn elements(text: &[u8]) -> Elements<'_> {
    let start = skip_space(text, 0);
    let at = if text.get(start) == Some(&b'[') {
        start + 1
    } else {
        text.len()
    };
    Elements { text, at }
}

/// Iterator of [`elements`].
#[derive(Clone)]
pub struct Elements<'a> {
    text: &'a [u8],
    at: usize,
}

impl fmt::Debug for Elements<'_> {
    /// Shows lengths only: the text may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elements")
            .field("bytes", &self.text.len())
            .field("at", &self.at)
            .finish()
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = (&'a [u8], Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let mut at = skip_space(self.text, self.at);
        if self.text.get(at) == Some(&b',') {
            at = skip_space(self.text, at + 1);
        }
        if self.text.get(at).is_none_or(|byte| *byte == b']') {
            self.at = self.text.len();
            return None;
        }
        let range = at..value_end(self.text, at);
        self.at = range.end;
        (!range.is_empty()).then(|| (&self.text[range.clone()], range))
    }
}

/// The last member of this name: what a consumer that keeps the last of duplicates sees.
pub fn last_member<'a>(text: &'a [u8], name: &str) -> Option<&'a [u8]> {
    members(text)
        .filter(|member| member.key_is(name))
        .last()
        .map(|member| member.value)
}

/// The text of a JSON string (with its quotes), unescaped. `None` if it is no string or holds a lone surrogate.
pub fn string(text: &[u8]) -> Option<Cow<'_, str>> {
    let inner = text.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if memchr::memchr(b'\\', inner).is_none() {
        return std::str::from_utf8(inner).ok().map(Cow::Borrowed);
    }
    serde_json::from_slice(text).ok().map(Cow::Owned)
}

/// Whether the content of a JSON string (without its quotes) is `expected`, however it was escaped.
pub fn string_is(inner: &[u8], expected: &str) -> bool {
    if memchr::memchr(b'\\', inner).is_none() {
        return inner == expected.as_bytes();
    }
    unescape(inner) == expected.as_bytes()
}

/// The content of a JSON string (without its quotes) with its escapes resolved. Lone surrogates become their
/// three-byte generalised UTF-8 form, so that two different strings stay different.
pub fn unescape(inner: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\\', inner).is_none() {
        return Cow::Borrowed(inner);
    }
    let mut plain = Vec::with_capacity(inner.len());
    let mut at = 0;
    while let Some(&byte) = inner.get(at) {
        at += 1;
        if byte != b'\\' {
            plain.push(byte);
            continue;
        }
        let escape = inner.get(at).copied();
        at += 1;
        match escape {
            Some(b'b') => plain.push(8),
            Some(b'f') => plain.push(12),
            Some(b'n') => plain.push(b'\n'),
            Some(b'r') => plain.push(b'\r'),
            Some(b't') => plain.push(b'\t'),
            Some(b'u') => {
                let mut code = hex4(inner, at);
                at += 4;
                if (0xD800..0xDC00).contains(&code) && inner.get(at..at + 2) == Some(b"\\u") {
                    let low = hex4(inner, at + 2);
                    if (0xDC00..0xE000).contains(&low) {
                        code = 0x1_0000 + ((code - 0xD800) << 10) + (low - 0xDC00);
                        at += 6;
                    }
                }
                push_code_point(&mut plain, code);
            }
            Some(other) => plain.push(other),
            None => {}
        }
    }
    Cow::Owned(plain)
}

fn hex4(inner: &[u8], at: usize) -> u32 {
    inner
        .get(at..at + 4)
        .and_then(|digits| std::str::from_utf8(digits).ok())
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
        .unwrap_or(0xFFFD)
}

fn push_code_point(plain: &mut Vec<u8>, code: u32) {
    if let Some(character) = char::from_u32(code) {
        plain.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    } else {
        let [_, _, high, low] = code.to_be_bytes();
        plain.extend_from_slice(&[
            0xE0 | (high >> 4),
            0x80 | ((high & 0x0F) << 2) | (low >> 6),
            0x80 | (low & 0x3F),
        ]);
    }
}

fn skip_space(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// The end of the string whose opening quote stands at `at`, past its closing quote.
fn string_end(text: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(found) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if text[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    text.len()
}

/// The end of the value that begins at `at`.
fn value_end(text: &[u8], at: usize) -> usize {
    match text.get(at) {
        Some(b'"') => string_end(text, at),
        Some(b'{' | b'[') => container_end(text, at),
        _ => text[at.min(text.len())..]
            .iter()
            .position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r'))
            .map_or(text.len(), |length| at + length),
    }
}

/// The end of the object or array that begins at `at`: a loop, so that no depth can exhaust the stack.
fn container_end(text: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                at = string_end(text, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    text.len()
}

#[cfg(test)]
mod tests;
