//! Chunks as a body hands them out.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::time::Instant;

use super::capability::Bound;
use super::{CheckChunks, TransportRejected};
use crate::settings::CHUNK_BYTES;
use crate::stream::GatewayStream;

/// Where a body's chunks come from.
pub(crate) trait Chunks {
    /// The next chunk; `None` at the end.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>>;

    /// Whether nothing will come any more.
    fn is_over(&self) -> bool;
}

impl Chunks for GatewayStream {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        Self::poll_chunk(self, cx)
    }

    fn is_over(&self) -> bool {
        Self::is_over(self)
    }
}

impl Chunks for CheckChunks {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        Self::poll_chunk(self, cx)
    }

    fn is_over(&self) -> bool {
        Self::is_over(self)
    }
}

/// Cuts chunks for the transport that they go to.
#[derive(Debug)]
pub(crate) enum Pieces {
    /// As they come. The guard of the socket bounds them, if anything does; it tells the slot.
    Whole(Option<Bound>),
    /// A stream among others of its connection.
    Multiplexed(Multiplexed),
}

#[derive(Debug)]
pub(crate) struct Multiplexed {
    bound: Bound,
    /// What is left of the chunk.
    rest: Bytes,
    /// Whether all of the piece but its last byte was handed out.
    is_last_byte_due: bool,
    is_over: bool,
}

/// How many of the bytes that are left go out at once, and whether the last byte of their piece, a frame of its own, is due then.
pub(super) fn beginning_of_piece(left: usize) -> (usize, bool) {
    let piece = left.min(CHUNK_BYTES);
    let is_last_byte_due = piece > 1;
    (piece - usize::from(is_last_byte_due), is_last_byte_due)
}

impl Pieces {
    pub(crate) fn new(bound: Option<Bound>) -> Self {
        match bound {
            Some(bound) if bound.is_multiplexed => Self::Multiplexed(Multiplexed {
                bound,
                rest: Bytes::new(),
                is_last_byte_due: false,
                is_over: false,
            }),
            bound @ (Some(_) | None) => Self::Whole(bound),
        }
    }

    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        chunks: &mut impl Chunks,
    ) -> Poll<Option<Result<Bytes, TransportRejected>>> {
        match self {
            Self::Whole(_) => chunks.poll_chunk(cx).map(|chunk| chunk.map(Ok)),
            Self::Multiplexed(pieces) => pieces.poll(cx, chunks),
        }
    }

    /// Whether the last piece was handed out, and taken where that can be known.
    pub(crate) fn is_over(&self, chunks: &impl Chunks) -> bool {
        match self {
            Self::Whole(_) => chunks.is_over(),
            // An end that came with the last byte would take the guard away before that byte was taken.
            Self::Multiplexed(pieces) => pieces.is_over,
        }
    }

    /// Whether a guard tells when the last piece is written.
    pub(crate) const fn is_bound(&self) -> bool {
        matches!(self, Self::Whole(Some(_)) | Self::Multiplexed(_))
    }

    /// It is over: what is left of the stream stays until the last piece is written, where that can be known.
    pub(crate) fn leave(self, chunks: impl Chunks + Send + 'static) {
        match self {
            Self::Whole(Some(bound)) => bound.leave(chunks),
            Self::Whole(None) => drop(chunks),
            Self::Multiplexed(pieces) => pieces.bound.leave(chunks),
        }
    }
}

impl Multiplexed {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        chunks: &mut impl Chunks,
    ) -> Poll<Option<Result<Bytes, TransportRejected>>> {
        if !self.bound.slot.is_watched() {
            return Poll::Ready(Some(Err(TransportRejected::Executor)));
        }
        if self.is_last_byte_due {
            self.is_last_byte_due = false;
            return Poll::Ready(Some(Ok(self.rest.split_to(1))));
        }
        // The piece before was taken.
        self.bound.slot.expect_by(None);
        if self.rest.is_empty() {
            if chunks.is_over() {
                // It is not asked again, since it would give up its place then.
                self.is_over = true;
                return Poll::Ready(None);
            }
            let Some(chunk) = ready!(chunks.poll_chunk(cx)) else {
                self.is_over = true;
                return Poll::Ready(None);
            };
            self.rest = chunk;
        }
        self.bound
            .slot
            .expect_by(Some(Instant::now() + self.bound.write_timeout));
        let (now, is_last_byte_due) = beginning_of_piece(self.rest.len());
        self.is_last_byte_due = is_last_byte_due;
        Poll::Ready(Some(Ok(self.rest.split_to(now))))
    }
}
