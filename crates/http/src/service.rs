//! The gateway as a service over `http` types.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use tower_service::Service;

use crate::body::StreamBody;
use crate::gateway::Gateway;
use crate::stream::GatewayStream;

/// The version of the wire, which is also in the path that a host mounts the gateway at.
const PROTOCOL_HEADER: HeaderName = HeaderName::from_static("x-krm-stream-protocol");
/// Asks a reverse proxy not to collect the answer before it passes it on.
/// See <https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_buffering>.
const BUFFERING_HEADER: HeaderName = HeaderName::from_static("x-accel-buffering");

impl<B> Service<Request<B>> for Gateway {
    type Response = Response<StreamBody>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    /// Answers at once: whatever has to be asked first is asked by the body, between heartbeats.
    fn call(&mut self, request: Request<B>) -> Self::Future {
        ready(Ok(self.answer(request)))
    }
}

impl Gateway {
    fn answer<B>(&self, request: Request<B>) -> Response<StreamBody> {
        if request.method() != Method::GET {
            let mut response = Response::new(StreamBody::empty());
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            response
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static("GET"));
            return response;
        }
        let (parts, _) = request.into_parts();
        let stream = GatewayStream::resolve(Arc::clone(&self.0), parts);
        let mut response = Response::new(StreamBody::streaming(stream));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(PROTOCOL_HEADER, HeaderValue::from_static("1"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
        headers.insert(BUFFERING_HEADER, HeaderValue::from_static("no"));
        response
    }
}
