//! The manifests: each parses, and what one says of another is so.

use std::time::Duration;

use serde_json::{Value, json};

use crate::files::{document, documents, path, settings, strings, under};

const DEPLOYMENT: &str = "deploy/kustomize/base/deployment.yaml";

fn pod() -> Value {
    document(DEPLOYMENT)["spec"]["template"].clone()
}

fn container() -> Value {
    let containers = &pod()["spec"]["containers"];
    assert_eq!(containers.as_array().map(Vec::len), Some(1));
    containers[0].clone()
}

/// The value of a flag of the container.
fn flag(name: &str) -> String {
    let arguments = strings(&container()["args"]);
    let prefix = format!("--{name}=");
    let value = arguments
        .iter()
        .find_map(|argument| argument.strip_prefix(&prefix));
    value
        .unwrap_or_else(|| panic!("the container has no --{name}"))
        .to_owned()
}

fn seconds(text: &str) -> u64 {
    let number = text.strip_suffix('s').expect("the flag is in seconds");
    number.parse().expect("the flag is a number of seconds")
}

#[test]
fn every_file_parses_and_is_named_by_a_kustomization() {
    for file in under("deploy", ".yaml") {
        for document in documents(&file) {
            assert!(!document.is_null(), "{file} has an empty document");
        }
    }
    for kustomization in under("deploy/kustomize", "kustomization.yaml") {
        let folder = kustomization.trim_end_matches("/kustomization.yaml").to_owned();
        let text = crate::files::text(&kustomization);
        for file in under(&folder, "") {
            let name = file.trim_start_matches(&folder).trim_start_matches('/');
            if !name.contains('/') && name != "kustomization.yaml" {
                assert!(text.contains(name), "{kustomization} does not name {name}");
            }
        }
        for resource in strings(&document(&kustomization)["resources"]) {
            assert!(
                path(&format!("{folder}/{resource}")).exists(),
                "{kustomization}: {resource} is not there"
            );
        }
    }
}

#[test]
fn selectors_find_the_pods_of_the_deployment() {
    let labels = &pod()["metadata"]["labels"];
    let deployment = document(DEPLOYMENT);
    let budget = document("deploy/kustomize/base/pod-disruption-budget.yaml");
    let service = document("deploy/kustomize/base/service.yaml");
    let policy = document("deploy/kustomize/components/network-policy/network-policy.yaml");
    assert_eq!(&deployment["spec"]["selector"]["matchLabels"], labels);
    assert_eq!(&budget["spec"]["selector"]["matchLabels"], labels);
    assert_eq!(&service["spec"]["selector"], labels);
    assert_eq!(&policy["spec"]["podSelector"]["matchLabels"], labels);
    let spread = deployment["spec"]["template"]["spec"]["topologySpreadConstraints"].clone();
    let spread = spread.as_array().expect("pods are spread");
    assert_eq!(spread.len(), 2);
    for constraint in spread {
        assert_eq!(&constraint["labelSelector"]["matchLabels"], labels);
    }
}

#[test]
fn everything_is_in_one_namespace_and_runs_as_one_account() {
    let namespace = document("deploy/kustomize/base/namespace.yaml")["metadata"]["name"].clone();
    let account = document("deploy/kustomize/base/service-account.yaml");
    assert_eq!(pod()["spec"]["serviceAccountName"], account["metadata"]["name"]);
    for file in under("deploy/kustomize", ".yaml") {
        for object in documents(&file) {
            let own = &object["metadata"]["namespace"];
            let events = object["metadata"]["name"] == "krm-stream-events";
            assert!(
                own.is_null() || *own == namespace || (events && own == "default"),
                "{file}: {own}"
            );
            for subject in object["subjects"].as_array().into_iter().flatten() {
                let expected =
                    json!({"kind": "ServiceAccount", "name": "krm-stream", "namespace": namespace});
                assert_eq!(*subject, expected, "{file}");
            }
        }
    }
}

#[test]
fn ports_are_those_that_the_program_listens_on() {
    let port = |name: &str| {
        let ports = container()["ports"].clone();
        let ports = ports.as_array().expect("the container has ports").clone();
        let port = ports.iter().find(|port| port["name"] == name);
        port.unwrap_or_else(|| panic!("no port {name}"))["containerPort"].to_string()
    };
    assert!(flag("listen").ends_with(&format!(":{}", port("http"))));
    assert!(flag("admin-listen").ends_with(&format!(":{}", port("admin"))));
    assert_eq!(
        pod()["metadata"]["annotations"]["prometheus.io/port"],
        port("admin")
    );
    let service = document("deploy/kustomize/base/service.yaml");
    assert_eq!(service["spec"]["ports"][0]["targetPort"], "http");
    let image = crate::files::text("deploy/Containerfile");
    assert!(image.contains(&format!("EXPOSE {} {}", port("http"), port("admin"))));
}

/// A patch names arguments by their place.
#[test]
fn the_patch_for_ipv6_replaces_the_addresses_that_are_listened_on() {
    let page = crate::files::text("deploy/README.md");
    let arguments = strings(&container()["args"]);
    let replaced: Vec<(String, String)> = page
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- {op: replace, path: "))
        .filter_map(|line| line.strip_suffix("\"}")?.split_once(", value: \""))
        .map(|(place, value)| {
            let place = place.strip_prefix("/spec/template/spec/containers/0/args/");
            let place: usize = place.and_then(|place| place.parse().ok()).expect("a place");
            (arguments[place].clone(), value.to_owned())
        })
        .collect();
    assert_eq!(replaced.len(), 2, "{page}");
    for (argument, value) in replaced {
        assert_eq!(argument.replace("=0.0.0.0:", "=[::]:"), value);
        assert_ne!(argument, value);
    }
}

#[test]
fn probes_ask_for_paths_that_are_there_at_a_host_that_is_allowed() {
    let container = container();
    assert_eq!(
        container["livenessProbe"]["httpGet"],
        json!({"path": "/livez", "port": "http"})
    );
    assert_eq!(
        container["readinessProbe"]["httpGet"],
        json!({"path": "/readyz", "port": "http"})
    );
    // The kubelet calls the pod by its address.
    assert!(strings(&container["args"]).contains(&"--allow-host=$(POD_IP)".to_owned()));
    assert_eq!(container["env"][0]["name"], "POD_IP");
    assert_eq!(
        container["env"][0]["valueFrom"]["fieldRef"]["fieldPath"],
        "status.podIP"
    );
}

#[test]
fn a_pod_is_killed_only_after_it_had_the_time_to_drain() {
    let grace = pod()["spec"]["terminationGracePeriodSeconds"]
        .as_u64()
        .expect("the grace period is a number");
    let pause = container()["lifecycle"]["preStop"]["sleep"]["seconds"]
        .as_u64()
        .expect("the pod sleeps before it is told to end");
    let drain = seconds(&flag("drain-timeout"));
    assert!(
        grace >= pause + drain + 5,
        "{grace} s are not {pause} s, {drain} s and a margin"
    );
    assert!(
        seconds(&flag("drain-spread")) < drain,
        "readers must be away before the end"
    );
    assert!(pause >= 1);
}

#[test]
fn nothing_in_the_pod_can_write_or_become_more() {
    let pod = pod();
    assert_eq!(
        pod["spec"]["securityContext"],
        json!({
            "runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532, "seccompProfile": {"type": "RuntimeDefault"},
        })
    );
    assert_eq!(
        container()["securityContext"],
        json!({
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
        })
    );
    let namespace = document("deploy/kustomize/base/namespace.yaml");
    assert_eq!(
        namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"],
        "restricted"
    );
    let image = crate::files::text("deploy/Containerfile");
    let last = image
        .rsplit_once("\nFROM ")
        .expect("the image is built in stages")
        .1;
    assert!(
        last.starts_with("scratch\n"),
        "the image holds more than the program"
    );
    assert!(last.contains("\nUSER 65532:65532\n"));
    assert!(!last.contains("RUN"));
}

#[test]
fn a_roll_out_never_takes_a_replica_away_before_its_successor_is_there() {
    let deployment = document(DEPLOYMENT);
    assert_eq!(
        deployment["spec"]["strategy"]["rollingUpdate"],
        json!({"maxUnavailable": 0, "maxSurge": 1})
    );
    assert!(deployment["spec"]["replicas"].as_u64() >= Some(2));
    let budget = document("deploy/kustomize/base/pod-disruption-budget.yaml");
    assert_eq!(budget["spec"]["maxUnavailable"], 1);
}

#[test]
fn nobody_is_believed_until_a_site_names_its_proxy() {
    let settings = settings("deploy/kustomize/base/settings.env");
    // An address of documentation (RFC 5737), which no proxy has.
    assert_eq!(settings["KRM_TRUSTED_PROXY"], "192.0.2.1");
    assert!(settings["KRM_IDENTITY"].starts_with("header:"));
    assert_eq!(flag("authorize"), "subject-access-review");
    for overlay in ["shared", "per-caller"] {
        let settings = crate::files::settings(&format!("deploy/kustomize/overlays/{overlay}/settings.env"));
        assert_eq!(settings["KRM_SHARING"], overlay);
        assert!(settings.keys().all(|name| !name.contains("DANGEROUSLY")));
    }
}

#[test]
fn references_to_variables_are_to_those_that_the_container_has() {
    let settings = settings("deploy/kustomize/base/settings.env");
    let base = strings(&container()["args"]);
    let added = document("deploy/kustomize/components/declared-streams/arguments.yaml");
    let added = added.as_array().expect("the patch is a list").clone();
    let added = added
        .iter()
        .filter_map(|operation| operation["value"].as_str().map(str::to_owned));
    for argument in base.into_iter().chain(added) {
        if let Some((_, rest)) = argument.split_once("$(") {
            let (name, _) = rest.split_once(')').expect("the reference is closed");
            assert!(
                settings.contains_key(name) || name == "POD_IP" || name == "POD_NAMESPACE",
                "{argument}"
            );
        }
    }
}

#[test]
fn the_limits_of_streams_and_of_memory_go_together() {
    let settings = settings("deploy/kustomize/base/settings.env");
    let streams: u64 = settings["KRM_MAX_STREAMS"]
        .parse()
        .expect("the limit is a number");
    let scope: u64 = settings["KRM_MAX_SNAPSHOT_BYTES"]
        .parse()
        .expect("the limit is a number");
    assert_eq!(container()["resources"]["limits"]["memory"], "1Gi");
    // 16 KiB a stream, and room for the largest scope beside its new snapshot.
    assert!(streams * 16 * 1024 + 2 * scope < 1024 * 1024 * 1024);
    assert!(Duration::from_secs(seconds(&flag("write-timeout"))) >= Duration::from_secs(10));
}
