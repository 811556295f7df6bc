//! The gateway as a service over `http` types.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Version};
use krm_stream_protocol::{Observation, Observing};
use tower_service::Service;

use crate::body::StreamBody;
use crate::delivery::{Bound, CHECK_WRITE_TIMEOUT, Capability, TransportRejected};
use crate::gateway::{Gateway, Host};
use crate::stream::GatewayStream;

/// The version of the wire, which is also in the path that a host mounts the gateway at.
pub(crate) const PROTOCOL_HEADER: HeaderName = HeaderName::from_static("x-krm-stream-protocol");
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
        let (mut parts, _) = request.into_parts();
        let capability = parts.extensions.remove::<Capability>();
        let body = match (self.0.settings.write_timeout, capability) {
            (write_timeout, Some(capability)) if capability.is_of_a_check() => {
                Self::check(parts.version, write_timeout.is_some(), capability)
            }
            (None, Some(_) | None) => Ok(self.begin(parts, None)),
            (Some(write_timeout), Some(capability)) => capability
                .bind(parts.version, write_timeout, self.0.observing.clone())
                .map(|bound| self.begin(parts, Some(bound))),
            (Some(_), None) => Err(TransportRejected::Capability),
        };
        let mut response = Response::new(body.unwrap_or_else(|cause| {
            self.0.rejects(cause);
            StreamBody::rejected(cause)
        }));
        if response.body().is_rejected() {
            // It is aborted before its head is out, and tells nobody to come back if it is not.
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        }
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(PROTOCOL_HEADER, HeaderValue::from_static("1"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
        headers.insert(BUFFERING_HEADER, HeaderValue::from_static("no"));
        response
    }

    fn begin(&self, request: Parts, bound: Option<Bound>) -> StreamBody {
        let stream = GatewayStream::resolve(Arc::clone(&self.0), request);
        StreamBody::streaming(Arc::clone(&self.0), stream, bound)
    }

    /// Answers a check of the host's wiring.
    fn check(
        version: Version,
        has_write_timeout: bool,
        capability: Capability,
    ) -> Result<StreamBody, TransportRejected> {
        let Some(chunks) = capability.reach_probe(has_write_timeout) else {
            return Ok(StreamBody::empty());
        };
        let bound = capability.bind(version, CHECK_WRITE_TIMEOUT, Observing::default())?;
        Ok(StreamBody::checking(chunks, bound))
    }
}

impl Host {
    /// A request's connection cannot bound delivery.
    pub(crate) fn rejects(&self, cause: TransportRejected) {
        self.observing.observe(&Observation::HttpTransportRejected);
        self.diagnosing.report("serving a stream", None, &cause);
    }
}
