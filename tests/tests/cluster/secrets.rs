//! Secrets: which keys there are and that a value changed, never a value.

use krm_stream_protocol::{HeldObject, Scope};
use serde_json::json;

use crate::api_server::ApiServer;
use crate::expectation::Versions;
use crate::gateway::Gateway;
use crate::objects::{built, path};
use crate::viewer::Viewer;

/// Each value as it is, and as the API server has it.
const FIRST: [&str; 2] = ["first-canary-5d1f08", "Zmlyc3QtY2FuYXJ5LTVkMWYwOA=="];
const ROTATED: [&str; 2] = ["rotated-canary-c2a97b", "cm90YXRlZC1jYW5hcnktYzJhOTdi"];
const USER: [&str; 2] = ["user-canary-91e4", "dXNlci1jYW5hcnktOTFlNA=="];

pub(crate) async fn a_secret_is_withheld_and_its_rotation_is_seen(api: &ApiServer) {
    let namespace = api.create_namespace().await;
    let scope = built(Scope::builder("v1", "secrets").namespace(&*namespace));
    // `apply` keeps a copy of the manifest in an annotation.
    let manifest = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "database", "namespace": namespace},
        "data": {"password": FIRST[1]}, "stringData": {"user": USER[0]},
    });
    api.kubectl(&["apply", "--filename=-"], &manifest.to_string())
        .await;
    let gateway = Gateway::start_traced(api, &["--allow", "secrets"]).await;
    let mut early = gateway.open(&scope).await;
    early.until_synced().await;
    assert_eq!(
        revisions(&early),
        [("/data/password".to_owned(), 1), ("/data/user".to_owned(), 1)]
    );

    api.merge_patch(
        &path(&scope, "database"),
        &json!({"data": {"password": ROTATED[1]}}),
    )
    .await;
    let rotated = [("/data/password".to_owned(), 2), ("/data/user".to_owned(), 1)];
    early
        .until("the rotation is seen", |viewer| revisions(viewer) == rotated)
        .await;
    // Revisions count from one on every connection, and nothing of an earlier value can be learnt.
    let mut late = gateway.open(&scope).await;
    late.until_synced().await;
    assert_eq!(
        revisions(&late),
        [("/data/password".to_owned(), 1), ("/data/user".to_owned(), 1)]
    );

    let more = json!({"metadata": {"labels": {"rotated": "yes"}}, "data": {"user": null}});
    api.merge_patch(&path(&scope, "database"), &more).await;
    for viewer in [&mut early, &mut late] {
        viewer
            .until_shows("database", |secret| {
                secret["metadata"]["labels"]["rotated"] == "yes"
            })
            .await;
        assert_eq!(revisions(viewer).len(), 1, "a removed key is not named any more");
        assert!(
            viewer
                .object("database")
                .is_some_and(|secret| secret.get("data").is_none())
        );
        viewer.agrees_with_kubectl(api, Versions::Equal).await;
        let raw = String::from_utf8_lossy(viewer.raw());
        let printed = gateway.output();
        assert!(printed.contains("TRACE"), "the log of everything is searched");
        assert!(raw.contains("/data/password"), "the key is named");
        for value in [FIRST, ROTATED, USER].concat() {
            assert!(!raw.contains(value), "a value is on the wire");
            assert!(!printed.contains(value), "a value was printed");
        }
    }
    assert_eq!(early.story("database"), ["added", "modified", "modified"]);
}

fn revisions(viewer: &Viewer) -> Vec<(String, u64)> {
    let redacted = viewer.held("database").map(HeldObject::redacted);
    redacted
        .unwrap_or_default()
        .iter()
        .map(|redaction| ((*redaction.path).to_owned(), redaction.rev))
        .collect()
}
