//! Watch sessions on a Kubernetes API server, over raw bodies.
//!
//! [`KubeUpstream`] opens the sessions that a feed is made of: a streaming list where the API server serves one, a paged
//! list and a watch where it does not, bookmarks throughout. Objects stay the bytes that were sent; nothing is parsed
//! into a tree and written again. TLS and authentication are kube's; the service stack is our own.
//!
//! ```
//! use krm_stream_protocol::{Scope, SessionItem, Start, Upstream as _, WatchEvent};
//! use krm_stream_upstream_kube::{KubeUpstream, kube};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! # let simulator = krm_stream_simulator::Simulator::start().await?;
//! # let object = serde_json::json!({"metadata": {"name": "a", "namespace": "shop"}});
//! # simulator.create("configmaps", object)?;
//! # let url = simulator.url();
//! // `kube::Config::infer()` reads a kubeconfig or the pod's service account.
//! let config = kube::Config::new(url.parse()?);
//! let upstream = KubeUpstream::from_config(config)?;
//! let scope = Scope::builder("v1", "configmaps").namespace("shop").build()?;
//!
//! let mut session = upstream.open(&scope, Start::Fresh).await?;
//! let mut names = Vec::new();
//! loop {
//!     match std::future::poll_fn(|cx| session.poll_next(cx)).await {
//!         SessionItem::Event(WatchEvent::Added(object)) => {
//!             names.extend(object.identity().map(|identity| identity.name.clone()));
//!         }
//!         SessionItem::Event(WatchEvent::Bookmark { initial_events_end: true, .. }) => break,
//!         SessionItem::Event(_) => {}
//!         SessionItem::End(end) => return Err(format!("{end:?}").into()),
//!     }
//! }
//! assert_eq!(names, ["a".into()]);
//! # Ok(())
//! # }
//! # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
//! ```

mod access_review;
mod builder;
mod envelope;
mod impersonation;
mod lines;
mod page;
mod random;
mod request;
mod retry_after;
mod session;
mod settings;
mod silence;
mod status;
mod streaming_list;
mod transport;
mod upstream;
mod watch_body;

pub use kube;

pub use access_review::SubjectAccessReviewAuthorizer;
pub use builder::{BuildError, KubeUpstreamBuilder};
pub use impersonation::ImpersonationError;
pub use upstream::KubeUpstream;
pub use watch_body::decode_watch;

/// The examples of the README and of the documentation compile.
#[cfg(doctest)]
mod documentation {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/authentication.md")]
    struct Authentication;
}
