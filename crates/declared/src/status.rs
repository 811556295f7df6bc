//! The status of the resource: what the gateway publishes.

use krm_stream_status::{Conditions, Readiness, Status, StreamSummary, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// How the declared streams are.
// An object of which nothing is published reads as InProgress by kstatus, and not as Current: the API server fills in what
// is missing, https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#defaulting
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("default" = {"observedGeneration": -1}))]
pub struct DeclaredStreamStatus {
    /// The generation of the specification that this status speaks of; -1 until a gateway has looked at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Ready, Reconciling and Stalled.
    #[serde(default)]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Conditions,
    /// The streams in figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<StreamsStatus>,
}

/// The streams in figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StreamsStatus {
    /// How many are ready, of how many: 3/4.
    pub summary: String,
    /// How many are declared.
    #[schemars(range(min = 0))]
    pub total: i64,
    /// How many have a complete snapshot and follow it.
    #[schemars(range(min = 0))]
    pub ready: i64,
    /// How many read a snapshot.
    #[schemars(range(min = 0))]
    pub replaying: i64,
    /// How many do not go on for now.
    #[schemars(range(min = 0))]
    pub blocked: i64,
    /// At most five names of streams that are not ready, blocked ones first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5), extend("x-kubernetes-list-type" = "atomic"))]
    pub pending_sample: Vec<String>,
}

impl DeclaredStreamStatus {
    /// The status to publish now, on the basis of the one last read: see [`krm_stream_status::plan_write`] for whether
    /// it is to be written at all. `generation` is that of the specification whose streams are summed up.
    #[must_use]
    pub fn evaluate(read: Option<&Self>, generation: i64, summary: &StreamSummary, now: Timestamp) -> Self {
        Self::of(read, generation, summary, Readiness::of(summary.gate()), now)
    }

    /// The same with gates beside the streams.
    pub(crate) fn of(
        read: Option<&Self>,
        generation: i64,
        summary: &StreamSummary,
        readiness: Readiness,
        now: Timestamp,
    ) -> Self {
        let mut conditions = read.map(|read| read.conditions.clone()).unwrap_or_default();
        readiness.publish(&mut conditions, generation, now);
        Self {
            observed_generation: Some(generation),
            conditions,
            streams: Some(summary.into()),
        }
    }
}

impl Status for DeclaredStreamStatus {
    fn conditions(&self) -> &Conditions {
        &self.conditions
    }
}

impl From<&StreamSummary> for StreamsStatus {
    fn from(summary: &StreamSummary) -> Self {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        Self {
            summary: summary.to_string(),
            total: count(summary.total()),
            ready: count(summary.ready()),
            replaying: count(summary.replaying()),
            blocked: count(summary.blocked()),
            pending_sample: summary.pending_sample().to_vec(),
        }
    }
}
