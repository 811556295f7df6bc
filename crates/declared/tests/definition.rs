//! The definition of the custom resource: committed as it is generated, and what is promised of it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use krm_stream_declared::{
    CRD_FILE, DeclaredPolicy, DeclaredStreamSpec, DeclaredStreamStatus, definition_json,
};
use krm_stream_protocol::{ProjectionName, ResourceRule, Scope, ScopePolicy, ScopeRequest, Target};
use krm_stream_status::StreamState;
use proptest::prelude::*;
use proptest::string::string_regex;
use serde_json::{Value, json};

fn definition() -> Value {
    serde_json::from_str(&definition_json().unwrap()).unwrap()
}

fn spec_schema() -> Value {
    definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].take()
}

fn stream_schema() -> Value {
    spec_schema()["properties"]["streams"]["items"].take()
}

#[test]
fn the_committed_definition_is_the_generated_one() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(CRD_FILE);
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        committed == definition_json().unwrap(),
        "{CRD_FILE} is not what the Rust types say; write it anew with:\n\
         cargo run --package krm-stream-declared --example print-crd > crates/declared/{CRD_FILE}"
    );
}

#[test]
fn kubectl_shows_ready_streams_and_age() {
    let columns = &definition()["spec"]["versions"][0]["additionalPrinterColumns"];
    let shown: Vec<(&str, &str)> = columns
        .as_array()
        .unwrap()
        .iter()
        .map(|column| {
            (
                column["name"].as_str().unwrap(),
                column["jsonPath"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("READY", r#".status.conditions[?(@.type=="Ready")].status"#),
            ("STREAMS", ".status.streams.summary"),
            ("AGE", ".metadata.creationTimestamp"),
        ]
    );
}

#[test]
fn the_resource_is_cluster_scoped_with_a_status_of_its_own() {
    let definition = definition();
    assert_eq!(
        definition["metadata"]["name"],
        "declaredstreams.krm-stream.github.io"
    );
    assert_eq!(definition["spec"]["scope"], "Cluster");
    assert_eq!(
        definition["spec"]["versions"][0]["subresources"]["status"],
        json!({})
    );
}

#[test]
fn names_are_unique_and_conditions_keyed_by_type_for_the_api_server_too() {
    let streams = &spec_schema()["properties"]["streams"];
    assert_eq!(streams["x-kubernetes-list-map-keys"], json!(["name"]));
    let status =
        definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"].take();
    assert_eq!(
        status["properties"]["conditions"]["x-kubernetes-list-map-keys"],
        json!(["type"])
    );
}

/// What an API server would refuse: a default must be legal by the schema that it stands in, and hold nothing else
/// (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#defaulting>).
#[test]
fn a_resource_that_no_gateway_has_looked_at_says_so() {
    let status =
        definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"].take();
    assert_eq!(status["default"], json!({"observedGeneration": -1}));
    let observed = &status["properties"]["observedGeneration"];
    assert_eq!(observed["type"], "integer");
    assert_eq!(observed.get("minimum"), None);
    assert_eq!(status.get("required"), None);

    // As the API server gives it out: the list within has a default of its own.
    let filled: Option<DeclaredStreamStatus> =
        serde_json::from_value(json!({"observedGeneration": -1, "conditions": []})).unwrap();
    let filled = filled.unwrap();
    assert_eq!(filled.observed_generation, Some(-1));
    assert!(filled.conditions.as_slice().is_empty());
    assert_eq!(filled.streams, None);
}

#[test]
fn a_misspelled_list_of_streams_is_not_taken_for_an_empty_one() {
    assert_eq!(spec_schema()["required"], json!(["streams"]));
    let version = definition()["spec"]["versions"][0].take();
    assert_eq!(version["schema"]["openAPIV3Schema"]["required"], json!(["spec"]));
    let streams =
        |spec: Value| serde_json::from_value::<DeclaredStreamSpec>(spec).map(|spec| spec.streams.len());
    assert!(streams(json!({"stream": []})).is_err());
    assert!(streams(json!({})).is_err());
    assert_eq!(streams(json!({"streams": []})).unwrap(), 0);
}

/// A text that the schema of a property lets through.
fn let_through(property: &Value) -> impl Strategy<Value = String> + use<> {
    let pattern = property["pattern"].as_str().unwrap();
    let inner = pattern.strip_prefix('^').and_then(|rest| rest.strip_suffix('$'));
    let limit = usize::try_from(property["maxLength"].as_u64().unwrap()).unwrap();
    string_regex(inner.unwrap())
        .unwrap()
        .prop_filter("longer than the schema allows", move |text| {
            text.chars().count() <= limit
        })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_the_schema_lets_through_is_a_legal_scope_of_the_gateway_but_for_the_label_selector(
        target in let_through(&stream_schema()["properties"]["scope"]["properties"]["target"]),
        group in let_through(&stream_schema()["properties"]["scope"]["properties"]["group"]),
        version in let_through(&stream_schema()["properties"]["scope"]["properties"]["version"]),
        resource in let_through(&stream_schema()["properties"]["scope"]["properties"]["resource"]),
        namespace in let_through(&stream_schema()["properties"]["scope"]["properties"]["namespace"]),
        name in let_through(&stream_schema()["properties"]["scope"]["properties"]["name"]),
        projection in let_through(&stream_schema()["properties"]["projection"]),
    ) {
        let scope = Scope::builder(version, resource)
            .target(target.as_str())
            .group(group)
            .namespace(namespace)
            .name(name)
            .build();
        prop_assert!(scope.is_ok(), "{scope:?}");
        let encoded: String = projection.bytes().map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        }).collect();
        let request = ScopeRequest::parse(&format!("version=v1&resource=pods&projection={encoded}")).unwrap();
        prop_assert_eq!(
            request.projection().map(ProjectionName::as_str),
            Some(projection.as_str())
        );
    }

    /// The grammar of a selector is more than a pattern can say.
    #[test]
    fn a_label_selector_that_the_schema_lets_through_is_legal_or_told_of_in_the_status(
        text in prop_oneof![".{1,40}", "[a-z!=, ()]{1,12}", "[a-z]{1,3} (in|notin) \\([a-z,]{0,5}\\)"],
    ) {
        let spec = json!({"streams": [
            {"name": "a", "scope": {"version": "v1", "resource": "configmaps", "namespace": "n", "labelSelector": text}},
        ]});
        let spec: DeclaredStreamSpec = serde_json::from_value(spec).unwrap();
        let policy = DeclaredPolicy::new(
            ScopePolicy::deny_all()
                .allow_target(Target::default())
                .allow(ResourceRule::namespaced("", "configmaps"))
                .allow_label_selector(true),
        );
        let resolved = &spec.resolve(&policy)[0];
        let is_legal = Scope::builder("v1", "configmaps").label_selector(text.as_str()).build().is_ok();
        prop_assert_eq!(resolved.outcome().is_ok(), is_legal);
        match resolved.initial_stream().state() {
            StreamState::Blocked(blockage) => {
                prop_assert!(!is_legal);
                prop_assert!(blockage.message().contains("labelSelector"), "{}", blockage.message());
            }
            StreamState::Replaying(_) | StreamState::Streaming => prop_assert!(is_legal),
        }
    }
}

#[test]
fn the_schema_lets_through_the_names_that_a_path_can_hold_and_no_others() {
    let property = stream_schema()["properties"]["scope"]["properties"]["name"].take();
    let pattern = regex::Regex::new(property["pattern"].as_str().unwrap()).unwrap();
    for name in [
        "a",
        "system:node",
        "a.b",
        ".a",
        "a.",
        "...",
        "....",
        ". ",
        "\u{e9}",
        "..a",
        ".",
        "..",
        "",
        "a/b",
        "a%b",
        "a\nb",
        "\n",
        ".\u{7f}",
        "a\u{85}",
        "\0",
    ] {
        let is_legal = Scope::builder("v1", "configmaps").name(name).build().is_ok();
        assert_eq!(pattern.is_match(name), is_legal, "{name:?}");
    }
}
