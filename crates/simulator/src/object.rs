//! From a JSON object to the text that LIST and WATCH send, with the field order of a real API server.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::{
    encode::{Keys, string, write_value},
    resource::{Resource, Style},
};

/// The order of `metadata`'s members
/// (<https://pkg.go.dev/k8s.io/apimachinery/pkg/apis/meta/v1#ObjectMeta>).
const METADATA_FIELDS: &[&str] = &[
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];
const OWNER_REFERENCE_FIELDS: &[&str] = &[
    "apiVersion",
    "kind",
    "name",
    "uid",
    "controller",
    "blockOwnerDeletion",
];
const MANAGED_FIELDS_FIELDS: &[&str] = &[
    "manager",
    "operation",
    "apiVersion",
    "time",
    "fieldsType",
    "fieldsV1",
    "subresource",
];

/// Members that are maps in Go, hence sorted, wherever they stand.
const MAPS: &[&str] = &[
    "labels",
    "annotations",
    "matchLabels",
    "nodeSelector",
    "limits",
    "requests",
    "capacity",
    "allocatable",
    "data",
    "binaryData",
    "stringData",
    "fieldsV1",
];

/// The text of an object, and where its text as a list item starts.
#[derive(Debug, Clone)]
pub(crate) struct Encoded {
    /// As WATCH sends it.
    pub(crate) object: Bytes,
    /// Where the part begins that follows `{` in a list; 0 where the item is the object itself.
    pub(crate) item_from: usize,
}

/// Writes an object of this resource. `kind` and `apiVersion` are the resource's own.
pub(crate) fn encode(resource: &Resource, mut object: Map<String, Value>) -> Encoded {
    let mut out = Vec::with_capacity(512);
    match &resource.style {
        Style::Custom => {
            object.insert("kind".to_owned(), Value::String(resource.kind().to_owned()));
            object.insert("apiVersion".to_owned(), Value::String(resource.api_version()));
            write_value(&mut out, &Value::Object(object), Keys::Sorted);
            Encoded {
                object: out.into(),
                item_from: 0,
            }
        }
        Style::Typed { fields, .. } => {
            object.retain(|key, _| key != "kind" && key != "apiVersion");
            let metadata = object.get_mut("metadata").map(Value::take);
            object.retain(|key, _| key != "metadata");
            for (key, value) in &mut object {
                sort_maps(key, value);
            }
            arrange(&mut object, fields);
            let head = format!(
                "{{\"kind\":{},\"apiVersion\":{},",
                string(resource.kind()),
                string(&resource.api_version())
            );
            out.extend_from_slice(head.as_bytes());
            out.extend_from_slice(b"\"metadata\":");
            write_value(
                &mut out,
                &arranged_metadata(metadata.unwrap_or_default()),
                Keys::AsGiven,
            );
            let mut rest = Vec::new();
            write_value(&mut rest, &Value::Object(object), Keys::AsGiven);
            if rest.len() > 2 {
                out.push(b',');
                out.extend_from_slice(rest.get(1..).unwrap_or_default());
            } else {
                out.push(b'}');
            }
            Encoded {
                object: out.into(),
                item_from: head.len(),
            }
        }
    }
}

fn arranged_metadata(mut metadata: Value) -> Value {
    let Value::Object(map) = &mut metadata else {
        return metadata;
    };
    arrange(map, METADATA_FIELDS);
    for (key, value) in map.iter_mut() {
        match key.as_str() {
            "ownerReferences" => arrange_items(value, OWNER_REFERENCE_FIELDS),
            "managedFields" => arrange_items(value, MANAGED_FIELDS_FIELDS),
            _ => {}
        }
        sort_maps(key, value);
    }
    metadata
}

fn arrange_items(items: &mut Value, order: &[&str]) {
    for item in items.as_array_mut().into_iter().flatten() {
        if let Value::Object(map) = item {
            arrange(map, order);
        }
    }
}

/// Puts the named members first, in this order; the others keep theirs.
fn arrange(map: &mut Map<String, Value>, order: &[&str]) {
    let mut members: Vec<(String, Value)> = std::mem::take(map).into_iter().collect();
    members.sort_by_key(|(key, _)| order.iter().position(|name| name == key).unwrap_or(order.len()));
    map.extend(members);
}

/// Sorts what Go would hold as a map, at every depth.
fn sort_maps(key: &str, value: &mut Value) {
    match value {
        Value::Object(map) if MAPS.contains(&key) => sort_deeply(map),
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                sort_maps(key, value);
            }
        }
        Value::Array(items) => {
            for item in items {
                sort_maps("", item);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn sort_deeply(map: &mut Map<String, Value>) {
    let mut members: Vec<(String, Value)> = std::mem::take(map).into_iter().collect();
    members.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (_, value) in &mut members {
        if let Value::Object(inner) = value {
            sort_deeply(inner);
        }
    }
    map.extend(members);
}

/// `metadata.labels`, as far as they are strings.
pub(crate) fn labels(object: &Map<String, Value>) -> BTreeMap<String, String> {
    object
        .get("metadata")
        .and_then(|metadata| metadata.get("labels"))
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// `metadata.KEY` as text; empty where it is absent or no string.
pub(crate) fn metadata_text<'a>(object: &'a Map<String, Value>, key: &str) -> &'a str {
    object
        .get("metadata")
        .and_then(|metadata| metadata.get(key))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The members of `metadata`, which becomes an object if it is none.
pub(crate) fn metadata_mut(object: &mut Map<String, Value>) -> &mut Map<String, Value> {
    let metadata = object
        .entry("metadata")
        .or_insert_with(|| Value::Object(Map::new()));
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    match metadata {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            unreachable!("metadata was made an object just above")
        }
    }
}
