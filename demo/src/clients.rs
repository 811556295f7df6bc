//! Which upstream serves a caller: one service identity for all, or the caller's own.

use std::collections::BTreeMap;
use std::sync::Arc;

use krm_stream_protocol::{
    BoxFuture, Client, ClientFor, Partition, Principal, StreamError, Target, Upstream,
};
use krm_stream_upstream_kube::KubeUpstream;

use crate::clusters::Clusters;
use crate::flags::{AccessFlags, DeclaredFlags, Sharing};

/// The service identity's name among the partitions, where no streams are declared.
const SERVICE_IDENTITY: &str = "demo";

/// Chooses the upstream.
#[derive(Debug)]
pub(crate) struct Clients {
    upstreams: BTreeMap<Target, KubeUpstream>,
    identity: UpstreamIdentity,
    /// The partition of those who share the service identity.
    shared: Arc<str>,
}

/// Whose identity the upstream has.
#[derive(Clone, Copy, Debug)]
enum UpstreamIdentity {
    /// The service identity, shared by all.
    Service,
    /// The service identity, with a session for each stream.
    ServiceIsolated,
    /// The caller's, shared by the caller's streams.
    Caller,
    /// The caller's, with a session for each stream.
    CallerIsolated,
}

impl Clients {
    /// Readers who share the service identity join what is declared.
    pub(crate) fn new(clusters: &Clusters, flags: &AccessFlags, declared: &DeclaredFlags) -> Self {
        let upstreams = clusters
            .iter()
            .map(|(target, cluster)| (target.clone(), cluster.upstream.clone()));
        let identity = match (flags.sharing, flags.acts_as_caller()) {
            (Sharing::Shared, _) => UpstreamIdentity::Service,
            (Sharing::PerCaller, _) => UpstreamIdentity::Caller,
            (Sharing::Isolated, true) => UpstreamIdentity::CallerIsolated,
            (Sharing::Isolated, false) => UpstreamIdentity::ServiceIsolated,
        };
        Self {
            upstreams: upstreams.collect(),
            identity,
            shared: declared.partition().unwrap_or(SERVICE_IDENTITY).into(),
        }
    }

    fn client(&self, target: &Target, principal: &Principal) -> Result<Client, StreamError> {
        let Some(service) = self.upstreams.get(target) else {
            return Err(StreamError::scope_invalid("there is no such target"));
        };
        let as_caller = || {
            service.acting_as(principal.subject()).map_err(|error| {
                tracing::debug!(%error, "a caller cannot be impersonated");
                StreamError::unauthenticated(
                    "the API server cannot be asked as you: your name or a group is no legal header",
                )
            })
        };
        let (upstream, partition) = match self.identity {
            UpstreamIdentity::Service => (service.clone(), Partition::shared(&*self.shared)),
            UpstreamIdentity::ServiceIsolated => (service.clone(), Partition::Isolated),
            UpstreamIdentity::Caller => (as_caller()?, Partition::per_caller()),
            UpstreamIdentity::CallerIsolated => (as_caller()?, Partition::Isolated),
        };
        let upstream: Arc<dyn Upstream> = Arc::new(upstream);
        Ok(Client { upstream, partition })
    }
}

impl ClientFor for Clients {
    fn client_for<'a>(
        &'a self,
        target: &'a Target,
        principal: &'a Principal,
    ) -> BoxFuture<'a, Result<Client, StreamError>> {
        Box::pin(std::future::ready(self.client(target, principal)))
    }
}
