//! What a projection keeps to itself, and what it carries as it is.

use bytes::Bytes;
use http::StatusCode;
use krm_stream_projection::{DigestKey, Projection};
use krm_stream_protocol::{EventType, Object, Scope};
use serde_json::json;

use crate::api_server::ApiServer;
use crate::definitions::gadgets;
use crate::expectation::Versions;
use crate::gateway::Gateway;
use crate::objects::{built, path};

const STATUS_CHANGES: u32 = 5;

pub(crate) async fn status_churn_is_silent_where_status_is_not_shown(api: &ApiServer) {
    let namespace = api.create_namespace().await;
    let scope = built(
        Scope::builder("v1", "deployments")
            .group("apps")
            .namespace(&*namespace),
    );
    // Paused and without replicas, so that no controller has anything to do but to report.
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": 0, "paused": true, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "example.com/web"}]},
            },
        },
    });
    api.create(&scope.api_path(), &deployment).await;
    let gateway = Gateway::start(api, &["--allow", "apps/deployments"]).await;
    let mut spec_only = gateway.open_projected(&scope, Projection::spec()).await;
    let mut full = gateway.open(&scope).await;
    spec_only.until_synced().await;
    full.until_synced().await;

    for change in 1..=STATUS_CHANGES {
        let message = format!("change {change}");
        let condition = json!({"type": "E2e", "status": "True", "reason": "Churn", "message": message});
        let status = json!({"status": {"conditions": [condition]}});
        api.merge_patch(&format!("{}/status", path(&scope, "web")), &status)
            .await;
        full.until("the change of the status is shown in full", |viewer| {
            viewer
                .events()
                .iter()
                .any(|event| event.data().contains(&message))
        })
        .await;
    }
    api.merge_patch(&path(&scope, "web"), &json!({"spec": {"minReadySeconds": 7}}))
        .await;
    for viewer in [&mut spec_only, &mut full] {
        viewer
            .until_shows("web", |deployment| deployment["spec"]["minReadySeconds"] == 7)
            .await;
    }
    assert_eq!(spec_only.story("web"), ["added", "modified"]);
    assert!(full.count(EventType::Modified) > 1);
    assert!(
        spec_only
            .object("web")
            .is_some_and(|deployment| deployment.get("status").is_none())
    );
    spec_only.agrees_with_kubectl(api, Versions::MayLag).await;
    full.agrees_with_kubectl(api, Versions::Equal).await;
}

pub(crate) async fn a_custom_resource_is_carried_byte_for_byte(api: &ApiServer) {
    let namespace = api.create_namespace().await;
    // A group for each run, which no other test or earlier run has defined.
    let group = format!("{namespace}.example.com");
    let scope = gadgets(api, &group, &namespace).await;

    let mut gadget = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Gadget",
        "metadata": {"name": "odd", "annotations": {"example.com/text": "<b>&\u{2028}\u{7f}</b>"}},
        "spec": odd_values(),
    });
    api.create(&scope.api_path(), &gadget).await;
    let gateway = Gateway::start(api, &["--allow", &format!("{group}/gadgets")]).await;
    let mut viewer = gateway.open(&scope).await;
    viewer.until_synced().await;
    carries_what_the_api_server_answers(&viewer, api, &scope, "odd").await;

    let change = json!({"spec": {"count": 9_007_199_254_740_993_u64, "nested": {"more": [null, {}, []]}}});
    api.merge_patch(&path(&scope, "odd"), &change).await;
    viewer
        .until_shows("odd", |gadget| {
            gadget["spec"]["nested"]["more"] == json!([null, {}, []])
        })
        .await;
    carries_what_the_api_server_answers(&viewer, api, &scope, "odd").await;

    gadget["metadata"]["name"] = json!("late");
    api.create(&scope.api_path(), &gadget).await;
    viewer
        .until_shows("late", |gadget| gadget["spec"]["unicode"] == "\u{1f9ed} é \\ \"")
        .await;
    carries_what_the_api_server_answers(&viewer, api, &scope, "late").await;
    viewer.agrees_with_kubectl(api, Versions::Equal).await;
}

/// Values that a tree of another parser would respell.
fn odd_values() -> serde_json::Value {
    json!({
        "unicode": "\u{1f9ed} é \\ \"",
        "markup": "<a href='x'>&amp;</a>",
        "control": "line\r\nline\ttab\u{0}",
        "separators": "\u{2028}\u{2029}",
        "count": 9_223_372_036_854_775_807_i64,
        "small": 1e-7,
        "large": 1e21,
        "half": 0.5,
        "negative": -0.0,
        "nothing": null,
        "empty": {"list": [], "map": {}, "text": ""},
        "key/with~odd \"characters\"": {"": "an empty key"},
        "nested": {"a": {"b": {"c": {"d": {"e": {"f": {"g": [[[[[[1]]]]]]}}}}}}},
    })
}

/// The object of a watch has the bytes that a GET of it has; so has what the viewer holds, but for what the projection
/// removes.
async fn carries_what_the_api_server_answers(
    viewer: &crate::viewer::Viewer,
    api: &ApiServer,
    scope: &Scope,
    name: &str,
) {
    let (status, answer) = api.get(&path(scope, name)).await;
    assert_eq!(status, StatusCode::OK);
    let object = Object::parse(Bytes::copy_from_slice(answer.trim_ascii())).expect("a GET answers an object");
    let projected = Projection::full()
        .project(scope, &object, &DigestKey::new([0; 32]))
        .expect("the object has a name and a uid");
    let held = viewer.held(name).expect("the object is held");
    assert_eq!(held.json(), String::from_utf8_lossy(projected.object()));
}
