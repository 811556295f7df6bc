//! A stream as the body of a response.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};

use crate::delivery::{Bound, CheckChunks, Pieces, TransportRejected};
use crate::gateway::Host;
use crate::stream::GatewayStream;

/// The body of a gateway's answer: an event stream, or nothing where the method is not allowed.
///
/// Dropping it is leaving: the stream's check, opening or place at a feed ends with it. It fails, before any event, where
/// its connection cannot bound delivery and has to: hyper then resets the stream or closes the connection.
pub struct StreamBody(Source);

#[expect(clippy::large_enum_variant, reason = "nearly every body is a stream")]
enum Source {
    Nothing,
    Stream {
        stream: GatewayStream,
        pieces: Pieces,
        host: Arc<Host>,
    },
    /// A check's own stream.
    Check(CheckChunks, Pieces),
    Rejected(TransportRejected),
}

impl StreamBody {
    pub(crate) fn streaming(host: Arc<Host>, stream: GatewayStream, bound: Option<Bound>) -> Self {
        Self(Source::Stream {
            stream,
            pieces: Pieces::new(bound),
            host,
        })
    }

    pub(crate) fn checking(chunks: CheckChunks, bound: Bound) -> Self {
        Self(Source::Check(chunks, Pieces::new(Some(bound))))
    }

    pub(crate) const fn rejected(cause: TransportRejected) -> Self {
        Self(Source::Rejected(cause))
    }

    pub(crate) const fn is_rejected(&self) -> bool {
        matches!(self.0, Source::Rejected(_))
    }

    pub(crate) const fn empty() -> Self {
        Self(Source::Nothing)
    }

    /// Leaves the stream to its connection when all of it was handed out: hyper drops the body then, and the last event may
    /// not be written yet.
    fn leave_if_over(&mut self) {
        let is_over = match &self.0 {
            Source::Stream { stream, pieces, .. } => pieces.is_bound() && pieces.is_over(stream),
            Source::Nothing | Source::Check(..) | Source::Rejected(_) => false,
        };
        if is_over
            && let Source::Stream { stream, pieces, .. } = std::mem::replace(&mut self.0, Source::Nothing)
        {
            pieces.leave(stream);
        }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, TransportRejected>>> {
        match &mut self.0 {
            Source::Nothing => Poll::Ready(None),
            Source::Stream { stream, pieces, .. } => pieces.poll(cx, stream),
            Source::Check(chunks, pieces) => pieces.poll(cx, chunks),
            Source::Rejected(cause) => Poll::Ready(Some(Err(*cause))),
        }
    }
}

impl Body for StreamBody {
    type Data = Bytes;
    type Error = TransportRejected;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TransportRejected>>> {
        let this = self.get_mut();
        let piece = std::task::ready!(this.poll_piece(cx));
        if let (Some(Err(cause)), Source::Stream { host, .. }) = (&piece, &this.0) {
            host.rejects(*cause);
            this.0 = Source::Rejected(*cause);
        }
        this.leave_if_over();
        Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::Nothing => true,
            Source::Stream { stream, pieces, .. } => pieces.is_over(stream),
            Source::Check(chunks, pieces) => pieces.is_over(chunks),
            Source::Rejected(_) => false,
        }
    }
}

impl fmt::Debug for StreamBody {
    /// Shows lengths only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source: &dyn fmt::Debug = match &self.0 {
            Source::Nothing => &"nothing",
            Source::Stream { stream, .. } => stream,
            Source::Check(chunks, _) => chunks,
            Source::Rejected(cause) => cause,
        };
        f.debug_tuple("StreamBody").field(source).finish()
    }
}
