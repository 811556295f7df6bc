//! The simulator's bytes beside those of a real API server.
//!
//! The recordings lie in `tests/recordings`, or in the folder `recordings` of the one that `KRM_SHARED` names.

use std::path::PathBuf;

use krm_stream_simulator::{Resource, Rule, Simulator, Status, User};
use serde_json::Value;

use crate::client::Client;

fn recording(name: &str) -> String {
    let folder = std::env::var_os("KRM_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recordings"),
        |shared| PathBuf::from(shared).join("recordings"),
    );
    let path = folder.join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The object without what a server sets, its members in another order.
fn as_a_client_would_send_it(object: &Value) -> Value {
    let mut reversed = serde_json::Map::new();
    for (key, value) in object.as_object().unwrap().iter().rev() {
        let mut value = value.clone();
        if key == "metadata" {
            let metadata = value
                .as_object()
                .unwrap()
                .iter()
                .rev()
                .map(|(key, value)| (key.clone(), value.clone()));
            value = Value::Object(metadata.filter(|(key, _)| key != "resourceVersion").collect());
        }
        reversed.insert(key.clone(), value);
    }
    Value::Object(reversed)
}

/// Puts in what was recorded, and compares the streaming list of the simulator with the recorded one byte by byte.
async fn compare_watch(name: &str, resource: &str, collection: &str) {
    let recorded = recording(name);
    let lines: Vec<Value> = recorded
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let simulator = with_oddities().await;
    let client = Client::new(&simulator);
    let path = format!(
        "{collection}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    );
    let mut watch = None;
    for (event, line) in lines.iter().zip(recorded.lines()) {
        let metadata = &event["object"]["metadata"];
        let version: u64 = metadata["resourceVersion"].as_str().unwrap().parse().unwrap();
        let boundary = metadata["annotations"].get("k8s.io/initial-events-end").is_some();
        simulator.advance_resource_version(version - u64::from(event["type"] != "BOOKMARK"));
        match event["type"].as_str().unwrap() {
            "ADDED" => {
                simulator
                    .create(resource, as_a_client_would_send_it(&event["object"]))
                    .unwrap();
            }
            "MODIFIED" => {
                simulator
                    .apply(resource, as_a_client_would_send_it(&event["object"]))
                    .unwrap();
            }
            "DELETED" => simulator
                .delete(resource, "rec", metadata["name"].as_str().unwrap())
                .unwrap(),
            _ if boundary => {
                let mut opened = client.watch(&path).await;
                for expected in recorded.lines().take_while(|other| *other != line) {
                    assert_eq!(opened.line().await, expected, "{name}");
                }
                watch = Some(opened);
            }
            _ => {
                simulator.send_bookmark_now();
            }
        }
        if let Some(watch) = &mut watch {
            assert_eq!(watch.line().await, line, "{name}");
        }
    }
    assert!(watch.is_some(), "{name} has no boundary");
}

async fn with_oddities() -> Simulator {
    let oddities = Resource::custom("lab.example.com", "v1", "oddities", "Oddity");
    Simulator::builder().resource(oddities).start().await.unwrap()
}

#[tokio::test]
async fn watch_lines_of_configmaps_are_the_recorded_ones() {
    compare_watch(
        "watchlist-configmaps.jsonl",
        "configmaps",
        "/api/v1/namespaces/rec/configmaps",
    )
    .await;
}

#[tokio::test]
async fn watch_lines_of_secrets_are_the_recorded_ones() {
    compare_watch(
        "watchlist-secrets.jsonl",
        "secrets",
        "/api/v1/namespaces/rec/secrets",
    )
    .await;
}

#[tokio::test]
async fn watch_lines_of_deployments_are_the_recorded_ones() {
    let path = "/apis/apps/v1/namespaces/rec/deployments";
    compare_watch("watchlist-deployments.jsonl", "deployments.apps", path).await;
}

#[tokio::test]
async fn watch_lines_of_a_custom_resource_are_the_recorded_ones() {
    let path = "/apis/lab.example.com/v1/namespaces/rec/oddities";
    compare_watch("watchlist-oddities.jsonl", "oddities.lab.example.com", path).await;
}

#[tokio::test]
async fn lists_are_the_recorded_ones() {
    for (name, resource, path) in [
        (
            "list-deployments.json",
            "deployments.apps",
            "/apis/apps/v1/namespaces/rec/deployments",
        ),
        (
            "list-oddities.json",
            "oddities.lab.example.com",
            "/apis/lab.example.com/v1/namespaces/rec/oddities",
        ),
        ("list-secrets.json", "secrets", "/api/v1/namespaces/rec/secrets"),
    ] {
        let recorded = recording(name);
        let list: Value = serde_json::from_str(&recorded).unwrap();
        let simulator = with_oddities().await;
        let mut items = list["items"].as_array().unwrap().clone();
        items.sort_by_key(|item| item["metadata"]["resourceVersion"].as_str().unwrap().to_owned());
        for item in &items {
            let version: u64 = item["metadata"]["resourceVersion"]
                .as_str()
                .unwrap()
                .parse()
                .unwrap();
            simulator.advance_resource_version(version - 1);
            simulator
                .create(resource, as_a_client_would_send_it(item))
                .unwrap();
        }
        simulator.advance_resource_version(
            list["metadata"]["resourceVersion"]
                .as_str()
                .unwrap()
                .parse()
                .unwrap(),
        );
        let client = Client::new(&simulator);
        assert_eq!(client.get(path).await.text(), recorded, "{name}");
        if resource == "secrets" {
            let page = recording("list-secrets-page1.json");
            assert_eq!(client.get(&format!("{path}?limit=1")).await.text(), page);
        }
    }
}

#[tokio::test]
async fn refusals_are_the_recorded_ones() {
    let simulator = with_oddities().await;
    let client = Client::new(&simulator);
    let configmaps = "/api/v1/namespaces/rec/configmaps";
    simulator.advance_resource_version(409);
    simulator.compact();
    let expired = client
        .get(&format!("{configmaps}?watch=1&resourceVersion=1"))
        .await;
    simulator.advance_resource_version(414);
    for (name, path) in [
        (
            "status-400-bad-selector.json",
            format!("{configmaps}?labelSelector=a%20in"),
        ),
        (
            "status-404-no-group.txt",
            "/apis/nosuch.example.com/v1/things".to_owned(),
        ),
        (
            "status-404-no-resource.json",
            "/api/v1/namespaces/rec/nosuch".to_owned(),
        ),
        (
            "status-500-bad-resource-version.json",
            format!("{configmaps}?watch=1&resourceVersion=abc"),
        ),
        (
            "status-504-too-large-resource-version.json",
            format!("{configmaps}?resourceVersion=99999999&resourceVersionMatch=NotOlderThan"),
        ),
    ] {
        let recorded = recording(name);
        let reply = client.get(&path).await;
        assert_eq!(reply.text(), recorded, "{name}");
        assert_eq!(reply.status.as_str(), &name["status-".len()..][..3], "{name}");
    }
    assert_eq!(expired.status, 200);
    assert_eq!(expired.text(), recording("watch-expired.jsonl"));
    let not_ready = Status::not_ready().to_json() + "\n";
    assert_eq!(not_ready, recording("status-503-paths-not-installed.json"));
}

#[tokio::test]
async fn refusals_for_want_of_rights_are_the_recorded_ones() {
    let simulator = with_oddities().await;
    simulator.access().add_token("t", User::new("gateway"));
    simulator.access().add_rule(Rule::allow().user("somebody-else"));
    let path = "/api/v1/namespaces/rec/configmaps?watch=1";
    let forbidden = Client::new(&simulator).with_token("t").get(path).await;
    assert_eq!(forbidden.status, 403);
    assert_eq!(forbidden.headers["x-content-type-options"], "nosniff");
    let unknown = Client::new(&simulator).with_token("u").get(path).await;
    assert_eq!(unknown.status, 401);
    let recorded = recording("status-403.json");
    assert_eq!(forbidden.text(), recorded);
    assert_eq!(unknown.text(), recording("status-401.json"));
}
