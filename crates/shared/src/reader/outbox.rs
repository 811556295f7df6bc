//! The bytes that wait for the transport.

use std::collections::VecDeque;
use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};

/// A tail of at least this size is handed on as it is; a smaller one is cheaper to copy than to keep track of.
pub(super) const WORTH_SHARING: usize = 16 * 1024;

/// What a stream has written and its transport has not taken. A large object is a chunk of its own, between the beginning
/// and the end of its frame; where several wait, they go out as one chunk, as far as they fit into the limit.
///
/// It is filled up to a bound and emptied chunk by chunk, so that what a slow link has not taken stays in the changelog,
/// where it coalesces.
pub struct Outbox {
    limit: usize,
    ready: VecDeque<Bytes>,
    open: BytesMut,
    pending: usize,
}

impl Outbox {
    /// An outbox that asks for no more once it holds `limit` bytes; at least one frame always fits.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            ready: VecDeque::new(),
            open: BytesMut::new(),
            pending: 0,
        }
    }

    /// Whether one more frame may be written.
    pub const fn has_room(&self) -> bool {
        self.pending < self.limit
    }

    /// Whether one more deletion may be written: these are small, and go out before objects.
    pub(crate) const fn has_room_for_deletion(&self) -> bool {
        self.pending < self.limit.saturating_mul(4)
    }

    /// Whether there is nothing to take.
    pub const fn is_empty(&self) -> bool {
        self.pending == 0
    }

    /// How many bytes wait.
    pub const fn pending(&self) -> usize {
        self.pending
    }

    /// Takes the next chunk.
    pub fn take(&mut self) -> Option<Bytes> {
        let chunk = match self.take_several() {
            Some(chunk) => chunk,
            None => match self.ready.pop_front() {
                Some(chunk) => chunk,
                None if self.open.is_empty() => return None,
                None => self.open.split().freeze(),
            },
        };
        self.pending -= chunk.len();
        if self.is_empty() {
            // An idle stream must not hold the buffer of its last burst.
            self.open = BytesMut::new();
            self.ready = VecDeque::new();
        }
        Some(chunk)
    }

    /// Copies what waits into one chunk where it holds several large objects: each by itself, they would be a write each.
    fn take_several(&mut self) -> Option<Bytes> {
        let (mut count, mut bytes, mut large) = (0, 0, 0);
        for part in &self.ready {
            if bytes + part.len() > self.limit {
                break;
            }
            count += 1;
            bytes += part.len();
            large += usize::from(part.len() >= WORTH_SHARING);
        }
        if large < 2 {
            return None;
        }
        let takes_open = count == self.ready.len() && bytes + self.open.len() <= self.limit;
        let mut chunk = BytesMut::with_capacity(bytes + if takes_open { self.open.len() } else { 0 });
        for part in self.ready.drain(..count) {
            chunk.put_slice(&part);
        }
        if takes_open {
            chunk.put_slice(&self.open.split());
        }
        Some(chunk.freeze())
    }

    /// Takes memory for so many bytes at once: most often they are all that is written before the outbox is emptied.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.open.reserve(bytes);
    }

    /// Appends bytes that `write` produces.
    pub(crate) fn write(&mut self, write: impl FnOnce(&mut BytesMut)) {
        let before = self.open.len();
        write(&mut self.open);
        self.pending += self.open.len() - before;
    }

    /// Appends a chunk that many streams share, as it is.
    pub(crate) fn hand_on(&mut self, chunk: &Bytes) {
        if !self.open.is_empty() {
            self.ready.push_back(self.open.split().freeze());
        }
        self.ready.push_back(chunk.clone());
        self.pending += chunk.len();
    }

    /// Appends bytes that many streams share.
    pub(crate) fn share(&mut self, bytes: &Bytes) {
        if bytes.len() < WORTH_SHARING {
            self.open.put_slice(bytes);
            self.pending += bytes.len();
        } else {
            self.hand_on(bytes);
        }
    }
}

impl fmt::Debug for Outbox {
    /// Shows lengths only: a projection may carry what no log may hold.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox")
            .field("limit", &self.limit)
            .field("pending", &self.pending)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_parts_become_one_chunk_and_large_ones_are_shared() {
        let mut outbox = Outbox::new(100);
        let large = Bytes::from(vec![b'x'; WORTH_SHARING]);
        outbox.write(|out| out.put_slice(b"prefix "));
        outbox.share(&Bytes::from_static(b"small "));
        assert!(outbox.has_room());
        outbox.share(&large);
        outbox.write(|out| out.put_slice(b"end"));
        assert!(!outbox.has_room());
        assert_eq!(outbox.take().unwrap(), "prefix small ");
        assert_eq!(outbox.take().unwrap().as_ptr(), large.as_ptr());
        assert_eq!(outbox.pending(), 3);
        assert_eq!(outbox.take().unwrap(), "end");
        assert!(outbox.take().is_none() && outbox.is_empty());
    }

    #[test]
    fn several_large_parts_become_one_chunk_as_far_as_they_fit() {
        let large = |byte| Bytes::from(vec![byte; WORTH_SHARING]);
        let mut outbox = Outbox::new(3 * WORTH_SHARING + 100);
        let write = |outbox: &mut Outbox, byte| {
            outbox.write(|out| out.put_slice(b"prefix "));
            outbox.share(&large(byte));
        };
        for byte in *b"abcd" {
            write(&mut outbox, byte);
        }
        let first = outbox.take().unwrap();
        assert_eq!(first.len(), 3 * (7 + WORTH_SHARING) + 7);
        assert!(first.starts_with(b"prefix aaa") && first.ends_with(b"cprefix "));
        assert_eq!(outbox.take().unwrap(), large(b'd'));
        assert!(outbox.take().is_none() && outbox.is_empty());

        for byte in *b"ef" {
            write(&mut outbox, byte);
        }
        outbox.write(|out| out.put_slice(b"end"));
        assert!(outbox.take().unwrap().ends_with(b"fend") && outbox.is_empty());
    }

    #[test]
    fn debug_shows_no_content() {
        let mut outbox = Outbox::new(100);
        outbox.write(|out| out.put_slice(b"canary"));
        outbox.share(&Bytes::from("canary".repeat(WORTH_SHARING)));
        assert!(!format!("{outbox:?}").contains("canary"));
    }
}
