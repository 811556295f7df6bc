//! Paths that are not about a resource: health, version and discovery.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    answer::Answer,
    encode::{Keys, write_value},
    resource::Resource,
};

use super::{Exchange, json as json_answer};

/// The group of reviews, which are answered and never stored.
const REVIEWS: (&str, &str) = ("authorization.k8s.io", "v1");

/// What a path without a handler gets; Go's `http.NotFound`.
pub(super) fn no_such_path() -> Answer {
    Answer::text(404, "404 page not found\n").header("X-Content-Type-Options", "nosniff")
}

/// Whether anything is served of the request's group and version.
pub(super) fn group_is_served(exchange: &Exchange) -> bool {
    let key = exchange.request.key();
    (key.group.as_str(), key.version.as_str()) == REVIEWS
        || exchange
            .shared
            .store()
            .resources()
            .any(|resource| resource.group() == key.group && resource.version() == key.version)
}

pub(super) fn answer(exchange: &Exchange) -> Answer {
    let path = exchange.request.path().trim_matches('/').to_owned();
    let segments: Vec<&str> = path.split('/').collect();
    if exchange.request.method() != "GET" && exchange.request.method() != "HEAD" {
        return no_such_path();
    }
    let groups = groups(exchange);
    let body = match segments.as_slice() {
        ["readyz" | "livez" | "healthz", ..] => return Answer::text(200, "ok"),
        ["version"] => version(),
        ["api"] => json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [],
        }),
        ["apis"] => {
            let all: Vec<Value> = groups
                .iter()
                .filter(|(name, _)| !name.is_empty())
                .map(|(name, versions)| group(name, versions))
                .collect();
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": all})
        }
        ["apis", name] if !name.is_empty() => match groups.get(*name) {
            Some(versions) => {
                let mut body = json!({"kind": "APIGroup", "apiVersion": "v1"});
                merge(&mut body, group(name, versions));
                body
            }
            None => return no_such_path(),
        },
        ["api", version] => match resource_list(exchange, "", version) {
            Some(body) => body,
            None => return no_such_path(),
        },
        ["apis", name, version] => match resource_list(exchange, name, version) {
            Some(body) => body,
            None => return no_such_path(),
        },
        _ => return no_such_path(),
    };
    let mut out = Vec::new();
    write_value(&mut out, &body, Keys::AsGiven);
    out.push(b'\n');
    json_answer(200, out)
}

fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "gitVersion": "v1.36.3+simulator",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "",
    })
}

/// The versions of each group.
fn groups(exchange: &Exchange) -> BTreeMap<String, Vec<String>> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    groups.insert(REVIEWS.0.to_owned(), vec![REVIEWS.1.to_owned()]);
    for resource in exchange.shared.store().resources() {
        let versions = groups.entry(resource.group().to_owned()).or_default();
        if !versions.iter().any(|version| version == resource.version()) {
            versions.push(resource.version().to_owned());
        }
    }
    groups
}

fn group(name: &str, versions: &[String]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    let preferred = versions.first().cloned().unwrap_or(Value::Null);
    json!({"name": name, "versions": versions, "preferredVersion": preferred})
}

fn resource_list(exchange: &Exchange, group: &str, version: &str) -> Option<Value> {
    let store = exchange.shared.store();
    let mut resources: Vec<Value> = store
        .resources()
        .filter(|resource| resource.group() == group && resource.version() == version)
        .flat_map(api_resources)
        .collect();
    if (group, version) == REVIEWS {
        for (plural, kind) in [
            ("selfsubjectaccessreviews", "SelfSubjectAccessReview"),
            ("subjectaccessreviews", "SubjectAccessReview"),
        ] {
            resources.push(api_resource((plural, kind), false, &["create"]));
        }
    }
    if resources.is_empty() {
        return None;
    }
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    Some(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": resources,
    }))
}

fn api_resources(resource: &Resource) -> Vec<Value> {
    const VERBS: &[&str] = &[
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    ];
    let mut all = vec![api_resource(
        (resource.plural(), resource.kind()),
        resource.is_namespaced(),
        VERBS,
    )];
    if resource.status {
        let name = format!("{}/status", resource.plural());
        all.push(api_resource(
            (&name, resource.kind()),
            resource.is_namespaced(),
            &["get", "patch", "update"],
        ));
    }
    all
}

fn api_resource((name, kind): (&str, &str), namespaced: bool, verbs: &[&str]) -> Value {
    let singular = if name.contains('/') {
        String::new()
    } else {
        kind.to_lowercase()
    };
    json!({"name": name, "singularName": singular, "namespaced": namespaced, "kind": kind, "verbs": verbs})
}

fn merge(target: &mut Value, more: Value) {
    if let (Value::Object(target), Value::Object(more)) = (target, more) {
        target.extend(more);
    }
}
