//! The bodies of a host's own routes, whose streams of an HTTP/2 connection can stall as a gateway's can.
//!
//! Over HTTP/1.1 a body is handed on as it comes: what stalls is the socket. A gateway's body is too, on any version, since it
//! is cut already; see [`pieces`](super::pieces). Every other body of HTTP/2 is cut here in the same way.

use std::fmt;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::Response;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::Instant;

use super::pieces::beginning_of_piece;
use super::{Connection, StreamSlot};

pin_project! {
    /// The answer of a [`BoundedService`](super::BoundedService) to one request.
    pub struct BoundedAnswer<F> {
        #[pin]
        answer: F,
        stream: Option<Multiplexed>,
    }
}

/// A stream of an HTTP/2 connection.
pub(super) struct Multiplexed {
    pub(super) connection: Arc<Connection>,
    pub(super) slot: Arc<StreamSlot>,
}

impl<F> BoundedAnswer<F> {
    /// An answer that has its connection to itself where there is no `stream`.
    pub(super) const fn new(answer: F, stream: Option<Multiplexed>) -> Self {
        Self { answer, stream }
    }
}

impl<F, B, E> Future for BoundedAnswer<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body,
{
    type Output = Result<Response<BoundedBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = ready!(this.answer.poll(cx));
        let stream = this.stream.take();
        Poll::Ready(answer.map(|response| response.map(|body| BoundedBody::new(body, stream))))
    }
}

impl<F> fmt::Debug for BoundedAnswer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundedAnswer").finish_non_exhaustive()
    }
}

pin_project! {
    /// A body as its connection can bound it.
    pub struct BoundedBody<B: Body> {
        #[pin]
        body: B,
        // Boxed, since an idle stream of a gateway has none and is to be small.
        cut: Option<Box<Cut<B::Data>>>,
    }
}

/// What of a body is on its way.
struct Cut<D> {
    connection: Arc<Connection>,
    slot: Arc<StreamSlot>,
    /// What is left of the frame.
    rest: Option<D>,
    /// Whether all of the piece but its last byte was handed out.
    is_last_byte_due: bool,
    /// Whether a piece was handed out that must be taken in time.
    is_under_way: bool,
}

impl<B: Body> BoundedBody<B> {
    fn new(body: B, stream: Option<Multiplexed>) -> Self {
        let cut =
            stream
                .filter(|stream| !stream.slot.is_of_gateway())
                .map(|Multiplexed { connection, slot }| {
                    Box::new(Cut {
                        connection,
                        slot,
                        rest: None,
                        is_last_byte_due: false,
                        is_under_way: false,
                    })
                });
        Self { body, cut }
    }
}

impl<D: Buf> Cut<D> {
    /// What is left of the frame, or the next piece of it. It has to be asked for again: only then is the piece before it known
    /// to be taken.
    fn next_piece(&mut self) -> Option<Data<D>> {
        if self.is_last_byte_due {
            self.is_last_byte_due = false;
            return Some(Data::Piece(self.rest.as_mut()?.copy_to_bytes(1)));
        }
        if self.is_under_way {
            self.is_under_way = false;
            self.slot.expect_by(None);
        }
        let mut rest = self.rest.take().filter(Buf::has_remaining)?;
        // Nothing cuts a stream that nobody watches.
        let write_timeout = self.connection.write_timeout().filter(|_| self.slot.is_watched());
        let Some(write_timeout) = write_timeout else {
            return Some(Data::Whole(rest));
        };
        self.slot.expect_by(Some(Instant::now() + write_timeout));
        self.is_under_way = true;
        let (now, is_last_byte_due) = beginning_of_piece(rest.remaining());
        self.is_last_byte_due = is_last_byte_due;
        let piece = rest.copy_to_bytes(now);
        self.rest = Some(rest);
        Some(Data::Piece(piece))
    }

    fn remaining(&self) -> usize {
        self.rest.as_ref().map_or(0, Buf::remaining)
    }
}

impl<B: Body> Body for BoundedBody<B> {
    type Data = BoundedData<B::Data>;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, B::Error>>> {
        let mut this = self.project();
        let Some(cut) = this.cut else {
            let frame = ready!(this.body.poll_frame(cx));
            return Poll::Ready(
                frame.map(|frame| frame.map(|frame| frame.map_data(|data| BoundedData(Data::Whole(data))))),
            );
        };
        loop {
            if let Some(piece) = cut.next_piece() {
                return Poll::Ready(Some(Ok(Frame::data(BoundedData(piece)))));
            }
            let Some(frame) = ready!(this.body.as_mut().poll_frame(cx)?) else {
                return Poll::Ready(None);
            };
            match frame.into_data() {
                Ok(data) => cut.rest = Some(data),
                // Trailers.
                Err(other) => {
                    return Poll::Ready(Some(Ok(other.map_data(|data| BoundedData(Data::Whole(data))))));
                }
            }
        }
    }

    /// An end that came with the last byte would take the guard away before that byte was taken.
    fn is_end_stream(&self) -> bool {
        let is_all_taken = self
            .cut
            .as_ref()
            .is_none_or(|cut| !cut.is_under_way && cut.remaining() == 0);
        is_all_taken && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        let rest = self.cut.as_ref().map_or(0, |cut| cut.remaining()) as u64;
        if let Some(upper) = hint.upper() {
            // First the upper one, which must never be below the lower.
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(hint.lower().saturating_add(rest));
        hint
    }
}

impl<B: Body + fmt::Debug> fmt::Debug for BoundedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BoundedBody").field(&self.body).finish()
    }
}

/// The data of a [`BoundedBody`]: a body's own, or a piece of it.
pub struct BoundedData<D>(Data<D>);

enum Data<D> {
    Whole(D),
    Piece(Bytes),
}

impl<D: Buf> Buf for BoundedData<D> {
    fn remaining(&self) -> usize {
        match &self.0 {
            Data::Whole(data) => data.remaining(),
            Data::Piece(piece) => piece.remaining(),
        }
    }

    fn chunk(&self) -> &[u8] {
        match &self.0 {
            Data::Whole(data) => data.chunk(),
            Data::Piece(piece) => piece.chunk(),
        }
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        match &self.0 {
            Data::Whole(data) => data.chunks_vectored(slices),
            Data::Piece(piece) => piece.chunks_vectored(slices),
        }
    }

    fn advance(&mut self, count: usize) {
        match &mut self.0 {
            Data::Whole(data) => data.advance(count),
            Data::Piece(piece) => piece.advance(count),
        }
    }

    fn copy_to_bytes(&mut self, count: usize) -> Bytes {
        match &mut self.0 {
            Data::Whole(data) => data.copy_to_bytes(count),
            Data::Piece(piece) => piece.copy_to_bytes(count),
        }
    }
}

impl<D: Buf> fmt::Debug for BoundedData<D> {
    /// Shows the length only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundedData")
            .field("bytes", &self.remaining())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;
    use std::time::Duration;

    use http_body_util::Full;

    use super::*;
    use crate::settings::CHUNK_BYTES;

    /// A body of a stream that is watched, on a connection that bounds what is written.
    fn watched(bytes: usize) -> (BoundedBody<Full<Bytes>>, Arc<StreamSlot>) {
        let (connection, slot) = (Arc::<Connection>::default(), Arc::<StreamSlot>::default());
        connection.bound_all(Duration::from_secs(5));
        slot.watch();
        let stream = Multiplexed {
            connection,
            slot: Arc::clone(&slot),
        };
        let body = Full::new(Bytes::from(vec![7; bytes]));
        (BoundedBody::new(body, Some(stream)), slot)
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_byte_of_each_64_kib_is_a_frame_of_its_own_and_the_end_comes_after_it_is_taken() {
        const MORE: usize = 10;
        let (mut body, slot) = watched(CHUNK_BYTES + MORE);
        let mut left = CHUNK_BYTES + MORE;
        let mut cx = Context::from_waker(Waker::noop());
        for bytes in [CHUNK_BYTES - 1, 1, MORE - 1, 1] {
            assert!(!body.is_end_stream());
            assert_eq!(body.size_hint().exact(), Some(left as u64));
            let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut cx) else {
                panic!("there is more");
            };
            assert_eq!(frame.into_data().unwrap().remaining(), bytes);
            assert!(slot.deadline().is_some(), "it is on its way");
            left -= bytes;
        }
        assert!(!body.is_end_stream(), "the last byte is not taken");
        let end = Pin::new(&mut body).poll_frame(&mut cx);
        assert!(matches!(end, Poll::Ready(None)));
        assert!(body.is_end_stream());
        assert_eq!(slot.deadline(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_without_a_byte_is_over_at_once() {
        let (body, _) = watched(0);
        assert!(body.is_end_stream());
        assert_eq!(body.size_hint().exact(), Some(0));
    }
}
