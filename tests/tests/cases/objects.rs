//! Objects as they come from the API server, and what of them reaches a browser: by list, by watch, and by deletion.

use krm_stream_simulator::{RawObject, RequestMatch, Resource, Simulator};
use krm_stream_tests::Connection;

use crate::api_server::{self, APP, SECOND, line, page, refused_streaming_list, words};
use crate::simulated::{asked, gateway, is_quiet};

const SECRETS: &str = "version=v1&resource=secrets&namespace=app";
const ODDITIES: &str = "group=lab.example.com&version=v1&resource=oddities&namespace=app";

/// Numbers that a parser would write otherwise, or not at all.
const NUMBERS: &str = "12345678901234567890123,1e400,1E5,0.1e1,1.10,-0,1e-400,117.63331139400017,9007199254740993,18446744073709551616,-9223372036854775809,1.0,1,1e5,1E+05,100000000000000000000.0";

/// A simulator that serves odd custom resources too, with or without streaming lists.
async fn simulator(streaming: bool) -> Simulator {
    let oddities = Resource::custom("lab.example.com", "v1", "oddities", "Oddity");
    let builder = Simulator::builder().streaming_lists(streaming).resource(oddities);
    builder.start().await.unwrap()
}

/// The members of an object's metadata.
fn metadata(name: &str, version: u32) -> String {
    format!(r#""name":"{name}","namespace":"app","uid":"uid-{name}","resourceVersion":"{version}""#)
}

fn oddity(version: u32, spec: &str) -> String {
    format!(
        r#"{{"apiVersion":"lab.example.com/v1","kind":"Oddity","metadata":{{{}}},"spec":{spec}}}"#,
        metadata("o", version)
    )
}

/// Everything that the connection was sent.
fn raw(connection: &Connection) -> String {
    String::from_utf8(connection.raw().to_vec()).unwrap()
}

/// Puts `first` in, reads it as a snapshot, then changes it to `second` and reads that from the watch.
async fn by_list_and_by_watch(resource: &str, query: &str, first: &str, second: &str) -> Vec<[String; 2]> {
    let mut told = Vec::new();
    for streaming in [true, false] {
        let simulator = simulator(streaming).await;
        simulator
            .put_raw(resource, RawObject::new(first.to_owned()))
            .unwrap();
        let gateway = gateway(&simulator);
        let mut connection = gateway.connect(query);
        let snapshot = connection.events(3).await;
        simulator
            .put_raw(resource, RawObject::new(second.to_owned()))
            .unwrap();
        let change = connection.events(1).await;
        told.push([snapshot[1].clone(), change[0].clone()]);
    }
    told
}

#[tokio::test]
async fn numbers_escapes_and_any_depth_arrive_as_they_were_spelled() {
    let digits = "7".repeat(400);
    let deep = |levels: usize| format!("{}1{}", "[{\"a\":".repeat(levels), "}]".repeat(levels));
    for spec in [
        format!("[{NUMBERS},{digits}]"),
        r#"{"a":"\ud83d","\udc00":1,"b":"\ud83d\ude00","c":"\u0026\u003c\/"}"#.to_owned(),
        deep(63),
        deep(64),
        deep(100),
        deep(2500),
    ] {
        let (first, second) = (
            oddity(10, &format!("{{\"v\":{spec},\"n\":1}}")),
            oddity(20, &format!("{{\"v\":{spec},\"n\":1.0}}")),
        );
        for [added, modified] in
            by_list_and_by_watch("oddities.lab.example.com", ODDITIES, &first, &second).await
        {
            let start = &spec[..spec.len().min(60)];
            assert!(added.contains(&first), "{start}");
            assert!(
                modified.contains("\"type\":\"modified\"") && modified.contains(&second),
                "{start}"
            );
        }
    }
}

#[tokio::test]
async fn numbers_beside_a_withheld_value_are_left_alone() {
    let secret = |version: u32, value: &str| {
        format!(
            r#"{{"kind":"Secret","apiVersion":"v1","metadata":{{{}}},"data":{{"p":"{value}"}},"odd":[{NUMBERS}],"text":"\ud83d \u0026"}}"#,
            metadata("s", version)
        )
    };
    let told = by_list_and_by_watch(
        "secrets",
        SECRETS,
        &secret(10, "Y2FuYXJ5LTE="),
        &secret(20, "Y2FuYXJ5LTI="),
    )
    .await;
    for [added, modified] in told {
        for event in [&added, &modified] {
            assert!(
                event.contains(&format!("\"odd\":[{NUMBERS}],\"text\":\"\\ud83d \\u0026\"")),
                "{event}"
            );
            assert!(!event.contains("Y2FuYXJ5"));
        }
        assert!(added.ends_with(r#""redacted":[{"path":"/data/p","rev":1}]}"#));
        assert!(modified.ends_with(r#""redacted":[{"path":"/data/p","rev":2}]}"#));
    }
}

/// Sends an object by list, changed and deleted; gives everything that a browser saw of it.
async fn all_that_is_seen(resource: &str, query: &str, object: &dyn Fn(u32) -> String) -> Vec<String> {
    let mut seen = Vec::new();
    for streaming in [true, false] {
        let simulator = simulator(streaming).await;
        let name = "s";
        simulator
            .put_raw(resource, RawObject::new(object(10)).at("app", name))
            .unwrap();
        let gateway = gateway(&simulator);
        let mut connection = gateway.connect(query);
        assert_eq!(connection.types(3).await, ["reset", "added", "synced"]);
        // A label makes it a change, whatever is withheld.
        let changed = object(20).replacen("\"namespace\":", "\"labels\":{\"a\":\"b\"},\"namespace\":", 1);
        simulator
            .put_raw(resource, RawObject::new(changed.clone()).at("app", name))
            .unwrap();
        assert_eq!(connection.types(1).await, ["modified"]);
        simulator.delete_raw(resource, "app", name, changed).unwrap();
        assert_eq!(connection.types(1).await, ["deleted"]);
        seen.push(raw(&connection));
    }
    seen
}

#[tokio::test]
async fn no_spelling_of_a_secret_lets_a_value_through() {
    let annotated = r#""annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"stringData\":{\"old\":\"marker\"}}"}"#;
    let escaped = r#""annotations":{"kubectl.kubernetes.io\/last-applied-configuration":"{\"stringData\":{\"old\":\"marker\"}}"}"#;
    let forms: [(&str, &str, &str); 15] = [
        (
            "\"kind\":\"ConfigMap\",\"kind\":\"Secret\"",
            "",
            r#""data":{"p":"bWFya2Vy"}"#,
        ),
        (
            "\"kind\":\"Secret\"",
            "",
            r#""data":{"p":"bWFya2Vy"},"data":{"q":"bWFya2Vy"}"#,
        ),
        ("\"\\u006bind\":\"Secret\"", "", r#""d\u0061ta":{"p":"bWFya2Vy"}"#),
        ("\"kind\":\"Secret\"", annotated, r#""data":{"p":"x1"}"#),
        ("\"kind\":\"Secret\"", escaped, r#""data":{"p":"x1"}"#),
        (
            "\"kind\":\"Secret\"",
            r#""annotations":{"kubectl.kubernetes.io/last-applied-configuration":null}"#,
            r#""data":{"p":"x1"}"#,
        ),
        (
            "\"kind\":\"Secret\"",
            r#""annotations":{"kubectl.kubernetes.io/last-applied-configuration":{"a":"marker"}}"#,
            r#""data":{"p":"x1"}"#,
        ),
        (
            "\"kind\":\"Secret\"",
            "\"annotations\":null",
            r#""data":{"p":"x1"}"#,
        ),
        (
            "\"kind\":\"Secret\"",
            "",
            r#""data":{"a":12345678,"b":null,"c":["x1"],"d":{"e":"x2"},"f":"not base64 ***"}"#,
        ),
        ("\"kind\":\"Secret\"", "", r#""data":"x3""#),
        ("\"kind\":\"Secret\"", "", r#""data":[{"x":"x4"}]"#),
        ("\"kind\":\"Secret\"", "", r#""stringData":{"a":"x5"}"#),
        (
            "\"kind\":\"Secret\"",
            "",
            r#""binaryData":{"a":"eDY="},"immutable":true"#,
        ),
        (
            "\"kind\":\"Secret\"",
            "",
            r#""data":{"p":"x1"},"stringData":"x2""#,
        ),
        (
            "\"kind\":\"Secret\",\"kind\":\"ConfigMap\"",
            "",
            r#""data":{"p":"bWFya2Vy"}"#,
        ),
    ];
    for (resource, query) in [("secrets", SECRETS), ("configmaps", APP)] {
        for (kind, annotations, data) in forms {
            let object = |version: u32| {
                let separator = if annotations.is_empty() { "" } else { "," };
                format!(
                    "{{{kind},\"apiVersion\":\"v1\",\"metadata\":{{{}{separator}{annotations}}},{data}}}",
                    metadata("s", version)
                )
            };
            for seen in all_that_is_seen(resource, query, &object).await {
                for value in [
                    "bWFya2Vy",
                    "marker",
                    "x1",
                    "x2",
                    "x3",
                    "x4",
                    "x5",
                    "eDY=",
                    "12345678",
                    "not base64",
                    "last-applied",
                ] {
                    assert!(
                        !seen.contains(value),
                        "{value} of {kind} {annotations} {data} in {resource}: {seen}"
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn what_no_rule_names_is_carried() {
    let object = |version: u32| {
        format!(
            r#"{{"kind":"Secret","apiVersion":"v1","metadata":{{{},"annotations":{{"kapp.k14s.io/original":"{{\"data\":{{\"p\":\"QUFB\"}}}}"}}}},"data":{{"p":"bWFya2Vy"}},"dataFrom":{{"x":"x7"}}}}"#,
            metadata("s", version)
        )
    };
    for seen in all_that_is_seen("secrets", SECRETS, &object).await {
        assert!(seen.contains("kapp.k14s.io/original") && seen.contains("\"dataFrom\":{\"x\":\"x7\"}"));
        assert!(!seen.contains("bWFya2Vy"));
    }
}

#[tokio::test]
async fn an_object_of_a_list_looks_like_that_of_a_watch_and_no_relist_is_a_change() {
    for (resource, query, kind, withheld) in [
        ("secrets", SECRETS, "Secret", true),
        ("configmaps", APP, "ConfigMap", false),
    ] {
        let object = |version: u32| {
            format!(
                r#"{{"kind":"{kind}","apiVersion":"v1","metadata":{{{}}},"data":{{"p":"QUFB"}}}}"#,
                metadata("s", version)
            )
        };
        let simulator = simulator(false).await;
        simulator.put_raw(resource, RawObject::new(object(10))).unwrap();
        let gateway = gateway(&simulator);
        let mut connection = gateway.connect(query);
        let first = connection.events(3).await[1].clone();
        assert!(
            first.contains(&format!("\"kind\":\"{kind}\",\"apiVersion\":\"v1\"")),
            "{first}"
        );
        assert_eq!(first.contains("QUFB"), !withheld);
        simulator.put_raw(resource, RawObject::new(object(20))).unwrap();
        assert!(is_quiet(&mut connection).await, "the watch tells nothing new");
        simulator.inject(
            &RequestMatch::watch(),
            line("ERROR", &api_server::status(410, "Expired", "too old")),
        );
        let again = connection.events(4).await;
        let body = |event: &str| event[event.find("\"object\"").unwrap()..].replace("\"20\"", "\"10\"");
        assert_eq!(
            body(&again[2]),
            body(&first),
            "the same by the new list, revision included"
        );
        simulator.put_raw(resource, RawObject::new(object(30))).unwrap();
        assert!(is_quiet(&mut connection).await);
        assert_eq!(asked(&simulator).iter().filter(|line| *line == "list").count(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn secrets_in_a_list_of_mixed_items_are_withheld_by_their_scope() {
    let items = [
        format!(
            r#"{{"metadata":{{{}}},"data":{{"p":"QUFB"}}}}"#,
            metadata("bare", 1)
        ),
        format!(
            r#"{{"kind":"Secret","apiVersion":"v1","metadata":{{{}}},"data":{{"p":"QUFB"}}}}"#,
            metadata("kind", 2)
        ),
        format!(
            r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{{}}},"data":{{"p":"QUFB"}}}}"#,
            metadata("other", 3)
        ),
    ];
    for kind in ["SecretList", "List"] {
        for (query, withheld) in [(SECRETS, 3), (APP, if kind == "List" { 1 } else { 2 })] {
            let list = page("10", "null", &items).replace("ConfigMapList", kind);
            let (gateway, _server) = api_server::gateway(move |asked| {
                if asked.is_streaming_list() {
                    refused_streaming_list()
                } else if asked.is_watch() {
                    api_server::Answer::ok("").then_hang()
                } else {
                    api_server::Answer::ok(list.clone())
                }
            });
            let mut connection = gateway.connect(query);
            assert_eq!(
                words(&mut connection, 5).await,
                ["reset", "added bare", "added kind", "added other", "synced"]
            );
            assert!(connection.is_quiet_for(SECOND).await);
            assert_eq!(
                3 - raw(&connection).matches("QUFB").count(),
                withheld,
                "{kind} {query}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_printed_for_people_reaches_the_browser_on_one_line() {
    for end in ["\n", "\r\n", "\r"] {
        let item = format!(
            "{{\n  \"metadata\": {{{}}},\n  \"data\": {{\n    \"a\": \"b c\\n\",\n    \"n\": 1E5\n  }}\n}}",
            metadata("p", 1)
        )
        .replace('\n', end);
        let list = page("10", "null", &[item]).replace(",\"items\"", &format!(",{end}  \"items\""));
        let (gateway, _server) = api_server::gateway(move |asked| {
            if asked.is_streaming_list() {
                refused_streaming_list()
            } else if asked.is_watch() {
                api_server::Answer::ok("").then_hang()
            } else {
                api_server::Answer::ok(list.clone())
            }
        });
        let mut connection = gateway.connect(APP);
        assert_eq!(words(&mut connection, 3).await, ["reset", "added p", "synced"]);
        let raw = raw(&connection);
        assert!(!raw.contains('\r'));
        assert!(raw.contains("\"b c\\n\"") && raw.contains("1E5"), "{raw}");
        let added = raw.lines().find(|line| line.contains("\"added\"")).unwrap();
        assert!(
            added.starts_with("data: {\"seq\":2,") && added.ends_with('}'),
            "{added}"
        );
    }
}
