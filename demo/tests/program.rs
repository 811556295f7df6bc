//! The program as a process of its own: what it prints, serves, refuses, and how it ends.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test that cannot go on says why and fails"
)]

#[path = "program/clusters.rs"]
mod clusters;
#[path = "program/declared.rs"]
mod declared;
#[path = "program/demo.rs"]
mod demo;
#[path = "program/drain.rs"]
mod drain;
#[path = "program/stream.rs"]
mod stream;
#[path = "program/tls.rs"]
mod tls;

use std::collections::BTreeSet;
use std::time::Duration;

use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, ORIGIN};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use crate::demo::Demo;
use crate::stream::Stream;

/// Longer than anything that is waited for takes.
const WITHIN: Duration = Duration::from_mins(1);
const CONFIG_MAPS: &str = "version=v1&resource=configmaps&namespace=shop";
const SECRETS: &str = "version=v1&resource=secrets&namespace=shop";

#[tokio::test]
async fn the_stream_is_a_snapshot_and_then_the_changes_of_the_simulator() {
    let demo = Demo::start(&["--simulator-tick", "50ms"]).await;
    let mut stream = Stream::open(&demo, CONFIG_MAPS, &[]).await;
    assert_eq!(stream.header("x-krm-stream-protocol"), "1");
    assert_eq!(stream.next().await["type"], "reset");
    let mut held = Vec::new();
    loop {
        let event = stream.next().await;
        match event["type"].as_str().unwrap() {
            "added" => held.push(event["object"]["metadata"]["name"].as_str().unwrap().to_owned()),
            "synced" => break,
            other => panic!("{other} in a snapshot"),
        }
    }
    assert_eq!(held, ["counters", "feature-flags", "prices", "settings"]);
    let first = stream
        .until(|event| event["object"]["metadata"]["name"] == "counters")
        .await;
    let second = stream
        .until(|event| event["object"]["metadata"]["name"] == "counters")
        .await;
    assert_eq!(second["type"], "modified");
    assert_ne!(
        first["object"]["data"]["orders"],
        second["object"]["data"]["orders"]
    );
}

#[tokio::test]
async fn the_printed_example_is_a_stream_and_every_offered_scope_can_be_watched() {
    let demo = Demo::start(&["--simulator-objects", "3"]).await;
    let printed = demo.printed("curl -N '").await;
    let url = printed.split('\'').nth(1).unwrap().to_owned();
    assert_eq!(
        demo.get(&url, &[]).await.0.status,
        StatusCode::OK,
        "headers only: the body is endless"
    );

    let config = demo.json("/config.json").await;
    assert_eq!(config["targets"], serde_json::json!([""]));
    assert_eq!(
        config["projections"],
        serde_json::json!(["krm-full/v1", "krm-spec/v1"])
    );
    assert_eq!(config["streamPath"], "/resource-stream/v1");
    let scopes = config["scopes"].as_array().unwrap();
    assert!(scopes.len() >= 9);
    for scope in scopes {
        let mut stream = Stream::open(&demo, scope["query"].as_str().unwrap(), &[]).await;
        let synced = stream.until(|event| event["type"] == "synced").await;
        assert!(synced["seq"].as_u64().unwrap() > 2, "{scope} is empty");
    }
}

#[tokio::test]
async fn the_page_is_served_under_a_strict_policy() {
    let demo = Demo::start(&[]).await;
    let (head, body) = demo.read("/", &[]).await;
    assert_eq!(head.status, StatusCode::OK);
    assert_eq!(head.headers[CONTENT_TYPE], "text/html; charset=utf-8");
    assert_eq!(head.headers[CACHE_CONTROL], "no-store");
    assert!(
        head.headers[CONTENT_SECURITY_POLICY]
            .to_str()
            .unwrap()
            .starts_with("default-src 'self'")
    );
    // Whatever the page refers to is there.
    let references: Vec<&str> = body
        .split(['"', '\''])
        .filter(|text| [".js", ".css", ".svg"].iter().any(|end| text.ends_with(end)))
        .collect();
    assert!(references.len() >= 3, "{references:?}");
    for reference in references {
        assert_eq!(
            demo.read(&format!("/{reference}"), &[]).await.0.status,
            StatusCode::OK,
            "{reference}"
        );
    }
    assert_eq!(demo.read("/nowhere", &[]).await.0.status, StatusCode::NOT_FOUND);
    for path in ["/livez", "/readyz"] {
        assert_eq!(
            demo.read(path, &[]).await,
            demo.plain(StatusCode::OK, "ok\n"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_host_or_an_origin_that_is_not_allowed_is_refused_on_every_path() {
    let demo = Demo::start(&["--allow-host", "krm.example.com"]).await;
    let stream = format!("/resource-stream/v1?{CONFIG_MAPS}");
    for path in [
        "/",
        "/config.json",
        "/metrics",
        "/status",
        "/livez",
        "/nowhere",
        &stream,
    ] {
        let (head, body) = demo.read(path, &[(HOST, "rebound.example.org:8080")]).await;
        assert_eq!(head.status, StatusCode::MISDIRECTED_REQUEST, "{path}");
        assert!(body.contains("--allow-host"), "{body}");
        for origin in ["http://rebound.example.org", "null"] {
            let (head, _) = demo.read(path, &[(ORIGIN, origin)]).await;
            assert_eq!(head.status, StatusCode::FORBIDDEN, "{path} from {origin}");
        }
    }
    let (head, _) = demo
        .read(
            "/",
            &[(HOST, "krm.example.com"), (ORIGIN, "https://krm.example.com")],
        )
        .await;
    assert_eq!(head.status, StatusCode::OK);
}

#[tokio::test]
async fn figures_hold_no_scope_no_caller_and_no_object() {
    let demo = Demo::start(&["--simulator-tick", "20ms", "--identity", "header:X-Remote-User"]).await;
    let user = ("x-remote-user".parse().unwrap(), "canary-user");
    let mut stream = Stream::open(&demo, SECRETS, std::slice::from_ref(&user)).await;
    stream.until(|event| event["type"] == "modified").await;
    let refused = "version=v1&resource=canaries&namespace=canary-namespace";
    let mut refusal = Stream::open(&demo, refused, &[user]).await;
    assert_eq!(refusal.next().await["code"], "SCOPE_INVALID");
    // The event is read before the stream that it ends is over.
    let deadline = Instant::now() + WITHIN;
    while demo.json("/status").await["streams"]["open"] != 1 {
        assert!(Instant::now() < deadline, "the refused stream is still counted");
        sleep(Duration::from_millis(10)).await;
    }

    let (head, metrics) = demo.read("/metrics", &[]).await;
    assert!(
        head.headers[CONTENT_TYPE]
            .to_str()
            .unwrap()
            .starts_with("application/openmetrics-text")
    );
    assert!(
        metrics.lines().any(|line| line == "krm_stream_streams_open 1"),
        "{metrics}"
    );
    assert!(metrics.contains("krm_stream_cycles_started_total{projection=\"krm-full/v1\"} 1"));
    assert!(
        !metrics.contains("krm_stream_declared_streams"),
        "none are declared"
    );
    let status = demo.json("/status").await;
    assert_eq!(status["streams"]["open"], 1);
    assert_eq!(status["upstreamSessions"]["open"], 1);
    assert_eq!(status["feeds"]["open"], 1);
    assert_eq!(status["snapshots"]["delivered"], 1);
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    for text in [metrics, status.to_string()] {
        for value in ["canary", "shop", "secrets", "payment-api", "web-tls"] {
            assert!(!text.contains(value), "{value} in {text}");
        }
    }
}

#[tokio::test]
async fn no_secret_value_is_streamed_or_printed() {
    let demo = Demo::start_logging(&["--simulator-tick", "10ms"], "trace").await;
    let mut values = secret_values(&demo).await;
    let mut stream = Stream::open(&demo, SECRETS, &[]).await;
    let rotated = stream
        .until(|event| {
            event["type"] == "modified" && event["redacted"][0]["rev"].as_u64().is_some_and(|rev| rev >= 3)
        })
        .await;
    assert_eq!(rotated["redacted"][0]["path"], "/data/password");
    assert!(rotated["object"].get("data").is_none());
    let first = values.len();
    values.extend(secret_values(&demo).await);
    assert!(values.len() > first, "a Secret was rotated");
    for value in values {
        assert!(!stream.text().contains(&value), "a value was streamed");
        assert!(!demo.output().contains(&value), "a value was printed");
    }
}

/// All that the simulator's Secrets hold by now, from its own API.
async fn secret_values(demo: &Demo) -> BTreeSet<String> {
    let simulator = demo.printed("simulator http://").await;
    let simulator = simulator.trim_start_matches("simulator ");
    let secrets = demo
        .json(&format!("{simulator}/api/v1/namespaces/shop/secrets"))
        .await;
    let secrets = secrets["items"].as_array().unwrap().iter();
    let values: BTreeSet<String> = secrets
        .flat_map(|secret| secret["data"].as_object().unwrap().values())
        .map(|value| value.as_str().unwrap().to_owned())
        .collect();
    assert!(
        values.len() >= 6 && values.iter().all(|value| value.len() >= 16),
        "to be found by"
    );
    values
}

#[tokio::test]
async fn figures_move_to_their_own_address() {
    let demo = Demo::start(&["--admin-listen", "127.0.0.1:0"]).await;
    let admin = demo.printed("admin http://").await;
    let admin = admin.trim_start_matches("admin ").to_owned();
    for path in ["/metrics", "/status"] {
        assert_eq!(
            demo.read(path, &[]).await.0.status,
            StatusCode::NOT_FOUND,
            "{path}"
        );
        assert_eq!(
            demo.get(&format!("{admin}{path}"), &[]).await.0.status,
            StatusCode::OK,
            "{path}"
        );
    }
    assert_eq!(
        demo.get(&format!("{admin}/"), &[]).await.0.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        demo.get(&format!("{admin}/livez"), &[]).await.0.status,
        StatusCode::OK
    );
    let (head, _) = demo
        .get(&format!("{admin}/metrics"), &[(HOST, "rebound.example.org")])
        .await;
    assert_eq!(head.status, StatusCode::MISDIRECTED_REQUEST);
}

#[tokio::test]
async fn flags_that_cannot_be_used_are_explained_in_a_sentence() {
    for (flags, code, explanation) in [
        (&["--listen", "0.0.0.0:0"][..], 2, "--dangerously-anonymous"),
        (&["--sharing", "per-caller"], 2, "--identity header:NAME"),
        (&["--allow", "Deployment"], 2, "plural"),
        (&["--listen", "localhost"], 2, "127.0.0.1:8080"),
        (
            &["--projection", "krm-none/v1"],
            2,
            "krm-full/v1, krm-raw/v1, krm-spec/v1",
        ),
        (
            &["--reauthorization-interval", "5m", "--write-timeout", "0"],
            2,
            "--reauthorization-interval needs a --write-timeout",
        ),
        (&["--watch-timeout", "90 parsecs"], 2, "--watch-timeout"),
        (
            &["--listen", "127.0.0.1:0", "--kubeconfig", "/does/not/exist"],
            1,
            "--kubeconfig",
        ),
        (&["--listen", "127.0.0.1:0", "--in-cluster"], 1, "--in-cluster"),
    ] {
        let (status, output) = demo::run_to_its_end(flags).await;
        assert_eq!(status.code(), Some(code), "{flags:?}: {output}");
        assert!(output.contains(explanation), "{flags:?}: {output}");
        assert!(output.starts_with("error: "), "{flags:?}: {output}");
    }
    let demo = Demo::start(&[]).await;
    let taken = demo.address();
    let (status, output) = demo::run_to_its_end(&["--listen", &taken]).await;
    assert_eq!(status.code(), Some(1));
    assert!(output.contains("cannot be listened on"), "{output}");
}

#[tokio::test]
async fn a_variable_that_is_wrong_is_explained_in_a_sentence() {
    for (name, value, explanation) in [
        ("KRM_WATCH_TIMEOUT", "soon", "--watch-timeout"),
        ("KRM_ALLOW_LABEL_SELECTOR", "perhaps", "--allow-label-selector"),
        ("KRM_LOG", "=", "KRM_LOG"),
        ("TOKIO_WORKER_THREADS", "many", "TOKIO_WORKER_THREADS"),
    ] {
        let (status, output) = demo::refuse_variable(name, value).await;
        assert_eq!(status.code(), Some(2), "{name}: {output}");
        assert!(
            output.starts_with("error: ") && output.contains(explanation),
            "{name}: {output}"
        );
    }
}

#[tokio::test]
async fn variables_that_are_empty_are_as_if_they_were_not_set() {
    let mut names = demo::variables().await;
    assert!(names.len() > 40, "{names:?}");
    names.extend(
        [
            "KRM_LOG",
            "KUBECONFIG",
            "TOKIO_WORKER_THREADS",
            "MIMALLOC_PURGE_DELAY",
        ]
        .map(str::to_owned),
    );
    let empty: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    let demo = Demo::start_in(&empty, &[]).await;
    let usual = Demo::start(&[]).await;
    assert_eq!(demo.json("/config.json").await, usual.json("/config.json").await);
    let mut stream = Stream::open(&demo, CONFIG_MAPS, &[]).await;
    stream.until(|event| event["type"] == "synced").await;
}

#[tokio::test]
async fn a_signal_ends_it_within_seconds_whatever_is_open() {
    for signal in ["TERM", "INT"] {
        let mut demo = Demo::start(&[]).await;
        let mut stream = Stream::open(&demo, CONFIG_MAPS, &[]).await;
        stream.until(|event| event["type"] == "synced").await;
        let asked = Instant::now();
        demo.signal(signal);
        let status = timeout(WITHIN, demo.wait()).await.unwrap();
        assert!(status.success(), "{signal}: {status}");
        // The drain timeout is not waited for.
        assert!(asked.elapsed() < Duration::from_secs(10), "{signal}");
        // The reader is told first, and when to come back.
        let last = stream.until(|event| event["type"] == "error").await;
        assert_eq!(last["code"], "UPSTREAM_UNAVAILABLE", "{signal}");
        assert_eq!(last["terminal"], false, "{signal}");
        assert!(last["retryAfterMs"].as_u64().unwrap() > 0, "{signal}");
        assert!(stream.ends().await, "{signal}");
    }
}

#[tokio::test]
async fn cleartext_http_2_is_served_too() {
    let demo = Demo::start(&["--simulator-tick", "50ms"]).await;
    let mut stream = Stream::open_http2(&demo, CONFIG_MAPS).await;
    stream.until(|event| event["type"] == "modified").await;
    let seq = |event: &Value| event["seq"].as_u64().unwrap();
    let next = stream.next().await;
    let after = stream.next().await;
    assert_eq!(seq(&next) + 1, seq(&after));
}
