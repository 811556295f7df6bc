//! Stopping, starting, and what becomes of connections.

use std::time::Duration;

use krm_stream_simulator::{Ending, RequestMatch, Simulator};
use serde_json::json;

use crate::client::{Client, End};

const WATCH: &str = "/api/v1/namespaces/shop/configmaps?watch=1";

#[tokio::test]
async fn a_paused_simulator_refuses_connections_and_keeps_its_objects() {
    let simulator = Simulator::start().await.unwrap();
    simulator
        .create(
            "configmaps",
            json!({"metadata": {"name": "a", "namespace": "shop"}}),
        )
        .unwrap();
    let client = Client::new(&simulator);
    let mut watch = client.watch(WATCH).await;
    watch.line().await;
    simulator.pause().await;
    assert_eq!(watch.end().await, End::Broken);
    assert_eq!(simulator.counts().open_connections, 0);
    assert!(client.open("GET", "/readyz", "", "").await.is_err());
    simulator.resume().unwrap();
    simulator.resume().unwrap();
    let second = Client::http2(&simulator);
    let _watches = [second.watch(WATCH).await, second.watch(WATCH).await];
    simulator.pause().await;
    let gone = simulator.wait_for(|counts| counts.open_watches == 0 && counts.open_connections == 0);
    tokio::time::timeout(crate::client::PATIENCE, gone).await.unwrap();
    simulator.resume().unwrap();
    assert!(
        client
            .get("/api/v1/namespaces/shop/configmaps/a")
            .await
            .status
            .is_success()
    );
    simulator.shutdown().await;
    assert!(client.open("GET", "/readyz", "", "").await.is_err());
}

#[tokio::test]
async fn dropping_a_simulator_ends_it() {
    let simulator = Simulator::start().await.unwrap();
    let address = simulator.address();
    let mut watch = Client::new(&simulator).watch(WATCH).await;
    drop(simulator);
    assert_eq!(watch.end().await, End::Broken);
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while tokio::net::TcpStream::connect(address).await.is_ok() {
        assert!(tokio::time::Instant::now() < deadline, "it still listens");
    }
}

#[tokio::test]
async fn open_watches_end_as_ordered_after_what_happened_before() {
    let simulator = Simulator::start().await.unwrap();
    for client in [Client::new(&simulator), Client::http2(&simulator)] {
        for (ending, expected) in [
            (Ending::Close, End::Clean),
            (Ending::Abort, End::Broken),
            (Ending::Reset, End::Broken),
        ] {
            let mut watch = client.watch(&format!("{WATCH}&resourceVersion=1")).await;
            let mut other = client.watch("/api/v1/secrets?watch=1").await;
            simulator
                .apply(
                    "configmaps",
                    json!({"metadata": {"name": "a", "namespace": "shop"}}),
                )
                .unwrap();
            assert_eq!(
                simulator.end_watches(&RequestMatch::watch().resource("configmaps"), ending),
                1
            );
            assert!(watch.line().await.contains("\"name\":\"a\""));
            assert_eq!(watch.end().await, expected);
            if ending != Ending::Reset {
                assert!(other.is_silent().await, "the other watch goes on");
            }
        }
    }
}

#[tokio::test]
async fn go_away_lets_open_requests_finish() {
    let simulator = Simulator::start().await.unwrap();
    let client = Client::http2(&simulator);
    let mut watch = client.watch(WATCH).await;
    simulator.go_away();
    simulator
        .create(
            "configmaps",
            json!({"metadata": {"name": "a", "namespace": "shop"}}),
        )
        .unwrap();
    watch.line().await;
    assert!(client.get("/readyz").await.status.is_success());
    assert_eq!(
        simulator.counts().connections,
        2,
        "the second request took a new connection"
    );
    simulator.close_watches();
    assert_eq!(watch.end().await, End::Clean);
}

#[tokio::test]
async fn reset_connections_break_everything_that_is_open() {
    let simulator = Simulator::start().await.unwrap();
    for client in [Client::new(&simulator), Client::http2(&simulator)] {
        let mut watch = client.watch(WATCH).await;
        simulator.reset_connections();
        assert_eq!(watch.end().await, End::Broken);
    }
}

#[tokio::test]
async fn many_objects_changes_and_watches_are_no_burden() {
    let simulator = Simulator::builder().history(100_000).start().await.unwrap();
    let client = Client::new(&simulator);
    for number in 0..1_000 {
        let object = json!({"metadata": {"name": format!("c-{number:05}"), "namespace": "shop"}, "data": {"k": "x".repeat(200)}});
        simulator.create("configmaps", object).unwrap();
    }
    let mut watches = Vec::new();
    for _ in 0..20 {
        watches.push(client.watch(WATCH).await);
    }
    for number in 0..1_000 {
        let patch = json!({"data": {"n": number.to_string()}});
        simulator
            .patch("configmaps", "shop", &format!("c-{number:05}"), &patch)
            .unwrap();
    }
    for watch in &mut watches {
        for _ in 0..2_000 {
            watch.line().await;
        }
        assert!(watch.is_silent().await);
    }
}

#[tokio::test]
async fn applying_an_object_without_a_status_leaves_its_status_as_it_is() {
    let simulator = Simulator::start().await.unwrap();
    let pod = json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": {"nodeName": "one"}});
    simulator.create("pods", pod.clone()).unwrap();
    simulator
        .patch_status("pods", "shop", "web", &json!({"status": {"phase": "Running"}}))
        .unwrap();
    let mut labelled = pod;
    labelled["metadata"]["labels"] = json!({"app": "web"});
    simulator.apply("pods", labelled).unwrap();
    let web = simulator.get("pods", "shop", "web").unwrap();
    assert_eq!(web["metadata"]["labels"]["app"], "web");
    assert_eq!(web["status"]["phase"], "Running");
}
