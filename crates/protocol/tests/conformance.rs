//! The shared conformance files: scopes, recorded streams, and what a consumer holds at the end of each scenario.
//!
//! They are read from the folder that `KRM_SHARED` names, or from `shared` beside the workspace. Without them these tests
//! check nothing and say so; where `CI` is set they fail instead.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test's helpers fail the test as its body does"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use krm_stream_protocol::{
    Consumer, Decision, ErrorCode, Event, EventType, FrameGrammar, HeldObject, Identity, Scope, ScopeRequest,
    SseDecoder, Step, StreamError, frame,
};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

fn conformance() -> Option<PathBuf> {
    let shared = std::env::var_os("KRM_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let folder = shared.join("conformance");
    if folder.is_dir() {
        return Some(folder);
    }
    let message = format!(
        "NOTHING CHECKED: no conformance files in {}; set KRM_SHARED to the folder that holds `conformance`",
        folder.display()
    );
    assert!(std::env::var_os("CI").is_none(), "{message}");
    eprintln!("{message}");
    None
}

fn read<T: for<'a> Deserialize<'a>>(folder: &std::path::Path, file: &str) -> T {
    let text = fs::read_to_string(folder.join(file)).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[derive(Deserialize)]
struct ScopeCase {
    id: String,
    query: String,
    canonical: Option<String>,
    scope: Option<BTreeMap<String, String>>,
    code: Option<String>,
}

#[test]
fn every_scope_is_accepted_in_canonical_form_or_refused_with_its_code() {
    let Some(folder) = conformance() else { return };
    let cases: Vec<ScopeCase> = read(&folder, "scopes.json");
    assert!(!cases.is_empty());
    for case in cases {
        match (ScopeRequest::parse(&case.query), case.code) {
            (Ok(request), None) => {
                let scope = request.scope();
                assert_eq!(
                    Some(scope.canonical_query()),
                    case.canonical,
                    "{}: canonical",
                    case.id
                );
                let mut expected = case.scope.unwrap();
                expected.entry("target".into()).or_default();
                let found: BTreeMap<String, String> =
                    serde_json::from_value(serde_json::to_value(scope).unwrap()).unwrap();
                assert_eq!(found, expected, "{}: scope", case.id);
            }
            (Err(error), Some(code)) => {
                assert_eq!(
                    StreamError::from(error).code().as_str(),
                    code,
                    "{}: code",
                    case.id
                );
            }
            (Ok(request), Some(code)) => panic!("{}: accepted {request:?} instead of {code}", case.id),
            (Err(error), None) => panic!("{}: refused: {error}", case.id),
        }
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap()
}

fn scope_of(value: &Value) -> Scope {
    let mut builder =
        Scope::builder(text(value, "version"), text(value, "resource")).target(text(value, "target"));
    if let Some(group) = value["group"].as_str() {
        builder = builder.group(group);
    }
    if let Some(namespace) = value["namespace"].as_str() {
        builder = builder.namespace(namespace);
    }
    if let Some(name) = value["name"].as_str() {
        builder = builder.name(name);
    }
    if let Some(selector) = value["labelSelector"].as_str() {
        builder = builder.label_selector(selector);
    }
    builder.build().unwrap()
}

fn stream_error(value: &Value) -> StreamError {
    let code = ErrorCode::ALL
        .into_iter()
        .find(|code| code.as_str() == value["code"])
        .unwrap();
    assert_eq!(value["terminal"], code.is_terminal());
    StreamError::new(code, value["message"].as_str().unwrap_or("*").to_owned())
}

#[derive(Deserialize)]
struct ObjectEvent<'a> {
    #[serde(borrow)]
    object: &'a RawValue,
    #[serde(borrow)]
    redacted: &'a RawValue,
}

/// Encodes an event that was read, with nothing of its text but an object's own.
fn encode_again(data: &str) -> Vec<u8> {
    let value: Value = serde_json::from_str(data).unwrap();
    let seq = value["seq"].as_u64().unwrap();
    let mut out = Vec::new();
    let upsert = |out: &mut Vec<u8>, event_type| {
        let event: ObjectEvent<'_> = serde_json::from_str(data).unwrap();
        frame::begin(out, seq, event_type);
        out.extend_from_slice(b",\"object\":");
        frame::put_json(out, event.object.get().as_bytes());
        out.extend_from_slice(b",\"redacted\":");
        frame::put_json(out, event.redacted.get().as_bytes());
        frame::end(out);
    };
    match text(&value, "type") {
        "reset" => {
            let scope = scope_of(&value["scope"]);
            let projection = text(&value, "projection").into();
            Event::Reset {
                scope: &scope,
                projection: &projection,
            }
            .encode(seq, &mut out);
        }
        "added" => upsert(&mut out, EventType::Added),
        "modified" => upsert(&mut out, EventType::Modified),
        "deleted" => {
            let identity = &value["identity"];
            let identity = Identity {
                uid: text(identity, "uid").into(),
                api_version: text(identity, "apiVersion").into(),
                kind: text(identity, "kind").into(),
                namespace: identity["namespace"].as_str().map(Into::into),
                name: text(identity, "name").into(),
            };
            Event::Deleted(&identity).encode(seq, &mut out);
        }
        "synced" => Event::Synced.encode(seq, &mut out),
        "error" => Event::Error(&stream_error(&value)).encode(seq, &mut out),
        other => panic!("unknown type {other}"),
    }
    out
}

#[test]
fn every_recorded_stream_is_read_and_written_again_byte_by_byte() {
    let Some(folder) = conformance() else { return };
    let mut events = 0;
    for entry in fs::read_dir(folder.join("wire")).unwrap() {
        let path = entry.unwrap().path();
        let recorded = fs::read_to_string(&path).unwrap();
        let mut consumer = Consumer::new();
        // A recording holds one part for each connection, each begun by a comment.
        for connection in recorded.split(": connection ").skip(1) {
            let (_, stream) = connection.split_once("\n\n").unwrap();
            let mut decoder = SseDecoder::new(1 << 20);
            let mut grammar = FrameGrammar::new();
            let mut again = Vec::new();
            consumer.reconnected();
            for event in decoder.push(stream.as_bytes()).unwrap() {
                grammar
                    .check(event.data())
                    .unwrap_or_else(|error| panic!("{}: {error}: {}", path.display(), event.data()));
                let _ = consumer.apply(event.data()).unwrap();
                again.extend_from_slice(&encode_again(event.data()));
                events += 1;
            }
            assert_eq!(
                String::from_utf8(again).unwrap().trim_end(),
                stream.trim_end(),
                "{}",
                path.display()
            );
        }
    }
    assert!(events > 0);
}

#[derive(Deserialize)]
struct Scenario {
    id: String,
    #[serde(default)]
    events: Vec<Value>,
    consumer: Option<ExpectedConsumer>,
}

#[derive(Deserialize)]
struct ExpectedConsumer {
    uids: Vec<String>,
    #[serde(default)]
    adopt: Vec<Adoption>,
}

#[derive(Deserialize)]
struct Adoption {
    after: usize,
    op: String,
    body: String,
}

/// One connection's `seq`, and the data of each of its events.
fn data_of(event: &Value, seq: u64, bodies: &BTreeMap<String, Box<RawValue>>) -> String {
    let event_type = text(event, "type");
    match event_type {
        "reset" => format!(
            r#"{{"seq":{seq},"type":"reset","target":"demo","scope":{{"target":"demo","version":"v1","resource":"configmaps"}},"projection":"krm-full/v1"}}"#
        ),
        "added" | "modified" => {
            let object = bodies[text(event, "body")].get().replace('\n', "");
            let redacted = event.get("redacted").map_or("[]".into(), ToString::to_string);
            format!(r#"{{"seq":{seq},"type":"{event_type}","object":{object},"redacted":{redacted}}}"#)
        }
        "synced" => format!(r#"{{"seq":{seq},"type":"synced"}}"#),
        "error" => {
            let mut out = Vec::new();
            Event::Error(&stream_error(event)).encode(seq, &mut out);
            let frame = String::from_utf8(out).unwrap();
            frame.trim_end().strip_prefix("data: ").unwrap().to_owned()
        }
        other => panic!("the scenario has an event of the unknown type {other}"),
    }
}

#[test]
fn every_scenario_leaves_its_consumer_with_the_uids_it_names() {
    let Some(folder) = conformance() else { return };
    let bodies: BTreeMap<String, Box<RawValue>> = read(&folder, "bodies.json");
    let scenarios: Vec<Scenario> = read(&folder, "scenarios.json");
    let mut checked = 0;
    for scenario in scenarios {
        let Some(expected) = scenario.consumer else {
            continue;
        };
        let mut consumer = Consumer::new();
        let (mut seq, mut goes_on) = (0, false);
        for (index, event) in scenario.events.iter().enumerate() {
            // A cycle that no RESYNC_REQUIRED announced is another connection's.
            if event["type"] == "reset" && !goes_on {
                consumer.reconnected();
                seq = 0;
            }
            seq += 1;
            let step = consumer.apply(&data_of(event, seq, &bodies)).unwrap();
            goes_on = matches!(
                step,
                Step::Error {
                    decision: Decision::Continue,
                    ..
                }
            );
            for adoption in expected.adopt.iter().filter(|adoption| adoption.after == index) {
                assert_eq!(adoption.op, "adopt", "{}", scenario.id);
                assert!(consumer.adopt(bodies[&adoption.body].get()).unwrap());
            }
        }
        let mut found: Vec<_> = consumer.objects().map(HeldObject::uid).collect();
        let mut uids: Vec<_> = expected.uids.iter().map(String::as_str).collect();
        found.sort_unstable();
        uids.sort_unstable();
        assert_eq!(found, uids, "{}", scenario.id);
        checked += 1;
    }
    assert!(checked > 0);
}
