//! The task that holds the Lease, or waits for it.

use http::StatusCode;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use krm_stream_protocol::{Diagnosing, ResourceVersion};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep_until, timeout};

use crate::LeaseSettings;
use crate::api::{Api, ApiError, parse, version_of};
use crate::clock::{Clock, micro_time};
use crate::lease::{Election, LeaseAnswer, LeaseRequest};

/// What the task needs.
#[derive(Debug)]
pub(crate) struct Holding {
    pub(crate) api: Api,
    pub(crate) settings: LeaseSettings,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    pub(crate) diagnosing: Diagnosing,
}

impl Holding {
    /// Takes part in the election until told to `stop`, then gives the Lease up if it holds it. `held` always says whether
    /// it does.
    pub(crate) async fn run(self, held: watch::Sender<bool>, mut stop: oneshot::Receiver<()>) {
        let mut election = Election::new(self.settings.clone(), self.clock.moment(), self.seed);
        loop {
            let due = self.clock.instant(election.next_due());
            tokio::select! {
                biased;
                // Also if whoever would tell is gone.
                _ = &mut stop => break,
                () = self.until_lost(&election) => {
                    tell(&held, false);
                    continue;
                }
                () = sleep_until(due) => {}
            }
            let mut request = Some(election.begin(self.clock.moment(), &micro_time()));
            while let Some(asked) = request {
                let answer = self.ask(asked, &election, &held).await;
                request = election.answered(self.clock.moment(), &micro_time(), answer);
            }
            tell(&held, election.is_holder(self.clock.moment()));
        }
        tell(&held, false);
        if let Some(request) = election.release(self.clock.moment(), &micro_time())
            && let Err(error) = self.send(request).await
        {
            self.diagnosing.report("giving up the lease", None, &error);
        }
    }

    /// Asks, and says that the Lease is lost if it is so before the answer comes.
    async fn ask(
        &self,
        request: LeaseRequest,
        election: &Election,
        held: &watch::Sender<bool>,
    ) -> LeaseAnswer {
        let asking = timeout(self.settings.renew_deadline / 2, self.send(request));
        tokio::pin!(asking);
        let answer = tokio::select! {
            answer = &mut asking => answer,
            () = self.until_lost(election) => {
                tell(held, false);
                asking.await
            }
        };
        match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                self.diagnosing.report("holding the lease", None, &error);
                LeaseAnswer::Failed
            }
            Err(_elapsed) => {
                let error = ApiError::TimedOut(self.settings.renew_deadline / 2);
                self.diagnosing.report("holding the lease", None, &error);
                LeaseAnswer::Failed
            }
        }
    }

    /// Resolves when the Lease that is held is held no longer; never if none is.
    async fn until_lost(&self, election: &Election) {
        match election.holds_until() {
            Some(until) if election.is_holder(self.clock.moment()) => {
                sleep_until(self.clock.instant(until)).await;
            }
            Some(_) | None => std::future::pending().await,
        }
    }

    async fn send(&self, request: LeaseRequest) -> Result<LeaseAnswer, ApiError> {
        let leases = format!(
            "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
            self.settings.namespace
        );
        let lease = format!("{leases}/{}", self.settings.name);
        let is_creation = matches!(request, LeaseRequest::Create(_));
        let answer = match request {
            LeaseRequest::Read => {
                let read = self.api.get(&lease).await;
                read.and_then(|body| found(&body))
            }
            LeaseRequest::Create(spec) => {
                let body = json!({
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {"name": self.settings.name, "namespace": self.settings.namespace},
                    "spec": spec,
                });
                let created = self.api.create(&leases, &body).await;
                created.and_then(|body| stored(&body))
            }
            LeaseRequest::Replace { spec, version } => {
                let patched = self.api.patch(&lease, &patch(&spec, &version)).await;
                patched.and_then(|body| stored(&body))
            }
        };
        answer.or_else(|error| match error.code() {
            // There is no such namespace, which is worth telling.
            Some(StatusCode::NOT_FOUND) if is_creation => Err(error),
            Some(StatusCode::NOT_FOUND) => Ok(LeaseAnswer::NotFound),
            Some(StatusCode::CONFLICT) => Ok(LeaseAnswer::Conflict),
            Some(_) | None => Err(error),
        })
    }
}

fn tell(held: &watch::Sender<bool>, is_held: bool) {
    held.send_if_modified(|held| std::mem::replace(held, is_held) != is_held);
}

/// Whatever else is in the Lease stays; of the fields that are ours, those that are absent are removed.
fn patch(spec: &LeaseSpec, version: &ResourceVersion) -> Value {
    json!({
        "metadata": {"resourceVersion": version.as_str()},
        "spec": {
            "holderIdentity": spec.holder_identity,
            "leaseDurationSeconds": spec.lease_duration_seconds,
            "acquireTime": spec.acquire_time,
            "renewTime": spec.renew_time,
            "leaseTransitions": spec.lease_transitions,
        },
    })
}

fn found(body: &[u8]) -> Result<LeaseAnswer, ApiError> {
    let lease: Lease = serde_json::from_slice(body).map_err(|_| ApiError::Unreadable)?;
    let version = lease.metadata.resource_version.as_deref().unwrap_or_default();
    Ok(LeaseAnswer::Found {
        version: version.into(),
        spec: lease.spec.unwrap_or_default(),
    })
}

fn stored(body: &[u8]) -> Result<LeaseAnswer, ApiError> {
    let version = version_of(&parse(body)?)?;
    Ok(LeaseAnswer::Stored { version })
}

#[cfg(test)]
mod tests;
