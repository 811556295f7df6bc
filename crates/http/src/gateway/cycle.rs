//! The steps that every cycle of a stream takes before it reads: authorize, select the projection, ask for the client,
//! join the feed.

use std::sync::Arc;
use std::time::Duration;

use krm_stream_protocol::{
    AuthorizationOutcome, Boundary, Client, ErrorCode, Observation, Partition, Principal, ProjectionName,
    Scope, StreamError,
};
use krm_stream_shared::{Join, Subscription};
use tokio::time::{Instant, timeout};

use super::Host;

impl Host {
    /// Takes the steps for one cycle of a stream.
    ///
    /// # Errors
    /// What the stream ends with.
    pub(crate) async fn begin_cycle(
        self: Arc<Self>,
        principal: Principal,
        scope: Scope,
        requested: Option<ProjectionName>,
        stream: u64,
    ) -> Result<Subscription, StreamError> {
        self.authorize(&principal, &scope).await?;
        let granted = self
            .bounded(
                "selecting the projection",
                self.projection_policy
                    .select(&principal, &scope, requested.as_ref()),
            )
            .await?;
        let Some(projection) = self.projections.get(&granted) else {
            return Err(self.misconfigured(&scope, &Misconfigured::UnknownProjection(granted)));
        };
        let client = self
            .bounded(
                "choosing the upstream",
                self.client_for.client_for(scope.target(), &principal),
            )
            .await?;
        self.refuse_unguarded_sharing(&scope, &client)?;
        self.feeds
            .join(Join {
                principal: &principal,
                scope: &scope,
                projection,
                client,
                stream,
            })
            .await
    }

    async fn authorize(&self, principal: &Principal, scope: &Scope) -> Result<(), StreamError> {
        let asked = Instant::now();
        let answer = self
            .bounded("checking access", self.authorizer.authorize(principal, scope))
            .await;
        let outcome = match &answer {
            Ok(()) => AuthorizationOutcome::Allowed,
            Err(error) if error.code() == ErrorCode::UpstreamUnavailable => AuthorizationOutcome::Failed,
            Err(_) => AuthorizationOutcome::Denied,
        };
        self.observing.observe(&Observation::AuthorizationChecked {
            outcome,
            duration: asked.elapsed(),
        });
        answer
    }

    /// Bounds a seam's answer in time.
    async fn bounded<T>(
        &self,
        operation: &'static str,
        answer: impl Future<Output = Result<T, StreamError>>,
    ) -> Result<T, StreamError> {
        timeout(self.settings.check_timeout, answer)
            .await
            .unwrap_or_else(|elapsed| {
                self.diagnosing.report(operation, None, &elapsed);
                Err(StreamError::unavailable(
                    "a check of this request was not answered in time",
                    Some(Duration::from_secs(5)),
                ))
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
