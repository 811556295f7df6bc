//! What is sent to the API server.

use krm_stream_protocol::{ResourceVersion, Scope, ScopeRequest, Start};

use crate::support::scripted::{Answer, Received, upstream};
use crate::support::transcript::read;
use crate::support::{config_maps, refused_streaming_list};

async fn requests_of(scope: &Scope, start: Start) -> Vec<Received> {
    let (upstream, record) = upstream(|request| {
        if request.is_streaming_list() {
            Answer::new(422, refused_streaming_list())
        } else {
            Answer::ok(r#"{"kind":"XList","metadata":{"resourceVersion":"5"}}"#)
        }
    });
    read(&upstream, scope, start).await;
    record.requests()
}

fn query(request: &Received) -> Vec<(&str, &str)> {
    request
        .query
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .filter(|(name, _)| *name != "timeoutSeconds")
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_fresh_session_asks_for_a_streaming_list_and_a_resumed_one_for_a_watch() {
    let fresh = requests_of(&config_maps(), Start::Fresh).await;
    assert_eq!(fresh[0].path, "/api/v1/namespaces/rec/configmaps");
    assert_eq!(
        query(&fresh[0]),
        [
            ("watch", "1"),
            ("sendInitialEvents", "true"),
            ("resourceVersionMatch", "NotOlderThan"),
            ("allowWatchBookmarks", "true")
        ]
    );
    assert_eq!(query(&fresh[1]), [("limit", "500")]);
    let watch = [
        ("watch", "1"),
        ("resourceVersion", "5"),
        ("allowWatchBookmarks", "true"),
    ];
    assert_eq!(query(&fresh[2]), watch);
    let resumed = requests_of(&config_maps(), Start::After(ResourceVersion::from("5"))).await;
    assert_eq!(query(&resumed[0]), watch);
    assert!(resumed[0].parameter("timeoutSeconds").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_version_is_echoed_as_it_was_spelled() {
    for version in ["18446744073709551616000", "007", "a b&c=d%41/é", "opaque-alpha"] {
        let requests = requests_of(&config_maps(), Start::After(ResourceVersion::from(version))).await;
        assert_eq!(requests[0].parameter("resourceVersion"), Some(version));
    }
}

#[tokio::test(start_paused = true)]
async fn selectors_and_names_are_sent_with_every_request_and_cannot_add_to_it() {
    let scope = Scope::builder("v1", "clusterroles")
        .group("rbac.authorization.k8s.io")
        .name(r"x,metadata.name=y\z")
        .label_selector("b=2,a in (x,y)")
        .build()
        .unwrap();
    let requests = requests_of(&scope, Start::Fresh).await;
    assert_eq!(requests.len(), 3);
    for request in &requests {
        assert_eq!(request.path, "/apis/rbac.authorization.k8s.io/v1/clusterroles");
        assert_eq!(
            request.parameter("fieldSelector"),
            Some(r"metadata.name=x\,metadata.name\=y\\z")
        );
        assert_eq!(
            request.parameter("labelSelector"),
            Some(scope.label_selector().unwrap().as_str())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_scope_that_would_reach_another_path_is_refused_before_any_request() {
    for odd in [
        "namespace=",
        "namespace=.",
        "namespace=..",
        "namespace=%252e%252e",
        "namespace=a/b",
        "namespace=a%2Fb",
        "namespace=a%3Fwatch=1",
        "namespace=a%23b",
        "namespace=%20a",
        "namespace=A",
        "namespace=%00",
        "namespace=a%0d%0aX-H:%201",
        "name=",
        "name=..",
    ] {
        let request = ScopeRequest::parse(&format!("version=v1&resource=configmaps&{odd}"));
        assert!(request.is_err(), "{odd}");
    }
    for odd in [
        "",
        "secrets/tok",
        "%2573ecrets",
        "Secrets",
        "pods/log",
        "secrets,pods",
    ] {
        assert!(
            ScopeRequest::parse(&format!("version=v1&resource={odd}")).is_err(),
            "{odd}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_refusal_the_same_namespace_is_asked_for_again() {
    let (upstream, record) = upstream(|_| Answer::new(403, ""));
    let scope = Scope::builder("v1", "configmaps")
        .namespace("team-a")
        .build()
        .unwrap();
    for _ in 0..3 {
        read(&upstream, &scope, Start::Fresh).await;
    }
    assert!(
        record
            .requests()
            .iter()
            .all(|request| request.path == "/api/v1/namespaces/team-a/configmaps")
    );
}

#[tokio::test(start_paused = true)]
async fn requests_ask_for_plain_json_and_name_themselves() {
    for request in requests_of(&config_maps(), Start::Fresh).await {
        assert_eq!(request.headers["accept"], "application/json");
        assert_eq!(request.headers["accept-encoding"], "identity");
        assert_eq!(
            request.headers["user-agent"],
            concat!("krm-stream/", env!("CARGO_PKG_VERSION"))
        );
        let mut names: Vec<_> = request.headers.keys().map(http::HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            ["accept", "accept-encoding", "user-agent"],
            "and nothing else"
        );
    }
}
