//! The rights that the manifests grant: these, and no more.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::files::{document, documents, settings, strings, text, under};

/// Group, resource, verb, name, and where: `cluster` or a namespace.
type Right = (String, String, String, String, String);

/// What the roles of a file grant, each of which must be bound there, and in the same place.
fn granted(file: &str) -> BTreeSet<Right> {
    let objects = documents(file);
    let bindings: BTreeSet<(String, String, String)> = objects
        .iter()
        .filter(|object| !object["roleRef"].is_null())
        .map(|binding| {
            let role = &binding["roleRef"];
            (word(&role["kind"]), word(&role["name"]), place(binding))
        })
        .collect();
    let roles: Vec<&Value> = objects
        .iter()
        .filter(|object| object["rules"].is_array())
        .collect();
    let defined: BTreeSet<(String, String, String)> = roles
        .iter()
        .map(|role| (word(&role["kind"]), word(&role["metadata"]["name"]), place(role)))
        .collect();
    assert_eq!(bindings, defined, "{file}: each role is bound once, where it is");

    let mut rights = BTreeSet::new();
    for role in roles {
        for rule in role["rules"].as_array().into_iter().flatten() {
            let names = match strings(&rule["resourceNames"]) {
                names if names.is_empty() => vec![String::new()],
                names => names,
            };
            for group in strings(&rule["apiGroups"]) {
                for resource in strings(&rule["resources"]) {
                    for verb in strings(&rule["verbs"]) {
                        for name in &names {
                            let right = (
                                group.clone(),
                                resource.clone(),
                                verb.clone(),
                                name.clone(),
                                place(role),
                            );
                            assert!(rights.insert(right), "{file}: granted twice");
                        }
                    }
                }
            }
        }
    }
    rights
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn place(object: &Value) -> String {
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => namespace.to_owned(),
        None => "cluster".to_owned(),
    }
}

fn rights(list: &[(&str, &str, &str, &str, &str)]) -> BTreeSet<Right> {
    list.iter()
        .map(|(group, resource, verb, name, place)| {
            (
                (*group).into(),
                (*resource).into(),
                (*verb).into(),
                (*name).into(),
                (*place).into(),
            )
        })
        .collect()
}

#[test]
fn every_gateway_may_ask_for_reviews_and_nothing_else() {
    let expected = rights(&[(
        "authorization.k8s.io",
        "subjectaccessreviews",
        "create",
        "",
        "cluster",
    )]);
    assert_eq!(granted("deploy/kustomize/base/rbac.yaml"), expected);
}

#[test]
fn one_that_acts_as_its_callers_may_impersonate_them_and_read_nothing() {
    let expected = rights(&[
        ("", "groups", "impersonate", "", "cluster"),
        ("", "users", "impersonate", "", "cluster"),
    ]);
    assert_eq!(
        granted("deploy/kustomize/overlays/per-caller/rbac.yaml"),
        expected
    );
}

#[test]
fn one_that_reads_for_all_may_read_what_its_settings_allow_and_no_secrets() {
    let settings = settings("deploy/kustomize/overlays/shared/settings.env");
    let mut expected = BTreeSet::new();
    for allowed in settings["KRM_ALLOW"].split(',') {
        let (group, resource) = allowed.split_once('/').unwrap_or(("", allowed));
        for verb in ["list", "watch"] {
            expected.extend(rights(&[(group, resource, verb, "", "cluster")]));
        }
    }
    let granted = granted("deploy/kustomize/overlays/shared/rbac.yaml");
    assert_eq!(granted, expected);
    assert!(
        granted
            .iter()
            .all(|(_, resource, ..)| resource != "secrets" && resource != "*")
    );
}

#[test]
fn declared_streams_take_their_status_a_lease_and_events() {
    let arguments = document("deploy/kustomize/components/declared-streams/arguments.yaml");
    let arguments = arguments.as_array().expect("the patch is a list");
    let lease = arguments
        .iter()
        .find_map(|operation| operation["value"].as_str()?.strip_prefix("--lease-name="));
    let lease = lease.expect("the lease has a name");
    let group = "krm-stream.github.io";
    let expected = rights(&[
        (group, "declaredstreams", "get", "", "cluster"),
        (group, "declaredstreams", "list", "", "cluster"),
        (group, "declaredstreams", "watch", "", "cluster"),
        (group, "declaredstreams/status", "patch", "", "cluster"),
        ("coordination.k8s.io", "leases", "create", "", "krm-stream"),
        ("coordination.k8s.io", "leases", "get", lease, "krm-stream"),
        ("coordination.k8s.io", "leases", "patch", lease, "krm-stream"),
        ("events.k8s.io", "events", "create", "", "default"),
    ]);
    assert_eq!(
        granted("deploy/kustomize/components/declared-streams/rbac.yaml"),
        expected
    );
}

#[test]
fn declared_streams_are_granted_what_their_crate_asks_for() {
    let readme = text("crates/declared/README.md");
    let asked = readme
        .split("```yaml")
        .skip(1)
        .filter_map(|block| block.split("```").next());
    let asked: BTreeSet<String> = asked
        .flat_map(|block| serde_saphyr::from_multiple::<Value>(block).expect("the README has YAML"))
        .flat_map(|object| object["rules"].as_array().cloned().unwrap_or_default())
        .map(|rule| rule.to_string())
        .collect();
    let granted: BTreeSet<String> = documents("deploy/kustomize/components/declared-streams/rbac.yaml")
        .iter()
        .flat_map(|object| object["rules"].as_array().cloned().unwrap_or_default())
        .map(|rule| rule.to_string())
        .collect();
    assert_eq!(granted, asked);
}

#[test]
fn no_other_manifest_grants_anything() {
    let known = [
        "deploy/kustomize/base/rbac.yaml",
        "deploy/kustomize/components/declared-streams/rbac.yaml",
        "deploy/kustomize/overlays/per-caller/rbac.yaml",
        "deploy/kustomize/overlays/shared/rbac.yaml",
    ];
    for file in under("deploy", ".yaml") {
        if !known.contains(&file.as_str()) {
            for object in documents(&file) {
                assert!(
                    object["roleRef"].is_null()
                        && object["kind"] != "Role"
                        && object["kind"] != "ClusterRole",
                    "{file}"
                );
            }
        }
    }
}
