//! A gateway with every seam filled, and seams that a test fills otherwise.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::request::Parts;
use http::{Request, Response};
use krm_stream_http::{Gateway, GatewayBuilder, ResolveError, Resolver, StreamBody};
use krm_stream_protocol::{
    AllowAll, Authorizer, BoxFuture, Client, ClientFor, GrantNamed, Partition, Principal, ProjectionName,
    ProjectionPolicy, ResourceRule, Scope, ScopePolicy, ScopeRequest, StreamError, Subject, Target, Upstream,
};
use tower_service::Service as _;

use super::{Connection, ScriptedUpstream};

/// Everyone with a name is let in; each caller's streams share an upstream that acts as the caller.
pub(crate) fn builder(upstream: &ScriptedUpstream) -> GatewayBuilder {
    Gateway::builder()
        .resolver(|request: &Parts| {
            let user = request.headers.get("x-user").ok_or("canary: no header x-user")?;
            Ok(Principal::new(Subject::new(user.to_str()?)?))
        })
        .scope_policy(scope_policy())
        .authorizer(AllowAll::where_upstream_acts_as_caller())
        .client_for(AsCaller::new(upstream))
        .projection_policy(GrantNamed::default())
        .linger(Duration::ZERO)
}

pub(crate) fn scope_policy() -> ScopePolicy {
    ScopePolicy::deny_all()
        .allow_target(Target::default())
        .allow(ResourceRule::namespaced("", "configmaps"))
        .allow(ResourceRule::namespaced("", "secrets"))
}

pub(crate) fn scope(query: &str) -> Scope {
    ScopeRequest::parse(query).unwrap().scope().clone()
}

/// Asks for a stream as `ada`.
pub(crate) fn get(gateway: &Gateway, query: &str) -> Connection {
    get_as(gateway, "ada", query)
}

pub(crate) fn get_as(gateway: &Gateway, user: &str, query: &str) -> Connection {
    Connection::new(answer(gateway, user, query).into_body())
}

fn answer(gateway: &Gateway, user: &str, query: &str) -> Response<StreamBody> {
    let request = Request::get(format!("/resource-stream/v1?{query}"))
        .header("x-user", user)
        .body(())
        .unwrap();
    gateway.clone().call(request).into_inner().unwrap()
}

/// One upstream for everyone, with a partition of the test's choosing.
pub(crate) struct AsCaller {
    upstream: Arc<dyn Upstream>,
    partition: Partition,
}

impl AsCaller {
    pub(crate) fn new(upstream: &ScriptedUpstream) -> Self {
        Self::partitioned(upstream, Partition::per_caller())
    }

    pub(crate) fn partitioned(upstream: &ScriptedUpstream, partition: Partition) -> Self {
        Self {
            upstream: Arc::new(upstream.clone()),
            partition,
        }
    }
}

impl ClientFor for AsCaller {
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

/// Any seam: it answers with `answers`, given the number of the question from 0 on. `None` is no answer, ever.
pub(crate) struct Seam<T> {
    asked: Arc<AtomicUsize>,
    answers: Arc<dyn Fn(usize) -> Option<T> + Send + Sync>,
}

impl<T> Clone for Seam<T> {
    fn clone(&self) -> Self {
        Self {
            asked: Arc::clone(&self.asked),
            answers: Arc::clone(&self.answers),
        }
    }
}

impl<T: Send + 'static> Seam<T> {
    pub(crate) fn new(answers: impl Fn(usize) -> Option<T> + Send + Sync + 'static) -> Self {
        Self {
            asked: Arc::default(),
            answers: Arc::new(answers),
        }
    }

    pub(crate) fn hangs() -> Self {
        Self::new(|_| None)
    }

    /// How often it was asked.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn answer(&self) -> BoxFuture<'static, T> {
        match (self.answers)(self.asked.fetch_add(1, Ordering::SeqCst)) {
            Some(answer) => Box::pin(std::future::ready(answer)),
            None => Box::pin(std::future::pending()),
        }
    }
}

impl Resolver for Seam<Result<Principal, ResolveError>> {
    fn resolve<'a>(&'a self, _: &'a Parts) -> BoxFuture<'a, Result<Principal, ResolveError>> {
        self.answer()
    }
}

impl Authorizer for Seam<Result<(), StreamError>> {
    fn authorize<'a>(&'a self, _: &'a Principal, _: &'a Scope) -> BoxFuture<'a, Result<(), StreamError>> {
        self.answer()
    }
}

impl ClientFor for Seam<Result<Client, StreamError>> {
    fn client_for<'a>(
        &'a self,
        _: &'a Target,
        _: &'a Principal,
    ) -> BoxFuture<'a, Result<Client, StreamError>> {
        self.answer()
    }
}

impl ProjectionPolicy for Seam<Result<ProjectionName, StreamError>> {
    fn select<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a Scope,
        _: Option<&'a ProjectionName>,
    ) -> BoxFuture<'a, Result<ProjectionName, StreamError>> {
        self.answer()
    }
}
