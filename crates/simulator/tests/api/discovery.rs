//! Paths that are not about a resource.

use krm_stream_simulator::{Resource, Simulator};
use serde_json::json;

use crate::client::Client;

#[tokio::test]
async fn health_version_and_discovery_are_served() {
    let simulator = Simulator::builder()
        .resource(Resource::custom("example.com", "v1", "widgets", "Widget"))
        .start()
        .await
        .unwrap();
    let client = Client::new(&simulator);
    for path in ["/readyz", "/livez", "/healthz"] {
        assert_eq!(client.get(path).await.text(), "ok");
    }
    assert!(
        client.get("/version").await.json()["gitVersion"]
            .as_str()
            .unwrap()
            .starts_with("v1.")
    );
    assert_eq!(client.get("/api").await.json()["versions"][0], "v1");
    let groups = client.get("/apis").await.json();
    let names: Vec<&str> = groups["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| group["name"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"example.com") && names.contains(&"apps") && names.contains(&"authorization.k8s.io")
    );
    assert_eq!(
        client.get("/apis/example.com").await.json()["preferredVersion"]["groupVersion"],
        "example.com/v1"
    );
    let resources = client.get("/apis/example.com/v1").await.json();
    assert_eq!(resources["resources"][0]["kind"], "Widget");
    assert_eq!(resources["resources"][1]["name"], "widgets/status");
    assert!(client.get("/api/v1").await.text().contains("configmaps"));
    for path in ["/", "/nothing", "/apis/none", "/apis/none/v1", "/api/v2"] {
        let reply = client.get(path).await;
        assert_eq!(
            (reply.status.as_u16(), reply.text()),
            (404, "404 page not found\n"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn json_is_indented_for_the_tools_of_people() {
    let simulator = Simulator::start().await.unwrap();
    let list = Client::new(&simulator)
        .with_header("user-agent", "curl/8.0")
        .get("/api/v1/pods")
        .await;
    assert_eq!(
        list.text(),
        "{\n  \"kind\": \"PodList\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {\n    \"resourceVersion\": \"1\"\n  },\n  \"items\": []\n}\n"
    );
    simulator.advance_resource_version(5);
    simulator.compact();
    let curl = Client::new(&simulator).with_header("user-agent", "curl/8.0");
    let expired = curl.get("/api/v1/pods?watch=1&resourceVersion=1").await;
    assert_eq!(
        expired.text().lines().count(),
        1,
        "lines of a watch are not indented"
    );
    assert!(list.headers.contains_key("audit-id"));
    assert_eq!(list.headers["cache-control"], "no-cache, private");
    assert_eq!(list.headers["content-length"], list.body.len().to_string());
}

#[tokio::test]
async fn a_resource_that_is_no_longer_served_is_not_found_and_its_watches_end() {
    let simulator = Simulator::start().await.unwrap();
    simulator.register(Resource::custom("example.com", "v1", "widgets", "Widget").cluster_scoped());
    let client = Client::new(&simulator);
    let mut watch = client.watch("/apis/example.com/v1/widgets?watch=1").await;
    assert!(simulator.unregister("widgets.example.com"));
    assert_eq!(watch.end().await, crate::client::End::Clean);
    assert_eq!(
        client.get("/apis/example.com/v1/widgets").await.text(),
        "404 page not found\n"
    );
}

#[tokio::test]
async fn a_definition_brings_its_resources_and_takes_them_away() {
    let simulator = Simulator::start().await.unwrap();
    let client = Client::new(&simulator);
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = json!({
        "metadata": {"name": "gadgets.lab.example.com"},
        "spec": {
            "group": "lab.example.com",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"},
            "scope": "Cluster",
            "versions": [
                {"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}},
                {"name": "v1alpha1", "served": false, "storage": false},
            ],
        },
    });
    let created = client.post(definitions, &definition).await;
    assert_eq!(created.status, 201, "{}", created.text());
    assert_eq!(created.json()["status"]["conditions"][1]["type"], "Established");
    let gadgets = "/apis/lab.example.com/v1/gadgets";
    let gadget = json!({"metadata": {"name": "g"}, "spec": {"a": 1}, "status": {"b": 1}});
    let made = client.post(gadgets, &gadget).await.json();
    assert_eq!(made["metadata"]["generation"], 1);
    assert!(made.get("status").is_none(), "status is a subresource");
    assert_eq!(
        client.get("/apis/lab.example.com/v1alpha1/gadgets").await.status,
        404
    );
    client
        .delete(&format!("{definitions}/gadgets.lab.example.com"), "")
        .await;
    assert_eq!(client.get(gadgets).await.status, 404);
}
