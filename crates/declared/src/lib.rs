//! Streams that an operator declares: the custom resource of krm-stream, and what follows from it as pure values.
//!
//! A [`DeclaredStream`] names scopes and projections that a gateway is to keep warm, and its status tells how their
//! streams are. This crate holds
//! - the resource's types, from which its definition in `crd/` is generated ([`CRD_FILE`] says where it is from);
//! - [`DeclaredStreamSpec::resolve`]: each declared stream as a scope that a [`DeclaredPolicy`] lets through, or why not,
//!   in words that belong into the status;
//! - [`DeclaredStreamStatus::evaluate`]: the status to publish, derived by [`krm_stream_status`].
//!
//! The group `krm-stream.github.io` is a name that only the owner of the project's repository can hold: groups are
//! global, and one below a domain of somebody else could clash with theirs. The resource is cluster-scoped, for it speaks
//! of the whole gateway and of scopes in any namespace; who may create it is the cluster administrator's decision.
//!
//! It talks to no API server: it holds no reconciler and no writer of status and Events. Whoever writes one finds every
//! decision in [`krm_stream_status`].
//!
//! ```
//! use krm_stream_declared::{DeclaredPolicy, DeclaredStreamSpec, DeclaredStreamStatus};
//! use krm_stream_protocol::{ResourceRule, ScopePolicy, Target};
//! use krm_stream_status::{StreamState, StreamSummary, Timestamp};
//!
//! let spec: DeclaredStreamSpec = serde_json::from_str(
//!     r#"{"streams": [
//!         {"name": "shop-config", "scope": {"version": "v1", "resource": "configmaps", "namespace": "shop"}},
//!         {"name": "everything", "scope": {"version": "v1", "resource": "configmaps"}}
//!     ]}"#,
//! )?;
//! let policy = DeclaredPolicy::new(
//!     ScopePolicy::deny_all()
//!         .allow_target(Target::default())
//!         .allow(ResourceRule::namespaced("", "configmaps")),
//! );
//!
//! // What may be watched, and what is to be told of the rest.
//! let resolved = spec.resolve(&policy);
//! assert_eq!(resolved[0].outcome().unwrap().scope().api_path(), "/api/v1/namespaces/shop/configmaps");
//! let states = [StreamState::Streaming, resolved[1].initial_stream().state().clone()];
//!
//! let names = spec.streams.iter().map(|stream| stream.name.as_str());
//! let summary = StreamSummary::of(names.zip(&states));
//! let status = DeclaredStreamStatus::evaluate(None, 1, &summary, Timestamp::from_unix_seconds(0));
//! assert_eq!(status.streams.unwrap().summary, "1/2");
//! assert_eq!(&*status.conditions.get("Ready").unwrap().reason, "WatchNotPermitted");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod definition;
mod error;
mod policy;
mod resolve;
mod resource;
mod schema;
mod status;

pub use definition::{CRD_FILE, custom_resource_definition, definition_json};
pub use error::DeclaredStreamError;
pub use policy::DeclaredPolicy;
pub use resolve::{ResolvedStream, WarmScope};
pub use resource::{DeclaredScope, DeclaredStream, DeclaredStreamSpec, StreamDeclaration};
pub use status::{DeclaredStreamStatus, StreamsStatus};

/// The example of the README compiles.
#[cfg(doctest)]
mod documentation {
    #[doc = include_str!("../README.md")]
    struct Readme;
}
