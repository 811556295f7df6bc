//! The members of an object that the server sets, fills in or compares.

use std::time::SystemTime;

use serde_json::{Map, Value, json};

use crate::{
    base64,
    object::{metadata_mut, metadata_text},
    resource::Resource,
    store::event::Stored,
    time::rfc3339,
};

use super::WriteError;

/// An object's members.
pub(super) type Object = Map<String, Value>;

/// The object of a request, with the kind of its resource.
pub(super) fn into_object(resource: &Resource, value: Value) -> Result<Object, WriteError> {
    let Value::Object(mut object) = value else {
        return Err(WriteError::BadRequest(
            "the object provided is not a JSON object".to_owned(),
        ));
    };
    let kind = object
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or(resource.kind());
    if kind != resource.kind() {
        let problem = format!(
            "{kind} in version {:?} cannot be handled as a {}: no kind {kind:?} is registered for this resource",
            resource.version(),
            resource.kind()
        );
        return Err(WriteError::BadRequest(problem));
    }
    object.insert("kind".to_owned(), Value::String(resource.kind().to_owned()));
    object.insert("apiVersion".to_owned(), Value::String(resource.api_version()));
    Ok(object)
}

/// Makes the object's namespace that of the request.
pub(super) fn settle_namespace(
    resource: &Resource,
    object: &mut Object,
    namespace: &str,
) -> Result<String, WriteError> {
    let own = metadata_text(object, "namespace").to_owned();
    if !resource.is_namespaced() {
        metadata_mut(object).retain(|key, _| key != "namespace");
        return Ok(String::new());
    }
    if !own.is_empty() && !namespace.is_empty() && own != namespace {
        let problem = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(WriteError::BadRequest(problem.to_owned()));
    }
    let settled = if namespace.is_empty() {
        own
    } else {
        namespace.to_owned()
    };
    if settled.is_empty() {
        let problem = format!("an object of {} needs a namespace", resource.qualified_name());
        return Err(WriteError::BadRequest(problem));
    }
    metadata_mut(object).insert("namespace".to_owned(), Value::String(settled.clone()));
    Ok(settled)
}

/// What a real API server fills in, as far as it shows in every object of the kind.
pub(super) fn complete(resource: &Resource, object: &mut Object, now: SystemTime) {
    match resource.kind() {
        "Secret" if resource.group().is_empty() => {
            if let Some(Value::Object(plain)) = object.get("stringData").cloned() {
                let data = object.entry("data").or_insert_with(|| json!({}));
                if let Value::Object(data) = data {
                    for (key, value) in plain {
                        let value = value.as_str().unwrap_or_default();
                        data.insert(key, Value::String(base64::encode(value.as_bytes())));
                    }
                }
                object.retain(|key, _| key != "stringData");
            }
            object.entry("type").or_insert_with(|| json!("Opaque"));
        }
        "Namespace" if resource.group().is_empty() => {
            object
                .entry("spec")
                .or_insert_with(|| json!({"finalizers": ["kubernetes"]}));
            object
                .entry("status")
                .or_insert_with(|| json!({"phase": "Active"}));
        }
        "Pod" if resource.group().is_empty() => {
            object
                .entry("status")
                .or_insert_with(|| json!({"phase": "Pending"}));
        }
        "CustomResourceDefinition" if !resource.is_custom() => {
            let status = established(object, now);
            object.entry("status").or_insert(status);
        }
        _ if resource.status && !resource.is_custom() => {
            object.entry("status").or_insert_with(|| json!({}));
        }
        _ => {}
    }
}

/// The status of a definition whose resources are served, as they are at once.
fn established(object: &Object, now: SystemTime) -> Value {
    let spec = object.get("spec").cloned().unwrap_or_default();
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({
            "type": kind,
            "status": "True",
            "lastTransitionTime": rfc3339(now),
            "reason": reason,
            "message": message,
        })
    };
    let stored: Vec<Value> = spec["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|version| version["storage"] == true)
        .map(|version| version["name"].clone())
        .collect();
    json!({
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "acceptedNames": spec["names"],
        "storedVersions": stored,
    })
}

/// Carries over what only the server sets, so that what is left to compare is the caller's.
pub(super) fn keep_server_fields(before: &Object, object: &mut Object, existing: &Stored) {
    let old = before.get("metadata").and_then(Value::as_object);
    let metadata = metadata_mut(object);
    for key in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
    ] {
        metadata.retain(|name, _| name != key);
        if let Some(value) = old.and_then(|old| old.get(key)) {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
    metadata.insert("name".to_owned(), Value::String(existing.name.clone()));
}

/// Whether the part that a controller acts on differs, which is what `generation` counts.
pub(super) fn desired_state_differs(resource: &Resource, before: &Object, after: &Object) -> bool {
    if !resource.is_custom() {
        let annotations = |object: &Object| object.get("metadata")?.get("annotations").cloned();
        // Deployments alone count a change of annotations too (`deploymentStrategy.PrepareForUpdate`).
        let annotated = resource.kind() == "Deployment" && annotations(before) != annotations(after);
        return annotated || before.get("spec") != after.get("spec");
    }
    let ignored = |key: &str| key == "metadata" || (resource.status && key == "status");
    let desired = |object: &Object| -> Object {
        object
            .iter()
            .filter(|(key, _)| !ignored(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    desired(before) != desired(after)
}

pub(super) fn bump_generation(resource: &Resource, metadata: &mut Object) {
    if resource.generation {
        let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or(0);
        metadata.insert("generation".to_owned(), json!(generation.saturating_add(1)));
    }
}

pub(super) fn has_finalizers(object: &Object) -> bool {
    object
        .get("metadata")
        .and_then(|metadata| metadata.get("finalizers"))
        .and_then(Value::as_array)
        .is_some_and(|finalizers| !finalizers.is_empty())
}
