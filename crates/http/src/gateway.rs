//! The gateway: a host's seams, and the feeds behind them.

mod builder;
mod check;
mod cycle;
mod drain;
mod jitter;
mod limits;
mod recheck;
mod streams;

use std::fmt;
use std::sync::Arc;

use krm_stream_projection::Projections;
use krm_stream_protocol::{
    Authorizer, ClientFor, Diagnosing, Moment, Observing, Principal, ProjectionName, ProjectionPolicy, Scope,
    ScopePolicy, StreamError,
};
use krm_stream_shared::Feeds;
use tokio::time::Instant;

pub use builder::{BuildError, GatewayBuilder};
pub(crate) use cycle::Joined;
pub(crate) use limits::Limits;
pub(crate) use streams::{News, Place, Request, Streams};

use crate::frames::Frames;
use crate::resolver::Resolver;
use crate::settings::StreamSettings;
use crate::stream::GatewayStream;

/// A gateway. Cloning is cheap; all clones share their feeds.
#[derive(Clone)]
pub struct Gateway(pub(crate) Arc<Host>);

/// What the streams of a gateway need.
pub(crate) struct Host {
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) scope_policy: ScopePolicy,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) client_for: Arc<dyn ClientFor>,
    pub(crate) projection_policy: Arc<dyn ProjectionPolicy>,
    pub(crate) projections: Projections,
    pub(crate) feeds: Feeds,
    pub(crate) streams: Streams,
    pub(crate) settings: StreamSettings,
    pub(crate) observing: Observing,
    pub(crate) diagnosing: Diagnosing,
    pub(crate) origin: Instant,
}

impl Gateway {
    /// A builder without any seam.
    pub fn builder() -> GatewayBuilder {
        GatewayBuilder::new()
    }

    /// The events of one stream without HTTP, for a transport of the host's own: a WebSocket, gRPC, a test. The caller is
    /// already known; the scope policy, the authorizer and the projection policy are asked as for any other stream.
    /// Bounding that transport's I/O is the host's.
    ///
    /// Must be called, and polled, on a tokio runtime.
    pub fn stream(&self, principal: Principal, scope: Scope, projection: Option<ProjectionName>) -> Frames {
        let stream = match self.0.scope_policy.check(&scope) {
            Ok(()) => GatewayStream::of_caller(
                Arc::clone(&self.0),
                Request {
                    principal,
                    scope,
                    projection,
                },
            ),
            Err(error) => GatewayStream::refused(Arc::clone(&self.0), StreamError::from(error)),
        };
        Frames::new(stream)
    }

    /// The feeds behind this gateway.
    pub fn feeds(&self) -> &Feeds {
        &self.0.feeds
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("feeds", &self.0.feeds)
            .field("settings", &self.0.settings)
            .finish_non_exhaustive()
    }
}

impl Host {
    pub(crate) fn now(&self) -> Moment {
        self.moment(Instant::now())
    }

    pub(crate) fn moment(&self, now: Instant) -> Moment {
        Moment::after_origin(now.saturating_duration_since(self.origin))
    }
}
