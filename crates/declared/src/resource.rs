//! The custom resource: what an operator writes.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::DeclaredStreamStatus;

/// What an operator declares.
#[expect(
    clippy::duplicated_attributes,
    reason = "each printer column has a type of its own"
)]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "krm-stream.github.io",
    version = "v1alpha1",
    kind = "DeclaredStream",
    plural = "declaredstreams",
    singular = "declaredstream",
    status = "DeclaredStreamStatus",
    derive = "PartialEq",
    doc = "Scopes that a krm-stream gateway keeps warm, whoever is connected.",
    printcolumn(
        name = "READY",
        type_ = "string",
        description = "Whether every stream has a complete snapshot and follows it.",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "STREAMS",
        type_ = "string",
        description = "How many of the streams are ready, of how many.",
        json_path = ".status.streams.summary"
    ),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct DeclaredStreamSpec {
    /// The streams. An empty list is legal: there is nothing to stream, and that is ready.
    // Without a default: a misspelled list would be ready too.
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub streams: Vec<StreamDeclaration>,
}

/// One stream: what of which API, and how it is projected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StreamDeclaration {
    /// A name of your choice, unique in this list; the status speaks of the stream by it.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")
    )]
    pub name: String,
    /// What to watch.
    pub scope: DeclaredScope,
    /// The name of a projection; the gateway's default if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[!-~]+$"))]
    pub projection: Option<String>,
}

/// One object or one collection of a kind, in the words of the gateway's query parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeclaredScope {
    /// The name of the API server, as the gateway knows it; its default one if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub target: Option<String>,
    /// The API group, without the version; the core group if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub group: Option<String>,
    /// The version of the API group, such as v1.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$")
    )]
    pub version: String,
    /// The plural name of the resource, such as configmaps.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$")
    )]
    pub resource: String,
    /// The namespace; all of them, or none for a cluster-scoped resource, if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")
    )]
    pub namespace: Option<String>,
    /// The name of one object; the whole collection if it is left out.
    // A segment of a path. Something else than a dot is in it, or it is three dots at least: it is neither `.` nor `..`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        regex(
            pattern = r"^([^/%\x00-\x1f\x7f-\x9f]*[^./%\x00-\x1f\x7f-\x9f][^/%\x00-\x1f\x7f-\x9f]*|\.\.\.+)$"
        )
    )]
    pub name: Option<String>,
    /// A label selector by Kubernetes' grammar; everything if it is left out. One that cannot be read is told in the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub label_selector: Option<String>,
}
