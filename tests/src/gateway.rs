//! A gateway on a scripted upstream.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, Request, Response};
use krm_stream_http::{Gateway, GatewayBuilder, StreamBody};
use krm_stream_protocol::{
    AllowAll, BoxFuture, Client, ClientFor, GrantNamed, Observer, Ordering, Partition, Principal,
    ResourceRule, ScopePolicy, StreamError, Subject, Target, Upstream,
};
use tower_service::Service;

use crate::connection::Connection;
use crate::scripted::ScriptedUpstream;

/// A gateway that a test may set up, and connections to it.
#[derive(Clone, Debug)]
pub struct GatewayUnderTest(Gateway);

impl GatewayUnderTest {
    /// One cluster, one service identity, everyone allowed: what matters to a test of the wire.
    pub fn on(upstream: ScriptedUpstream) -> Self {
        Self::build(Self::builder(upstream, Partition::shared("tests")))
    }

    /// The same, observed.
    pub fn observed(upstream: ScriptedUpstream, observer: Arc<dyn Observer>) -> Self {
        Self::build(Self::builder(upstream, Partition::shared("tests")).observer(observer))
    }

    /// The same with a partition, an ordering and a linger time.
    pub fn with(
        upstream: ScriptedUpstream,
        partition: Partition,
        ordering: Ordering,
        linger: Duration,
    ) -> Self {
        Self::build(
            Self::builder(upstream, partition)
                .ordering(ordering)
                .linger(linger),
        )
    }

    /// A builder with every seam set, for a test that changes one.
    pub fn builder(upstream: impl Upstream + 'static, partition: Partition) -> GatewayBuilder {
        Gateway::builder()
            .resolver(|request: &Parts| Ok(Principal::new(subject(&request.headers)?)))
            .scope_policy(scope_policy())
            .authorizer(AllowAll::dangerously_for_shared_feeds())
            .client_for(OneUpstream {
                upstream: Arc::new(upstream),
                partition,
            })
            .projection_policy(GrantNamed::default())
    }

    /// Builds it.
    ///
    /// # Panics
    /// If a test left out a seam.
    #[expect(clippy::expect_used, reason = "a test sets what a gateway needs")]
    pub fn build(builder: GatewayBuilder) -> Self {
        Self(builder.build().expect("a test sets what a gateway needs"))
    }

    /// The gateway.
    pub fn gateway(&self) -> &Gateway {
        &self.0
    }

    /// Opens a connection as `tester`.
    pub fn connect(&self, query: &str) -> Connection {
        self.connect_as("tester", query)
    }

    /// Opens a connection as this user.
    pub fn connect_as(&self, user: &str, query: &str) -> Connection {
        let request = Request::get(format!("/resource-stream/v1?{query}"))
            .header("x-user", user)
            .body(());
        Connection::new(self.answer(request).into_body())
    }

    /// Answers any request.
    ///
    /// # Panics
    /// If the request could not be built.
    #[expect(
        clippy::expect_used,
        reason = "a test's own request is legal; the service is infallible"
    )]
    pub fn answer(&self, request: http::Result<Request<()>>) -> Response<StreamBody> {
        let mut gateway = self.0.clone();
        gateway
            .call(request.expect("a test's own request is legal"))
            .into_inner()
            .expect("the service is infallible")
    }
}

/// The user is a header's value; groups are another's, separated by commas.
fn subject(headers: &HeaderMap) -> Result<Subject, Box<dyn std::error::Error + Send + Sync>> {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    };
    let subject = Subject::new(text("x-user"))?;
    Ok(text("x-groups")
        .split(',')
        .filter(|group| !group.is_empty())
        .fold(subject, Subject::group))
}

fn scope_policy() -> ScopePolicy {
    ScopePolicy::deny_all()
        .allow_target(Target::default())
        .allow_target(Target::new("demo"))
        .allow(ResourceRule::namespaced("", "configmaps").allow_label_selector(true))
        .allow(ResourceRule::namespaced("", "secrets"))
        .allow(ResourceRule::namespaced("", "pods").allow_label_selector(true))
        .allow(ResourceRule::namespaced("apps", "deployments"))
        .allow(ResourceRule::namespaced("lab.example.com", "oddities"))
        .allow(ResourceRule::namespaced("wardle.example.com", "flunders"))
        .allow(ResourceRule::cluster_scoped("", "namespaces"))
}

struct OneUpstream {
    upstream: Arc<dyn Upstream>,
    partition: Partition,
}

impl ClientFor for OneUpstream {
    fn client_for<'a>(
        &'a self,
        _: &'a Target,
        _: &'a Principal,
    ) -> BoxFuture<'a, Result<Client, StreamError>> {
        let client = Client {
            upstream: Arc::clone(&self.upstream),
            partition: self.partition.clone(),
        };
        Box::pin(std::future::ready(Ok(client)))
    }
}
