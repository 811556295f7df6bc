//! The gateway as a service: `http` requests in, event streams out.
//!
//! [`Gateway`] is a [`tower_service::Service`], so it mounts in axum, hyper or anything that speaks `http` and
//! `http-body`. It checks who is calling and what for, joins the feed of the scope, and keeps the connection alive. It
//! holds no Kubernetes knowledge: where objects come from is behind
//! [`ClientFor`](krm_stream_protocol::ClientFor).
//!
//! Dropping the response body is how a consumer leaves: the stream's check, opening or place at a feed goes with it.
//!
//! ```
//! use std::sync::Arc;
//!
//! use krm_stream_http::Gateway;
//! use krm_stream_protocol::{
//!     AllowAll, BoxFuture, Client, ClientFor, GrantNamed, Partition, Principal, ResourceRule, ScopePolicy, StreamError,
//!     Subject, Target, Upstream,
//! };
//!
//! /// One upstream for everyone, as each caller.
//! struct OneCluster(Arc<dyn Upstream>);
//!
//! impl ClientFor for OneCluster {
//!     fn client_for<'a>(&'a self, _: &'a Target, _: &'a Principal) -> BoxFuture<'a, Result<Client, StreamError>> {
//!         let client = Client { upstream: Arc::clone(&self.0), partition: Partition::per_caller() };
//!         Box::pin(std::future::ready(Ok(client)))
//!     }
//! }
//!
//! # fn build(upstream: Arc<dyn Upstream>) -> Result<Gateway, Box<dyn std::error::Error>> {
//! let gateway = Gateway::builder()
//!     .resolver(|request: &http::request::Parts| {
//!         let user = request.headers.get("x-user").and_then(|user| user.to_str().ok()).unwrap_or_default();
//!         Ok(Principal::new(Subject::new(user)?))
//!     })
//!     .scope_policy(
//!         ScopePolicy::deny_all()
//!             .allow_target(Target::default())
//!             .allow(ResourceRule::namespaced("", "configmaps")),
//!     )
//!     .authorizer(AllowAll::where_upstream_acts_as_caller())
//!     .client_for(OneCluster(upstream))
//!     .projection_policy(GrantNamed::default())
//!     .build()?;
//! # Ok(gateway)
//! # }
//! ```

mod body;
mod frames;
mod gateway;
mod resolver;
mod service;
mod settings;
mod stream;

pub use body::StreamBody;
pub use frames::{Frame, Frames};
pub use gateway::{BuildError, Gateway, GatewayBuilder};
pub use resolver::{ResolveError, Resolver};

/// The examples of the README and of the documentation compile.
#[cfg(doctest)]
mod documentation {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/embedding.md")]
    struct Embedding;
}
