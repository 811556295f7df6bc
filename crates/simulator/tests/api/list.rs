//! Lists: pages, selectors, versions.

use http::StatusCode;
use krm_stream_simulator::{Resource, Simulator};
use serde_json::{Value, json};

use crate::client::Client;

const CONFIGMAPS: &str = "/api/v1/namespaces/shop/configmaps";

async fn with_objects(names: &[&str]) -> (Simulator, Client) {
    let simulator = Simulator::start().await.unwrap();
    for name in names {
        let object = json!({"metadata": {"name": name, "namespace": "shop", "labels": {"name": name}}});
        simulator.create("configmaps", object).unwrap();
    }
    let client = Client::new(&simulator);
    (simulator, client)
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

fn token(list: &Value) -> String {
    list["metadata"]["continue"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test]
async fn items_of_typed_lists_have_no_kind_and_empty_lists_have_items() {
    let (_simulator, client) = with_objects(&["a"]).await;
    let list = client.get(CONFIGMAPS).await;
    assert!(list.text().starts_with(
        r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"2"},"items":[{"metadata":{"name":"a""#
    ));
    assert_eq!(
        client.get("/api/v1/secrets").await.text(),
        "{\"kind\":\"SecretList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"2\"},\"items\":[]}\n"
    );
}

#[tokio::test]
async fn items_of_custom_lists_have_their_kind_and_sorted_keys() {
    let simulator = Simulator::builder()
        .resource(Resource::custom("example.com", "v1", "widgets", "Widget"))
        .start()
        .await
        .unwrap();
    let client = Client::new(&simulator);
    let path = "/apis/example.com/v1/namespaces/shop/widgets";
    assert_eq!(
        client.get(path).await.text(),
        "{\"apiVersion\":\"example.com/v1\",\"items\":[],\"kind\":\"WidgetList\",\"metadata\":{\"continue\":\"\",\"resourceVersion\":\"1\"}}\n"
    );
    client
        .post(
            path,
            &json!({"spec": {"z": 1, "a": 1.0}, "metadata": {"name": "w"}}),
        )
        .await;
    client
        .post(path, &json!({"spec": {}, "metadata": {"name": "x"}}))
        .await;
    let page = client.get(&format!("{path}?limit=1")).await;
    assert!(page.text().starts_with(r#"{"apiVersion":"example.com/v1","items":[{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"creationTimestamp":"#));
    assert!(
        page.text()
            .contains(r#""spec":{"a":1,"z":1}}],"kind":"WidgetList","metadata":{"continue":"ey"#)
    );
    assert!(
        page.text()
            .ends_with(",\"remainingItemCount\":1,\"resourceVersion\":\"3\"}}\n")
    );
}

#[tokio::test]
async fn pages_show_the_state_at_the_first_one() {
    let (simulator, client) = with_objects(&["a", "b", "c", "d", "e"]).await;
    let first = client.get(&format!("{CONFIGMAPS}?limit=2")).await.json();
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    simulator.delete("configmaps", "shop", "c").unwrap();
    simulator
        .patch("configmaps", "shop", "d", &json!({"data": {"k": "new"}}))
        .unwrap();
    simulator
        .create(
            "configmaps",
            json!({"metadata": {"name": "bb", "namespace": "shop"}}),
        )
        .unwrap();
    let second = client
        .get(&format!("{CONFIGMAPS}?limit=2&continue={}", token(&first)))
        .await
        .json();
    assert_eq!(names(&second), ["c", "d"]);
    assert!(second["items"][1].get("data").is_none(), "d as it was");
    assert_eq!(
        second["metadata"]["resourceVersion"],
        first["metadata"]["resourceVersion"]
    );
    let third = client
        .get(&format!("{CONFIGMAPS}?limit=2&continue={}", token(&second)))
        .await
        .json();
    assert_eq!(names(&third), ["e"]);
    assert_eq!(token(&third), "");
    assert!(third["metadata"].get("remainingItemCount").is_none());
    assert_eq!(
        names(&client.get(CONFIGMAPS).await.json()),
        ["a", "b", "bb", "d", "e"]
    );
}

#[tokio::test]
async fn a_page_of_a_compacted_version_is_gone_and_may_go_on_inconsistently() {
    let (simulator, client) = with_objects(&["a", "b", "c"]).await;
    let first = client.get(&format!("{CONFIGMAPS}?limit=1")).await.json();
    simulator.delete("configmaps", "shop", "b").unwrap();
    simulator.compact();
    let gone = client
        .get(&format!("{CONFIGMAPS}?limit=1&continue={}", token(&first)))
        .await;
    assert_eq!(gone.status, StatusCode::GONE);
    assert_eq!(gone.json()["reason"], "Expired");
    let go_on = gone.json()["metadata"]["continue"].as_str().unwrap().to_owned();
    let rest = client
        .get(&format!("{CONFIGMAPS}?limit=1&continue={go_on}"))
        .await
        .json();
    assert_eq!(names(&rest), ["c"]);
    assert_eq!(
        client.get(&format!("{CONFIGMAPS}?continue=%21")).await.status,
        StatusCode::BAD_REQUEST
    );
}

#[tokio::test]
async fn selectors_narrow_lists() {
    let (simulator, client) = with_objects(&["a", "b", "c"]).await;
    simulator
        .create(
            "configmaps",
            json!({"metadata": {"name": "a", "namespace": "other"}}),
        )
        .unwrap();
    for (query, expected) in [
        ("labelSelector=name%20in%20(a,c)", vec!["a", "c"]),
        ("labelSelector=name!%3Da", vec!["b", "c"]),
        ("labelSelector=!name", vec![]),
        ("fieldSelector=metadata.name%3Db", vec!["b"]),
        (
            "fieldSelector=metadata.name!%3Db,metadata.namespace%3Dshop",
            vec!["a", "c"],
        ),
        (r"fieldSelector=metadata.name%3Db%5C,metadata.name%5C%3Da", vec![]),
    ] {
        assert_eq!(
            names(&client.get(&format!("{CONFIGMAPS}?{query}")).await.json()),
            expected,
            "{query}"
        );
    }
    let all = client
        .get("/api/v1/configmaps?fieldSelector=metadata.name%3Da")
        .await
        .json();
    assert_eq!(all["items"].as_array().unwrap().len(), 2);
    let selected = client
        .get(&format!("{CONFIGMAPS}?labelSelector=name&limit=1"))
        .await
        .json();
    assert!(
        selected["metadata"].get("remainingItemCount").is_none(),
        "not counted under a selector"
    );
    let unsupported = client
        .get(&format!("{CONFIGMAPS}?fieldSelector=spec.x%3Dy"))
        .await;
    assert_eq!(unsupported.status, StatusCode::BAD_REQUEST);
    assert_eq!(
        unsupported.json()["message"],
        "Unable to find \"v1, Resource=configmaps\" that match label selector \"\", field selector \"spec.x=y\": \
         field label not supported: spec.x"
    );
}

#[tokio::test]
async fn versions_of_lists_are_exact_or_not_older() {
    let (simulator, client) = with_objects(&["a"]).await;
    let before = simulator.resource_version();
    simulator.delete("configmaps", "shop", "a").unwrap();
    let exact = format!("{CONFIGMAPS}?resourceVersion={before}&resourceVersionMatch=Exact");
    let list = client.get(&exact).await.json();
    assert_eq!(names(&list), ["a"]);
    assert_eq!(list["metadata"]["resourceVersion"], before);
    let newer = client
        .get(&format!("{CONFIGMAPS}?resourceVersion={before}"))
        .await
        .json();
    assert_eq!(newer["metadata"]["resourceVersion"], simulator.resource_version());
    simulator.compact();
    assert_eq!(client.get(&exact).await.status, StatusCode::GONE);
}
