//! Kinds that a test defines, and one that goes away.

use http::StatusCode;
use krm_stream_protocol::{ErrorCode, EventType, Scope};
use serde_json::json;

use crate::api_server::ApiServer;
use crate::gateway::Gateway;
use crate::objects::built;
use crate::wait::until;

pub(crate) async fn a_definition_deleted_under_an_open_scope_ends_the_stream(api: &ApiServer) {
    let namespace = api.create_namespace().await;
    let group = format!("{namespace}.example.com");
    let scope = gadgets(api, &group, &namespace).await;
    let gadget = json!({"apiVersion": format!("{group}/v1"), "kind": "Gadget", "metadata": {"name": "one"}, "spec": {}});
    api.create(&scope.api_path(), &gadget).await;
    let gateway = Gateway::start(api, &["--allow", &format!("{group}/gadgets")]).await;
    let mut viewers = [gateway.open(&scope).await, gateway.open(&scope).await];
    for viewer in &mut viewers {
        viewer.until_synced().await;
        assert_eq!(viewer.story("one"), ["added"]);
    }

    api.delete(&format!(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.{group}"
    ))
    .await;
    for viewer in &mut viewers {
        let refusal = viewer.until_ended().await;
        assert_eq!(refusal.code(), Some(ErrorCode::ScopeInvalid), "{refusal:?}");
        // The API server deletes the objects of a kind before the kind itself.
        assert_eq!(viewer.story("one"), ["added", "deleted"]);
        assert_eq!(viewer.count(EventType::Error), 1, "came: {}", viewer.summary());
        eprintln!(
            "the browser is told: {}; came: {}",
            refusal.message(),
            viewer.summary()
        );
    }
    let refusal = gateway.open(&scope).await.until_refused().await;
    assert_eq!(refusal.code(), Some(ErrorCode::ScopeInvalid), "{refusal:?}");
}

/// Defines the kind in a group that nobody else has, and returns the scope of it in a namespace.
pub(crate) async fn gadgets(api: &ApiServer, group: &str, namespace: &str) -> Scope {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("gadgets.{group}"),
            "labels": {"app.kubernetes.io/part-of": "krm-stream-e2e"},
        },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }},
            }],
        },
    });
    api.create(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        &definition,
    )
    .await;
    let scope = built(Scope::builder("v1", "gadgets").group(group).namespace(namespace));
    until("the API server serves the new kind", async || {
        let (status, _) = api.get(&scope.api_path()).await;
        (status == StatusCode::OK).then_some(())
    })
    .await;
    scope
}
