//! What a real API server sent, through every projection.

use std::path::PathBuf;

use krm_stream_projection::{Applies, Projection};
use krm_stream_protocol::{Scope, json};
use serde_json::Value;

use crate::support::*;

/// The recordings' folder, or `None` where there is none, which CI must not overlook.
fn recordings() -> Option<PathBuf> {
    let shared = std::env::var_os("KRM_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let folder = shared.join("recordings");
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "no recordings at {}: set KRM_SHARED",
        folder.display()
    );
    eprintln!(
        "NOT TESTED: no recordings at {}; set KRM_SHARED",
        folder.display()
    );
    None
}

/// Every object of the recordings, with its scope. Items of typed lists get the kind that their list implies.
fn objects(folder: &PathBuf) -> Vec<(String, Scope, String)> {
    let mut objects = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read(&path).unwrap();
        let Some(resource) = ["secrets", "configmaps", "deployments", "oddities"]
            .into_iter()
            .find(|resource| name.contains(resource))
        else {
            continue;
        };
        let scope = match resource {
            "deployments" => scope_of("apps", "v1", resource),
            "oddities" => scope_of("lab.example.com", "v1", resource),
            _ => scope_of("", "v1", resource),
        };
        if name.starts_with("list-") {
            let kind = json::string(json::last_member(&text, "kind").unwrap()).unwrap();
            let api_version = json::string(json::last_member(&text, "apiVersion").unwrap()).unwrap();
            for (item, _) in json::elements(json::last_member(&text, "items").unwrap()) {
                let item = std::str::from_utf8(item).unwrap();
                let item = if json::last_member(item.as_bytes(), "kind").is_some() {
                    item.to_owned()
                } else {
                    let kind = kind.strip_suffix("List").unwrap();
                    format!(r#"{{"kind":"{kind}","apiVersion":"{api_version}",{}"#, &item[1..])
                };
                objects.push((name.clone(), scope.clone(), item));
            }
        } else {
            for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let object = json::last_member(line, "object").unwrap();
                if json::string(json::last_member(line, "type").unwrap()).unwrap() != "BOOKMARK" {
                    let object = std::str::from_utf8(object).unwrap().to_owned();
                    objects.push((name.clone(), scope.clone(), object));
                }
            }
        }
    }
    objects
}

/// The same rules over parsed values, for what parsing does not lose.
fn reference_value(mut value: Value, is_secret: bool, is_spec: bool) -> Value {
    let object = value.as_object_mut().unwrap();
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.remove("managedFields");
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
        && annotations.remove(LAST_APPLIED).is_some()
        && annotations.is_empty()
    {
        metadata.remove("annotations");
    }
    if is_secret {
        for field in ["data", "stringData", "binaryData"] {
            object.remove(field);
        }
    }
    if is_spec {
        object.remove("status");
    }
    value
}

#[test]
fn recorded_objects_keep_every_byte_that_no_rule_names_and_lose_every_canary() {
    let Some(folder) = recordings() else { return };
    let objects = objects(&folder);
    assert!(objects.len() >= 12, "only {} objects", objects.len());
    let canaries = ["canary-", "Y2FuYXJ5"];
    let sent = objects
        .iter()
        .filter(|(_, _, text)| canaries.iter().any(|canary| text.contains(canary)));
    assert!(sent.count() >= 3, "the recordings lost their canaries");
    let host = Projection::define("example.io/v1")
        .remove_annotation(Applies::ToAll, "team")
        .build()
        .unwrap();
    for (name, scope, text) in &objects {
        for (projection, is_spec) in [(Projection::full(), false), (Projection::spec(), true)] {
            let is_secret = scope.resource() == "secrets";
            let frame = first_frame(&projection, scope, text);
            for canary in canaries {
                assert!(
                    !frame.contains(canary),
                    "{canary} of {name} under {:?}",
                    projection.name()
                );
            }
            let kept = projected_text(&projection, scope, text);
            assert!(is_subsequence(&tokens(&kept), &tokens(text)), "{name}: {kept}");
            let reference = Reference {
                withholds_secrets: true,
                removes_status: is_spec,
                scope_is_secrets: is_secret,
            };
            let (expected, withheld) = reference.project(&Tree::read(text));
            let mut expected_text = String::new();
            expected.write(&mut expected_text);
            assert_eq!(kept, expected_text, "{name}");
            let event: Value = serde_json::from_str(&sse_data(&frame)[0]).unwrap();
            let paths: Vec<_> = event["redacted"]
                .as_array()
                .unwrap()
                .iter()
                .map(|entry| entry["path"].as_str().unwrap())
                .collect();
            assert_eq!(paths, withheld, "{name}");
            let value = reference_value(serde_json::from_str(text).unwrap(), is_secret, is_spec);
            assert_eq!(event["object"], value, "{name}");
        }
        let kept = projected_text(&host, scope, text);
        assert!(
            !kept.contains(r#""team":"#) && is_subsequence(&tokens(&kept), &tokens(text)),
            "{name}: {kept}"
        );
    }
}

#[test]
fn a_recorded_object_is_the_same_state_by_list_and_by_watch() {
    let Some(folder) = recordings() else { return };
    let objects = objects(&folder);
    let mut compared = 0;
    for (list, scope, listed) in objects.iter().filter(|(name, ..)| name.starts_with("list-")) {
        let listed = project(&Projection::full(), scope, listed);
        for (_, _, watched) in objects
            .iter()
            .filter(|(name, other, _)| name.starts_with("watch") && other == scope)
        {
            let watched = project(&Projection::full(), scope, watched);
            if watched.identity().uid == listed.identity().uid
                && watched.resource_version() == listed.resource_version()
            {
                compared += 1;
                assert!(watched.is_same_state(&listed), "{list}");
                assert_eq!(watched.tail(), listed.tail(), "{list}");
            }
        }
    }
    assert!(compared > 0, "nothing was both listed and watched");
}
