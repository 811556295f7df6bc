//! The objects that the tests make, and the scopes that they are in.

use krm_stream_protocol::{Scope, ScopeBuilder};
use serde_json::{Value, json};

/// `ConfigMaps` of a namespace.
pub(crate) fn config_maps(namespace: &str) -> Scope {
    built(Scope::builder("v1", "configmaps").namespace(namespace))
}

/// The one `ConfigMap` of this name.
pub(crate) fn config_map_named(namespace: &str, name: &str) -> Scope {
    built(Scope::builder("v1", "configmaps").namespace(namespace).name(name))
}

/// `ConfigMaps` of a namespace with these labels.
pub(crate) fn config_maps_labelled(namespace: &str, selector: &str) -> Scope {
    let scope = Scope::builder("v1", "configmaps").namespace(namespace);
    built(scope.label_selector(selector))
}

pub(crate) fn built(scope: ScopeBuilder) -> Scope {
    scope.build().expect("a scope of these tests is legal")
}

pub(crate) fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}})
}

pub(crate) fn labelled(name: &str, labels: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels},
        "data": {"value": "same"},
    })
}

pub(crate) fn pod_template(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "main", "image": "example.com/none"}]},
        },
    })
}

pub(crate) fn limit_range(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": name},
        "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]},
    })
}

/// It counts what is in its namespace only once a controller does.
pub(crate) fn resource_quota(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name},
        "spec": {"hard": {"pods": "10"}},
    })
}

/// It asks for no pod.
pub(crate) fn replication_controller(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": name},
        "spec": {
            "replicas": 0, "selector": {"app": name},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "example.com/none"}]},
            },
        },
    })
}

/// The path of an object of a collection.
pub(crate) fn path(scope: &Scope, name: &str) -> String {
    format!("{}/{name}", scope.api_path())
}

/// Whether `data.value` is this.
pub(crate) fn has_value(value: &str) -> impl Fn(&Value) -> bool {
    move |object| object["data"]["value"] == value
}

/// A patch of `data.value`.
pub(crate) fn set_value(value: &str) -> Value {
    json!({"data": {"value": value}})
}
