//! The upstream: one API server, as one identity.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Response};
use krm_stream_protocol::{BoxFuture, OpenError, Scope, Session, SessionEnd, Start, Subject, Upstream};
use kube::Config;
use tokio::time::Instant;

use crate::builder::{BuildError, KubeUpstreamBuilder};
use crate::impersonation::{self, ImpersonationError};
use crate::random::Spread;
use crate::request::Ask;
use crate::session::KubeSession;
use crate::settings::{Settings, WatchTimeout};
use crate::status::Class;
use crate::streaming_list::{Refusal, StreamingLists};
use crate::transport::{AskError, Body, Query, Refused, Transport};

/// One API server, as one identity: opens watch sessions on it. Cloning is cheap and shares the connection pool.
///
/// A clone made by [`acting_as`](Self::acting_as) has another identity on the same pool.
#[derive(Clone)]
pub struct KubeUpstream {
    connection: Arc<Connection>,
    impersonation: Arc<HeaderMap>,
}

/// What all identities on one API server share.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) transport: Transport,
    pub(crate) settings: Settings,
    pub(crate) streaming_lists: StreamingLists,
    pub(crate) spread: Spread,
}

impl KubeUpstream {
    /// An upstream with default settings, from a configuration that kube has read: a kubeconfig (client certificates,
    /// tokens, credential plugins), the pod's own service account, or whatever `Config::infer` finds.
    ///
    /// # Errors
    /// As [`KubeUpstreamBuilder::build`].
    pub fn from_config(config: Config) -> Result<Self, BuildError> {
        Self::builder(config).build()
    }

    /// Settings of an upstream from a configuration that kube has read.
    pub fn builder(config: Config) -> KubeUpstreamBuilder {
        KubeUpstreamBuilder::from_config(config)
    }

    /// Settings of an upstream that sends its requests through a client of the host's.
    ///
    /// Its limits: whatever the client's stack does is done to sessions too. kube's default stack retries 429, 503 and
    /// 504 and sleeps any `Retry-After` (set `Config::default_retry` to false), sets no TCP keepalive, so a dead peer is
    /// noticed by silence alone, and re-reads a token file about every 50 s, but not when a token was rejected. Whether
    /// it impersonates cannot be seen: if it does, every caller is that user.
    ///
    /// Must be called within a tokio runtime if the client was.
    pub fn builder_with_client(client: kube::Client) -> KubeUpstreamBuilder {
        KubeUpstreamBuilder::from_client(client)
    }

    /// This API server as `subject`, by [impersonation] headers on each request. The identity of the configuration needs
    /// the right to impersonate.
    ///
    /// # Errors
    /// [`ImpersonationError`] if a part of the subject cannot be carried in a header: refuse the caller.
    ///
    /// [impersonation]: https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/
    pub fn acting_as(&self, subject: &Subject) -> Result<Self, ImpersonationError> {
        Ok(Self {
            connection: Arc::clone(&self.connection),
            impersonation: Arc::new(impersonation::headers(subject)?),
        })
    }

    pub(crate) fn new(connection: Arc<Connection>, impersonation: Arc<HeaderMap>) -> Self {
        Self {
            connection,
            impersonation,
        }
    }

    /// Posts as the identity of the configuration, whoever this upstream acts as.
    pub(crate) async fn post_as_itself(
        &self,
        path_and_query: &'static str,
        body: bytes::Bytes,
    ) -> Result<Response<Body>, AskError> {
        let query = Query::Post { path_and_query, body };
        self.connection.transport.ask(&query, &HeaderMap::new()).await
    }
}

impl fmt::Debug for KubeUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeUpstream")
            .field("impersonates", &!self.impersonation.is_empty())
            .field("settings", &self.connection.settings)
            .finish_non_exhaustive()
    }
}

impl Upstream for KubeUpstream {
    fn open<'a>(
        &'a self,
        scope: &'a Scope,
        start: Start,
    ) -> BoxFuture<'a, Result<Box<dyn Session>, OpenError>> {
        Box::pin(async move {
            let requests = Requests {
                upstream: self.clone(),
                scope: scope.clone(),
                timeout: self.connection.draw_timeout(),
            };
            let session = match start {
                Start::Fresh => open_fresh(requests).await?,
                Start::After(version) => {
                    let sent = Instant::now();
                    let ask = Ask::Watch {
                        after: &version,
                        timeout: requests.timeout,
                    };
                    let response = requests.ask(ask).await.map_err(open_error)?;
                    KubeSession::watch(requests, response.into_body(), sent)
                }
            };
            Ok(Box::new(session) as Box<dyn Session>)
        })
    }
}

async fn open_fresh(requests: Requests) -> Result<KubeSession, OpenError> {
    let mut refusal = None;
    if requests.streaming_lists_are_served() {
        let sent = Instant::now();
        let timeout = requests.timeout;
        match requests.ask(Ask::StreamingList { timeout }).await {
            Ok(response) => return Ok(KubeSession::streaming_list(requests, response.into_body(), sent)),
            Err(AskError::Refused(refused)) if refused.may_refuse_streaming_lists() => {
                refusal = Some(refused.streaming_list_refusal());
            }
            Err(error) => return Err(open_error(error)),
        }
    }
    let page = requests.ask(requests.first_page()).await.map_err(open_error)?;
    Ok(KubeSession::list(requests, page.into_body(), refusal))
}

impl Connection {
    fn draw_timeout(&self) -> Duration {
        match self.settings.watch_timeout {
            WatchTimeout::Fixed(timeout) => timeout,
            WatchTimeout::Between(from, to) => self.spread.seconds_between(from, to),
        }
    }
}

/// The requests of one session.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    upstream: KubeUpstream,
    pub(crate) scope: Scope,
    /// The `timeoutSeconds` of its watch request.
    pub(crate) timeout: Duration,
}

impl Requests {
    pub(crate) fn settings(&self) -> &Settings {
        &self.upstream.connection.settings
    }

    pub(crate) async fn ask(&self, ask: Ask<'_>) -> Result<Response<Body>, AskError> {
        let query = Query::Get {
            path_and_query: ask.path_and_query(&self.scope),
        };
        let upstream = &self.upstream;
        upstream
            .connection
            .transport
            .ask(&query, &upstream.impersonation)
            .await
    }

    /// `delay`, or somewhat longer.
    pub(crate) fn spread(&self, delay: Duration) -> Duration {
        self.upstream.connection.spread.lengthen(delay)
    }

    pub(crate) fn first_page(&self) -> Ask<'static> {
        Ask::Page {
            limit: self.settings().page_limit,
            next: None,
        }
    }

    fn streaming_lists_are_served(&self) -> bool {
        self.upstream
            .connection
            .streaming_lists
            .are_served(&self.scope.api_version(), Instant::now())
    }

    pub(crate) fn streaming_list_refused(&self, refusal: Refusal) {
        self.upstream
            .connection
            .streaming_lists
            .refused(&self.scope.api_version(), refusal, Instant::now());
    }
}

impl Refused {
    /// Whether this may be the streaming list's refusal, so that a list is worth trying: an API server that does not
    /// know its parameters answers 400, 405 or 422 in words of its own, and some 500.
    fn may_refuse_streaming_lists(&self) -> bool {
        matches!(self.code.as_u16(), 400 | 405 | 422 | 500) && matches!(self.class, Class::Error(_))
    }

    fn streaming_list_refusal(&self) -> Refusal {
        if self.code.as_u16() != 500 && self.status.names_streaming_list() {
            Refusal::Certain
        } else {
            Refusal::Inferred
        }
    }
}

fn open_error(error: AskError) -> OpenError {
    match error {
        AskError::NoAnswer(error) | AskError::Odd(error) => OpenError::Failed(error),
        AskError::Refused(refused) => match refused.class {
            Class::Expired => OpenError::Expired,
            Class::Error(error) => OpenError::Failed(error),
        },
    }
}

/// How a session ends when one of its later requests failed.
impl From<AskError> for SessionEnd {
    fn from(error: AskError) -> Self {
        match error {
            AskError::NoAnswer(_) => Self::Closed,
            AskError::Odd(error) => Self::Failed(error),
            AskError::Refused(refused) => refused.class.into(),
        }
    }
}

impl From<Class> for SessionEnd {
    fn from(class: Class) -> Self {
        match class {
            Class::Expired => Self::Expired,
            Class::Error(error) => Self::Failed(error),
        }
    }
}
