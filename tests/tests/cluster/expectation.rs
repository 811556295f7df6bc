//! What a viewer must hold in the end: what kubectl prints, under the same projection.

use std::collections::BTreeMap;

use bytes::Bytes;
use krm_stream_projection::{DigestKey, Projection};
use krm_stream_protocol::{HeldObject, Object, Scope, json};
use serde_json::Value;

use crate::api_server::ApiServer;

/// What becomes of `metadata.resourceVersion` in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Versions {
    /// It must be equal.
    Equal,
    /// A change was suppressed, so an older one may be held.
    MayLag,
}

/// An object as a consumer sees it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    object: Value,
    redacted: Vec<String>,
}

impl Shown {
    pub(crate) fn held(held: &HeldObject, versions: Versions) -> Self {
        let redacted = held
            .redacted()
            .iter()
            .map(|redaction| (*redaction.path).to_owned());
        Self::new(held.json().as_bytes(), redacted.collect(), versions)
    }

    fn new(text: &[u8], redacted: Vec<String>, versions: Versions) -> Self {
        let mut object: Value = serde_json::from_slice(text).expect("an object is JSON");
        if versions == Versions::MayLag
            && let Some(metadata) = object["metadata"].as_object_mut()
        {
            metadata.remove("resourceVersion");
        }
        Self { object, redacted }
    }
}

/// Asks kubectl for the scope, and projects what it prints; by uid.
pub(crate) async fn ask(
    api: &ApiServer,
    scope: &Scope,
    projection: &Projection,
    versions: Versions,
) -> BTreeMap<String, Shown> {
    let resource = format!(
        "{}.{}.{}",
        scope.resource(),
        scope.version(),
        scope.group().unwrap_or_default()
    );
    let mut arguments = vec!["get", &resource, "--output=json"];
    match scope.namespace() {
        Some(namespace) => arguments.extend(["--namespace", namespace]),
        // No effect on a cluster-scoped resource.
        None => arguments.push("--all-namespaces"),
    }
    if let Some(selector) = scope.label_selector() {
        arguments.extend(["--selector", selector.as_str()]);
    }
    if let Some(name) = scope.name() {
        // Without it an absent object is an error.
        arguments.extend([name, "--ignore-not-found"]);
    }
    let printed = api.kubectl(&arguments, "").await;
    objects_of(printed.trim().as_bytes())
        .into_iter()
        .map(|text| {
            let object = Object::parse(Bytes::copy_from_slice(text)).expect("kubectl prints objects");
            let projected = projection
                .project(scope, &object, &DigestKey::new([0; 32]))
                .expect("an object of kubectl has a name and a uid");
            let redacted = projected.redactions().map_or_else(Vec::new, |redactions| {
                let paths = redactions.as_slice().iter();
                paths
                    .map(|redaction| serde_json::from_str(redaction.path_json()).expect("a path is a string"))
                    .collect()
            });
            let shown = Shown::new(projected.object(), redacted, versions);
            (projected.identity().uid.clone().into(), shown)
        })
        .collect()
}

/// The objects of a list, or the one object, or nothing.
fn objects_of(printed: &[u8]) -> Vec<&[u8]> {
    match json::last_member(printed, "items") {
        Some(items) => json::elements(items).map(|(object, _)| object).collect(),
        None if printed.is_empty() => Vec::new(),
        None => vec![printed],
    }
}

/// Names what differs.
pub(crate) fn difference(held: &BTreeMap<String, Shown>, expected: &BTreeMap<String, Shown>) -> String {
    let name = |shown: &Shown| shown.object["metadata"]["name"].to_string();
    let mut differences = Vec::new();
    for (uid, shown) in expected {
        match held.get(uid) {
            None => differences.push(format!("{} is missing", name(shown))),
            Some(other) if other != shown => {
                differences.push(format!("{}: held {:?}, expected {:?}", name(shown), other, shown));
            }
            Some(_) => {}
        }
    }
    for (uid, shown) in held {
        if !expected.contains_key(uid) {
            differences.push(format!("{} is a ghost", name(shown)));
        }
    }
    differences.truncate(5);
    differences.join("; ")
}
