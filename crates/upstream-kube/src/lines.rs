//! Splits a body into lines at LF, whatever the chunks it comes in.

use std::fmt;

use bytes::{Bytes, BytesMut};

/// Cuts chunks into lines. A line that lies in one chunk is a slice of it; only what crosses chunks is copied, once.
pub(crate) struct Lines {
    /// What came last and has not been cut yet.
    chunk: Bytes,
    /// The beginning of a line whose end has not come yet.
    begun: BytesMut,
    /// The longest line, in bytes.
    limit: usize,
}

/// What [`Lines::next`] found.
#[cfg_attr(test, derive(Debug, PartialEq, Eq))]
pub(crate) enum NextLine {
    /// A line, without its LF.
    Line(Bytes),
    /// The next line is over the limit. Nothing of it is kept.
    TooLong,
    /// No whole line: another chunk is needed.
    NeedsMore,
}

impl Lines {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            chunk: Bytes::new(),
            begun: BytesMut::new(),
            limit,
        }
    }

    /// Adds a chunk. Only after [`NextLine::NeedsMore`].
    pub(crate) fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty(), "the chunk before has been cut up");
        self.chunk = chunk;
    }

    /// The next whole line.
    pub(crate) fn next(&mut self) -> NextLine {
        let end = memchr::memchr(b'\n', &self.chunk);
        let length = self.begun.len() + end.unwrap_or(self.chunk.len());
        if length > self.limit {
            self.begun = BytesMut::new();
            self.chunk = Bytes::new();
            return NextLine::TooLong;
        }
        let Some(end) = end else {
            self.begun.extend_from_slice(&self.chunk);
            self.chunk = Bytes::new();
            return NextLine::NeedsMore;
        };
        let tail = self.chunk.split_to(end);
        let _line_feed = self.chunk.split_to(1);
        if self.begun.is_empty() {
            return NextLine::Line(tail);
        }
        self.begun.extend_from_slice(&tail);
        NextLine::Line(std::mem::take(&mut self.begun).freeze())
    }

    /// What stands after the last LF when the body has ended.
    pub(crate) fn finish(&mut self) -> Bytes {
        std::mem::take(&mut self.begun).freeze()
    }
}

impl fmt::Debug for Lines {
    /// Shows lengths only: a line may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines")
            .field("chunk_bytes", &self.chunk.len())
            .field("begun_bytes", &self.begun.len())
            .field("limit", &self.limit)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every line of `text` when it comes in chunks of `size`, and what is left at the end.
    fn split(text: &[u8], size: usize, limit: usize) -> (Vec<NextLine>, Bytes) {
        let mut lines = Lines::new(limit);
        let mut found = Vec::new();
        for chunk in text.chunks(size) {
            lines.push(Bytes::copy_from_slice(chunk));
            loop {
                match lines.next() {
                    NextLine::NeedsMore => break,
                    NextLine::TooLong => {
                        found.push(NextLine::TooLong);
                        return (found, Bytes::new());
                    }
                    NextLine::Line(line) => found.push(NextLine::Line(line)),
                }
            }
        }
        (found, lines.finish())
    }

    #[test]
    fn every_chunk_size_gives_the_same_lines() {
        let text = "{\"é\":\"日本 🦀\"}\n\n\r\n{\"a\":1}\r\n{\"half".as_bytes();
        let whole = split(text, text.len(), 1024);
        assert_eq!(whole.0.len(), 4);
        assert_eq!(&whole.1[..], b"{\"half");
        for size in 1..text.len() {
            assert_eq!(split(text, size, 1024), whole, "chunks of {size}");
        }
    }

    #[test]
    fn a_carriage_return_or_a_unicode_line_separator_alone_is_no_line_end() {
        let (lines, rest) = split("a\rb\u{2028}c\u{85}d\n".as_bytes(), 3, 1024);
        assert_eq!(lines, [NextLine::Line(Bytes::from("a\rb\u{2028}c\u{85}d"))]);
        assert!(rest.is_empty());
    }

    #[test]
    fn a_line_of_exactly_the_limit_passes_and_one_byte_more_does_not() {
        for size in [1, 3, 64] {
            assert_eq!(
                split(b"12345\n", size, 5).0,
                [NextLine::Line(Bytes::from("12345"))]
            );
            assert_eq!(split(b"123456\n", size, 5).0, [NextLine::TooLong]);
            assert_eq!(split(b"123456", size, 5).0, [NextLine::TooLong]);
        }
    }

    #[test]
    fn a_line_within_one_chunk_is_not_copied() {
        let chunk = Bytes::from_static(b"one\ntwo\n");
        let mut lines = Lines::new(1024);
        lines.push(chunk.clone());
        let NextLine::Line(line) = lines.next() else {
            panic!("a line")
        };
        assert_eq!(line.as_ptr(), chunk.as_ptr());
    }

    #[test]
    fn three_mebibytes_in_one_byte_chunks_take_no_quadratic_time() {
        let text = [vec![b'x'; 3 * 1024 * 1024], b"\n".to_vec()].concat();
        let (lines, _) = split(&text, 1, 8 * 1024 * 1024);
        assert!(matches!(&lines[..], [NextLine::Line(line)] if line.len() == 3 * 1024 * 1024));
    }
}
