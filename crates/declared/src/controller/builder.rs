//! Builds a controller, and refuses settings that could not work.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use krm_stream_projection::Projections;
use krm_stream_protocol::{Diagnosing, ScopeError, Target, Upstream};
use krm_stream_shared::Feeds;
use kube::Client;

use super::{DeclaredStreams, declared_streams};
use crate::api::Api;
use crate::counts::Counting;
use crate::{DeclaredPolicy, KubeStatusWriter, LeaseSettings, LeaseSettingsError};

/// Settings of a [`DeclaredStreams`]; made by [`DeclaredStreams::builder`].
#[must_use = "nothing is built before `build`"]
pub struct DeclaredStreamsBuilder {
    feeds: Feeds,
    policy: DeclaredPolicy,
    client: Client,
    resources: Arc<dyn Upstream>,
    targets: BTreeMap<Target, Arc<dyn Upstream>>,
    projections: Projections,
    partition: Arc<str>,
    instance: Option<String>,
    lease: Option<LeaseSettings>,
    diagnosing: Diagnosing,
    absent_pace: Duration,
}

/// Why there is no controller.
#[derive(Debug, thiserror::Error)]
pub enum DeclaredStreamsError {
    /// No stream could be served.
    #[error("no target was given: name at least one API server whose objects may be streamed")]
    NoTarget,
    /// A partition must be named.
    #[error("the partition of declared feeds has an empty name: give it one that no other feeds have")]
    NoPartition,
    /// The Lease cannot be held.
    #[error("the lease cannot be held")]
    Lease(#[from] LeaseSettingsError),
    /// The resource has no legal scope.
    #[error("the resource itself cannot be watched")]
    Scope(#[from] ScopeError),
    /// Asking all the time is no pace.
    #[error("the pace at which the definition is looked for must be at least a second")]
    Pace,
}

impl DeclaredStreamsBuilder {
    pub(super) fn new(
        feeds: Feeds,
        policy: DeclaredPolicy,
        client: Client,
        resources: Arc<dyn Upstream>,
    ) -> Self {
        Self {
            feeds,
            policy,
            client,
            resources,
            targets: BTreeMap::new(),
            projections: Projections::default(),
            partition: Arc::from("declared"),
            instance: None,
            lease: None,
            diagnosing: Diagnosing::default(),
            absent_pace: Duration::from_mins(1),
        }
    }

    /// An API server whose objects may be streamed, read with an identity of the gateway's own. At least one is needed.
    pub fn target(mut self, target: Target, upstream: Arc<dyn Upstream>) -> Self {
        self.targets.insert(target, upstream);
        self
    }

    /// The projections that the gateway knows. The built-in ones by default; the policy says which may be declared.
    pub fn projections(mut self, projections: Projections) -> Self {
        self.projections = projections;
        self
    }

    /// The name of the [shared](krm_stream_protocol::Partition::Shared) partition of the declared feeds, `declared` by default.
    /// Streams of this partition join them, no others do.
    pub fn partition(mut self, name: impl Into<Arc<str>>) -> Self {
        self.partition = name.into();
        self
    }

    /// The Lease whose holder alone publishes. Needed as soon as there is more than one replica; without it, this one
    /// publishes.
    pub fn lease(mut self, settings: LeaseSettings) -> Self {
        self.lease = Some(settings);
        self
    }

    /// The name of this process in Events. That of the Lease's identity, or `krm-stream`, by default.
    pub fn instance(mut self, name: impl Into<String>) -> Self {
        self.instance = Some(name.into());
        self
    }

    /// Where causes are told.
    pub fn diagnosing(mut self, diagnosing: Diagnosing) -> Self {
        self.diagnosing = diagnosing;
        self
    }

    /// How often it is looked for the definition of the resource where it is not installed. A minute by default, at least a
    /// second.
    pub fn absent_pace(mut self, pace: Duration) -> Self {
        self.absent_pace = pace;
        self
    }

    /// Builds the controller. Nothing is asked yet.
    ///
    /// # Errors
    /// [`DeclaredStreamsError`] says which setting cannot be used.
    pub fn build(self) -> Result<DeclaredStreams, DeclaredStreamsError> {
        if self.targets.is_empty() {
            return Err(DeclaredStreamsError::NoTarget);
        }
        if self.partition.is_empty() {
            return Err(DeclaredStreamsError::NoPartition);
        }
        if self.absent_pace < Duration::from_secs(1) {
            return Err(DeclaredStreamsError::Pace);
        }
        if let Some(lease) = &self.lease {
            lease.check()?;
        }
        let identity = self.lease.as_ref().map(|lease| lease.identity.clone());
        let instance = self.instance.or(identity).unwrap_or_default();
        Ok(DeclaredStreams {
            feeds: self.feeds,
            policy: Arc::new(self.policy),
            api: Api::new(self.client.clone()),
            writer: KubeStatusWriter::new(self.client, instance),
            resources: self.resources,
            scope: declared_streams()?,
            targets: self.targets,
            projections: self.projections,
            partition: self.partition,
            lease: self.lease,
            diagnosing: self.diagnosing,
            absent_pace: self.absent_pace,
            counts: Counting::default(),
        })
    }
}

impl std::fmt::Debug for DeclaredStreamsBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeclaredStreamsBuilder")
            .field("targets", &self.targets.keys())
            .field("partition", &self.partition)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}
