//! A stream's events one by one, for a transport of the host's own.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use memchr::memmem;

use crate::stream::GatewayStream;

/// The blank line that ends an event. No data line holds one.
const END: &[u8] = b"\n\n";

/// The events of one stream, from its first `reset` to its last error. Heartbeats are the transport's own affair and do
/// not appear.
///
/// Dropping it is leaving.
pub struct Frames {
    stream: GatewayStream,
    /// What has come and is not handed out; the last event may be incomplete.
    pending: BytesMut,
}

/// One event.
#[derive(Clone, PartialEq, Eq)]
pub struct Frame(Bytes);

impl Frames {
    pub(crate) fn new(stream: GatewayStream) -> Self {
        Self {
            stream,
            pending: BytesMut::new(),
        }
    }

    /// The next event that is complete.
    fn next_complete(&mut self) -> Option<Frame> {
        loop {
            let end = memmem::find(&self.pending, END)? + END.len();
            let frame = self.pending.split_to(end).freeze();
            if !frame.starts_with(b":") {
                return Some(Frame(frame));
            }
        }
    }
}

impl std::fmt::Debug for Frames {
    /// Shows lengths only.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frames")
            .field("stream", &self.stream)
            .field("pending", &self.pending.len())
            .finish()
    }
}

impl Stream for Frames {
    type Item = Frame;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Frame>> {
        let this = self.get_mut();
        loop {
            this.stream.attend(cx, &mut this.pending);
            if !this.stream.is_held()
                && let Some(frame) = this.next_complete()
            {
                return Poll::Ready(Some(frame));
            }
            match this.stream.poll_chunk_after(cx, &mut this.pending) {
                Poll::Ready(Some(chunk)) => this.pending.extend_from_slice(&chunk),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl Frame {
    /// The event's JSON.
    pub fn json(&self) -> Bytes {
        const FIELD: &[u8] = b"data: ";
        // An error may have a `retry` line before its data line.
        let start = memmem::find(&self.0, FIELD).map_or(0, |field| field + FIELD.len());
        self.0
            .slice(start..self.0.len().saturating_sub(END.len()).max(start))
    }

    /// The event as it stands in an event stream, blank line included.
    pub fn sse(&self) -> &Bytes {
        &self.0
    }
}

impl std::fmt::Debug for Frame {
    /// Shows the length only.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frame").field("bytes", &self.0.len()).finish()
    }
}
