//! Declarations under a policy: what is watched, and what is told of the rest.

use krm_stream_protocol::{ResourceRule, ScopePolicy, Target};
use krm_stream_status::{BlockReason, StreamState};

use super::*;

fn policy() -> DeclaredPolicy {
    DeclaredPolicy::new(
        ScopePolicy::deny_all()
            .allow_target(Target::default())
            .allow_target("eu-1")
            .allow(ResourceRule::namespaced("", "configmaps"))
            .allow(ResourceRule::namespaced("apps", "deployments").allow_label_selector(true))
            .allow(ResourceRule::cluster_scoped("", "nodes")),
    )
}

fn spec(streams: &[(&str, &str)]) -> DeclaredStreamSpec {
    let streams: Vec<String> = streams
        .iter()
        .map(|(name, further)| format!(r#"{{"name": "{name}", {further}}}"#))
        .collect();
    serde_json::from_str(&format!(r#"{{"streams": [{}]}}"#, streams.join(","))).unwrap()
}

fn configmaps() -> DeclaredScope {
    DeclaredScope {
        version: "v1".into(),
        resource: "configmaps".into(),
        namespace: Some("shop".into()),
        ..DeclaredScope::default()
    }
}

/// What a single stream of this scope is refused for.
fn refusal(scope: DeclaredScope, projection: Option<&str>) -> DeclaredStreamError {
    let spec = DeclaredStreamSpec {
        streams: vec![StreamDeclaration {
            name: "s".into(),
            scope,
            projection: projection.map(str::to_owned),
        }],
    };
    let resolved = spec.resolve(&policy());
    *resolved[0].outcome().unwrap_err()
}

#[test]
fn declarations_become_scopes_in_canonical_form() {
    let spec = spec(&[
        (
            "web",
            r#""scope": {"target": "eu-1", "group": "apps", "version": "v1", "resource": "deployments", "namespace": "shop",
                "name": "web", "labelSelector": "tier in (web,db), app==shop"}, "projection": "krm-spec/v1""#,
        ),
        ("nodes", r#""scope": {"version": "v1", "resource": "nodes"}"#),
    ]);
    let resolved = spec.resolve(&policy());
    let web = resolved[0].outcome().unwrap();
    assert_eq!(
        web.scope().canonical_query(),
        "target=eu-1&group=apps&version=v1&resource=deployments&namespace=shop&name=web\
         &labelSelector=app%3Dshop%2Ctier%20in%20%28db%2Cweb%29"
    );
    assert_eq!(web.projection().as_str(), "krm-spec/v1");
    let nodes = resolved[1].outcome().unwrap();
    assert_eq!(
        (nodes.scope().api_path(), nodes.projection().as_str()),
        ("/api/v1/nodes".to_owned(), "krm-full/v1")
    );
    assert_eq!(*resolved[1].initial_stream().state(), *WatchStream::new().state());
}

#[test]
fn every_refusal_is_told_in_words_of_its_own_stream() {
    let scope = |change: fn(&mut DeclaredScope)| {
        let mut scope = configmaps();
        change(&mut scope);
        scope
    };
    for (refused, reason, words) in [
        (
            refusal(scope(|s| s.resource = "ConfigMap".into()), None),
            BlockReason::WatchError,
            "plural name",
        ),
        (
            refusal(scope(|s| s.resource = "pods/log".into()), None),
            BlockReason::WatchError,
            "subresources",
        ),
        (
            refusal(scope(|s| s.version = String::new()), None),
            BlockReason::WatchError,
            "version is empty",
        ),
        (
            refusal(scope(|s| s.namespace = Some("..".into())), None),
            BlockReason::WatchError,
            "namespace must be",
        ),
        (
            refusal(scope(|s| s.target = Some(String::new())), None),
            BlockReason::WatchError,
            "target is empty",
        ),
        (
            refusal(scope(|s| s.label_selector = Some("a in".into())), None),
            BlockReason::WatchError,
            "labelSelector",
        ),
        (
            refusal(scope(|s| s.namespace = None), None),
            BlockReason::WatchNotPermitted,
            "all namespaces",
        ),
        (
            refusal(scope(|s| s.resource = "secrets".into()), None),
            BlockReason::WatchNotPermitted,
            "allow-list",
        ),
        (
            refusal(scope(|s| s.target = Some("us-1".into())), None),
            BlockReason::WatchNotPermitted,
            "target",
        ),
        (
            refusal(scope(|s| s.label_selector = Some("a=b".into())), None),
            BlockReason::WatchNotPermitted,
            "leave labelSelector out",
        ),
        (
            refusal(scope(|s| s.resource = "nodes".into()), None),
            BlockReason::WatchError,
            "cluster-scoped",
        ),
        (
            refusal(configmaps(), Some("krm-raw/v1")),
            BlockReason::WatchNotPermitted,
            "projection",
        ),
    ] {
        let blockage = refused.blockage();
        assert_eq!(blockage.reason(), reason, "{refused}");
        assert!(blockage.message().contains(words), "{refused}");
    }
}

#[test]
fn one_refused_stream_does_not_hold_up_the_others() {
    let configmaps = r#""scope": {"version": "v1", "resource": "configmaps", "namespace": "shop"}"#;
    let spec = spec(&[
        ("a", configmaps),
        (
            "b",
            r#""scope": {"version": "v1", "resource": "secrets", "namespace": "shop"}"#,
        ),
        ("a", configmaps),
        ("c", configmaps),
    ]);
    let resolved = spec.resolve(&policy());
    let names: Vec<&str> = resolved.iter().map(ResolvedStream::name).collect();
    assert_eq!(names, ["a", "b", "a", "c"]);
    let watched: Vec<bool> = resolved.iter().map(|stream| stream.outcome().is_ok()).collect();
    assert_eq!(watched, [true, false, false, true]);
    assert_eq!(resolved[2].outcome(), Err(&DeclaredStreamError::NameRepeated));
    assert!(matches!(
        resolved[1].initial_stream().state(),
        StreamState::Blocked(_)
    ));
}

#[test]
fn a_gateway_that_allows_any_resource_lets_none_be_declared() {
    let policy = DeclaredPolicy::new(
        ScopePolicy::deny_all()
            .allow_target(Target::default())
            .any_resource(),
    );
    let spec = spec(&[(
        "a",
        r#""scope": {"version": "v1", "resource": "configmaps", "namespace": "shop"}"#,
    )]);
    let resolved = spec.resolve(&policy);
    assert_eq!(resolved[0].outcome(), Err(&DeclaredStreamError::NoAllowList));
}

#[test]
fn a_host_may_allow_further_projections_and_choose_the_default() {
    let policy = policy()
        .allow_projection("shop-audit/v1")
        .default_projection("shop-lean/v1");
    for (asked, granted) in [
        (None, Some("shop-lean/v1")),
        (Some("shop-audit/v1"), Some("shop-audit/v1")),
        (Some("krm-full/v1"), Some("krm-full/v1")),
        (Some("krm-raw/v1"), None),
    ] {
        let name = policy.projection(asked);
        assert_eq!(name.as_ref().map(ProjectionName::as_str), granted);
    }
}

#[test]
fn a_specification_that_lists_nothing_resolves_to_nothing() {
    let spec: DeclaredStreamSpec = serde_json::from_str(r#"{"streams": []}"#).unwrap();
    assert_eq!(spec.resolve(&policy()), []);
}

#[test]
fn a_gateway_that_grants_some_projections_lets_those_be_declared_and_takes_its_first() {
    let asking = |projection: Option<&str>| DeclaredStreamSpec {
        streams: vec![StreamDeclaration {
            name: "s".into(),
            scope: configmaps(),
            projection: projection.map(str::to_owned),
        }],
    };
    let granted = policy().projections(["krm-spec/v1", "krm-raw/v1"]);
    for (asked, given) in [
        (None, Some("krm-spec/v1")),
        (Some("krm-raw/v1"), Some("krm-raw/v1")),
        (Some("krm-full/v1"), None),
    ] {
        let resolved = asking(asked).resolve(&granted);
        let outcome = resolved[0].outcome();
        assert_eq!(
            outcome.ok().map(|warm| warm.projection().as_str()),
            given,
            "{asked:?}"
        );
    }
    let unchanged = asking(None).resolve(&policy().projections([""; 0]));
    assert_eq!(
        unchanged[0].outcome().unwrap().projection().as_str(),
        "krm-full/v1"
    );
}
