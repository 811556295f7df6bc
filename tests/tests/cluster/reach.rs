//! How far a scope may reach: the cluster, all namespaces, and what a caller may see.

use krm_stream_protocol::{ErrorCode, Scope};
use serde_json::json;

use crate::access::user;
use crate::api_server::{ApiServer, text};
use crate::expectation::Versions;
use crate::gateway::{Gateway, USER};
use crate::objects::{built, config_map, config_maps, has_value, path};

const CLUSTER_ROLES: &str = "rbac.authorization.k8s.io/clusterroles";

pub(crate) async fn a_cluster_scoped_kind_is_followed(api: &ApiServer) {
    let scope = built(Scope::builder("v1", "clusterroles").group("rbac.authorization.k8s.io"));
    let gateway = Gateway::start(api, &["--allow", CLUSTER_ROLES]).await;
    let mut viewer = gateway.open(&scope).await;
    viewer.until_synced().await;
    assert_eq!(
        viewer.story("system:node"),
        ["added"],
        "what the API server made itself is in the snapshot"
    );

    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"generateName": "krm-e2e-", "labels": {"app.kubernetes.io/part-of": "krm-stream-e2e"}},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    });
    let name = text(&api.create(&scope.api_path(), &role).await["metadata"]["name"]);
    viewer
        .until_shows(&name, |role| role["rules"][0]["verbs"] == json!(["get"]))
        .await;
    let wider = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]);
    api.merge_patch(&path(&scope, &name), &json!({"rules": wider}))
        .await;
    viewer.until_shows(&name, |role| role["rules"] == wider).await;
    viewer.agrees_with_kubectl(api, Versions::Equal).await;
    api.delete(&path(&scope, &name)).await;
    viewer.until_gone(&name).await;
    assert_eq!(viewer.story(&name), ["added", "modified", "deleted"]);
    viewer.agrees_with_kubectl(api, Versions::Equal).await;
}

pub(crate) async fn all_namespaces_are_for_the_policy_to_allow(api: &ApiServer) {
    let (one, other) = (
        config_maps(&api.create_namespace().await),
        config_maps(&api.create_namespace().await),
    );
    let everywhere = built(Scope::builder("v1", "configmaps"));
    // A name for each, so that no other object can be mistaken for it.
    let names = [&one, &other].map(|scope| format!("of-{}", scope.namespace().unwrap_or_default()));
    api.create(&one.api_path(), &config_map(&names[0], "1")).await;

    let narrow = Gateway::start(api, &["--allow", "configmaps"]).await;
    let refusal = narrow.open(&everywhere).await.until_refused().await;
    assert_eq!(refusal.code(), Some(ErrorCode::ScopeInvalid));
    assert!(
        refusal.message().contains("all namespaces"),
        "{}",
        refusal.message()
    );

    let wide = Gateway::start(api, &["--allow", "configmaps", "--allow-all-namespaces"]).await;
    let mut viewer = wide.open(&everywhere).await;
    viewer.until_synced().await;
    assert_eq!(viewer.story(&names[0]), ["added"]);
    api.create(&other.api_path(), &config_map(&names[1], "1")).await;
    viewer.until_shows(&names[1], has_value("1")).await;
    viewer.agrees_with_kubectl(api, Versions::Equal).await;
}

pub(crate) async fn a_caller_without_a_role_is_forbidden_by_review(api: &ApiServer) {
    let scope = config_maps(&api.create_namespace().await);
    api.create(&scope.api_path(), &config_map("settings", "1")).await;
    let identity = format!("header:{USER}");
    let flags = [
        "--allow",
        "configmaps",
        "--sharing",
        "shared",
        "--authorize",
        "subject-access-review",
        "--identity",
        &identity,
    ];
    let gateway = Gateway::start(api, &flags).await;
    let refusal = gateway.open_as(&scope, "ada").await.until_refused().await;
    assert_eq!(refusal.code(), Some(ErrorCode::Forbidden));

    let namespace = scope.namespace().unwrap_or_default();
    let_read(api, namespace, "configmaps", &user("ada")).await;
    let mut viewer = gateway.open_admitted(&scope, &[(USER, "ada")]).await;
    viewer.until_shows("settings", has_value("1")).await;
    viewer.until_synced().await;
    viewer.agrees_with_kubectl(api, Versions::Equal).await;

    // A warm feed is no way around the review.
    let refusal = gateway.open_as(&scope, "bob").await.until_refused().await;
    assert_eq!(refusal.code(), Some(ErrorCode::Forbidden));
    let elsewhere = config_maps(&api.create_namespace().await);
    let refusal = gateway.open_as(&elsewhere, "ada").await.until_refused().await;
    assert_eq!(refusal.code(), Some(ErrorCode::Forbidden));
}

pub(crate) async fn a_caller_without_a_role_is_forbidden_by_the_api_server(api: &ApiServer) {
    let scope = config_maps(&api.create_namespace().await);
    api.create(&scope.api_path(), &config_map("settings", "1")).await;
    let identity = format!("header:{USER}");
    let flags = [
        "--allow",
        "configmaps",
        "--sharing",
        "per-caller",
        "--identity",
        &identity,
    ];
    let gateway = Gateway::start(api, &flags).await;
    let refusal = gateway.open_as(&scope, "ada").await.until_refused().await;
    assert_eq!(refusal.code(), Some(ErrorCode::Forbidden));
    assert!(
        refusal.message().contains("\"ada\" cannot"),
        "Kubernetes' own words: {}",
        refusal.message()
    );

    let namespace = scope.namespace().unwrap_or_default();
    let_read(api, namespace, "configmaps", &user("ada")).await;
    let mut viewer = gateway.open_admitted(&scope, &[(USER, "ada")]).await;
    viewer.until_shows("settings", has_value("1")).await;
    viewer.until_synced().await;
    viewer.agrees_with_kubectl(api, Versions::Equal).await;
}

/// Lets a subject read a kind in a namespace, by a role and a binding of the name `read-KIND`.
pub(crate) async fn let_read(api: &ApiServer, namespace: &str, resource: &str, subject: &serde_json::Value) {
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
    let name = format!("read-{resource}");
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name},
        "rules": [{"apiGroups": [""], "resources": [resource], "verbs": ["list", "watch"]}],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [subject],
    });
    api.create(&format!("{rbac}/roles"), &role).await;
    api.create(&format!("{rbac}/rolebindings"), &binding).await;
}
