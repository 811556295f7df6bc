//! A check's connection: both ends of it.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT_ENCODING, HOST, HeaderValue};
use http::uri::{Authority, Scheme};
use http::{Request, Response, Uri, Version};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::duplex;
use tokio::task::JoinSet;

use super::Probe;
use crate::delivery::ConnectionGuard;
use crate::serve::{self, BoxError};

const TRANSPORT_BYTES: usize = 64 * 1024;
/// What an HTTP/2 stream that is not read may send.
const WINDOW_BYTES: u32 = 1024;

/// Dropping it closes the connection.
pub(super) struct Client {
    requests: Requests,
    _ends: JoinSet<()>,
}

enum Requests {
    One(http1::SendRequest<NoBody>),
    Multiplexed(http2::SendRequest<NoBody>),
}

impl Client {
    pub(super) async fn connect<S, B>(
        probe: &Arc<Probe>,
        service: S,
        version: Version,
    ) -> Result<Self, hyper::Error>
    where
        S: tower_service::Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError> + Send,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError> + Send,
    {
        let (near, far) = duplex(TRANSPORT_BYTES);
        let mut ends = JoinSet::new();
        let server = serve::Connection::new(&ConnectionGuard::probing(Arc::clone(probe)), far, service);
        ends.spawn(async move { drop(server.await) });
        let near = TokioIo::new(near);
        let requests = if version == Version::HTTP_2 {
            let (requests, connection) = http2::Builder::new(TokioExecutor::new())
                .initial_stream_window_size(WINDOW_BYTES)
                .handshake(near)
                .await?;
            ends.spawn(async move { drop(connection.await) });
            Requests::Multiplexed(requests)
        } else {
            let (requests, connection) = http1::handshake(near).await?;
            ends.spawn(async move { drop(connection.await) });
            Requests::One(requests)
        };
        Ok(Self {
            requests,
            _ends: ends,
        })
    }

    pub(super) async fn send(&mut self, asked: &Request<()>) -> Result<Response<Incoming>, hyper::Error> {
        let mut request = asked.clone().map(|()| NoBody);
        request
            .headers_mut()
            .entry(ACCEPT_ENCODING)
            .or_insert(HeaderValue::from_static("gzip, deflate, br, zstd"));
        let authority = authority(asked);
        match &mut self.requests {
            Requests::One(requests) => {
                if let Ok(host) = HeaderValue::from_str(authority.as_str()) {
                    request.headers_mut().insert(HOST, host);
                }
                requests.send_request(request).await
            }
            Requests::Multiplexed(requests) => {
                request.headers_mut().remove(HOST);
                let mut uri = request.uri().clone().into_parts();
                uri.scheme = Some(Scheme::HTTP);
                uri.authority = Some(authority);
                uri.path_and_query
                    .get_or_insert_with(|| http::uri::PathAndQuery::from_static("/"));
                if let Ok(uri) = Uri::from_parts(uri) {
                    *request.uri_mut() = uri;
                }
                requests.send_request(request).await
            }
        }
    }
}

/// The host that the request is for.
fn authority(request: &Request<()>) -> Authority {
    let from_header = || request.headers().get(HOST)?.to_str().ok()?.parse().ok();
    request
        .uri()
        .authority()
        .cloned()
        .or_else(from_header)
        .unwrap_or_else(|| Authority::from_static("localhost"))
}

/// The body of an answer.
pub(super) struct Answer {
    body: Incoming,
    /// What came and was not asked for yet.
    came: BytesMut,
}

impl Answer {
    pub(super) fn new(response: Response<Incoming>) -> Self {
        Self {
            body: response.into_body(),
            came: BytesMut::new(),
        }
    }

    /// The next bytes; `None` where the answer ends before.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn read(&mut self, bytes: usize) -> Option<Bytes> {
        while self.came.len() < bytes {
            let frame = poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await;
            self.came.extend_from_slice(&frame?.ok()?.into_data().ok()?);
        }
        Some(self.came.split_to(bytes).freeze())
    }
}

/// A request has none.
struct NoBody;

impl Body for NoBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        true
    }
}
