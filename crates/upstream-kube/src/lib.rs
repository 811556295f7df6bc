//! Watch sessions on a Kubernetes API server, over raw bodies.
//!
//! [`KubeUpstream`] opens the sessions that a feed is made of: a streaming list where the API server serves one, a paged
//! list and a watch where it does not, bookmarks throughout. Objects stay the bytes that were sent; nothing is parsed
//! into a tree and written again. TLS and authentication are kube's; the service stack is our own.
//!
//! ```no_run
//! use krm_stream_protocol::{Scope, SessionItem, Start, Upstream as _};
//! use krm_stream_upstream_kube::{KubeUpstream, kube};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let upstream = KubeUpstream::from_config(kube::Config::infer().await?)?;
//! let scope = Scope::builder("v1", "configmaps").namespace("default").build()?;
//! let mut session = upstream.open(&scope, Start::Fresh).await?;
//! loop {
//!     match std::future::poll_fn(|cx| session.poll_next(cx)).await {
//!         SessionItem::Event(event) => println!("{event:?}"),
//!         SessionItem::End(end) => break println!("{end:?}"),
//!     }
//! }
//! # Ok(())
//! # }
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

pub use kube;

pub use access_review::SubjectAccessReviewAuthorizer;
pub use builder::{BuildError, KubeUpstreamBuilder};
pub use impersonation::ImpersonationError;
pub use upstream::KubeUpstream;
