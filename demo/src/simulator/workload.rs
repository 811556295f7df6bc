//! What the shop's objects look like at each step: a function of the step alone, so that every run shows the same.

use serde_json::{Value, json};

/// The shop's namespace.
pub(crate) const NAMESPACE: &str = "shop";
/// The namespace of many objects.
pub(super) const BULK: &str = "bulk";

/// The shop's custom resource.
pub(super) const STOREFRONTS: Custom = Custom {
    group: "shop.example.com",
    version: "v1",
    resource: "storefronts",
    kind: "Storefront",
};
const STOREFRONTS_NAME: &str = "storefronts.shop.example.com";

/// How a custom resource is called.
pub(super) struct Custom {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) resource: &'static str,
    pub(super) kind: &'static str,
}

/// An object of the shop.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) resource: &'static str,
    pub(super) name: String,
}

type Objects = Vec<(&'static str, Value)>;

/// Name, replicas and steps of a rollout's period.
const DEPLOYMENTS: [(&str, u64, u64); 3] = [("web", 3, 8), ("api", 2, 12), ("worker", 4, 20)];
const NODES: [&str; 3] = ["node-a", "node-b", "node-c"];
/// A nightly job's pods: a new one every so many steps, each there for so many.
const REPORT_EVERY: u64 = 5;
const REPORT_LIVES: u64 = 15;
const SECRET_ROTATES_EVERY: u64 = 7;
const EVENT_EVERY: u64 = 3;
const STOREFRONT_FLIPS_EVERY: u64 = 6;
/// Well-known base64 of nothing that is secret; each rotation is another.
const PASSWORDS: [&str; 3] = ["c3ByaW5n", "c3VtbWVy", "YXV0dW1u"];

/// What never changes.
pub(super) fn constant() -> Objects {
    let namespaces = ["default", "kube-system", NAMESPACE, BULK].map(|name| {
        let object = json!({"metadata": {"name": name}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}});
        ("namespaces", object)
    });
    let services = [("web", 80), ("api", 8080)].map(|(name, port)| {
        let object = json!({
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": name}},
            "spec": {
                "type": "ClusterIP",
                "clusterIP": if name == "web" { "10.96.4.20" } else { "10.96.4.21" },
                "ports": [{"port": port, "protocol": "TCP", "targetPort": port}],
                "selector": {"app": name},
            },
        });
        ("services", object)
    });
    let settings = json!({
        "metadata": {"name": "settings", "namespace": NAMESPACE, "labels": {"app": "web"}},
        "data": {"currency": "EUR", "locale": "de-DE", "banner": "Free delivery above 40"},
    });
    let certificate = json!({
        "metadata": {"name": "web-tls", "namespace": NAMESPACE},
        "type": "kubernetes.io/tls",
        "data": {"tls.crt": "Y2VydGlmaWNhdGU=", "tls.key": "a2V5"},
    });
    let further = [("configmaps", settings), ("secrets", certificate)];
    namespaces.into_iter().chain(services).chain(further).collect()
}

/// Everything else, at a step.
pub(super) fn at(step: u64) -> Objects {
    let mut objects = vec![
        ("configmaps", prices(step)),
        ("configmaps", features(step)),
        ("secrets", database(step)),
        (STOREFRONTS_NAME, storefront(step)),
        ("events", event(step)),
    ];
    objects.extend(
        NODES
            .iter()
            .enumerate()
            .map(|(number, name)| ("nodes", node(name, number, step))),
    );
    for (name, replicas, period) in DEPLOYMENTS {
        objects.push(("deployments.apps", deployment(name, replicas, period, step)));
        objects.extend((0..replicas).map(|number| ("pods", pod(name, number, replicas, period, step))));
    }
    objects.extend(reports(step).map(|number| ("pods", report(number, step))));
    objects
}

/// What was there at the step before and is no more.
pub(super) fn gone_at(step: u64) -> impl Iterator<Item = Named> {
    let before = step.checked_sub(1).map(reports).into_iter().flatten();
    before
        .filter(move |number| !reports(step).any(|living| living == *number))
        .map(|number| Named {
            resource: "pods",
            name: report_name(number),
        })
}

/// One of many objects.
pub(super) fn bulk(number: u32, changes: u64) -> Value {
    json!({
        "metadata": {"name": bulk_name(number.into()), "namespace": BULK, "labels": {"shelf": (number % 20).to_string()}},
        "data": {"article": format!("article {number}"), "changes": changes.to_string()},
    })
}

/// The name of one of many objects.
pub(super) fn bulk_name(number: u64) -> String {
    format!("article-{number:06}")
}

fn prices(step: u64) -> Value {
    json!({
        "metadata": {"name": "prices", "namespace": NAMESPACE, "labels": {"app": "api"}},
        "data": {
            "apple": format!("0.{:02}", 30 + step % 40),
            "bread": format!("3.{:02}", 10 + step / 4 % 80),
            "updates": step.to_string(),
        },
    })
}

fn features(step: u64) -> Value {
    let checkout = if (step / 9).is_multiple_of(2) { "on" } else { "off" };
    json!({
        "metadata": {"name": "features", "namespace": NAMESPACE, "labels": {"app": "web"}},
        "data": {"new-checkout": checkout, "reviews": "on"},
    })
}

fn database(step: u64) -> Value {
    let rotation = step / SECRET_ROTATES_EVERY;
    let password = PASSWORDS[usize::try_from(rotation % 3).unwrap_or_default()];
    json!({
        "metadata": {
            "name": "database",
            "namespace": NAMESPACE,
            "labels": {"app": "api"},
            "annotations": {"shop.example.com/rotations": rotation.to_string()},
        },
        "type": "Opaque",
        "data": {"username": "c2hvcA==", "password": password},
    })
}

fn storefront(step: u64) -> Value {
    let is_ready = (step / STOREFRONT_FLIPS_EVERY).is_multiple_of(2);
    let (status, reason) = if is_ready {
        ("True", "Serving")
    } else {
        ("False", "CertificateRenewing")
    };
    json!({
        "metadata": {"name": "main", "namespace": NAMESPACE},
        "spec": {"host": "shop.example.com", "theme": {"accent": "#0b6e4f", "dark": true}, "discount": 0.10},
        "status": {
            "visitors": 1000 + step * 7,
            "conditions": [{"type": "Ready", "status": status, "reason": reason, "message": ""}],
        },
    })
}

fn event(step: u64) -> Value {
    json!({
        "metadata": {"name": "web.17f0c3b2a1", "namespace": NAMESPACE},
        "involvedObject": {"kind": "Pod", "namespace": NAMESPACE, "name": "web-0", "apiVersion": "v1"},
        "reason": "Unhealthy",
        "message": "Readiness probe failed: HTTP probe failed with statuscode: 503",
        "source": {"component": "kubelet", "host": NODES[0]},
        "count": 1 + step / EVENT_EVERY,
        "type": "Warning",
        "reportingComponent": "kubelet",
        "reportingInstance": NODES[0],
    })
}

fn node(name: &str, number: usize, step: u64) -> Value {
    let is_pressed = number == 1 && step / 10 % 3 == 1;
    json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {
            "conditions": [
                {"type": "MemoryPressure", "status": if is_pressed { "True" } else { "False" }, "reason": "Kubelet", "message": ""},
                {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"},
            ],
            "nodeInfo": {"kubeletVersion": "v1.36.0"},
        },
    })
}

/// In each period one pod after the other is replaced: `Some` says which, and whether its successor is up to date only.
fn replaced(replicas: u64, period: u64, step: u64) -> Option<u64> {
    let phase = step % period;
    (step >= period && phase < replicas).then_some(phase)
}

fn deployment(name: &str, replicas: u64, period: u64, step: u64) -> Value {
    let generation = 1 + step / period;
    let (ready, updated) = match replaced(replicas, period, step) {
        Some(phase) => (replicas - 1, phase + 1),
        None => (replicas, replicas),
    };
    let progressing = if updated < replicas {
        "ReplicaSetUpdated"
    } else {
        "NewReplicaSetAvailable"
    };
    json!({
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": name}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": name, "image": format!("registry.example.com/{name}:1.{generation}")}]},
            },
        },
        "status": {
            "observedGeneration": generation,
            "replicas": replicas,
            "updatedReplicas": updated,
            "readyReplicas": ready,
            "availableReplicas": ready,
            "conditions": [
                {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": "Deployment has minimum availability."},
                {"type": "Progressing", "status": "True", "reason": progressing, "message": ""},
            ],
        },
    })
}

fn pod(app: &str, number: u64, replicas: u64, period: u64, step: u64) -> Value {
    let is_starting = replaced(replicas, period, step) == Some(number);
    let (phase, is_ready) = if is_starting {
        ("Pending", false)
    } else {
        ("Running", true)
    };
    let restarts = if app == "worker" && number == 0 {
        step / 11
    } else {
        0
    };
    let state = if is_starting {
        json!({"waiting": {"reason": "ContainerCreating"}})
    } else {
        json!({"running": {}})
    };
    json!({
        "metadata": {"name": format!("{app}-{number}"), "namespace": NAMESPACE, "labels": {"app": app}},
        "spec": {
            "nodeName": NODES[usize::try_from(number % 3).unwrap_or_default()],
            "containers": [{"name": app, "image": format!("registry.example.com/{app}:1.{}", 1 + step / period)}],
        },
        "status": {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": if is_ready { "True" } else { "False" }}],
            "containerStatuses": [{"name": app, "ready": is_ready, "restartCount": restarts, "state": state}],
        },
    })
}

/// The numbers of the report pods that are there at a step.
fn reports(step: u64) -> impl Iterator<Item = u64> {
    let newest = step / REPORT_EVERY;
    (0..=newest)
        .rev()
        .take_while(move |number| step - number * REPORT_EVERY < REPORT_LIVES)
}

fn report_name(number: u64) -> String {
    format!("report-{number}")
}

fn report(number: u64, step: u64) -> Value {
    let age = step - number * REPORT_EVERY;
    let (phase, is_ready) = match age {
        0 => ("Pending", false),
        1..=8 => ("Running", true),
        _ => ("Succeeded", false),
    };
    json!({
        "metadata": {"name": report_name(number), "namespace": NAMESPACE, "labels": {"app": "report"}},
        "spec": {
            "nodeName": NODES[2],
            "restartPolicy": "Never",
            "containers": [{"name": "report", "image": "registry.example.com/report:1.0"}],
        },
        "status": {
            "phase": phase,
            "containerStatuses": [{"name": "report", "ready": is_ready, "restartCount": 0, "state": {}}],
        },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn pods(step: u64) -> BTreeSet<String> {
        at(step)
            .into_iter()
            .filter(|(resource, _)| *resource == "pods")
            .map(|(_, object)| object["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn what_goes_between_two_steps_is_named_and_nothing_else() {
        for step in 1..100 {
            let gone: BTreeSet<String> = gone_at(step).map(|named| named.name).collect();
            let missing: BTreeSet<String> = pods(step - 1).difference(&pods(step)).cloned().collect();
            assert_eq!(gone, missing, "at step {step}");
        }
        assert!((1..100).any(|step| gone_at(step).count() > 0));
        assert!((1..100).any(|step| !pods(step).is_subset(&pods(step - 1))));
    }

    #[test]
    fn every_step_changes_something_and_not_everything() {
        for step in 1..60 {
            let (before, after) = (at(step - 1), at(step));
            assert!(
                after.iter().any(|object| !before.contains(object)),
                "at step {step}"
            );
            assert!(
                after.iter().any(|object| before.contains(object)),
                "at step {step}"
            );
        }
    }
}
