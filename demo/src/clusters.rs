//! The API servers that are served, by target.

use std::collections::BTreeMap;
use std::path::PathBuf;

use krm_stream_protocol::Target;
use krm_stream_upstream_kube::kube::Config;
use krm_stream_upstream_kube::kube::config::{KubeConfigOptions, Kubeconfig};
use krm_stream_upstream_kube::{BuildError, KubeUpstream};

use crate::flags::{ClusterFlags, UpstreamFlags};

/// One API server, and the namespace that its configuration suggests.
pub(crate) struct Cluster {
    pub(crate) upstream: KubeUpstream,
    /// How it is reached, for requests other than sessions.
    pub(crate) config: Config,
    pub(crate) namespace: String,
}

/// All of them.
pub(crate) type Clusters = BTreeMap<Target, Cluster>;

/// Why an API server cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterError {
    #[error("the kubeconfig {} cannot be read: check --kubeconfig", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("no kubeconfig can be read: name one with --kubeconfig, or set KUBECONFIG")]
    NoKubeconfig(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error(
        "the kubeconfig's {context} cannot be used: `kubectl config get-contexts` lists those it has",
        context = described(context.as_deref())
    )]
    Context {
        context: Option<String>,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("--in-cluster works in a pod with a service account only")]
    NotInCluster(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the API server's address {0:?} is no URL")]
    Address(String),
    #[error(
        "the configuration of {target} impersonates ({what}), so that every caller would be that user: remove that from the \
         kubeconfig; to read as each caller, add --sharing per-caller",
        target = named(target)
    )]
    Impersonates { target: Target, what: &'static str },
    #[error("the configuration of {target} cannot be used", target = named(target))]
    Upstream {
        target: Target,
        #[source]
        source: BuildError,
    },
}

fn described(context: Option<&str>) -> String {
    context.map_or_else(
        || "current context".to_owned(),
        |context| format!("context {context:?}"),
    )
}

fn named(target: &Target) -> String {
    if target.is_default() {
        "the cluster".to_owned()
    } else {
        format!("the target {target:?}")
    }
}

/// Reads the configurations that the flags name. Nothing is connected to yet.
///
/// # Errors
/// [`ClusterError`] says which of them cannot be used.
pub(crate) async fn load(flags: &ClusterFlags, upstream: &UpstreamFlags) -> Result<Clusters, ClusterError> {
    let mut clusters = Clusters::new();
    if flags.in_cluster {
        let config = Config::incluster().map_err(|error| ClusterError::NotInCluster(error.into()))?;
        clusters.insert(
            Target::default(),
            Cluster::new(Target::default(), config, upstream)?,
        );
        return Ok(clusters);
    }
    let kubeconfig = read(flags)?;
    // Named targets alone leave the current context out, unless it is asked for too.
    if flags.target.is_empty() || flags.context.is_some() {
        let config = of_context(&kubeconfig, flags.context.as_deref()).await?;
        clusters.insert(
            Target::default(),
            Cluster::new(Target::default(), config, upstream)?,
        );
    }
    for target in &flags.target {
        let config = of_context(&kubeconfig, Some(&target.context)).await?;
        let cluster = Cluster::new(target.name.clone(), config, upstream)?;
        clusters.insert(target.name.clone(), cluster);
    }
    Ok(clusters)
}

fn read(flags: &ClusterFlags) -> Result<Kubeconfig, ClusterError> {
    match &flags.kubeconfig {
        Some(path) => Kubeconfig::read_from(path).map_err(|error| ClusterError::Unreadable {
            path: path.clone(),
            source: error.into(),
        }),
        None => Kubeconfig::read().map_err(|error| ClusterError::NoKubeconfig(error.into())),
    }
}

async fn of_context(kubeconfig: &Kubeconfig, context: Option<&str>) -> Result<Config, ClusterError> {
    let options = KubeConfigOptions {
        context: context.map(ToOwned::to_owned),
        ..KubeConfigOptions::default()
    };
    Config::from_custom_kubeconfig(kubeconfig.clone(), &options)
        .await
        .map_err(|error| ClusterError::Context {
            context: context.map(ToOwned::to_owned),
            source: error.into(),
        })
}

impl Cluster {
    /// An API server that anyone may talk to, at a plain address.
    ///
    /// # Errors
    /// If the address is no URL.
    pub(crate) fn at(address: &str, namespace: &str, flags: &UpstreamFlags) -> Result<Self, ClusterError> {
        let url = address
            .parse()
            .map_err(|_| ClusterError::Address(address.to_owned()))?;
        let mut config = Config::new(url);
        namespace.clone_into(&mut config.default_namespace);
        Self::new(Target::default(), config, flags)
    }

    fn new(target: Target, config: Config, flags: &UpstreamFlags) -> Result<Self, ClusterError> {
        let namespace = config.default_namespace.clone();
        let mut builder = KubeUpstream::builder(config.clone())
            .connect_timeout(flags.connect_timeout)
            .open_timeout(flags.open_timeout)
            .snapshot_timeout(flags.snapshot_line_timeout, flags.snapshot_timeout)
            .max_line_bytes(usize::try_from(flags.max_line_bytes).unwrap_or(usize::MAX));
        if let Some(timeout) = flags.watch_timeout {
            builder = builder.watch_timeout(timeout);
        }
        let upstream = builder.build().map_err(|error| match error {
            BuildError::Impersonates(what) => ClusterError::Impersonates { target, what },
            // The bounds of settings are those of the flags.
            source @ (BuildError::Credential(_)
            | BuildError::Tls(_)
            | BuildError::Proxy(_)
            | BuildError::Unbounded(_)
            | BuildError::WatchTimeout
            | BuildError::LimitTooSmall { .. }) => ClusterError::Upstream { target, source },
        })?;
        Ok(Self {
            upstream,
            config,
            namespace,
        })
    }
}

impl std::fmt::Debug for Cluster {
    /// Shows no part of the configuration: it holds credentials.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster")
            .field("upstream", &self.upstream)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}
