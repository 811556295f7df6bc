//! Streams that an operator declares.

use clap::Args;
use clap::builder::BoolishValueParser;

/// Streams that are kept warm, whoever is connected.
#[derive(Debug, Args)]
#[command(next_help_heading = "Declared streams")]
pub(crate) struct DeclaredFlags {
    /// Keep the streams warm that `DeclaredStream` resources of the cluster name, and publish their status.
    #[arg(long = "declared-streams", env = "KRM_DECLARED_STREAMS", value_parser = BoolishValueParser::new())]
    pub(crate) is_on: bool,
    /// The name of the shared partition that declared streams are in; with --sharing shared all readers are in it too, and
    /// join them [default: declared].
    #[arg(
        id = "declared_partition",
        long = "declared-partition",
        value_name = "NAME",
        env = "KRM_DECLARED_PARTITION"
    )]
    pub(crate) partition: Option<String>,
    /// The namespace of the Lease whose holder publishes, where there are several replicas [default: this one publishes].
    #[arg(long, value_name = "NAME", env = "KRM_LEASE_NAMESPACE")]
    pub(crate) lease_namespace: Option<String>,
    /// The name of that Lease.
    #[arg(long, value_name = "NAME", env = "KRM_LEASE_NAME")]
    pub(crate) lease_name: Option<String>,
}

/// The partition's name, unless another is given.
const PARTITION: &str = "declared";

impl DeclaredFlags {
    /// The partition of declared streams, if there are any.
    pub(crate) fn partition(&self) -> Option<&str> {
        self.is_on.then(|| self.partition.as_deref().unwrap_or(PARTITION))
    }

    /// The Lease's namespace and name, if both were given.
    pub(crate) fn lease(&self) -> Option<(&str, &str)> {
        self.lease_namespace.as_deref().zip(self.lease_name.as_deref())
    }
}
