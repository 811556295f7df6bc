//! Rights: taken away under an open watch, and different for each caller.

use krm_stream_protocol::{ErrorCode, Scope};
use serde_json::{Value, json};

use crate::api_server::ApiServer;
use crate::expectation::Versions;
use crate::gateway::{Gateway, USER};
use crate::identity::{Kubeconfig, ServiceAccount};
use crate::objects::{built, config_map, config_maps, has_value, path, pod_template, set_value};
use crate::reach::let_read;
use crate::wait::until;

/// How long a watch lives, so that the next one is soon.
const SHORT: [&str; 2] = ["--watch-timeout", "2"];

pub(crate) async fn a_role_taken_away_from_a_caller_ends_the_stream(api: &ApiServer) {
    let namespace = api.create_namespace().await;
    let scope = config_maps(&namespace);
    api.create(&scope.api_path(), &config_map("settings", "1")).await;
    let_read(api, &namespace, "configmaps", &user("ada")).await;
    let identity = format!("header:{USER}");
    let flags = [
        &[
            "--allow",
            "configmaps",
            "--sharing",
            "per-caller",
            "--identity",
            &identity,
        ],
        &SHORT[..],
    ]
    .concat();
    let gateway = Gateway::start(api, &flags).await;
    let mut ada = gateway.open_admitted(&scope, &[(USER, "ada")]).await;
    ada.until_synced().await;
    ada.until_shows("settings", has_value("1")).await;

    take_away(api, &namespace, "configmaps").await;
    let kubernetes_says = "User \"ada\" cannot";
    let refusal = ada.until_ended().await;
    assert_eq!(refusal.code(), Some(ErrorCode::Forbidden));
    assert!(
        refusal.message().contains(kubernetes_says),
        "{}",
        refusal.message()
    );
    // Nothing but the refusal: no cycle began that could not be served.
    assert_eq!(ada.types(), ["reset", "added", "synced", "error"]);
    let refusal = gateway.open_as(&scope, "ada").await.until_refused().await;
    assert_eq!(refusal.code(), Some(ErrorCode::Forbidden));
    assert!(
        refusal.message().contains(kubernetes_says),
        "{}",
        refusal.message()
    );
}

pub(crate) async fn a_role_taken_away_is_found_by_the_next_review(api: &ApiServer) {
    let namespace = api.create_namespace().await;
    let scope = config_maps(&namespace);
    api.create(&scope.api_path(), &config_map("settings", "1")).await;
    let_read(api, &namespace, "configmaps", &user("ada")).await;
    let identity = format!("header:{USER}");
    let review = ["--authorize", "subject-access-review", "--identity", &identity];
    let gateway = Gateway::start(api, &[&["--allow", "configmaps"], &review[..]].concat()).await;
    let mut open = gateway.open_admitted(&scope, &[(USER, "ada")]).await;
    open.until_synced().await;

    take_away(api, &namespace, "configmaps").await;
    // The watch is warm and is the gateway's own; the review alone stands before it.
    let refusal = until("the API server's authorizer learns of it", async || {
        let mut late = gateway.open_as(&scope, "ada").await;
        if late.is_forbidden().await {
            Some(late.until_refused().await)
        } else {
            None
        }
    })
    .await;
    assert_eq!(refusal.code(), Some(ErrorCode::Forbidden));
    for told in ["RBAC", "ole", "system:", &*namespace] {
        assert!(!refusal.message().contains(told), "{}", refusal.message());
    }
    // A stream that begins no cycle is checked only where the host asks for checks by time.
    api.merge_patch(&path(&scope, "settings"), &set_value("2")).await;
    open.until_shows("settings", has_value("2")).await;
    open.agrees_with_kubectl(api, Versions::Equal).await;
}

pub(crate) async fn a_role_taken_away_from_the_service_identity_is_not_told_as_the_callers(api: &ApiServer) {
    let namespace = api.create_namespace().await;
    let scope = config_maps(&namespace);
    api.create(&scope.api_path(), &config_map("settings", "1")).await;
    let service = ServiceAccount::create(api, &namespace, "go-between").await;
    let_read(api, &namespace, "configmaps", &service.subject()).await;
    let kubeconfig = Kubeconfig::with_token(api, &service.token(api).await).await;
    let flags = [&["--allow", "configmaps"], &SHORT[..]].concat();
    let gateway = Gateway::start_with(&kubeconfig.path(), &flags).await;
    let mut viewer = gateway.open_admitted(&scope, &[]).await;
    viewer.until_shows("settings", has_value("1")).await;

    take_away(api, &namespace, "configmaps").await;
    let under_way = viewer.until_ended().await;
    let at_open = gateway.open(&scope).await.until_refused().await;
    for refusal in [&under_way, &at_open] {
        assert_eq!(refusal.code(), Some(ErrorCode::Forbidden));
        for told in [
            "go-between",
            "system:serviceaccount",
            &*namespace,
            "cannot",
            "User",
        ] {
            assert!(!refusal.message().contains(told), "{}", refusal.message());
        }
    }
    assert_eq!(under_way.message(), at_open.message(), "a fixed sentence");
    eprintln!("the browser is told: {}", at_open.message());
}

pub(crate) async fn callers_with_different_rights_see_only_what_is_theirs(api: &ApiServer) {
    let (of_ada, of_bob) = (api.create_namespace().await, api.create_namespace().await);
    for namespace in [&of_ada, &of_bob] {
        for (scope, object) in [
            (config_maps(namespace), config_map("settings", namespace)),
            (pod_templates(namespace), pod_template("template")),
        ] {
            api.create(&scope.api_path(), &object).await;
        }
    }
    // Each has a namespace; of one kind, both may read both.
    let_read(api, &of_ada, "configmaps", &user("ada")).await;
    let_read(api, &of_bob, "configmaps", &user("bob")).await;
    let_read(api, &of_ada, "podtemplates", &group("readers")).await;

    let identity = format!("header:{USER}");
    let gateway = Gateway::start(
        api,
        &[
            "--sharing",
            "per-caller",
            "--any-resource",
            "--identity",
            &identity,
            "--groups-header",
            GROUPS,
        ],
    )
    .await;
    let mut ada = gateway
        .open_admitted(&config_maps(&of_ada), &[(USER, "ada")])
        .await;
    let mut bob = gateway
        .open_admitted(&config_maps(&of_bob), &[(USER, "bob")])
        .await;

    // The feed of the one is warm, and is no way in for the other.
    for (caller, namespace) in [("ada", &of_bob), ("bob", &of_ada)] {
        let refusal = gateway
            .open_as(&config_maps(namespace), caller)
            .await
            .until_refused()
            .await;
        assert_eq!(refusal.code(), Some(ErrorCode::Forbidden));
        assert!(
            refusal.message().contains(&format!("User \"{caller}\" cannot")),
            "{}",
            refusal.message()
        );
    }
    // A right of a group is had by those who are told to be in it, and by no other caller of the same name.
    let shared = pod_templates(&of_ada);
    let mut member = gateway
        .open_admitted(&shared, &[(USER, "bob"), (GROUPS, "readers")])
        .await;
    member.until_shows("template", |_| true).await;
    let refusal = gateway.open_as(&shared, "bob").await.until_refused().await;
    assert_eq!(refusal.code(), Some(ErrorCode::Forbidden));

    // What changes is seen by those who may see it.
    for namespace in [&of_ada, &of_bob] {
        let scope = config_maps(namespace);
        api.merge_patch(&path(&scope, "settings"), &set_value("changed"))
            .await;
        api.create(&scope.api_path(), &config_map(&format!("of-{namespace}"), "1"))
            .await;
    }
    for (viewer, mine, others) in [(&mut ada, &of_ada, &of_bob), (&mut bob, &of_bob, &of_ada)] {
        viewer.until_shows("settings", has_value("changed")).await;
        viewer.until_shows(&format!("of-{mine}"), has_value("1")).await;
        viewer.agrees_with_kubectl(api, Versions::Equal).await;
        let raw = String::from_utf8_lossy(viewer.raw());
        assert!(
            !raw.contains(&**others),
            "a namespace of somebody else is on the wire"
        );
    }
    member.agrees_with_kubectl(api, Versions::Equal).await;
}

/// The header of `--groups-header`.
pub(crate) const GROUPS: &str = "x-e2e-group";

fn pod_templates(namespace: &str) -> Scope {
    built(Scope::builder("v1", "podtemplates").namespace(namespace))
}

pub(crate) fn user(name: &str) -> serde_json::Value {
    serde_json::json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name})
}

pub(crate) fn group(name: &str) -> serde_json::Value {
    serde_json::json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name})
}

/// Waits until the API server's own authorizer gives this answer. It learns of a binding a little later than it answers its
/// creation, or its removal.
pub(crate) async fn until_reviewed(api: &ApiServer, asked: &Value, allowed: bool) {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": asked,
    });
    until(&format!("{asked} is allowed: {allowed}"), async || {
        let answer = api
            .create("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review)
            .await;
        (answer["status"]["allowed"] == allowed).then_some(())
    })
    .await;
}

/// Removes the binding that [`let_read`] made.
pub(crate) async fn take_away(api: &ApiServer, namespace: &str, resource: &str) {
    let bindings = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings");
    api.delete(&format!("{bindings}/read-{resource}")).await;
}
