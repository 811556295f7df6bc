//! The controller of declared streams, from the flags.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use krm_stream_declared::{
    DeclaredCounts, DeclaredPolicy, DeclaredStreams, DeclaredStreamsError, LeaseSettings, LeaseSettingsError,
    PublishingCounts, StreamCounts,
};
use krm_stream_http::Gateway;
use krm_stream_metrics::{DeclaredStates, Registry, register_declared_streams};
use krm_stream_protocol::{Diagnosing, ScopePolicy, Target, Upstream};
use krm_stream_upstream_kube::kube::Client;
use tokio::sync::watch;

use crate::clusters::Clusters;
use crate::diagnostics::Log;
use crate::flags::Flags;

/// Why declared streams cannot be kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DeclaredError {
    #[error(
        "declared streams are read from the default cluster, which is not served: name it with --context"
    )]
    NoDefaultCluster,
    #[error("the configuration of the cluster cannot be used for declared streams")]
    Client(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error(
        "--lease-{0} must be one as Kubernetes has them: lower-case letters, digits and `-`, with a letter or digit at each end, for \
         example krm-stream"
    )]
    LeaseName(&'static str),
    #[error("declared streams cannot be kept")]
    Build(#[source] DeclaredStreamsError),
}

impl From<DeclaredStreamsError> for DeclaredError {
    fn from(error: DeclaredStreamsError) -> Self {
        match error {
            DeclaredStreamsError::Lease(LeaseSettingsError::Name(which)) => Self::LeaseName(which),
            // The flags have been checked, and set nothing else.
            error @ (DeclaredStreamsError::Lease(
                LeaseSettingsError::Identity | LeaseSettingsError::Times,
            )
            | DeclaredStreamsError::NoTarget
            | DeclaredStreamsError::NoPartition
            | DeclaredStreamsError::Scope(_)
            | DeclaredStreamsError::Pace) => Self::Build(error),
        }
    }
}

/// The controller, if declared streams are asked for. The flags have been checked against each other.
///
/// # Errors
/// [`DeclaredError`] where it refuses its settings.
pub(crate) fn build(
    flags: &Flags,
    clusters: &Clusters,
    scopes: ScopePolicy,
    gateway: &Gateway,
) -> Result<Option<DeclaredStreams>, DeclaredError> {
    let Some(partition) = flags.declared.partition() else {
        return Ok(None);
    };
    let default = clusters
        .get(&Target::default())
        .ok_or(DeclaredError::NoDefaultCluster)?;
    let mut config = default.config.clone();
    // What failed is tried again by the controller, at its own pace.
    config.default_retry = false;
    let client = Client::try_from(config).map_err(|error| DeclaredError::Client(error.into()))?;
    let policy = DeclaredPolicy::new(scopes).projections(flags.scopes.projection.iter().map(String::as_str));
    let resources: Arc<dyn Upstream> = Arc::new(default.upstream.clone());
    let instance = instance();
    let mut builder = DeclaredStreams::builder(gateway.feeds().clone(), policy, client, resources)
        .partition(partition)
        .instance(instance.as_str())
        .diagnosing(Diagnosing::with(Arc::new(Log)));
    for (target, cluster) in clusters {
        builder = builder.target(target.clone(), Arc::new(cluster.upstream.clone()));
    }
    if let Some((namespace, name)) = flags.declared.lease() {
        builder = builder.lease(LeaseSettings::new(namespace, name, instance));
    }
    Ok(Some(builder.build()?))
}

/// Has the figures tell how declared streams are.
pub(crate) fn register(registry: &mut Registry, counts: DeclaredCounts) {
    register_declared_streams(registry, move || {
        let StreamCounts {
            ready,
            replaying,
            blocked,
        } = counts.now();
        let PublishingCounts { publishes, unwritten } = counts.publishing();
        DeclaredStates {
            ready,
            replaying,
            blocked,
            publishes,
            unwritten,
        }
    });
}

/// Runs the controller, if there is one, until the program ends, and `grace` longer at most.
pub(crate) async fn run(
    controller: Option<DeclaredStreams>,
    mut ending: watch::Receiver<bool>,
    grace: Duration,
) {
    let Some(controller) = controller else {
        return;
    };
    let mut ended = ending.clone();
    let shutdown = async move {
        // Whoever would tell is gone: that is an end too.
        let _ = ended.wait_for(|is_over| *is_over).await;
    };
    let overdue = async move {
        let _ = ending.wait_for(|is_over| *is_over).await;
        tokio::time::sleep(grace).await;
    };
    tokio::select! {
        () = controller.run(shutdown) => {}
        () = overdue => tracing::warn!("the last writes for declared streams took too long"),
    }
}

/// Who this process is among its replicas: its pod or machine, and a number, for a pod's next container is another one.
fn instance() -> String {
    let host = std::env::var("HOSTNAME")
        .ok()
        .or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok());
    let host = host.as_deref().map(str::trim).filter(|host| !host.is_empty());
    let number = RandomState::new().hash_one(std::process::id());
    format!("{}-{:08x}", host.unwrap_or("krm-stream"), number & 0xffff_ffff)
}
