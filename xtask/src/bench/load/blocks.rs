//! The blocks of an event stream, and the few words of each that the bench looks at.

use std::sync::LazyLock;

use memchr::memmem::{self, Finder};

/// Cuts a body at its blank lines.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    /// The beginning of a block whose end has not come.
    begun: Vec<u8>,
}

impl Blocks {
    /// Hands on each block that is complete, without its blank line.
    pub(crate) fn read(&mut self, mut bytes: &[u8], mut block: impl FnMut(&[u8])) {
        if !self.begun.is_empty() {
            let end = if self.begun.ends_with(b"\n") && bytes.starts_with(b"\n") {
                Some(1)
            } else {
                memmem::find(bytes, b"\n\n").map(|at| at + 2)
            };
            let Some(end) = end else {
                self.begun.extend_from_slice(bytes);
                return;
            };
            self.begun.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end..];
            block(&self.begun[..self.begun.len() - 2]);
            self.begun.clear();
        }
        while let Some(at) = end_of_block(bytes) {
            block(&bytes[..at]);
            bytes = &bytes[at + 2..];
        }
        self.begun.extend_from_slice(bytes);
    }

    /// Gives back the memory of the longest block that was torn.
    pub(crate) fn shrink(&mut self) {
        if self.begun.is_empty() {
            self.begun = Vec::new();
        }
    }
}

/// Where the first LF LF is. JSON has no raw LF, so the first LF is it but for a `retry:` line.
fn end_of_block(bytes: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'\n', bytes).find(|at| bytes.get(at + 1) == Some(&b'\n'))
}

/// What a block says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Block<'a> {
    /// A heartbeat.
    Comment,
    /// An event.
    Event {
        seq: u64,
        kind: Kind,
        /// The whole `data:` line without its field name.
        json: &'a [u8],
    },
    /// It cannot be read.
    Unreadable,
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Reset,
    Added,
    Modified,
    Deleted,
    Synced,
    Error,
    Other,
}

/// Reads the beginning of a block.
pub(crate) fn read_block(mut block: &[u8]) -> Block<'_> {
    const BEFORE_SEQ: &[u8] = b"data: {\"seq\":";
    if block.starts_with(b":") {
        return Block::Comment;
    }
    if block.starts_with(b"retry:") {
        let end = memchr::memchr(b'\n', block).map_or(block.len(), |at| at + 1);
        block = &block[end..];
    }
    let Some(rest) = block.strip_prefix(BEFORE_SEQ) else {
        return Block::Unreadable;
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let Some(seq) = number(&rest[..digits]) else {
        return Block::Unreadable;
    };
    let Some(word) = rest[digits..].strip_prefix(b",\"type\":\"") else {
        return Block::Unreadable;
    };
    let kind = match &word[..memchr::memchr(b'"', word).unwrap_or(0)] {
        b"reset" => Kind::Reset,
        b"added" => Kind::Added,
        b"modified" => Kind::Modified,
        b"deleted" => Kind::Deleted,
        b"synced" => Kind::Synced,
        b"error" => Kind::Error,
        [..] => Kind::Other,
    };
    Block::Event {
        seq,
        kind,
        json: &block["data: ".len()..],
    }
}

/// The time in nanoseconds that the writer put into an object.
pub(crate) fn stamp(json: &[u8]) -> Option<u64> {
    static BEFORE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"stamp\":\""));
    text_after(&BEFORE, json).and_then(number)
}

/// The `uid` of an object or of an identity.
pub(crate) fn uid(json: &[u8]) -> Option<&[u8]> {
    static BEFORE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"uid\":\""));
    text_after(&BEFORE, json)
}

fn text_after<'a>(before: &Finder<'static>, json: &'a [u8]) -> Option<&'a [u8]> {
    let rest = &json[before.find(json)? + before.needle().len()..];
    Some(&rest[..memchr::memchr(b'"', rest)?])
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_the_same_in_whatever_pieces_they_come() {
        let text = b": heartbeat\n\ndata: {\"seq\":1}\n\nretry: 5\ndata: {\"seq\":2}\n\ndata: {\"se";
        for piece in 1..=text.len() {
            let mut blocks = Blocks::default();
            let mut seen: Vec<Vec<u8>> = Vec::new();
            for part in text.chunks(piece) {
                blocks.read(part, |block| seen.push(block.to_vec()));
            }
            let expected: [&[u8]; 3] = [
                b": heartbeat",
                b"data: {\"seq\":1}",
                b"retry: 5\ndata: {\"seq\":2}",
            ];
            assert_eq!(seen, expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn the_number_and_the_type_of_an_event_are_read() {
        let json = br#"{"seq":42,"type":"modified","object":{}}"#;
        let block = [b"data: ".as_slice(), json].concat();
        assert_eq!(
            read_block(&block),
            Block::Event {
                seq: 42,
                kind: Kind::Modified,
                json
            }
        );
        let error = b"retry: 1000\ndata: {\"seq\":7,\"type\":\"error\",\"code\":\"INTERNAL\"}";
        assert!(matches!(
            read_block(error),
            Block::Event {
                seq: 7,
                kind: Kind::Error,
                ..
            }
        ));
        assert_eq!(read_block(b": heartbeat"), Block::Comment);
        assert_eq!(read_block(b"data: hello"), Block::Unreadable);
        assert_eq!(read_block(b""), Block::Unreadable);
    }

    #[test]
    fn the_stamp_and_the_uid_of_an_object_are_read() {
        let json = br#"{"seq":2,"type":"added","object":{"metadata":{"uid":"u-1"},"data":{"stamp":"1700000000123456789"}}}"#;
        assert_eq!(stamp(json), Some(1_700_000_000_123_456_789));
        assert_eq!(uid(json), Some(b"u-1".as_slice()));
        assert_eq!(stamp(b"{}"), None);
        assert_eq!(stamp(b"{\"stamp\":\"x\"}"), None);
    }
}
