//! The gateway as a service: `http` requests in, event streams out.
//!
//! [`Gateway`] is a [`tower_service::Service`](https://docs.rs/tower-service), so it mounts in axum, hyper or anything
//! that speaks `http` and `http-body`. It checks who is calling and what for, joins the feed of the scope, and keeps the
//! connection alive. It holds no Kubernetes knowledge: where objects come from is behind
//! [`ClientFor`](krm_stream_protocol::ClientFor).
//!
//! [`Partition::per_caller`](krm_stream_protocol::Partition::per_caller) *says* that an upstream acts as the caller, and
//! nothing can check that it does: it is `acting_as` below that makes it so.
//!
//! Dropping the response body is how a consumer leaves: the stream's check, opening or place at a feed goes with it.
//!
//! A reader that takes nothing is cut where the gateway has a
//! [`write_timeout`](GatewayBuilder::write_timeout). It needs connections that can bound delivery: [`serve()`] in place of
//! `axum::serve`, [`serve_connection`] in a host's own loop; [`DeliveryCheck`] tells a host's tests whether its middleware
//! lets it through.
//!
//! ```
//! use std::sync::Arc;
//!
//! use krm_stream_http::Gateway;
//! use krm_stream_protocol::{
//!     AllowAll, BoxFuture, Client, ClientFor, GrantNamed, Partition, Principal, ResourceRule, ScopePolicy, StreamError,
//!     Subject, Target,
//! };
//! use krm_stream_upstream_kube::KubeUpstream;
//!
//! /// One cluster, asked as whoever asks: the API server's RBAC decides what each caller sees.
//! struct AsCaller(KubeUpstream);
//!
//! impl ClientFor for AsCaller {
//!     fn client_for<'a>(&'a self, _: &'a Target, principal: &'a Principal) -> BoxFuture<'a, Result<Client, StreamError>> {
//!         let client = match self.0.acting_as(principal.subject()) {
//!             Ok(upstream) => Ok(Client { upstream: Arc::new(upstream), partition: Partition::per_caller() }),
//!             Err(_) => Err(StreamError::unauthenticated("your login cannot be passed on to the cluster")),
//!         };
//!         Box::pin(std::future::ready(client))
//!     }
//! }
//!
//! # fn build(cluster: KubeUpstream) -> Result<Gateway, Box<dyn std::error::Error>> {
//! let gateway = Gateway::builder()
//!     // A header that a proxy in front of this service sets, and takes out of what browsers send.
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
//!     .client_for(AsCaller(cluster))
//!     .projection_policy(GrantNamed::default())
//!     .build()?;
//! # Ok(gateway)
//! # }
//! ```

mod body;
mod delivery;
mod frames;
mod gateway;
mod resolver;
mod serve;
mod service;
mod settings;
mod stream;

pub use body::StreamBody;
pub use delivery::{
    BoundedAnswer, BoundedBody, BoundedData, BoundedExecutor, BoundedIo, BoundedService, ConnectionGuard,
    DeliveryCheck, DeliveryProblem, TransportRejected,
};
pub use frames::{Frame, Frames};
pub use gateway::{BuildError, Gateway, GatewayBuilder};
pub use resolver::{ResolveError, Resolver};
pub use serve::{
    BoxError, Connection, Handshaking, HttpService, Listener, PeerAddress, Serve, handshaking,
    prepare_socket, serve, serve_connection,
};

/// The examples of the README and of the documentation compile.
#[cfg(doctest)]
mod documentation {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/embedding.md")]
    struct Embedding;
}
