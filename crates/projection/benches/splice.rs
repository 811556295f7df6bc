//! Projecting an object: once for each change of a feed, whatever the number of its streams.
//! `cargo bench -p krm-stream-projection`.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

use bytes::Bytes;
use divan::Bencher;
use divan::counter::BytesCount;
use krm_stream_projection::{DigestKey, Projection};
use krm_stream_protocol::{Object, Scope};

fn main() {
    divan::main();
}

/// A Deployment as it usually is: a third of it is managed fields and the last applied manifest.
fn deployment() -> String {
    let container = r#"{"name":"app","image":"registry.example/app:1.2.3","env":[{"name":"A","value":"1"},{"name":"B","value":"two"}],"resources":{"limits":{"cpu":"500m","memory":"256Mi"}},"ports":[{"containerPort":8080,"protocol":"TCP"}]}"#;
    let applied = container.replace('"', "\\\"");
    let fields = r#"{"manager":"kubectl","operation":"Update","apiVersion":"apps/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:image":{},"f:name":{}}}}}}}}"#;
    format!(
        r#"{{"kind":"Deployment","apiVersion":"apps/v1","metadata":{{"name":"app","namespace":"shop","uid":"u1","resourceVersion":"12345","labels":{{"app":"shop"}},"annotations":{{"kubectl.kubernetes.io/last-applied-configuration":"{applied}","note":"kept"}},"managedFields":[{fields},{fields}]}},"spec":{{"replicas":3,"template":{{"spec":{{"containers":[{container},{container}]}}}}}},"status":{{"replicas":3,"readyReplicas":3,"conditions":[{{"type":"Available","status":"True"}}]}}}}"#
    )
}

fn config_map(size: usize) -> String {
    let value = "x".repeat(size);
    format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"a","uid":"u","resourceVersion":"7"}},"data":{{"value":"{value}"}}}}"#
    )
}

fn secret(keys: usize) -> String {
    let data: Vec<_> = (0..keys)
        .map(|n| format!(r#""key-{n}":"c29tZSB2YWx1ZSBvZiBhIHVzdWFsIGxlbmd0aA==""#))
        .collect();
    format!(
        r#"{{"kind":"Secret","apiVersion":"v1","metadata":{{"name":"a","uid":"u","resourceVersion":"7"}},"data":{{{}}}}}"#,
        data.join(",")
    )
}

fn bench(bencher: Bencher<'_, '_>, projection: &Projection, text: String, resource: &str) {
    let scope = Scope::builder("v1", resource).build().unwrap();
    let key = DigestKey::new([7; 32]);
    let bytes = text.len();
    let object = Object::parse(Bytes::from(text)).unwrap();
    bencher
        .counter(BytesCount::new(bytes))
        .bench_local(|| projection.project(&scope, &object, &key).unwrap());
}

#[divan::bench]
fn deployment_full(bencher: Bencher<'_, '_>) {
    bench(bencher, &Projection::full(), deployment(), "deployments");
}

#[divan::bench]
fn deployment_spec(bencher: Bencher<'_, '_>) {
    bench(bencher, &Projection::spec(), deployment(), "deployments");
}

#[divan::bench(args = [2_000, 200_000])]
fn config_map_full(bencher: Bencher<'_, '_>, size: usize) {
    bench(bencher, &Projection::full(), config_map(size), "configmaps");
}

#[divan::bench(args = [1, 10, 100])]
fn secret_full(bencher: Bencher<'_, '_>, keys: usize) {
    bench(bencher, &Projection::full(), secret(keys), "secrets");
}
