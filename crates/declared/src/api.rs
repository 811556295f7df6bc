//! The few requests that are sent to the API server: no more of kube's client than its connection and credentials.
//!
//! kube's typed requests log bodies where they cannot be read, and know no deadline; so each request is built, sent and read
//! here.

use std::time::Duration;

use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use kube::Client;
use kube::client::Body;
use serde_json::Value;

/// By this name API servers log requests, and note who wrote a field.
const USER_AGENT: &str = concat!("krm-stream/", env!("CARGO_PKG_VERSION"));
/// The longest wait for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest answer: an API server stores no larger object.
const ANSWER_BYTES: usize = 4 * 1024 * 1024;
/// The most of the API server's own text that an error holds.
const MESSAGE_BYTES: usize = 1024;

/// One API server.
#[derive(Clone)]
pub(crate) struct Api(Client);

/// A request was not answered, or not with success. For the operator's log; it holds no credential and no body.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error("a name that the api server cannot have given: {0:?}")]
    Name(String),
    #[error("the request cannot be built")]
    Malformed(#[source] http::Error),
    #[error("the api server cannot be asked")]
    Request(#[source] Box<kube::Error>),
    #[error("no answer from the api server within {0:?}")]
    TimedOut(Duration),
    #[error("the answer of the api server broke off, or is too large")]
    BrokeOff,
    #[error("the answer of the api server cannot be read")]
    Unreadable,
    #[error("the api server answered {code} {reason}: {message}")]
    Refused {
        code: StatusCode,
        reason: String,
        message: String,
    },
}

impl ApiError {
    /// The status code of a refusal.
    pub(crate) const fn code(&self) -> Option<StatusCode> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            Self::Name(_)
            | Self::Malformed(_)
            | Self::Request(_)
            | Self::TimedOut(_)
            | Self::BrokeOff
            | Self::Unreadable => None,
        }
    }
}

impl Api {
    pub(crate) const fn new(client: Client) -> Self {
        Self(client)
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Vec<u8>, ApiError> {
        self.send(Method::GET, path, None).await
    }

    pub(crate) async fn create(&self, path: &str, object: &Value) -> Result<Vec<u8>, ApiError> {
        self.send(Method::POST, path, Some(("application/json", object)))
            .await
    }

    /// A merge patch (RFC 7386).
    pub(crate) async fn patch(&self, path: &str, changes: &Value) -> Result<Vec<u8>, ApiError> {
        let body = (krm_stream_status::StatusPatch::CONTENT_TYPE, changes);
        self.send(Method::PATCH, path, Some(body)).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<(&'static str, &Value)>,
    ) -> Result<Vec<u8>, ApiError> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, USER_AGENT);
        let mut text = Vec::new();
        if let Some((content_type, body)) = body {
            request = request.header(header::CONTENT_TYPE, content_type);
            text = body.to_string().into_bytes();
        }
        let request = request.body(Body::from(text)).map_err(ApiError::Malformed)?;
        let answer = async {
            let response = self
                .0
                .send(request)
                .await
                .map_err(|error| ApiError::Request(Box::new(error)))?;
            let code = response.status();
            let body = Limited::new(response.into_body(), ANSWER_BYTES).collect().await;
            let body = body.map_err(|_| ApiError::BrokeOff)?.to_bytes().to_vec();
            if code.is_success() {
                Ok(body)
            } else {
                Err(refused(code, &body))
            }
        };
        tokio::time::timeout(ANSWER_TIMEOUT, answer)
            .await
            .unwrap_or(Err(ApiError::TimedOut(ANSWER_TIMEOUT)))
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}

/// What the API server said of a refusal, as far as it is a `Status`.
fn refused(code: StatusCode, body: &[u8]) -> ApiError {
    let status: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |key: &str| {
        let text = status.get(key).and_then(Value::as_str).unwrap_or_default();
        text[..text.floor_char_boundary(MESSAGE_BYTES)].to_owned()
    };
    ApiError::Refused {
        code,
        reason: text("reason"),
        message: text("message"),
    }
}

/// A name as a segment of a path. What an API server stores as the name of such an object needs no escaping.
pub(crate) fn segment(name: &str) -> Result<&str, ApiError> {
    let is_legal = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
    if name.is_empty() || !name.bytes().all(is_legal) || name == "." || name == ".." {
        return Err(ApiError::Name(name.chars().take(253).collect()));
    }
    Ok(name)
}

/// `metadata.resourceVersion` of an answer.
pub(crate) fn version_of(object: &Value) -> Result<krm_stream_protocol::ResourceVersion, ApiError> {
    object["metadata"]["resourceVersion"]
        .as_str()
        .filter(|version| !version.is_empty())
        .map(Into::into)
        .ok_or(ApiError::Unreadable)
}

/// An answer as JSON.
pub(crate) fn parse(body: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(body).map_err(|_| ApiError::Unreadable)
}
