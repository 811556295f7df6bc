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
//! - [`Reconciler`]: what is to be done about it all, as a state machine without I/O;
//! - [`DeclaredStreams`]: the task that does it, with a [`KubeStatusWriter`], and with a Lease if there are several replicas.
//!
//! Every decision about what is published is that of [`krm_stream_status`].
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

mod api;
mod clock;
mod controller;
mod counts;
mod definition;
mod error;
mod holding;
mod lease;
mod policy;
mod read;
mod reconciler;
mod resolve;
mod resource;
mod schema;
mod status;
mod watching;
mod writer;

pub use controller::{DeclaredStreams, DeclaredStreamsBuilder, DeclaredStreamsError};
pub use counts::{DeclaredCounts, PublishingCounts, StreamCounts};
pub use definition::{CRD_FILE, custom_resource_definition, definition_json};
pub use error::DeclaredStreamError;
pub use lease::{LeaseSettings, LeaseSettingsError};
pub use policy::DeclaredPolicy;
pub use read::{ReadError, ReadResource, UnreadableSpec};
pub use reconciler::{Action, FeedId, Now, ReadAgain, Reconciler, Written};
pub use resolve::{ResolvedStream, WarmScope};
pub use resource::{DeclaredScope, DeclaredStream, DeclaredStreamSpec, StreamDeclaration};
pub use status::{DeclaredStreamStatus, StreamsStatus};
pub use writer::KubeStatusWriter;

/// The example of the README compiles.
#[cfg(doctest)]
mod documentation {
    #[doc = include_str!("../README.md")]
    struct Readme;
}
