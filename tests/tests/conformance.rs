//! The wire's conformance: what a watch does, what must then stand on the wire, what a consumer then holds.
//!
//! The scenarios are the shared corpus and those of `tests/scenarios`, which prove the contract in a clone without it.
//! Both go through the real feed, stream and delivery code; only the API server is a script.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a scenario that cannot be played says why and fails"
)]

#[path = "conformance/play.rs"]
mod play;
#[path = "conformance/scenario.rs"]
mod scenario;
#[path = "conformance/wire.rs"]
mod wire;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use krm_stream_protocol::{Consumer, ScopeRequest};
use krm_stream_tests::shared_inputs;
use serde::Deserialize;

use crate::play::play;
use crate::scenario::{Bodies, Scenario};
use crate::wire::{assert_same_frames, sections};

fn corpus(folder: &Path) -> (Bodies, Vec<Scenario>) {
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect("the corpus has this file");
    (
        serde_json::from_str(&read("bodies.json")).expect("the corpus is JSON"),
        serde_json::from_str(&read("scenarios.json")).expect("the corpus is JSON"),
    )
}

#[tokio::test(start_paused = true)]
async fn each_scenario_of_the_corpus_with_a_watch_produces_its_wire() {
    let Some(shared) = shared_inputs() else { return };
    let folder = shared.join("conformance");
    let (bodies, scenarios) = corpus(&folder);
    let mut played = 0;
    for scenario in scenarios.iter().filter(|scenario| scenario.watch.is_some()) {
        let wire = fs::read_to_string(folder.join("wire").join(format!("{}.sse", scenario.id)))
            .expect("a scenario with a watch has its wire");
        let expected = sections(&wire);
        let connections = play(
            scenario,
            &bodies,
            &expected.iter().map(Vec::len).collect::<Vec<_>>(),
        )
        .await;
        assert_same_frames(&scenario.id, &expected, &connections.frames);
        scenario.assert_events(&bodies, &connections.frames);
        scenario.assert_consumer(&connections.uids);
        played += 1;
    }
    assert_eq!(played, 15, "each scenario with a watch was played");
}

#[test]
fn each_scenario_of_the_corpus_with_a_consumer_ends_with_its_uids() {
    let Some(shared) = shared_inputs() else { return };
    let (bodies, scenarios) = corpus(&shared.join("conformance"));
    let mut played = 0;
    for scenario in scenarios.iter().filter(|scenario| scenario.consumer.is_some()) {
        let mut consumer = Consumer::new();
        let mut seq = 0;
        for (index, event) in scenario.events.iter().enumerate() {
            if event.is_reset() && scenario.is_reconnect(index) {
                consumer.reconnected();
                seq = 0;
            }
            seq += 1;
            drop(
                consumer
                    .apply(&event.to_data(seq, scenario, &bodies))
                    .expect("a conforming consumer takes it"),
            );
            for adopted in scenario.adopted_after(index) {
                consumer
                    .adopt(bodies[adopted].get())
                    .expect("a body is an object");
            }
        }
        let uids: BTreeSet<_> = consumer.objects().map(|held| held.uid().to_owned()).collect();
        scenario.assert_consumer(&uids);
        played += 1;
    }
    assert!(played >= 6, "each scenario with a consumer was played");
}

#[derive(Deserialize)]
struct ScopeCase {
    id: String,
    query: String,
    canonical: Option<String>,
    scope: Option<serde_json::Map<String, serde_json::Value>>,
    code: Option<String>,
}

#[test]
fn each_scope_of_the_corpus_is_accepted_in_canonical_form_or_refused_with_its_code() {
    let Some(shared) = shared_inputs() else { return };
    let text = fs::read_to_string(shared.join("conformance/scopes.json")).expect("the corpus has this file");
    let cases: Vec<ScopeCase> = serde_json::from_str(&text).expect("the corpus is JSON");
    assert!(!cases.is_empty());
    for case in cases {
        match (ScopeRequest::parse(&case.query), case.code) {
            (Ok(request), None) => {
                assert_eq!(Some(request.canonical_query()), case.canonical, "{}", case.id);
                let mut scope = serde_json::to_value(request.scope()).expect("a scope is JSON");
                let scope = scope.as_object_mut().expect("a scope is an object");
                // The corpus leaves the empty target out.
                if scope["target"] == "" {
                    scope.remove("target");
                }
                assert_eq!(Some(&*scope), case.scope.as_ref(), "{}", case.id);
            }
            (Err(error), Some(code)) => {
                let told = krm_stream_protocol::StreamError::from(error);
                assert_eq!(told.code().as_str(), code, "{}", case.id);
                assert!(told.is_terminal(), "{}", case.id);
            }
            (Ok(_), Some(code)) => panic!("{} was to be refused with {code}", case.id),
            (Err(error), None) => panic!("{} was to be accepted: {error}", case.id),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_scenario_of_our_own_produces_its_events() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let (bodies, scenarios) = corpus(&folder);
    for scenario in &scenarios {
        let connections = play(scenario, &bodies, &scenario.events_per_connection()).await;
        scenario.assert_events(&bodies, &connections.frames);
        scenario.assert_consumer(&connections.uids);
    }
    let ids: BTreeSet<_> = scenarios.iter().map(|scenario| &scenario.id).collect();
    assert_eq!(ids.len(), scenarios.len(), "each scenario has an id of its own");
    assert!(ids.len() >= 20);
}
