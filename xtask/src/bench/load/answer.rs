//! The body of an HTTP/1.1 answer, chunked or not, out of the bytes of its connection.

use std::mem;

/// What came is no answer that this reader knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AnswerError {
    /// The status is not 200.
    #[error("the answer is {0:?}")]
    Status(String),
    /// The size of a chunk is not hexadecimal, or too long.
    #[error("a chunk's size cannot be read: {0:?}")]
    Size(String),
}

/// A head longer than this is no answer of a stream.
const LONGEST_HEAD: usize = 16 * 1024;
/// A line with a chunk's size is not longer.
const LONGEST_SIZE: usize = 64;

/// One answer, as far as it was read.
#[derive(Debug)]
pub(crate) struct Answer {
    state: State,
}

#[derive(Debug)]
enum State {
    Head(Vec<u8>),
    /// The body ends with the connection.
    Plain,
    Size(Vec<u8>),
    Chunk {
        left: usize,
    },
    /// So many bytes of CR LF are to come.
    ChunkEnd {
        left: usize,
    },
    Complete,
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            state: State::Head(Vec::new()),
        }
    }
}

impl Answer {
    /// Whether the body has said that it is complete.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.state, State::Complete)
    }

    /// Hands the body's part of `bytes` on, in the pieces that it came in.
    ///
    /// # Errors
    ///
    /// When the bytes are no such answer; nothing more can be read then.
    pub(crate) fn read(&mut self, mut bytes: &[u8], mut body: impl FnMut(&[u8])) -> Result<(), AnswerError> {
        while !bytes.is_empty() {
            match &mut self.state {
                State::Head(head) => {
                    let before = head.len();
                    head.extend_from_slice(bytes);
                    let Some(end) = memchr::memmem::find(head, b"\r\n\r\n") else {
                        if head.len() > LONGEST_HEAD {
                            return Err(status_error(head));
                        }
                        return Ok(());
                    };
                    bytes = &bytes[end + 4 - before..];
                    head.truncate(end);
                    let head = mem::take(head);
                    if !head.starts_with(b"HTTP/1.1 200") {
                        return Err(status_error(&head));
                    }
                    self.state = if head
                        .to_ascii_lowercase()
                        .windows(26)
                        .any(|part| part == b"transfer-encoding: chunked")
                    {
                        State::Size(Vec::new())
                    } else {
                        State::Plain
                    };
                }
                State::Plain => {
                    body(bytes);
                    return Ok(());
                }
                State::Size(line) => {
                    let Some(end) = memchr::memchr(b'\n', bytes) else {
                        line.extend_from_slice(bytes);
                        if line.len() > LONGEST_SIZE {
                            return Err(size_error(line));
                        }
                        return Ok(());
                    };
                    line.extend_from_slice(&bytes[..end]);
                    bytes = &bytes[end + 1..];
                    let left = size(line).ok_or_else(|| size_error(line))?;
                    self.state = if left == 0 {
                        State::Complete
                    } else {
                        State::Chunk { left }
                    };
                }
                State::Chunk { left } => {
                    let here = bytes.len().min(*left);
                    body(&bytes[..here]);
                    bytes = &bytes[here..];
                    *left -= here;
                    if *left == 0 {
                        self.state = State::ChunkEnd { left: 2 };
                    }
                }
                State::ChunkEnd { left } => {
                    let here = bytes.len().min(*left);
                    bytes = &bytes[here..];
                    *left -= here;
                    if *left == 0 {
                        self.state = State::Size(Vec::new());
                    }
                }
                // A trailer, or what a server should not send.
                State::Complete => return Ok(()),
            }
        }
        Ok(())
    }
}

fn size(line: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(line).ok()?;
    let digits = text.split(';').next().unwrap_or_default().trim();
    usize::from_str_radix(digits, 16).ok()
}

fn size_error(line: &[u8]) -> AnswerError {
    AnswerError::Size(String::from_utf8_lossy(line).into_owned())
}

fn status_error(head: &[u8]) -> AnswerError {
    let first = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    AnswerError::Status(String::from_utf8_lossy(&first[..first.len().min(200)]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body_in_pieces(text: &[u8], piece: usize) -> Result<(Vec<u8>, bool), AnswerError> {
        let mut answer = Answer::default();
        let mut out = Vec::new();
        for part in text.chunks(piece) {
            answer.read(part, |bytes| out.extend_from_slice(bytes))?;
        }
        Ok((out, answer.is_complete()))
    }

    #[test]
    fn a_chunked_body_is_the_same_in_whatever_pieces_it_comes() {
        let text = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nC;x=y\r\n, my\r\nworld!\r\n0\r\n\r\n";
        for piece in 1..=text.len() {
            assert_eq!(
                body_in_pieces(text, piece),
                Ok((b"hello, my\r\nworld!".to_vec(), true)),
                "in pieces of {piece}"
            );
        }
    }

    #[test]
    fn a_body_without_chunks_is_all_that_follows_the_head() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Type: x\r\n\r\na\r\nb";
        for piece in 1..=text.len() {
            assert_eq!(body_in_pieces(text, piece), Ok((b"a\r\nb".to_vec(), false)));
        }
    }

    #[test]
    fn another_status_and_a_bad_size_are_errors_that_name_them() {
        let refused = body_in_pieces(b"HTTP/1.1 403 Forbidden\r\nA: b\r\n\r\n", 7);
        assert_eq!(
            refused,
            Err(AnswerError::Status("HTTP/1.1 403 Forbidden".to_owned()))
        );
        let torn = body_in_pieces(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 9);
        assert_eq!(torn, Err(AnswerError::Size("xyz\r".to_owned())));
    }
}
