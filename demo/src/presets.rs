//! What the page offers: `/config.json`.

use krm_stream_protocol::{Scope, ScopePolicy, Target};
use serde_json::json;

use crate::clusters::Clusters;
use crate::routes::STREAM_PATH;

/// A scope that the page offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Preset {
    label: String,
    query: String,
}

/// A kind that is worth a look on any cluster.
struct Kind {
    label: &'static str,
    group: &'static str,
    version: &'static str,
    resource: &'static str,
    is_namespaced: bool,
}

const fn namespaced(
    label: &'static str,
    group: &'static str,
    version: &'static str,
    resource: &'static str,
) -> Kind {
    Kind {
        label,
        group,
        version,
        resource,
        is_namespaced: true,
    }
}

const fn cluster_scoped(
    label: &'static str,
    group: &'static str,
    version: &'static str,
    resource: &'static str,
) -> Kind {
    Kind {
        label,
        group,
        version,
        resource,
        is_namespaced: false,
    }
}

const KINDS: &[Kind] = &[
    namespaced("Config maps", "", "v1", "configmaps"),
    namespaced("Secrets", "", "v1", "secrets"),
    namespaced("Deployments", "apps", "v1", "deployments"),
    namespaced("Pods", "", "v1", "pods"),
    namespaced("Events", "", "v1", "events"),
    cluster_scoped("Namespaces", "", "v1", "namespaces"),
    cluster_scoped("Nodes", "", "v1", "nodes"),
    cluster_scoped(
        "Custom resource definitions",
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
    ),
];

impl Preset {
    /// A scope under a label, if the policy allows it.
    pub(crate) fn of(policy: &ScopePolicy, label: impl Into<String>, scope: &Scope) -> Option<Self> {
        policy.check(scope).ok().map(|()| Self {
            label: label.into(),
            query: scope.canonical_query(),
        })
    }

    /// The query of the scope.
    pub(crate) fn query(&self) -> &str {
        &self.query
    }
}

/// What every cluster has, as far as the policy allows it: in the namespace that each configuration suggests, and across
/// namespaces.
pub(crate) fn of_clusters(policy: &ScopePolicy, clusters: &Clusters) -> Vec<Preset> {
    let mut presets = Vec::new();
    for (target, cluster) in clusters {
        let on = if target.is_default() {
            String::new()
        } else {
            format!(" on {target}")
        };
        for kind in KINDS {
            let place = if kind.is_namespaced {
                format!(" in {}", cluster.namespace)
            } else {
                String::new()
            };
            let label = format!("{}{place}{on}", kind.label);
            let namespace = kind.is_namespaced.then_some(cluster.namespace.as_str());
            presets.extend(kind.preset(policy, label, target, namespace));
            if kind.is_namespaced {
                let label = format!("{} in all namespaces{on}", kind.label);
                presets.extend(kind.preset(policy, label, target, None));
            }
        }
    }
    presets
}

impl Kind {
    fn preset(
        &self,
        policy: &ScopePolicy,
        label: String,
        target: &Target,
        namespace: Option<&str>,
    ) -> Option<Preset> {
        let mut scope = Scope::builder(self.version, self.resource).target(target.clone());
        if !self.group.is_empty() {
            scope = scope.group(self.group);
        }
        if let Some(namespace) = namespace {
            scope = scope.namespace(namespace);
        }
        Preset::of(policy, label, &scope.build().ok()?)
    }
}

/// The text of `/config.json`.
pub(crate) fn config(clusters: &Clusters, presets: &[Preset], projections: &[String]) -> String {
    let targets: Vec<&str> = clusters.keys().map(Target::as_str).collect();
    let scopes: Vec<_> = presets
        .iter()
        .map(|preset| json!({"label": preset.label, "query": preset.query}))
        .collect();
    json!({
        "targets": targets,
        "scopes": scopes,
        "projections": projections,
        "streamPath": STREAM_PATH,
    })
    .to_string()
}
