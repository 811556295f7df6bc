//! The program with declared streams, on a simulator of the test's own.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use krm_stream_declared::custom_resource_definition;
use krm_stream_simulator::{Resource, Simulator};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::clusters::{kubeconfig, path};
use crate::demo::{self, Demo};
use crate::stream::Stream;

const WITHIN: Duration = Duration::from_secs(30);
const RESOURCE: &str = "declaredstreams.krm-stream.github.io";

/// An API server on which streams can be declared.
async fn api_server() -> Simulator {
    let simulator = Simulator::start().await.unwrap();
    let definition = serde_json::to_value(custom_resource_definition()).unwrap();
    simulator
        .create("customresourcedefinitions.apiextensions.k8s.io", definition)
        .unwrap();
    let resource = Resource::custom(
        "krm-stream.github.io",
        "v1alpha1",
        "declaredstreams",
        "DeclaredStream",
    );
    simulator.register(resource.cluster_scoped());
    simulator
}

/// The program, which keeps the config maps warm that are declared there.
async fn start(server: &Simulator) -> Demo {
    let file = kubeconfig(&[("one", server)]);
    let flags = [
        "--kubeconfig",
        path(&file),
        "--declared-streams",
        "--allow",
        "configmaps",
    ];
    Demo::start(&flags).await
}

/// Until the figures have each of these lines.
async fn until_told(demo: &Demo, lines: &[&str]) {
    let deadline = Instant::now() + WITHIN;
    loop {
        let (_, metrics) = demo.read("/metrics", &[]).await;
        if lines.iter().all(|line| metrics.lines().any(|told| told == *line)) {
            return;
        }
        assert!(Instant::now() < deadline, "{lines:?} are not in:\n{metrics}");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn the_figures_tell_how_many_declared_streams_are_ready_and_how_many_are_not() {
    let server = api_server().await;
    let demo = start(&server).await;
    let series = |ready: usize, replaying: usize, blocked: usize| {
        [("ready", ready), ("replaying", replaying), ("blocked", blocked)]
            .map(|(state, count)| format!("krm_stream_declared_streams{{state=\"{state}\"}} {count}"))
    };
    let told = async |lines: [String; 3]| until_told(&demo, &lines.each_ref().map(String::as_str)).await;
    told(series(0, 0, 0)).await;
    let stream = |name: &str, resource: &str| json!({"name": name, "scope": {"version": "v1", "resource": resource, "namespace": "canary-shop"}});
    let declared = json!({
        "metadata": {"name": "canary"},
        "spec": {"streams": [stream("canary-settings", "configmaps"), stream("canary-vault", "secrets")]},
    });
    server.apply(RESOURCE, declared).unwrap();
    told(series(1, 0, 1)).await;
    let (_, metrics) = demo.read("/metrics", &[]).await;
    assert!(!metrics.contains("canary"), "{metrics}");
    server.delete(RESOURCE, "", "canary").unwrap();
    told(series(0, 0, 0)).await;
}

/// What is scraped from the running program under each name: the series, and the families of which prose speaks.
fn metrics_in(exposition: &str) -> BTreeSet<String> {
    let types = exposition.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types
        .flat_map(|line| {
            let (family, kind) = line.split_once(' ').unwrap();
            let endings = match kind {
                "counter" => &["_total"][..],
                "histogram" => &["", "_bucket", "_count", "_sum"],
                "info" => &["_info"],
                "gauge" => &[""],
                // Of any other kind none is named, or it will be missed.
                _ => &[],
            };
            endings.iter().map(move |ending| format!("{family}{ending}"))
        })
        .collect()
}

/// The metrics of which a file under `deploy/monitoring` speaks.
fn metrics_named_in(file: &str) -> BTreeSet<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../deploy/monitoring")
        .join(file);
    let text = std::fs::read_to_string(&file).unwrap();
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words
        .filter(|word| word.starts_with("krm_stream_") || word.starts_with("watch_sessions_"))
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn what_alerts_and_the_dashboard_ask_for_is_scraped_from_the_running_program() {
    let server = api_server().await;
    let demo = start(&server).await;
    // Cycles are counted by projection: there must be one.
    let mut stream = Stream::open(&demo, "version=v1&resource=configmaps&namespace=shop", &[]).await;
    stream.until(|event| event["type"] == "synced").await;
    let (_, exposition) = demo.read("/metrics", &[]).await;
    let scraped = metrics_in(&exposition);
    for (file, at_least) in [("alerts.yaml", 12), ("dashboard.json", 20)] {
        let named = metrics_named_in(file);
        assert!(named.len() >= at_least, "{file}: {named:?}");
        let missing: Vec<&String> = named.difference(&scraped).collect();
        assert!(
            missing.is_empty(),
            "{file} asks for {missing:?}, which are not in:\n{exposition}"
        );
    }
}

#[tokio::test]
async fn a_lease_that_cannot_be_is_refused_in_the_flags_words() {
    let server = api_server().await;
    let file = kubeconfig(&[("one", &server)]);
    for (namespace, name, told) in [
        ("Krm", "streams", "--lease-namespace"),
        ("krm", "my streams", "--lease-name"),
    ] {
        let flags = [
            "--listen",
            "127.0.0.1:0",
            "--kubeconfig",
            path(&file),
            "--declared-streams",
            "--lease-namespace",
            namespace,
            "--lease-name",
            name,
        ];
        let (status, output) = demo::run_to_its_end(&flags).await;
        assert_eq!(status.code(), Some(1), "{output}");
        assert!(output.contains(told) && output.contains("krm-stream"), "{output}");
    }
}
