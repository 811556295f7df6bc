//! The service stack towards the API server: one pool, one identity, no retries, no redirects.
//!
//! TLS and authentication are kube's; the connector, its deadlines and the request headers are ours. kube's own client
//! stack is left out because its retry layer repeats 429, 503 and 504 below us and sleeps any `Retry-After`, and its
//! connector sets no TCP keepalive.

mod connector;
mod credential;
mod stack;

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use krm_stream_protocol::{UpstreamError, UpstreamErrorKind};
use kube::client::AuthError;
use tower::util::{BoxCloneSyncService, ServiceExt as _};

pub(crate) use credential::TokenFile;
pub(crate) use stack::{StackError, from_client, from_config};

use crate::status::{Class, Status};

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;
/// The body of a response.
pub(crate) type Body = UnsyncBoxBody<Bytes, BoxError>;
/// Takes requests whose URI is a path and a query.
pub(crate) type HttpService = BoxCloneSyncService<Request<Bytes>, Response<Body>, BoxError>;

/// Never one that begins with `Mozilla/5.0`, `curl` or `Wget`: an API server indents its JSON for those.
const KRM_STREAM_USER_AGENT: &str = concat!("krm-stream/", env!("CARGO_PKG_VERSION"));
/// The most of an error's body that is read, in bytes.
const ERROR_BODY_BYTES: usize = 64 * 1024;
/// The longest wait for the body of an error.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// Requests to one API server. Cloning is cheap and shares the pool.
#[derive(Clone)]
pub(crate) struct Transport {
    service: HttpService,
    /// Where the credential is a file, it is read here rather than in kube's layer, so that it can be read again.
    token_file: Option<Arc<TokenFile>>,
    /// The headers of every request, impersonation excluded.
    headers: Arc<HeaderMap>,
    open_timeout: Duration,
}

/// What is asked of the API server.
#[derive(Clone, Debug)]
pub(crate) enum Query {
    Get {
        path_and_query: String,
    },
    Post {
        path_and_query: &'static str,
        body: Bytes,
    },
}

/// Why there is no successful answer.
#[derive(Debug)]
pub(crate) enum AskError {
    /// None came: the transport, TLS, a deadline, or no credential could be had.
    NoAnswer(UpstreamError),
    /// One came that cannot be read.
    Odd(UpstreamError),
    /// The API server answered with something else than success.
    Refused(Box<Refused>),
}

/// An answer that is no success.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) code: StatusCode,
    pub(crate) status: Status,
    pub(crate) class: Class,
}

/// Why a request was not answered. For diagnostics; it never holds a credential.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAnswer {
    #[error("no credential for the api server: {0}")]
    Credential(&'static str),
    #[error("the request to the api server failed")]
    Request(#[source] BoxError),
    #[error("no response headers from the api server within {0:?}")]
    Headers(Duration),
    #[error("the request cannot be built")]
    Malformed(#[source] http::Error),
}

/// An answer in a form that was not asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OddAnswer {
    #[error("the api server answered {0}, which is neither 200 nor an error")]
    Success(StatusCode),
    #[error("the api server answered with a content encoding, though identity was asked for")]
    Encoded,
}

impl Transport {
    /// `extra` are headers that the host wants on every request; ours outrank them.
    pub(crate) fn new(
        service: HttpService,
        token_file: Option<TokenFile>,
        extra: HeaderMap,
        open_timeout: Duration,
    ) -> Self {
        let mut headers = extra;
        headers.insert(USER_AGENT, HeaderValue::from_static(KRM_STREAM_USER_AGENT));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        // A compressed watch may be decoded no further than its first event.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        Self {
            service,
            token_file: token_file.map(Arc::new),
            headers: Arc::new(headers),
            open_timeout,
        }
    }

    /// Asks, and resolves to a successful answer when its headers are there. A 401 is asked once more after the token
    /// file, if there is one, was read again.
    pub(crate) async fn ask(
        &self,
        query: &Query,
        impersonation: &HeaderMap,
    ) -> Result<Response<Body>, AskError> {
        let answer = self.try_ask(query, impersonation).await;
        let (Err(AskError::Refused(refused)), Some(token_file)) = (&answer, &self.token_file) else {
            return answer;
        };
        if refused.code != StatusCode::UNAUTHORIZED {
            return answer;
        }
        token_file.forget().await;
        self.try_ask(query, impersonation).await
    }

    async fn try_ask(&self, query: &Query, impersonation: &HeaderMap) -> Result<Response<Body>, AskError> {
        let request = self.request(query, impersonation).await.map_err(no_answer)?;
        let answer = tokio::time::timeout(self.open_timeout, self.service.clone().oneshot(request)).await;
        let response = match answer {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(no_answer(without_credentials(error))),
            Err(_elapsed) => return Err(no_answer(NoAnswer::Headers(self.open_timeout))),
        };
        match response.status() {
            StatusCode::OK | StatusCode::CREATED => accept_identity(response),
            code if code.is_success() => Err(odd(OddAnswer::Success(code))),
            _ => Err(AskError::Refused(Box::new(Refused::read(response).await))),
        }
    }

    async fn request(&self, query: &Query, impersonation: &HeaderMap) -> Result<Request<Bytes>, NoAnswer> {
        let (method, path_and_query, body) = match query {
            Query::Get { path_and_query } => (Method::GET, path_and_query.as_str(), Bytes::new()),
            Query::Post { path_and_query, body } => (Method::POST, *path_and_query, body.clone()),
        };
        let is_post = method == Method::POST;
        let mut request = Request::builder()
            .method(method)
            .uri(path_and_query)
            .body(body)
            .map_err(NoAnswer::Malformed)?;
        let headers = request.headers_mut();
        headers.clone_from(&self.headers);
        if is_post {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        for (name, value) in impersonation {
            headers.append(name, value.clone());
        }
        if let Some(token_file) = &self.token_file {
            headers.insert(AUTHORIZATION, token_file.header().await?);
        }
        Ok(request)
    }
}

impl fmt::Debug for Transport {
    /// Shows no header: the host's own may hold a credential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport")
            .field("headers", &self.headers.len())
            .field("open_timeout", &self.open_timeout)
            .finish_non_exhaustive()
    }
}

impl Refused {
    async fn read(response: Response<Body>) -> Self {
        let code = response.status();
        let hint = crate::retry_after::retry_after(response.headers());
        let body = read_start(response.into_body()).await;
        let status = Status::read(&body);
        let class = status.classify(Some(code.as_u16()), hint);
        Self { code, status, class }
    }
}

/// The beginning of a body, as much of it as comes in time.
async fn read_start(mut body: Body) -> Vec<u8> {
    let mut start = Vec::new();
    let deadline = tokio::time::Instant::now() + ERROR_BODY_TIMEOUT;
    while start.len() < ERROR_BODY_BYTES
        && let Ok(Some(Ok(frame))) = tokio::time::timeout_at(deadline, body.frame()).await
    {
        if let Ok(data) = frame.into_data() {
            start.extend_from_slice(&data[..data.len().min(ERROR_BODY_BYTES - start.len())]);
        }
    }
    start
}

fn accept_identity(response: Response<Body>) -> Result<Response<Body>, AskError> {
    match response.headers().get(CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" => Err(odd(OddAnswer::Encoded)),
        Some(_) | None => Ok(response),
    }
}

fn odd(cause: OddAnswer) -> AskError {
    AskError::Odd(UpstreamError::new(UpstreamErrorKind::Unreadable).with_cause(cause))
}

fn no_answer(cause: NoAnswer) -> AskError {
    AskError::NoAnswer(UpstreamError::new(UpstreamErrorKind::Unavailable).with_cause(cause))
}

/// The cause of a failed request. An error of kube's authentication is replaced by a fixed sentence, since its text
/// shows what a credential plugin printed.
fn without_credentials(error: BoxError) -> NoAnswer {
    let mut source: Option<&(dyn Error + 'static)> = Some(&*error);
    while let Some(cause) = source {
        if let Some(credential) = cause.downcast_ref::<AuthError>() {
            return NoAnswer::Credential(describe(credential));
        }
        if let Some(kube::Error::Auth(credential)) = cause.downcast_ref::<kube::Error>() {
            return NoAnswer::Credential(describe(credential));
        }
        source = cause.source();
    }
    NoAnswer::Request(error)
}

/// What went wrong with a credential, without anything of it.
pub(crate) fn describe(error: &AuthError) -> &'static str {
    match error {
        AuthError::InvalidBasicAuth(_) => "the user name or password is no legal header",
        AuthError::InvalidBearerToken(_) => "the token is no legal header",
        AuthError::UnrefreshableTokenResponse => "the credential plugin gave no token that can be refreshed",
        AuthError::ExecPluginFailed => "the credential plugin gave no status",
        AuthError::MalformedTokenExpirationDate(_) => "the expiry of the token is no date",
        AuthError::AuthExecStart(_) => "the credential plugin could not be started",
        AuthError::AuthExecRun { .. } => "the credential plugin failed",
        AuthError::AuthExecParse(_) => "the output of the credential plugin could not be read",
        AuthError::ReadTokenFile(..) => "the token file could not be read",
        AuthError::MissingCommand => "the kubeconfig names no command for its credential plugin",
        AuthError::ExecMissingClusterInfo => {
            "the credential plugin asks for cluster information that is missing"
        }
        _ => "the credential could not be obtained",
    }
}
