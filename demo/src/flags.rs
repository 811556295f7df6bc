//! What can be set, on the command line or as `KRM_…` environment variables.

mod declared;
mod durations;
mod streams;
mod values;

use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{Args, Command, CommandFactory, FromArgMatches, Parser, ValueEnum};

use crate::allow::AllowRule;
use crate::hosts::HostName;
use crate::identity::{HeaderFlag, IdentityFlag};
use crate::networks::Network;
use crate::tls::CertificateFiles;

pub(crate) use self::declared::DeclaredFlags;
use self::durations::{positive_duration, whole_seconds, with_unit};
pub(crate) use self::streams::{DeliveryFlags, OrderingFlag, StreamFlags};
pub(crate) use self::values::TargetFlag;
use self::values::address;

const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
const DEFAULT_SIMULATOR_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A gateway that streams Kubernetes objects to browsers, and a page that shows them.
///
/// Without a flag for a cluster it runs on an embedded simulator, whose objects change.
///
/// Lists may be given as a repeated flag, or with commas. Durations carry a unit: 500ms, 30s, 5m, 1m30s;
/// a number without one is seconds.
///
/// An environment variable that is empty is as one that is not set.
#[derive(Debug, Parser)]
#[command(name = "krm-stream-demo", version)]
pub(crate) struct Flags {
    #[command(flatten)]
    pub(crate) clusters: ClusterFlags,
    #[command(flatten)]
    pub(crate) server: ServerFlags,
    #[command(flatten)]
    pub(crate) access: AccessFlags,
    #[command(flatten)]
    pub(crate) scopes: ScopeFlags,
    #[command(flatten)]
    pub(crate) upstream: UpstreamFlags,
    #[command(flatten)]
    pub(crate) streams: StreamFlags,
    #[command(flatten)]
    pub(crate) delivery: DeliveryFlags,
    #[command(flatten)]
    pub(crate) declared: DeclaredFlags,
    #[command(flatten)]
    pub(crate) simulator: SimulatorFlags,
}

/// Where the objects come from.
#[derive(Debug, Args)]
#[command(next_help_heading = "Clusters")]
pub(crate) struct ClusterFlags {
    /// Use the cluster of this kubeconfig.
    #[arg(long, value_name = "PATH", env = "KRM_KUBECONFIG")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Use this context of the kubeconfig [default: its current context].
    #[arg(long, value_name = "NAME", env = "KRM_CONTEXT")]
    pub(crate) context: Option<String>,
    /// Use the cluster that this program runs in, as the pod's service account.
    #[arg(long, env = "KRM_IN_CLUSTER", value_parser = BoolishValueParser::new(), conflicts_with_all = ["kubeconfig", "context", "target"])]
    pub(crate) in_cluster: bool,
    /// Serve the cluster of a context as a target of this name; repeated, several clusters.
    #[arg(long, value_name = "NAME=CONTEXT", env = "KRM_TARGET", value_delimiter = ',')]
    pub(crate) target: Vec<TargetFlag>,
}

/// Where requests come in.
#[derive(Debug, Args)]
#[command(next_help_heading = "Listening")]
pub(crate) struct ServerFlags {
    /// Where the page and the stream are served.
    #[arg(long, value_name = "ADDR", env = "KRM_LISTEN", default_value_t = DEFAULT_LISTEN, value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// Where /metrics and /status are served [default: beside the page, if that is on loopback; else nowhere].
    #[arg(long, value_name = "ADDR", env = "KRM_ADMIN_LISTEN", value_parser = address)]
    pub(crate) admin_listen: Option<SocketAddr>,
    /// A host name or IP address that requests may be addressed to, and that pages may come from; repeated. Names of the
    /// loopback interface always are.
    #[arg(long, value_name = "NAME", env = "KRM_ALLOW_HOST", value_delimiter = ',')]
    pub(crate) allow_host: Vec<HostName>,
    /// Serve the page and the stream by TLS, with this certificate: a PEM file, its chain included. Read again each minute.
    #[arg(long, value_name = "PATH", env = "KRM_TLS_CERT", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's private key: a PEM file.
    #[arg(long, value_name = "PATH", env = "KRM_TLS_KEY", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
}

/// Who may read, and as whom the API server is asked.
#[derive(Debug, Args)]
#[command(next_help_heading = "Access")]
pub(crate) struct AccessFlags {
    /// Whose identity the upstream has, and who shares a watch.
    #[arg(long, value_enum, env = "KRM_SHARING", default_value_t = Sharing::Shared)]
    pub(crate) sharing: Sharing,
    /// How it is decided whether a caller may read a scope.
    #[arg(long, value_enum, env = "KRM_AUTHORIZE", default_value_t = Authorize::AllowAll)]
    pub(crate) authorize: Authorize,
    /// How long what a review decided is used again; a right that is taken away takes effect that much later
    /// [default: each check is asked].
    #[arg(long, value_name = "DURATION", env = "KRM_DECISION_CACHE", value_parser = positive_duration)]
    pub(crate) decision_cache: Option<Duration>,
    /// How often an open stream's right to read is checked again [default: at each new cycle only].
    #[arg(long, value_name = "DURATION", env = "KRM_REAUTHORIZATION_INTERVAL", value_parser = positive_duration)]
    pub(crate) reauthorization_interval: Option<Duration>,
    /// How long a check of a stream may take.
    #[arg(long, value_name = "DURATION", env = "KRM_REAUTHORIZATION_TIMEOUT", default_value = "10s", value_parser = positive_duration)]
    pub(crate) reauthorization_timeout: Duration,
    /// How a caller is known: `anonymous`, or `header:NAME` for a user name that a trusted proxy puts into that header.
    #[arg(long, value_name = "HOW", env = "KRM_IDENTITY", default_value_t = IdentityFlag::Anonymous)]
    pub(crate) identity: IdentityFlag,
    /// The header in which the trusted proxy names the caller's groups, one in each value.
    #[arg(long, value_name = "NAME", env = "KRM_GROUPS_HEADER")]
    pub(crate) groups_header: Option<HeaderFlag>,
    /// An address or network (CIDR) whose identity headers are believed; repeated [default: the loopback interface, if
    /// that is all this listens on].
    #[arg(long, value_name = "ADDR", env = "KRM_TRUSTED_PROXY", value_delimiter = ',')]
    pub(crate) trusted_proxy: Vec<Network>,
    /// Let everyone who reaches a gateway beyond loopback read all that its scopes allow.
    #[arg(long, env = "KRM_DANGEROUSLY_ALLOW_ALL", value_parser = BoolishValueParser::new())]
    pub(crate) dangerously_allow_all: bool,
    /// Serve callers beyond loopback without knowing who they are.
    #[arg(long, env = "KRM_DANGEROUSLY_ANONYMOUS", value_parser = BoolishValueParser::new())]
    pub(crate) dangerously_anonymous: bool,
}

/// What may be asked for.
#[derive(Debug, Args)]
#[command(next_help_heading = "Scopes")]
pub(crate) struct ScopeFlags {
    /// A resource that may be watched, in place of the default set: `configmaps`, `apps/deployments`,
    /// `example.com/widgets`; `cluster:example.com/things` if it is a custom one without namespaces. Repeated.
    #[arg(
        long,
        value_name = "[GROUP/]RESOURCE",
        env = "KRM_ALLOW",
        value_delimiter = ','
    )]
    pub(crate) allow: Vec<AllowRule>,
    /// Allow watching all namespaces at once.
    #[arg(long, env = "KRM_ALLOW_ALL_NAMESPACES", value_parser = BoolishValueParser::new())]
    pub(crate) allow_all_namespaces: bool,
    /// Allow narrowing by a label selector.
    #[arg(long, env = "KRM_ALLOW_LABEL_SELECTOR", value_parser = BoolishValueParser::new())]
    pub(crate) allow_label_selector: bool,
    /// Allow every resource, and leave it to the API server what a caller may read; needs an upstream that acts as the
    /// caller.
    #[arg(long, env = "KRM_ANY_RESOURCE", value_parser = BoolishValueParser::new())]
    pub(crate) any_resource: bool,
    /// A projection that is granted to those who ask for it; the first is what others get. Repeated. krm-raw/v1, which
    /// shows the values of Secrets, is granted only if it is named here.
    #[arg(
        long,
        value_name = "NAME",
        env = "KRM_PROJECTION",
        value_delimiter = ',',
        default_values_t = ["krm-full/v1".to_owned(), "krm-spec/v1".to_owned()]
    )]
    pub(crate) projection: Vec<String>,
}

/// How sessions on the API server behave.
#[derive(Debug, Args)]
#[command(next_help_heading = "Upstream")]
pub(crate) struct UpstreamFlags {
    /// The longest wait for a connection to the API server.
    #[arg(long, value_name = "DURATION", env = "KRM_CONNECT_TIMEOUT", default_value = "10s", value_parser = positive_duration)]
    pub(crate) connect_timeout: Duration,
    /// The longest wait for response headers of the API server, the connection included.
    #[arg(long, value_name = "DURATION", env = "KRM_OPEN_TIMEOUT", default_value = "30s", value_parser = positive_duration)]
    pub(crate) open_timeout: Duration,
    /// The longest wait for a complete snapshot.
    #[arg(long, value_name = "DURATION", env = "KRM_SNAPSHOT_TIMEOUT", default_value = "5m", value_parser = positive_duration)]
    pub(crate) snapshot_timeout: Duration,
    /// The longest wait for a line of a snapshot.
    #[arg(long, value_name = "DURATION", env = "KRM_SNAPSHOT_LINE_TIMEOUT", default_value = "30s", value_parser = positive_duration)]
    pub(crate) snapshot_line_timeout: Duration,
    /// The `timeoutSeconds` asked of the API server for each watch, in whole seconds [default: random, 5m to 10m].
    #[arg(long, value_name = "DURATION", env = "KRM_WATCH_TIMEOUT", value_parser = whole_seconds)]
    pub(crate) watch_timeout: Option<Duration>,
    /// The longest line of a watch, hence the largest object, in bytes.
    #[arg(long, value_name = "BYTES", env = "KRM_MAX_LINE_BYTES", default_value_t = 8 * 1024 * 1024, value_parser = clap::value_parser!(u32).range(1024..))]
    pub(crate) max_line_bytes: u32,
}

/// The embedded simulator, which runs where no cluster is named.
#[derive(Debug, Args)]
#[command(next_help_heading = "Simulator")]
pub(crate) struct SimulatorFlags {
    /// Where the simulator's own API is served, for kubectl or curl; on loopback, for anyone may write there.
    #[arg(id = "simulator_listen", long = "simulator-listen", value_name = "ADDR", env = "KRM_SIMULATOR_LISTEN", default_value_t = DEFAULT_SIMULATOR_LISTEN, value_parser = address, conflicts_with_all = CLUSTERS)]
    pub(crate) listen: SocketAddr,
    /// How many ConfigMaps to put into the namespace `bulk`.
    #[arg(id = "simulator_objects", long = "simulator-objects", value_name = "N", env = "KRM_SIMULATOR_OBJECTS", default_value_t = 0, conflicts_with_all = CLUSTERS)]
    pub(crate) objects: u32,
    /// How often objects change, with a unit; 0 for never.
    #[arg(id = "simulator_tick", long = "simulator-tick", value_name = "DURATION", env = "KRM_SIMULATOR_TICK", default_value = "1s", value_parser = with_unit, conflicts_with_all = CLUSTERS)]
    pub(crate) tick: Duration,
}

/// The flags that name a cluster.
const CLUSTERS: [&str; 4] = ["kubeconfig", "context", "in_cluster", "target"];

/// Whose identity the upstream has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sharing {
    /// One service identity for everyone; all who watch a scope share one watch.
    Shared,
    /// Each caller's, by impersonation; all tabs of one caller share a watch.
    PerCaller,
    /// Each caller's, by impersonation, with a watch for each stream; the service identity if callers are anonymous.
    Isolated,
}

/// How it is decided whether a caller may read a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Authorize {
    /// Everyone may read all that the scopes allow.
    AllowAll,
    /// The API server is asked, for each caller and scope.
    SubjectAccessReview,
}

impl Flags {
    /// Reads the command line and the environment. Ends the program where that asks for help or cannot be understood, as clap
    /// does.
    pub(crate) fn read() -> Self {
        let is_empty = |variable: &OsStr| std::env::var_os(variable).is_some_and(|value| value.is_empty());
        let matches = unset(Self::command(), is_empty).get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// The same command where these environment variables are as if they were not set. Manifests leave variables empty for what
/// they do not want; to clap that is a value.
fn unset(command: Command, is_unset: impl Fn(&OsStr) -> bool) -> Command {
    command.mut_args(|argument| match argument.get_env() {
        Some(variable) if is_unset(variable) => argument.env(None::<&'static str>),
        Some(_) | None => argument,
    })
}

impl ClusterFlags {
    /// Whether no cluster is named, so that the simulator runs.
    pub(crate) fn is_simulated(&self) -> bool {
        let Self {
            kubeconfig,
            context,
            in_cluster,
            target,
        } = self;
        kubeconfig.is_none() && context.is_none() && !in_cluster && target.is_empty()
    }

    /// Whether a cluster is served that requests need not name.
    pub(crate) fn has_default(&self) -> bool {
        self.target.is_empty() || self.context.is_some()
    }
}

/// Where the figures are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figures {
    BesideThePage,
    At(SocketAddr),
    /// Other machines reach the page, and no other address was named.
    Nowhere,
}

impl ServerFlags {
    /// The certificate that is presented, if TLS is asked for.
    pub(crate) fn certificate(&self) -> Option<CertificateFiles> {
        Some(CertificateFiles {
            chain: self.tls_cert.clone()?,
            key: self.tls_key.clone()?,
        })
    }

    /// Where `/metrics` and `/status` are served.
    pub(crate) fn figures(&self) -> Figures {
        match self.admin_listen {
            Some(address) => Figures::At(address),
            None if self.is_loopback() => Figures::BesideThePage,
            None => Figures::Nowhere,
        }
    }

    /// Whether only this machine reaches the page and the stream.
    pub(crate) fn is_loopback(&self) -> bool {
        self.listen.ip().to_canonical().is_loopback()
    }
}

impl AccessFlags {
    /// Whether the upstream acts as the caller, so that the API server's RBAC decides about it.
    pub(crate) fn acts_as_caller(&self) -> bool {
        match (self.sharing, &self.identity) {
            (Sharing::PerCaller | Sharing::Isolated, IdentityFlag::Header(_)) => true,
            (Sharing::Shared, IdentityFlag::Header(_))
            | (Sharing::Shared | Sharing::PerCaller | Sharing::Isolated, IdentityFlag::Anonymous) => false,
        }
    }
}

#[cfg(test)]
mod tests;
