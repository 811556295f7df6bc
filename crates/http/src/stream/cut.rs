//! Ending a stream in front of what it has not handed out.

use bytes::{Bytes, BytesMut};
use krm_stream_protocol::{Event, StreamError, frame};
use krm_stream_shared::Outbox;

/// Where the event that ends the stream goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// After all that was written.
    Next,
    /// In the place of the event with this number, the first that was not handed out.
    Number(u64),
    /// Nowhere: an event was handed out in part.
    Nowhere,
}

impl Place {
    /// In the place of the event that these bytes begin with, if they do.
    pub(super) fn of_first(bytes: &[u8]) -> Self {
        first_seq(bytes).map_or(Self::Nowhere, Self::Number)
    }
}

/// The number of the first event of these bytes, which begin with one.
fn first_seq(bytes: &[u8]) -> Option<u64> {
    const PREFIX: &[u8] = b"data: {\"seq\":";
    // An error may have a `retry` line before its data line.
    let data = if bytes.starts_with(b"retry: ") {
        let line = memchr::memchr(b'\n', bytes)?;
        &bytes[line + 1..]
    } else {
        bytes
    };
    let number = data.strip_prefix(PREFIX)?;
    let end = number.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&number[..end]).ok()?.parse().ok()
}

/// What remains of these bytes, which begin where an event begins, without the heartbeats in front.
pub(super) fn after_heartbeats(mut bytes: &[u8]) -> &[u8] {
    while let Some(rest) = bytes.strip_prefix(frame::HEARTBEAT) {
        bytes = rest;
    }
    bytes
}

/// Drops what waits, and returns its beginning.
pub(super) fn discard(outbox: &mut Outbox) -> Option<Bytes> {
    let first = outbox.take();
    while outbox.take().is_some() {}
    first
}

/// The event that ends a stream, in the place of the one that has this number.
pub(super) fn last_event(error: &StreamError, seq: u64) -> Bytes {
    let mut event = BytesMut::new();
    Event::Error(error).encode(seq, &mut event);
    event.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_event_is_known_by_its_number() {
        assert_eq!(first_seq(b"data: {\"seq\":17,\"type\":\"synced\"}\n\n"), Some(17));
        assert_eq!(
            first_seq(b"data: {\"seq\":18,\"type\":\"added\",\"object\":"),
            Some(18)
        );
        let error = last_event(
            &StreamError::unavailable("x", Some(std::time::Duration::from_secs(1))),
            5,
        );
        assert!(error.starts_with(b"retry: 1000\n"));
        assert_eq!(first_seq(&error), Some(5));
        for other in [
            &b": heartbeat\n\n"[..],
            b"",
            b"data: {",
            b"\"}}\n\ndata: {\"seq\":3,",
            b"retry: 5",
        ] {
            assert_eq!(first_seq(other), None);
        }
    }
}
