//! Reviews: what is asked, and what each answer means for a caller.

use std::sync::{Arc, Mutex};

use krm_stream_protocol::{
    Authorizer as _, Diagnostic, Diagnostics, ErrorCode, Principal, Scope, StreamError, Subject, Target,
};
use krm_stream_upstream_kube::SubjectAccessReviewAuthorizer;

use crate::support::scripted::{Answer, Received, Record, Step, upstream};
use crate::support::{SECOND, config_maps, status};

/// Remembers what was reported.
#[derive(Default)]
pub(crate) struct Kept(pub(crate) Mutex<Vec<String>>);

impl Diagnostics for Kept {
    fn report(&self, diagnostic: &Diagnostic<'_>) {
        self.0
            .lock()
            .unwrap()
            .push(format!("{}: {}", diagnostic.operation, diagnostic.cause));
    }
}

fn principal() -> Principal {
    Principal::new(
        Subject::new("ada")
            .unwrap()
            .uid("7")
            .group("dev")
            .extra("scopes", "x"),
    )
}

pub(crate) fn verb(request: &Received) -> String {
    let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
    body["spec"]["resourceAttributes"]["verb"]
        .as_str()
        .unwrap()
        .to_owned()
}

async fn check(
    answer: impl Fn(&Received) -> Answer + Send + Sync + 'static,
    scope: &Scope,
) -> (Result<(), StreamError>, Record, Vec<String>) {
    let (upstream, record) = upstream(answer);
    let kept = Arc::new(Kept::default());
    let authorizer =
        SubjectAccessReviewAuthorizer::new(Target::default(), upstream).with_diagnostics(kept.clone());
    let decision = authorizer.authorize(&principal(), scope).await;
    let reports = kept.0.lock().unwrap().clone();
    (decision, record, reports)
}

pub(crate) fn decided(text: &str) -> Answer {
    Answer::new(
        201,
        format!(r#"{{"kind":"SubjectAccessReview","status":{text}}}"#),
    )
}

#[tokio::test(start_paused = true)]
async fn list_then_watch_are_asked_with_the_complete_subject_and_both_must_be_allowed() {
    let scope = Scope::builder("v1", "deployments")
        .group("apps")
        .namespace("team-a")
        .name("web")
        .label_selector("a=b")
        .build()
        .unwrap();
    let (decision, record, reports) = check(|_| decided(r#"{"allowed":true}"#), &scope).await;
    assert_eq!(decision, Ok(()));
    assert!(reports.is_empty());
    let requests = record.requests();
    assert_eq!(requests.iter().map(verb).collect::<Vec<_>>(), ["list", "watch"]);
    for request in &requests {
        assert_eq!(request.method, http::Method::POST);
        assert_eq!(request.path, "/apis/authorization.k8s.io/v1/subjectaccessreviews");
        assert_eq!(request.headers["content-type"], "application/json");
        let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
        let expected = serde_json::json!({
            "resourceAttributes": {"namespace": "team-a", "verb": verb(request), "group": "apps",
                "version": "v1", "resource": "deployments", "name": "web"},
            "user": "ada", "groups": ["dev", "system:authenticated"], "uid": "7", "extra": {"scopes": ["x"]},
        });
        assert_eq!(body["spec"], expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_denial_of_either_verb_is_forbidden_and_its_reason_goes_to_diagnostics_alone() {
    for denied in ["list", "watch"] {
        let (decision, record, reports) = check(
            move |request| {
                if verb(request) == denied {
                    decided(r#"{"allowed":false,"reason":"RBAC: no role of canary"}"#)
                } else {
                    decided(r#"{"allowed":true}"#)
                }
            },
            &config_maps(),
        )
        .await;
        let error = decision.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Forbidden);
        assert!(!error.message().contains("canary"));
        assert_eq!(record.requests().len(), if denied == "list" { 1 } else { 2 });
        assert_eq!(
            reports,
            [format!(
                "subject access review: the review of {denied} was denied: RBAC: no role of canary"
            )]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_does_not_allow_refuses_with_its_own_code() {
    use ErrorCode::{Forbidden, Internal, UpstreamUnavailable};
    for (answer, code) in [
        (decided(r#"{"allowed":true,"denied":true}"#), Forbidden),
        (decided("{}"), Forbidden),
        (decided(r#"{"allowed":"true"}"#), Forbidden),
        (Answer::ok(""), Forbidden),
        (Answer::ok("<html>"), Forbidden),
        (Answer::new(403, status(403, "Forbidden", "canary")), Internal),
        (Answer::new(401, ""), Internal),
        (Answer::new(404, ""), Internal),
        (Answer::new(301, ""), Internal),
        (Answer::new(500, ""), UpstreamUnavailable),
        (
            Answer::new(429, "").header("retry-after", "7"),
            UpstreamUnavailable,
        ),
        (Answer::hanging(), UpstreamUnavailable),
        (Answer::ok("{").then(Step::Hang), UpstreamUnavailable),
        (Answer::ok("{").then(Step::Break), UpstreamUnavailable),
        (Answer::ok("x".repeat(1024 * 1024)), UpstreamUnavailable),
    ] {
        let shown = format!("{answer:?}");
        let (decision, _, reports) = check(move |_| answer.clone(), &config_maps()).await;
        let error = decision.unwrap_err();
        assert_eq!(error.code(), code, "{}", &shown[..shown.len().min(200)]);
        assert!(!error.message().contains("canary"));
        assert_eq!(reports.len(), 1);
        if shown.contains("retry-after") {
            assert_eq!(error.retry_after(), Some(SECOND * 7));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_cluster_never_decides_about_another() {
    let (allowing, record) = upstream(|_| decided(r#"{"allowed":true}"#));
    let (denying, _) = upstream(|_| decided(r#"{"allowed":false}"#));
    let authorizer = SubjectAccessReviewAuthorizer::new(Target::new("one"), allowing)
        .with_target(Target::new("two"), denying);
    let scope = |target: &str| {
        Scope::builder("v1", "configmaps")
            .target(Target::new(target))
            .build()
            .unwrap()
    };
    let principal = principal();
    assert_eq!(authorizer.authorize(&principal, &scope("one")).await, Ok(()));
    for target in ["two", "three"] {
        let error = authorizer
            .authorize(&principal, &scope(target))
            .await
            .unwrap_err();
        assert_eq!(error.code(), ErrorCode::Forbidden);
    }
    assert_eq!(record.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_review_is_asked_as_the_gateway_even_through_an_upstream_that_acts_as_a_caller() {
    let (upstream, record) = upstream(|_| decided(r#"{"allowed":true}"#));
    let as_ada = upstream.acting_as(principal().subject()).unwrap();
    let authorizer = SubjectAccessReviewAuthorizer::new(Target::default(), as_ada);
    authorizer.authorize(&principal(), &config_maps()).await.unwrap();
    assert!(
        record
            .requests()
            .iter()
            .all(|request| !request.headers.contains_key("impersonate-user"))
    );
}
