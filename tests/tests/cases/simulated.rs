//! A gateway on the simulator, over real HTTP.

use std::time::Duration;

use krm_stream_http::GatewayBuilder;
use krm_stream_protocol::Partition;
use krm_stream_simulator::Simulator;
use krm_stream_tests::{Connection, GatewayUnderTest};
use krm_stream_upstream_kube::{KubeUpstream, kube};
use serde_json::{Value, json};

/// Longer than anything that is waited for takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A configuration for it, without a credential.
pub(crate) fn config(simulator: &Simulator) -> kube::Config {
    kube::Config::new(simulator.url().parse().unwrap())
}

/// A gateway on it, with one service identity.
pub(crate) fn gateway(simulator: &Simulator) -> GatewayUnderTest {
    GatewayUnderTest::build(builder(simulator))
}

/// A builder of the same.
pub(crate) fn builder(simulator: &Simulator) -> GatewayBuilder {
    let upstream = KubeUpstream::from_config(config(simulator)).unwrap();
    GatewayUnderTest::builder(upstream, Partition::shared("tests"))
}

/// Creates a config map of namespace `app`.
pub(crate) fn create(simulator: &Simulator, name: &str) {
    simulator.create("configmaps", config_map(name)).unwrap();
}

/// Changes one.
pub(crate) fn change(simulator: &Simulator, name: &str, value: &str) {
    simulator
        .patch("configmaps", "app", name, &json!({"data": {"value": value}}))
        .unwrap();
}

fn config_map(name: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "app"}, "data": {"value": "first"}})
}

/// Whether nothing comes for a moment, though the stream is open.
pub(crate) async fn is_quiet(connection: &mut Connection) -> bool {
    connection.is_quiet_for(Duration::from_millis(200)).await
}

/// Waits until a condition holds.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !condition() {
        assert!(tokio::time::Instant::now() < deadline, "it never came to hold");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What the API server was asked, in order: `streaming list`, `list`, `list TOKEN` or `watch VERSION`.
pub(crate) fn asked(simulator: &Simulator) -> Vec<String> {
    simulator
        .requests()
        .iter()
        .map(|request| {
            let version = request.parameter("resourceVersion").unwrap_or_default();
            if request.is_streaming_list() {
                format!("streaming list {version}")
            } else if request.parameter("watch").is_some() {
                format!("watch {version}")
            } else {
                format!("list {}", request.parameter("continue").map_or("", |_| "page"))
            }
        })
        .map(|summary| summary.trim_end().to_owned())
        .collect()
}
