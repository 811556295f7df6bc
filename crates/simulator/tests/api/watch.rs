//! Watches.

use std::time::Duration;

use krm_stream_simulator::{RawObject, Simulator};
use serde_json::json;

use crate::client::{Client, End};

const CONFIGMAPS: &str = "/api/v1/namespaces/shop/configmaps";
const STREAMING_LIST: &str = "/api/v1/namespaces/shop/configmaps?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

fn configmap(name: &str, value: &str) -> serde_json::Value {
    json!({"metadata": {"name": name, "namespace": "shop"}, "data": {"k": value}})
}

#[tokio::test]
async fn a_streaming_list_sends_the_objects_their_end_and_then_the_changes() {
    let simulator = Simulator::start().await.unwrap();
    simulator.create("configmaps", configmap("a", "1")).unwrap();
    simulator.create("configmaps", configmap("b", "1")).unwrap();
    for client in [Client::new(&simulator), Client::http2(&simulator)] {
        let version = simulator.resource_version();
        let mut watch = client.watch(STREAMING_LIST).await;
        assert!(watch.summary().await.starts_with("ADDED a@"));
        assert!(watch.summary().await.starts_with("ADDED b@"));
        assert_eq!(
            watch.line().await,
            format!(
                r#"{{"type":"BOOKMARK","object":{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"resourceVersion":"{version}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}}}"#
            )
        );
        simulator
            .patch("configmaps", "shop", "a", &json!({"data": {"k": version}}))
            .unwrap();
        assert_eq!(
            watch.summary().await,
            format!("MODIFIED a@{}", simulator.resource_version())
        );
        simulator.create("configmaps", configmap("c", "1")).unwrap();
        assert_eq!(
            watch.summary().await,
            format!("ADDED c@{}", simulator.resource_version())
        );
        simulator.delete("configmaps", "shop", "c").unwrap();
        assert_eq!(
            watch.summary().await,
            format!("DELETED c@{}", simulator.resource_version())
        );
        simulator
            .create(
                "configmaps",
                json!({"metadata": {"name": "x", "namespace": "other"}}),
            )
            .ok();
        assert!(watch.is_silent().await, "another namespace is not ours");
    }
}

#[tokio::test]
async fn a_watch_from_a_version_replays_what_came_after_it() {
    let simulator = Simulator::start().await.unwrap();
    let client = Client::new(&simulator);
    simulator.create("configmaps", configmap("a", "1")).unwrap();
    let from = simulator.resource_version();
    simulator
        .patch("configmaps", "shop", "a", &json!({"data": {"k": "2"}}))
        .unwrap();
    simulator.delete("configmaps", "shop", "a").unwrap();
    let mut watch = client
        .watch(&format!("{CONFIGMAPS}?watch=true&resourceVersion={from}"))
        .await;
    assert_eq!(watch.summary().await, "MODIFIED a@3");
    assert_eq!(watch.summary().await, "DELETED a@4");
    simulator.create("configmaps", configmap("a", "3")).unwrap();
    assert_eq!(watch.summary().await, "ADDED a@5");
}

#[tokio::test]
async fn a_watch_without_a_version_starts_with_what_is_there() {
    let simulator = Simulator::start().await.unwrap();
    let client = Client::new(&simulator);
    simulator.create("configmaps", configmap("a", "1")).unwrap();
    for version in ["", "&resourceVersion=", "&resourceVersion=0"] {
        let mut watch = client.watch(&format!("{CONFIGMAPS}?watch=1{version}")).await;
        assert!(watch.summary().await.starts_with("ADDED a@"), "{version}");
        assert!(watch.is_silent().await);
    }
    let mut named = client.watch(&format!("{CONFIGMAPS}/a?watch=1")).await;
    assert!(named.summary().await.starts_with("ADDED a@"));
    let mut none = client
        .watch(&format!("{CONFIGMAPS}?watch=1&fieldSelector=metadata.name%3Db"))
        .await;
    simulator.create("configmaps", configmap("b", "1")).unwrap();
    assert!(none.summary().await.starts_with("ADDED b@"));
    assert!(named.is_silent().await);
}

#[tokio::test]
async fn objects_enter_and_leave_a_selection() {
    let simulator = Simulator::start().await.unwrap();
    let client = Client::new(&simulator);
    simulator.create("configmaps", configmap("a", "1")).unwrap();
    let from = simulator.resource_version();
    let mut watch = client
        .watch(&format!(
            "{CONFIGMAPS}?watch=1&labelSelector=app%20in%20(web)&resourceVersion={from}"
        ))
        .await;
    let label = |app: serde_json::Value| json!({"metadata": {"labels": {"app": app}}});
    simulator
        .patch("configmaps", "shop", "a", &label(json!("web")))
        .unwrap();
    assert_eq!(
        watch.summary().await,
        format!("ADDED a@{}", simulator.resource_version())
    );
    simulator
        .patch("configmaps", "shop", "a", &json!({"data": {"k": "2"}}))
        .unwrap();
    assert_eq!(
        watch.summary().await,
        format!("MODIFIED a@{}", simulator.resource_version())
    );
    simulator
        .patch("configmaps", "shop", "a", &label(json!("db")))
        .unwrap();
    let left = watch.event().await;
    assert_eq!(left["type"], "DELETED");
    assert_eq!(
        left["object"]["metadata"]["resourceVersion"],
        simulator.resource_version()
    );
    assert_eq!(
        left["object"]["metadata"]["labels"]["app"], "web",
        "as it was before"
    );
    simulator.delete("configmaps", "shop", "a").unwrap();
    assert!(watch.is_silent().await);
}

#[tokio::test]
async fn a_version_that_was_compacted_is_answered_with_an_expired_event() {
    let simulator = Simulator::start().await.unwrap();
    let client = Client::new(&simulator);
    simulator.create("configmaps", configmap("a", "1")).unwrap();
    let mut open = client
        .watch(&format!("{CONFIGMAPS}?watch=1&resourceVersion=1"))
        .await;
    simulator.compact();
    let mut watch = client
        .watch(&format!("{CONFIGMAPS}?watch=1&resourceVersion=1"))
        .await;
    assert_eq!(
        watch.line().await,
        r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 1 (2)","reason":"Expired","code":410}}"#
    );
    assert_eq!(watch.end().await, End::Clean);
    assert_eq!(open.summary().await, "ADDED a@2", "an open watch does not mind");
    let mut now = client
        .watch(&format!("{CONFIGMAPS}?watch=1&resourceVersion=2"))
        .await;
    assert!(
        now.is_silent().await,
        "the compacted version itself is still good"
    );
}

#[tokio::test]
async fn a_history_that_ran_over_is_forgotten_as_if_compacted() {
    let simulator = Simulator::builder().history(3).start().await.unwrap();
    let client = Client::new(&simulator);
    simulator.create("configmaps", configmap("a", "0")).unwrap();
    for value in 1..=5 {
        simulator
            .patch(
                "configmaps",
                "shop",
                "a",
                &json!({"data": {"k": value.to_string()}}),
            )
            .unwrap();
    }
    let mut old = client
        .watch(&format!("{CONFIGMAPS}?watch=1&resourceVersion=3"))
        .await;
    assert_eq!(old.event().await["object"]["reason"], "Expired");
    let mut kept = client
        .watch(&format!("{CONFIGMAPS}?watch=1&resourceVersion=4"))
        .await;
    assert_eq!(kept.summary().await, "MODIFIED a@5");
}

#[tokio::test]
async fn bookmarks_come_on_time_and_on_command_and_only_where_allowed() {
    let simulator = Simulator::builder()
        .bookmark_interval(Duration::from_millis(20))
        .start()
        .await
        .unwrap();
    let client = Client::new(&simulator);
    simulator
        .create("secrets", json!({"metadata": {"name": "s", "namespace": "shop"}}))
        .unwrap();
    let mut watch = client
        .watch(&format!(
            "{CONFIGMAPS}?watch=1&resourceVersion=1&allowWatchBookmarks=true"
        ))
        .await;
    assert_eq!(
        watch.line().await,
        r#"{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"2"}}}"#
    );
    let mut plain = client
        .watch(&format!("{CONFIGMAPS}?watch=1&resourceVersion=1"))
        .await;
    assert!(plain.is_silent().await);
    simulator.create("configmaps", configmap("a", "1")).unwrap();
    assert_eq!(simulator.send_bookmark_now(), 2);
    assert_eq!(plain.summary().await, "ADDED a@3");
    assert_eq!(plain.summary().await, "BOOKMARK -@3");
}

#[tokio::test]
async fn a_watch_ends_at_the_timeout_it_asked_for() {
    let simulator = Simulator::start().await.unwrap();
    for client in [Client::new(&simulator), Client::http2(&simulator)] {
        let mut watch = client
            .watch(&format!("{CONFIGMAPS}?watch=1&timeoutSeconds=1"))
            .await;
        assert_eq!(watch.end().await, End::Clean);
    }
    let mut short = Client::new(&simulator)
        .watch(&format!(
            "{CONFIGMAPS}?watch=1&timeoutSeconds=3&allowWatchBookmarks=true&resourceVersion=1"
        ))
        .await;
    assert_eq!(
        short.summary().await,
        "BOOKMARK -@1",
        "a last bookmark comes two seconds before"
    );
    assert_eq!(short.end().await, End::Clean);
}

#[tokio::test]
async fn open_watches_are_counted_until_their_client_leaves() {
    let simulator = Simulator::start().await.unwrap();
    for client in [Client::new(&simulator), Client::http2(&simulator)] {
        let watches = [
            client.watch(STREAMING_LIST).await,
            client.watch(STREAMING_LIST).await,
        ];
        assert_eq!(simulator.counts().open_watches, 2);
        drop(watches);
        let closed = simulator.wait_for(|counts| counts.open_watches == 0);
        tokio::time::timeout(crate::client::PATIENCE, closed)
            .await
            .unwrap();
    }
    assert_eq!(simulator.counts().watch, 4);
    assert_eq!(simulator.counts().by_path[CONFIGMAPS], 4);
    assert!(simulator.requests()[0].query().contains("sendInitialEvents=true"));
}

#[tokio::test]
async fn raw_objects_are_sent_byte_for_byte() {
    let simulator = Simulator::start().await.unwrap();
    let client = Client::new(&simulator);
    let deep = "[".repeat(5_000) + &"]".repeat(5_000);
    let odd = format!(
        r#"{{ "kind":"ConfigMap","apiVersion":"v1", "metadata":{{"name":"odd","namespace":"shop","uid":"u","resourceVersion":"77","labels":{{"app":"x"}}}},"data":{{"a":"\ud800","a":1E400,"n":-0.10}},"deep":{deep}}}"#
    );
    let mut watch = client
        .watch(&format!("{CONFIGMAPS}?watch=1&labelSelector=app%3Dx"))
        .await;
    simulator
        .put_raw("configmaps", RawObject::new(odd.clone()))
        .unwrap();
    assert_eq!(
        watch.line().await,
        format!(r#"{{"type":"ADDED","object":{odd}}}"#)
    );
    assert_eq!(simulator.resource_version(), "77");
    let list = client.get(CONFIGMAPS).await;
    assert_eq!(
        list.text(),
        format!(
            "{{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{{\"resourceVersion\":\"77\"}},\"items\":[{odd}]}}\n"
        )
    );
    let long = "9".repeat(40);
    let next = odd.replace("\"77\"", &format!("\"{long}\""));
    simulator
        .put_raw("configmaps", RawObject::new(next.clone()))
        .unwrap();
    assert_eq!(
        watch.line().await,
        format!(r#"{{"type":"MODIFIED","object":{next}}}"#)
    );
    assert_eq!(simulator.resource_version(), long);
    let mut resumed = client
        .watch(&format!("{CONFIGMAPS}?watch=1&resourceVersion={long}"))
        .await;
    simulator.delete("configmaps", "shop", "odd").unwrap();
    let tombstone = next.replace(&long, "79");
    assert_eq!(
        watch.line().await,
        format!(r#"{{"type":"DELETED","object":{tombstone}}}"#)
    );
    assert_eq!(
        resumed.line().await,
        format!(r#"{{"type":"DELETED","object":{tombstone}}}"#)
    );
    let nameless = r#"{"kind":"ConfigMap","metadata":{}}"#;
    assert!(simulator.put_raw("configmaps", RawObject::new(nameless)).is_err());
    simulator
        .put_raw("configmaps", RawObject::new(nameless).at("shop", "x"))
        .unwrap();
    simulator
        .delete_raw("configmaps", "shop", "x", r#"{"kind":"Gone"}"#)
        .unwrap();
    let mut all = client
        .watch(&format!("{CONFIGMAPS}?watch=1&resourceVersion=79"))
        .await;
    assert_eq!(
        all.line().await,
        format!(r#"{{"type":"ADDED","object":{nameless}}}"#)
    );
    assert_eq!(all.line().await, r#"{"type":"DELETED","object":{"kind":"Gone"}}"#);
}
