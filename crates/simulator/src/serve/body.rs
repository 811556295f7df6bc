//! Bodies: whole ones, damaged ones, and those of watches.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};

use crate::{
    answer::Answer,
    connection::ConnectionControl,
    faults::{BodyFault, Ending},
    watch::{BrokenOff, WatchLines},
};

/// The body of an answer.
pub(crate) type AnswerBody = UnsyncBoxBody<Bytes, BrokenOff>;

/// The whole answer, with its length; in chunks of one byte if so ordered.
pub(crate) fn complete(answer: &Answer, one_byte_chunks: bool) -> Response<AnswerBody> {
    let body = answer.body().clone();
    if one_byte_chunks {
        return with_head(answer, in_bytes(stream::iter([Ok(body)])));
    }
    let body = Full::new(body).map_err(|never: Infallible| match never {});
    with_head(answer, UnsyncBoxBody::new(body))
}

/// The answer with a body that goes wrong.
pub(crate) fn damaged(
    answer: &Answer,
    fault: BodyFault,
    control: Arc<ConnectionControl>,
    one_byte_chunks: bool,
) -> Response<AnswerBody> {
    let (bytes, ending) = match fault {
        BodyFault::StallAfter(bytes) => (bytes, None),
        BodyFault::CutAfter { bytes, ending } => (bytes, Some(ending)),
    };
    let start = answer.body().slice(..bytes.min(answer.body().len()));
    let end = stream::unfold(Some(control), move |control| async move {
        let control = control?;
        // What was handed over before is still in the connection's buffer: let it go out first.
        tokio::task::yield_now().await;
        match ending {
            Some(Ending::Close) => None,
            Some(Ending::Abort) => Some((Err(BrokenOff), None)),
            Some(Ending::Reset) => {
                control.reset();
                std::future::pending().await
            }
            Some(Ending::Vanish) => {
                control.vanish();
                std::future::pending().await
            }
            None => std::future::pending().await,
        }
    });
    let chunks = stream::iter([Ok(start)]).filter(|chunk| {
        let keep = chunk.as_ref().is_ok_and(|bytes: &Bytes| !bytes.is_empty());
        std::future::ready(keep)
    });
    let chunks = chunks.chain(end);
    if one_byte_chunks {
        with_head(answer, in_bytes(chunks))
    } else {
        with_head(answer, framed(chunks))
    }
}

/// The answer to a watch.
pub(crate) fn streamed(lines: WatchLines, one_byte_chunks: bool) -> Response<AnswerBody> {
    let chunks = stream::unfold(lines, |mut lines| async move {
        lines.next().await.map(|chunk| (chunk, lines))
    });
    let body = if one_byte_chunks {
        in_bytes(chunks)
    } else {
        framed(chunks)
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, private"),
    );
    response
}

fn with_head(answer: &Answer, body: AnswerBody) -> Response<AnswerBody> {
    let mut response = Response::new(body);
    *response.status_mut() = answer.status();
    response.headers_mut().extend(answer.headers().clone());
    response
}

fn framed(chunks: impl Stream<Item = Result<Bytes, BrokenOff>> + Send + 'static) -> AnswerBody {
    UnsyncBoxBody::new(StreamBody::new(Box::pin(
        chunks.map(|chunk| chunk.map(Frame::data)),
    )))
}

/// Each byte by itself, each flushed before the next.
fn in_bytes(chunks: impl Stream<Item = Result<Bytes, BrokenOff>> + Send + 'static) -> AnswerBody {
    let bytes = chunks.flat_map(|chunk| {
        let pieces: Vec<Result<Bytes, BrokenOff>> = match chunk {
            Ok(chunk) => (0..chunk.len()).map(|at| Ok(chunk.slice(at..=at))).collect(),
            Err(error) => vec![Err(error)],
        };
        stream::iter(pieces)
    });
    framed(bytes.then(|piece| async move {
        // To be pending once makes the connection flush what it has.
        tokio::task::yield_now().await;
        piece
    }))
}
