//! Refusals: 200, one error, the end; and nobody asked who need not be.

use std::sync::Arc;
use std::time::Duration;

use krm_stream_http::ResolveError;
use krm_stream_protocol::{
    AuthorizationOutcome, ErrorCode, Observation, ProjectionName, StreamError, UpstreamError,
    UpstreamErrorKind,
};

use super::support::{
    Connection, QUERY, Recorder, Reports, ScriptedUpstream, Seam, builder, code_of, get, text_of,
};

/// The whole body.
async fn body(mut connection: Connection) -> String {
    while connection.chunk().await.is_some() {}
    String::from_utf8(connection.raw().to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_unknown_caller_learns_that_and_only_diagnostics_learn_why() {
    let (upstream, script) = ScriptedUpstream::new();
    let reports = Arc::new(Reports::default());
    let resolver = Seam::new(|_| Some(Err(ResolveError::from("canary: the session is not in the store"))));
    let gateway = builder(&upstream)
        .resolver(resolver)
        .diagnostics(reports.clone())
        .build()
        .unwrap();
    // A bad scope is not told to a stranger.
    let body = body(get(&gateway, "resource=Pods")).await;
    assert_eq!(
        body,
        "data: {\"seq\":1,\"type\":\"error\",\"code\":\"UNAUTHENTICATED\",\"message\":\"the gateway does not know who you \
         are; sign in again\",\"terminal\":true}\n\n"
    );
    assert_eq!(
        reports.all(),
        ["resolving the caller: canary: the session is not in the store"]
    );
    assert_eq!(script.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_stream_error_of_the_resolver_chooses_its_own_code_and_text() {
    let (upstream, _script) = ScriptedUpstream::new();
    let hint = Some(Duration::from_millis(2500));
    for (error, expected) in [
        (
            StreamError::forbidden("this account is locked"),
            "data: {\"seq\":1,\"type\":\"error\",\"code\":\"FORBIDDEN\",\"message\":\"this account is locked\",\"terminal\":true}\n\n",
        ),
        (
            StreamError::unavailable("the login service restarts", hint),
            "retry: 2500\ndata: {\"seq\":1,\"type\":\"error\",\"code\":\"UPSTREAM_UNAVAILABLE\",\"message\":\"the login \
             service restarts\",\"terminal\":false,\"retryAfterMs\":2500}\n\n",
        ),
    ] {
        let resolver = Seam::new(move |_| Some(Err(ResolveError::from(error.clone()))));
        let gateway = builder(&upstream).resolver(resolver).build().unwrap();
        assert_eq!(body(get(&gateway, QUERY)).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn scopes_that_would_reach_another_path_are_refused_without_a_question() {
    let (upstream, script) = ScriptedUpstream::new();
    let authorizer = Seam::hangs();
    let gateway = builder(&upstream).authorizer(authorizer.clone()).build().unwrap();
    let long = "a".repeat(64);
    let namespaces = [
        "",
        ".",
        "..",
        "%2e%2e",
        "a/b",
        "a%2Fb",
        "a?watch=1",
        "a%23b",
        "%20a",
        "A",
        &long,
        "%00",
        "a%0D%0AX-H:%201",
        "%ff",
        "%zz",
    ];
    let resources = [
        "",
        "secrets/tok",
        "secret/tok",
        "%2573ecrets",
        "Secrets",
        "ConfigMap",
        "pods/log",
        "secrets,pods",
    ];
    let mut queries: Vec<String> = [
        "",
        "version=v1",
        "resource=configmaps",
        "version=v1&resource=configmaps&namespace=app&name=",
        "version=v1&resource=configmaps&namespace=app&name=..",
        "version=v1&resource=configmaps&namespace=app&namespace=app",
        "version=v1&resource=configmaps&namespace=app&namespace=other",
        "version=v1&resource=configmaps&namespace=app&fieldSelector=a%3Db",
        "version=v1&resource=configmaps&namespace=app&Token=x",
        "version=v1&resource=configmaps&namespace=app&server=x",
    ]
    .map(str::to_owned)
    .to_vec();
    queries
        .extend(namespaces.map(|namespace| format!("version=v1&resource=configmaps&namespace={namespace}")));
    queries.extend(resources.map(|resource| format!("version=v1&resource={resource}&namespace=app")));
    for query in queries {
        let event = get(&gateway, &query).only_event().await;
        assert_eq!(code_of(&event), "SCOPE_INVALID", "{query}");
    }
    assert_eq!((authorizer.asked(), script.asked()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_on_the_allow_list_is_refused_without_a_question() {
    let (upstream, script) = ScriptedUpstream::new();
    let authorizer = Seam::hangs();
    let recorder = Arc::new(Recorder::default());
    let gateway = builder(&upstream)
        .authorizer(authorizer.clone())
        .observer(recorder.clone())
        .build()
        .unwrap();
    for query in [
        "version=v1&resource=pods&namespace=app",
        "version=v1&resource=configmaps",
        "version=v1&resource=configmaps&namespace=app&labelSelector=a%3Db",
        "target=other&version=v1&resource=configmaps&namespace=app",
        "group=apps&version=v1&resource=configmaps&namespace=app",
    ] {
        let event = get(&gateway, query).only_event().await;
        assert_eq!(code_of(&event), "SCOPE_INVALID", "{query}");
    }
    assert_eq!((authorizer.asked(), script.asked()), (0, 0));
    assert!(
        !recorder.has(&Observation::StreamOpened),
        "such a stream was never entered"
    );
}

#[tokio::test(start_paused = true)]
async fn parameters_of_the_hosts_own_are_tolerated() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream).build().unwrap();
    let mut connection = get(&gateway, &format!("{QUERY}&tab=7&tab=8"));
    let (types, _session) = tokio::join!(connection.types(2), async {
        script.next_open().await.accept_with([], "1")
    });
    assert_eq!(types, ["reset", "synced"]);
}

#[tokio::test(start_paused = true)]
async fn a_projection_that_is_not_granted_is_forbidden() {
    let (upstream, script) = ScriptedUpstream::new();
    let gateway = builder(&upstream).build().unwrap();
    for projection in ["krm-raw%2Fv1", "no-such"] {
        let event = get(&gateway, &format!("{QUERY}&projection={projection}"))
            .only_event()
            .await;
        assert_eq!(code_of(&event), "FORBIDDEN");
    }
    assert_eq!(script.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_grants_what_is_not_defined_is_the_hosts_mistake() {
    let (upstream, script) = ScriptedUpstream::new();
    let reports = Arc::new(Reports::default());
    let gateway = builder(&upstream)
        .projection_policy(Seam::new(|_| Some(Ok(ProjectionName::from("ours/v1")))))
        .diagnostics(reports.clone())
        .build()
        .unwrap();
    let event = get(&gateway, QUERY).only_event().await;
    assert_eq!(code_of(&event), "INTERNAL");
    assert!(event.contains("\"terminal\":true") && !event.contains("ours/v1"));
    let reports = reports.all();
    assert!(
        reports[0].contains("ours/v1") && reports[0].contains("add it to the builder's projections"),
        "{reports:?}"
    );
    assert_eq!(script.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_authorizers_denial_is_told_in_its_words_and_counted() {
    let (upstream, script) = ScriptedUpstream::new();
    for (error, outcome, observed) in [
        (
            StreamError::forbidden("not yours"),
            AuthorizationOutcome::Denied,
            Observation::TerminalError {
                code: ErrorCode::Forbidden,
            },
        ),
        (
            StreamError::unavailable("cannot be checked", None),
            AuthorizationOutcome::Failed,
            Observation::RetryableError {
                code: ErrorCode::UpstreamUnavailable,
            },
        ),
    ] {
        let recorder = Arc::new(Recorder::default());
        let (code, message) = (error.code(), error.message().to_owned());
        let gateway = builder(&upstream)
            .authorizer(Seam::new(move |_| Some(Err(error.clone()))))
            .observer(recorder.clone())
            .build()
            .unwrap();
        let event = get(&gateway, QUERY).only_event().await;
        assert_eq!(code_of(&event), code.as_str());
        assert_eq!(text_of(&event, "message").unwrap(), message);
        let is_checked = |seen: &Observation| matches!(seen, Observation::AuthorizationChecked { outcome: checked, .. } if *checked == outcome);
        assert_eq!(recorder.count(is_checked), 1);
        assert!(recorder.has(&observed));
        assert!(
            recorder.has(&Observation::StreamOpened),
            "the authorizer's refusals count"
        );
        assert_eq!(recorder.still_open(), [0, 0, 0]);
    }
    assert_eq!(script.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_caller_without_an_upstream_is_refused_in_the_hosts_words() {
    let (upstream, script) = ScriptedUpstream::new();
    let gateway = builder(&upstream)
        .client_for(Seam::new(|_| {
            Some(Err(StreamError::unauthenticated("sign in to the cluster first")))
        }))
        .build()
        .unwrap();
    let event = get(&gateway, QUERY).only_event().await;
    assert_eq!(code_of(&event), "UNAUTHENTICATED");
    assert_eq!(
        text_of(&event, "message").unwrap(),
        "sign in to the cluster first"
    );
    assert_eq!(script.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn each_refusal_of_the_api_server_has_its_code() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream).build().unwrap();
    let kinds = [
        (UpstreamErrorKind::Unauthenticated, "UNAUTHENTICATED"),
        (UpstreamErrorKind::NotFound, "SCOPE_INVALID"),
        (UpstreamErrorKind::Rejected, "INTERNAL"),
        (UpstreamErrorKind::Unreadable, "INTERNAL"),
        (UpstreamErrorKind::Unavailable, "UPSTREAM_UNAVAILABLE"),
    ];
    for (kind, code) in kinds {
        let connection = get(&gateway, QUERY);
        let error = UpstreamError::new(kind).with_cause("canary: dial 10.1.2.3");
        let (event, ()) = tokio::join!(connection.only_event(), async {
            script.next_open().await.refuse(error);
        });
        assert_eq!(code_of(&event), code);
        assert!(!event.contains("canary"));
    }
}
