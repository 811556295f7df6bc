//! The program on API servers that a kubeconfig names: simulators of the test's own.

use std::io::Write;

use krm_stream_simulator::{Rule, Simulator, User};
use serde_json::json;
use tempfile::NamedTempFile;

use crate::demo::{self, Demo, Header};
use crate::stream::Stream;

const CONFIG_MAPS: &str = "version=v1&resource=configmaps&namespace=shop";
const TOKEN: &str = "service-token-canary";

/// An API server with one ConfigMap of this name, and its kubeconfig entry.
async fn api_server(config_map: &str) -> Simulator {
    let simulator = Simulator::start().await.unwrap();
    let object = json!({"metadata": {"name": config_map, "namespace": "shop"}, "data": {"k": "v"}});
    simulator.create("configmaps", object).unwrap();
    simulator
}

pub(crate) fn kubeconfig(servers: &[(&str, &Simulator)]) -> NamedTempFile {
    let clusters: Vec<_> = servers
        .iter()
        .map(|(name, simulator)| json!({"name": name, "cluster": {"server": simulator.url()}}))
        .collect();
    let contexts: Vec<_> = servers
        .iter()
        .map(|(name, _)| json!({"name": name, "context": {"cluster": name, "user": "service", "namespace": "shop"}}))
        .collect();
    let text = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": servers[0].0,
        "clusters": clusters,
        "contexts": contexts,
        "users": [{"name": "service", "user": {"token": TOKEN}}],
    });
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.to_string().as_bytes()).unwrap();
    file
}

pub(crate) fn path(file: &NamedTempFile) -> &str {
    file.path().to_str().unwrap()
}

fn user(name: &'static str) -> Header {
    ("x-remote-user".parse().unwrap(), name)
}

/// The first event of a stream, and the name of the first object if there is one.
async fn first_object(demo: &Demo, query: &str, headers: &[Header]) -> Result<String, String> {
    let mut stream = Stream::open(demo, query, headers).await;
    let event = stream
        .until(|event| event["type"] == "added" || event["type"] == "error")
        .await;
    match event["code"].as_str() {
        None => Ok(event["object"]["metadata"]["name"].as_str().unwrap().to_owned()),
        Some(code) => Err(format!("{code}: {}", event["message"])),
    }
}

#[tokio::test]
async fn each_target_is_a_cluster_of_its_own() {
    let (one, other) = (api_server("of-one").await, api_server("of-other").await);
    let file = kubeconfig(&[("one", &one), ("other", &other)]);
    let current = Demo::start(&["--kubeconfig", path(&file)]).await;
    assert_eq!(first_object(&current, CONFIG_MAPS, &[]).await.unwrap(), "of-one");
    let chosen = Demo::start(&["--kubeconfig", path(&file), "--context", "other"]).await;
    assert_eq!(first_object(&chosen, CONFIG_MAPS, &[]).await.unwrap(), "of-other");

    let several = [
        "--kubeconfig",
        path(&file),
        "--target",
        "left=one",
        "--target",
        "right=other",
    ];
    let several = Demo::start(&several).await;
    for (target, expected) in [("left", "of-one"), ("right", "of-other")] {
        let query = format!("target={target}&{CONFIG_MAPS}");
        assert_eq!(first_object(&several, &query, &[]).await.unwrap(), expected);
    }
    let unnamed = first_object(&several, CONFIG_MAPS, &[]).await.unwrap_err();
    assert!(unnamed.starts_with("SCOPE_INVALID"), "{unnamed}");
    let config = several.json("/config.json").await;
    assert_eq!(config["targets"], json!(["left", "right"]));
    let first = config["scopes"][0]["query"].as_str().unwrap();
    assert_eq!(first, format!("target=left&{CONFIG_MAPS}"));
}

#[tokio::test]
async fn acting_as_the_caller_leaves_access_to_the_api_server() {
    let server = api_server("allowed").await;
    let access = server.access();
    access.add_token(TOKEN, User::new("service"));
    access.add_rule(Rule::allow().user("service").verbs(["impersonate"]));
    access.add_rule(
        Rule::allow()
            .user("ada")
            .verbs(["list", "watch"])
            .resource("", "configmaps")
            .namespace("shop"),
    );
    let file = kubeconfig(&[("one", &server)]);
    for sharing in ["per-caller", "isolated"] {
        let flags = [
            "--kubeconfig",
            path(&file),
            "--sharing",
            sharing,
            "--identity",
            "header:X-Remote-User",
            "--any-resource",
        ];
        let demo = Demo::start(&flags).await;
        assert_eq!(
            first_object(&demo, CONFIG_MAPS, &[user("ada")]).await.unwrap(),
            "allowed"
        );
        let refused = first_object(&demo, CONFIG_MAPS, &[user("eve")])
            .await
            .unwrap_err();
        assert!(
            refused.starts_with("FORBIDDEN") && refused.contains("eve"),
            "{refused}"
        );
        let unknown = first_object(&demo, CONFIG_MAPS, &[]).await.unwrap_err();
        assert!(unknown.starts_with("UNAUTHENTICATED"), "{unknown}");
        let twice = first_object(&demo, CONFIG_MAPS, &[user("ada"), user("ada")])
            .await
            .unwrap_err();
        assert!(twice.starts_with("UNAUTHENTICATED"), "{twice}");
        assert!(!demo.output().contains(TOKEN));
    }
}

#[tokio::test]
async fn reviews_decide_where_a_service_identity_reads() {
    let server = api_server("reviewed").await;
    let access = server.access();
    access.add_token(TOKEN, User::new("service"));
    access.add_rule(Rule::allow().user("service"));
    access.add_rule(
        Rule::allow()
            .group("readers")
            .verbs(["list", "watch"])
            .resource("", "configmaps"),
    );
    let file = kubeconfig(&[("one", &server)]);
    let demo = Demo::start(&[
        "--kubeconfig",
        path(&file),
        "--authorize",
        "subject-access-review",
        "--identity",
        "header:X-Remote-User",
        "--groups-header",
        "X-Remote-Group",
    ])
    .await;
    let group: Header = ("x-remote-group".parse().unwrap(), "readers");
    let allowed = first_object(&demo, CONFIG_MAPS, &[user("ada"), group]).await;
    assert_eq!(allowed.unwrap(), "reviewed");
    let refused = first_object(&demo, CONFIG_MAPS, &[user("ada")])
        .await
        .unwrap_err();
    assert!(refused.starts_with("FORBIDDEN"), "{refused}");
}

#[tokio::test]
async fn only_a_trusted_proxy_names_callers() {
    let flags = [
        "--identity",
        "header:X-Remote-User",
        "--trusted-proxy",
        "192.0.2.0/24",
    ];
    let demo = Demo::start_logging(&flags, "debug").await;
    let refused = first_object(&demo, CONFIG_MAPS, &[user("ada")])
        .await
        .unwrap_err();
    assert!(refused.starts_with("UNAUTHENTICATED"), "{refused}");
    let logged = demo.printed("resolving the caller").await;
    assert!(
        logged.contains("DEBUG") && logged.contains("trusted proxy"),
        "{logged}"
    );
    assert!(!demo.output().contains("WARN"), "{}", demo.output());
}

#[tokio::test]
async fn a_kubeconfig_that_impersonates_is_refused_in_the_flags_words() {
    let server = api_server("any").await;
    let file = kubeconfig(&[("one", &server)]);
    let text = std::fs::read_to_string(file.path()).unwrap();
    std::fs::write(file.path(), text.replace("\"token\"", "\"as\":\"ada\",\"token\"")).unwrap();
    let flags = ["--listen", "127.0.0.1:0", "--kubeconfig", path(&file)];
    let (status, output) = demo::run_to_its_end(&flags).await;
    assert_eq!(status.code(), Some(1), "{output}");
    assert!(
        output.contains("impersonates (as)") && output.contains("--sharing per-caller"),
        "{output}"
    );
}
