//! What stands at which path of a listener.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{Either, Full};
use krm_stream_http::{Gateway, StreamBody};
use tower_service::Service;

use crate::admin::Admin;
use crate::hosts::AllowedHosts;
use crate::page::Page;

/// Where the stream is.
pub(crate) const STREAM_PATH: &str = "/resource-stream/v1";

/// The body of every answer.
pub(crate) type Body = Either<StreamBody, Full<Bytes>>;

/// What one listener serves.
#[derive(Debug)]
pub(crate) struct Routes {
    pub(crate) hosts: AllowedHosts,
    /// The stream and the page.
    pub(crate) site: Option<(Gateway, Page)>,
    /// `/metrics` and `/status`.
    pub(crate) admin: Option<Arc<Admin>>,
}

impl Routes {
    /// Answers a request.
    pub(crate) async fn answer<B>(&self, request: Request<B>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        if let Err(refusal) = self.hosts.check(&parts) {
            return plain(refusal.status(), refusal.to_string());
        }
        match &self.site {
            Some((gateway, _)) if parts.uri.path() == STREAM_PATH => {
                let request = Request::from_parts(parts, body);
                match gateway.clone().call(request).await {
                    Ok(response) => response.map(Either::Left),
                    Err(never) => match never {},
                }
            }
            Some(_) | None => self.document(&parts.method, parts.uri.path()),
        }
    }

    fn document(&self, method: &Method, path: &str) -> Response<Body> {
        let document = match path {
            "/livez" | "/readyz" => Some(plain(StatusCode::OK, "ok".to_owned())),
            _ => {
                let admin = self.admin.as_ref().and_then(|admin| admin.answer(path));
                let page = || self.site.as_ref().and_then(|(_, page)| page.answer(path));
                admin
                    .or_else(page)
                    .map(|response| response.map(|content| Either::Right(Full::new(content))))
            }
        };
        let Some(document) = document else {
            return plain(StatusCode::NOT_FOUND, "there is nothing at this path".to_owned());
        };
        // hyper leaves the body of an answer to HEAD out.
        if *method == Method::GET || *method == Method::HEAD {
            return document;
        }
        let mut refusal = plain(
            StatusCode::METHOD_NOT_ALLOWED,
            "this can only be read: use GET".to_owned(),
        );
        refusal
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        refusal
    }
}

fn plain(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Either::Right(Full::new(Bytes::from(text + "\n"))));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
