//! A stream as the body of a response.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};

use crate::stream::GatewayStream;

/// The body of a gateway's answer: an event stream, or nothing where the method is not allowed.
///
/// Dropping it is leaving: the stream's check, opening or place at a feed ends with it.
#[derive(Debug)]
pub struct StreamBody(Option<GatewayStream>);

impl StreamBody {
    pub(crate) fn streaming(stream: GatewayStream) -> Self {
        Self(Some(stream))
    }

    pub(crate) const fn empty() -> Self {
        Self(None)
    }
}

impl Body for StreamBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.get_mut().0 {
            Some(stream) => stream
                .poll_chunk(cx)
                .map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk)))),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(GatewayStream::is_over)
    }
}
