//! The steps that every cycle of a stream takes before it reads: authorize, select the projection, ask for the client,
//! join the feed.

use std::sync::Arc;

use krm_stream_protocol::{Boundary, Client, Partition, ProjectionName, Scope, StreamError};
use krm_stream_shared::{Join, Subscription};
use tokio::time::Instant;

use super::Host;
use super::check::Bound;
use super::streams::{Member, Request};

/// A place at a feed, and the projection that was granted for it.
pub(crate) struct Joined {
    pub(crate) projection: ProjectionName,
    pub(crate) subscription: Subscription,
}

impl Host {
    /// The first step of a cycle. Resolves to when it was asked whether the caller may see the scope.
    ///
    /// An answer counts only if it was asked for after the latest recheck that meant this stream.
    ///
    /// # Errors
    /// What the stream ends with.
    pub(crate) async fn authorize_cycle(
        self: Arc<Self>,
        member: Arc<Member>,
        request: Arc<Request>,
    ) -> Result<Instant, StreamError> {
        loop {
            let known = member.latest_recheck();
            // Before the trigger: a recheck in between must not seem to be before the question, which knows nothing of it.
            let asked = Instant::now();
            // A recheck may have meant this stream before it could be found.
            let trigger = self.streams.latest_recheck();
            let sent = self.ask(&request, asked, trigger, Bound::FromSent).await?;
            let latest = member.latest_recheck();
            if latest == known || latest.is_some_and(|latest| latest < sent) {
                return Ok(sent);
            }
        }
    }

    /// The further steps of a cycle.
    ///
    /// # Errors
    /// What the stream ends with.
    pub(crate) async fn join_cycle(
        self: Arc<Self>,
        request: Arc<Request>,
        stream: u64,
    ) -> Result<Joined, StreamError> {
        let Request { principal, scope, .. } = &*request;
        let granted = self
            .bounded("selecting the projection", self.select_projection(&request))
            .await?;
        let Some(projection) = self.projections.get(&granted) else {
            return Err(self.misconfigured(scope, &Misconfigured::UnknownProjection(granted)));
        };
        let client = self
            .bounded(
                "choosing the upstream",
                self.client_for.client_for(scope.target(), principal),
            )
            .await?;
        self.refuse_unguarded_sharing(scope, &client)?;
        let subscription = self
            .feeds
            .join(Join {
                principal,
                scope,
                projection,
                client,
                stream,
            })
            .await?;
        Ok(Joined {
            projection: granted,
            subscription,
        })
    }

    /// A service identity reads for everyone whom the authorizer lets through: an authorizer that lets everyone through
    /// must have been named dangerous, and the resources must have been named.
    fn refuse_unguarded_sharing(&self, scope: &Scope, client: &Client) -> Result<(), StreamError> {
        match (&client.partition, self.authorizer.boundary()) {
            (Partition::Shared(_), Boundary::AllowsAll) => {
                Err(self.misconfigured(scope, &Misconfigured::UnguardedSharing))
            }
            (Partition::Shared(_), Boundary::Checked | Boundary::DangerouslyAllowsAll)
                if self.scope_policy.is_any_resource() =>
            {
                Err(self.misconfigured(scope, &Misconfigured::AnyResourceShared))
            }
            (Partition::Shared(_), Boundary::Checked | Boundary::DangerouslyAllowsAll)
            | (
                Partition::Isolated | Partition::PerCaller { .. },
                Boundary::Checked | Boundary::AllowsAll | Boundary::DangerouslyAllowsAll,
            ) => Ok(()),
        }
    }

    fn misconfigured(&self, scope: &Scope, cause: &Misconfigured) -> StreamError {
        self.diagnosing.report("serving a stream", Some(scope), cause);
        StreamError::internal("the gateway is not configured for this; ask its operator")
    }
}

/// A host's own mistake that shows only when a stream is served.
#[derive(Debug, thiserror::Error)]
enum Misconfigured {
    #[error("the projection policy granted {0}, which is not defined: add it to the builder's projections")]
    UnknownProjection(ProjectionName),
    #[error(
        "a shared partition needs an authorizer: AllowAll is for upstreams that act as the caller, \
         or must be named AllowAll::dangerously_for_shared_feeds"
    )]
    UnguardedSharing,
    #[error(
        "a shared partition needs named resources: any_resource leaves admission to the api server, which sees one identity"
    )]
    AnyResourceShared,
}
