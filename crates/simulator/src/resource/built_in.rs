//! The built-in kinds, with the field order of their Go types and the zero values that their bookmarks carry.

use std::borrow::Cow;

use super::{Resource, Style};

/// Scope, subresource and generation of a built-in kind.
#[derive(Clone, Copy)]
struct Traits {
    namespaced: bool,
    status: bool,
    generation: bool,
}

const NAMESPACED: Traits = Traits {
    namespaced: true,
    status: false,
    generation: false,
};
const CLUSTER: Traits = Traits {
    namespaced: false,
    status: false,
    generation: false,
};
const WORKLOAD: Traits = Traits {
    namespaced: true,
    status: true,
    generation: true,
};
const WITH_STATUS: Traits = Traits {
    namespaced: true,
    status: true,
    generation: false,
};
const CLUSTER_WITH_STATUS: Traits = Traits {
    namespaced: false,
    status: true,
    generation: false,
};

const SPEC_STATUS: &[&str] = &["spec", "status"];
const EVENT_FIELDS: &[&str] = &[
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "type",
    "eventTime",
    "series",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
];

/// The set that every simulator starts with.
pub(crate) fn built_in() -> Vec<Resource> {
    [core(), workloads(), access(), others()].concat()
}

fn core() -> Vec<Resource> {
    vec![
        typed(
            "",
            "v1",
            "namespaces",
            "Namespace",
            CLUSTER_WITH_STATUS,
            SPEC_STATUS,
            r#""spec":{},"status":{}"#,
        ),
        typed(
            "",
            "v1",
            "configmaps",
            "ConfigMap",
            NAMESPACED,
            &["immutable", "data", "binaryData"],
            "",
        ),
        typed(
            "",
            "v1",
            "secrets",
            "Secret",
            NAMESPACED,
            &["immutable", "data", "stringData", "type"],
            "",
        ),
        typed(
            "",
            "v1",
            "pods",
            "Pod",
            WITH_STATUS,
            SPEC_STATUS,
            r#""spec":{"containers":null},"status":{}"#,
        ),
        typed(
            "",
            "v1",
            "services",
            "Service",
            WITH_STATUS,
            SPEC_STATUS,
            r#""spec":{},"status":{"loadBalancer":{}}"#,
        ),
        typed(
            "",
            "v1",
            "events",
            "Event",
            NAMESPACED,
            EVENT_FIELDS,
            concat!(
                r#""involvedObject":{},"source":{},"firstTimestamp":null,"lastTimestamp":null,"#,
                r#""eventTime":null,"reportingComponent":"","reportingInstance":"""#
            ),
        ),
        typed(
            "",
            "v1",
            "nodes",
            "Node",
            CLUSTER_WITH_STATUS,
            SPEC_STATUS,
            concat!(
                r#""spec":{},"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":0}},"nodeInfo":{"machineID":"","#,
                r#""systemUUID":"","bootID":"","kernelVersion":"","osImage":"","containerRuntimeVersion":"","#,
                r#""kubeletVersion":"","kubeProxyVersion":"","operatingSystem":"","architecture":""}}"#
            ),
        ),
        typed(
            "",
            "v1",
            "serviceaccounts",
            "ServiceAccount",
            NAMESPACED,
            &["secrets", "imagePullSecrets", "automountServiceAccountToken"],
            "",
        ),
    ]
}

/// `apps` and `batch`.
fn workloads() -> Vec<Resource> {
    vec![
        typed(
            "apps",
            "v1",
            "deployments",
            "Deployment",
            WORKLOAD,
            SPEC_STATUS,
            concat!(
                r#""spec":{"replicas":0,"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"#,
                r#""strategy":{}},"status":{}"#
            ),
        ),
        typed(
            "apps",
            "v1",
            "replicasets",
            "ReplicaSet",
            WORKLOAD,
            SPEC_STATUS,
            concat!(
                r#""spec":{"replicas":0,"selector":null,"template":{"metadata":{},"spec":{"containers":null}}},"#,
                r#""status":{"replicas":0}"#
            ),
        ),
        typed(
            "apps",
            "v1",
            "statefulsets",
            "StatefulSet",
            WORKLOAD,
            SPEC_STATUS,
            concat!(
                r#""spec":{"replicas":0,"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"#,
                r#""serviceName":"","updateStrategy":{}},"status":{"replicas":0,"availableReplicas":0}"#
            ),
        ),
        typed(
            "apps",
            "v1",
            "daemonsets",
            "DaemonSet",
            WORKLOAD,
            SPEC_STATUS,
            concat!(
                r#""spec":{"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"updateStrategy":{}},"#,
                r#""status":{"currentNumberScheduled":0,"numberMisscheduled":0,"desiredNumberScheduled":0,"#,
                r#""numberReady":0}"#
            ),
        ),
        typed(
            "batch",
            "v1",
            "jobs",
            "Job",
            WORKLOAD,
            SPEC_STATUS,
            r#""spec":{"template":{"metadata":{},"spec":{"containers":null}}},"status":{}"#,
        ),
    ]
}

/// `rbac.authorization.k8s.io`.
fn access() -> Vec<Resource> {
    let rbac = "rbac.authorization.k8s.io";
    vec![
        typed(
            rbac,
            "v1",
            "roles",
            "Role",
            NAMESPACED,
            &["rules"],
            r#""rules":null"#,
        ),
        typed(
            rbac,
            "v1",
            "clusterroles",
            "ClusterRole",
            CLUSTER,
            &["rules", "aggregationRule"],
            r#""rules":null"#,
        ),
        typed(
            rbac,
            "v1",
            "rolebindings",
            "RoleBinding",
            NAMESPACED,
            &["subjects", "roleRef"],
            r#""roleRef":{"apiGroup":"","kind":"","name":""}"#,
        ),
        typed(
            rbac,
            "v1",
            "clusterrolebindings",
            "ClusterRoleBinding",
            CLUSTER,
            &["subjects", "roleRef"],
            r#""roleRef":{"apiGroup":"","kind":"","name":""}"#,
        ),
    ]
}

fn others() -> Vec<Resource> {
    vec![
        typed(
            "apiextensions.k8s.io",
            "v1",
            "customresourcedefinitions",
            "CustomResourceDefinition",
            Traits {
                namespaced: false,
                status: true,
                generation: true,
            },
            SPEC_STATUS,
            concat!(
                r#""spec":{"group":"","names":{"plural":"","kind":""},"scope":"","versions":null},"#,
                r#""status":{"conditions":null,"acceptedNames":{"plural":"","kind":""},"storedVersions":null}"#
            ),
        ),
        typed(
            "coordination.k8s.io",
            "v1",
            "leases",
            "Lease",
            NAMESPACED,
            &["spec"],
            r#""spec":{}"#,
        ),
        // Stored apart from those of the core group, since there is no conversion.
        typed(
            "events.k8s.io",
            "v1",
            "events",
            "Event",
            NAMESPACED,
            &[
                "eventTime",
                "series",
                "reportingController",
                "reportingInstance",
                "action",
                "reason",
                "regarding",
                "related",
                "note",
                "type",
                "deprecatedSource",
                "deprecatedFirstTimestamp",
                "deprecatedLastTimestamp",
                "deprecatedCount",
            ],
            concat!(
                r#""eventTime":null,"regarding":{},"deprecatedSource":{},"deprecatedFirstTimestamp":null,"#,
                r#""deprecatedLastTimestamp":null"#
            ),
        ),
    ]
}

const fn typed(
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    kind: &'static str,
    traits: Traits,
    fields: &'static [&'static str],
    zero: &'static str,
) -> Resource {
    Resource {
        group: Cow::Borrowed(group),
        version: Cow::Borrowed(version),
        plural: Cow::Borrowed(plural),
        kind: Cow::Borrowed(kind),
        namespaced: traits.namespaced,
        status: traits.status,
        generation: traits.generation,
        style: Style::Typed { fields, zero },
    }
}
