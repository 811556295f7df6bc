//! Checks in flight, and decisions that are kept.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use krm_stream_protocol::{Authorizer as _, ErrorCode, Principal, Scope, StreamError, Subject, Target};
use krm_stream_upstream_kube::SubjectAccessReviewAuthorizer;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::access_review::{Kept, decided, verb};
use crate::support::scripted::{Answer, Received, Record, upstream};
use crate::support::{SECOND, config_maps};

pub(crate) const ALLOWED: &str = r#"{"allowed":true}"#;
const DENIED: &str = r#"{"allowed":false,"reason":"no"}"#;

/// Each request is answered a second later.
pub(crate) fn slow(
    answer: impl Fn(&Received) -> &'static str + Send + Sync + 'static,
) -> (SubjectAccessReviewAuthorizer, Record) {
    let (upstream, record) = upstream(move |request| decided(answer(request)).delayed(SECOND));
    (
        SubjectAccessReviewAuthorizer::new(Target::default(), upstream),
        record,
    )
}

pub(crate) fn ada() -> Subject {
    Subject::new("ada").unwrap()
}

/// Begins a check and lets it come as far as it can without time passing.
async fn begin(
    authorizer: &SubjectAccessReviewAuthorizer,
    subject: Subject,
    scope: Scope,
) -> JoinHandle<Result<(), StreamError>> {
    let authorizer = authorizer.clone();
    let check = tokio::spawn(async move { authorizer.authorize(&Principal::new(subject), &scope).await });
    settle().await;
    check
}

pub(crate) async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

pub(crate) fn users(record: &Record, of_verb: &str) -> Vec<String> {
    let requests = record.requests();
    let asked = requests.iter().filter(|request| verb(request) == of_verb);
    asked
        .map(|request| {
            let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
            body["spec"]["user"].as_str().unwrap().to_owned()
        })
        .collect()
}

pub(crate) fn idle(authorizer: &SubjectAccessReviewAuthorizer) -> bool {
    format!("{authorizer:?}").contains("in_flight: 0")
}

#[tokio::test(start_paused = true)]
async fn equal_checks_in_flight_are_asked_once_and_answered_all() {
    for answer in [ALLOWED, DENIED] {
        let (authorizer, record) = slow(move |_| answer);
        let kept = Arc::new(Kept::default());
        let authorizer = authorizer.with_diagnostics(kept.clone());
        let mut checks = Vec::new();
        for spelling in 0..50 {
            // Groups are a set, and no review mentions a selector.
            let (first, second) = if spelling % 2 == 0 { ("a", "b") } else { ("b", "a") };
            let subject = ada().uid("7").group(first).group(second).extra("k", "v");
            let scope = Scope::builder("v1", "configmaps")
                .namespace("rec")
                .label_selector(format!("a={spelling}"))
                .build()
                .unwrap();
            checks.push(begin(&authorizer, subject, scope).await);
        }
        for check in checks {
            let outcome = check.await.unwrap();
            assert_eq!(outcome.is_ok(), answer == ALLOWED);
        }
        let allowed = answer == ALLOWED;
        assert_eq!(record.requests().len(), if allowed { 2 } else { 1 });
        assert_eq!(kept.0.lock().unwrap().len(), usize::from(!allowed));
        assert!(idle(&authorizer));
        drop(begin(&authorizer, ada(), config_maps()).await);
        assert!(
            record.requests().len() > if allowed { 2 } else { 1 },
            "nothing was kept"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn checks_that_differ_in_any_part_are_asked_apart() {
    let (authorizer, record) = slow(|_| ALLOWED);
    let (other_cluster, of_other) = upstream(|_| decided(ALLOWED).delayed(SECOND));
    let authorizer = authorizer.with_target(Target::new("other"), other_cluster);
    let scope = || Scope::builder("v1", "configmaps");
    let in_rec = scope().namespace("rec").build().unwrap();
    let subjects = [
        ada(),
        Subject::new("bob").unwrap(),
        ada().uid("7"),
        ada().uid("8"),
        ada().group("a"),
        ada().group("a").group("b"),
        ada().group("system:authenticated"),
        ada().extra("k", "v"),
        ada().extra("k", "w"),
        ada().extra("l", "v"),
    ];
    let scopes = [
        scope().build().unwrap(),
        scope().namespace("a").build().unwrap(),
        scope().namespace("rec").name("n").build().unwrap(),
        Scope::builder("v1", "secrets").namespace("rec").build().unwrap(),
        Scope::builder("v2", "configmaps")
            .namespace("rec")
            .build()
            .unwrap(),
        scope().group("g.io").namespace("rec").build().unwrap(),
    ];
    let (by_subject, by_scope) = (subjects.len(), scopes.len());
    let mut checks = Vec::new();
    for subject in subjects {
        checks.push(begin(&authorizer, subject, in_rec.clone()).await);
    }
    for scope in scopes {
        checks.push(begin(&authorizer, ada(), scope).await);
    }
    assert_eq!(record.requests().len(), by_subject + by_scope);
    let elsewhere = scope().target("other").namespace("rec").build().unwrap();
    checks.push(begin(&authorizer, ada(), elsewhere).await);
    assert_eq!(of_other.requests().len(), 1);
    for check in checks {
        check.await.unwrap().unwrap();
    }
    assert!(idle(&authorizer));
}

#[tokio::test(start_paused = true)]
async fn who_leaves_does_not_cancel_the_check_of_the_others_and_the_last_to_leave_does() {
    let (authorizer, record) = slow(|_| ALLOWED);
    let principal = Principal::new(ada());
    let scope = config_maps();
    // The first begins it and leaves before either answer; the second stays.
    let first = timeout(SECOND / 2, authorizer.authorize(&principal, &scope));
    let second = begin(&authorizer, ada(), config_maps());
    let (first, second) = tokio::join!(first, second);
    first.unwrap_err();
    second.await.unwrap().unwrap();
    assert_eq!(record.requests().len(), 2);

    let left = timeout(SECOND / 2, authorizer.authorize(&principal, &scope)).await;
    left.unwrap_err();
    assert!(idle(&authorizer), "{authorizer:?}");
    tokio::time::sleep(SECOND * 5).await;
    assert_eq!(users(&record, "watch").len(), 1, "it was not asked on");
    // And it is no ghost to join.
    authorizer.authorize(&principal, &scope).await.unwrap();
    assert_eq!(users(&record, "watch").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn at_most_32_checks_are_in_flight_per_target_in_the_order_they_were_wanted() {
    let (authorizer, record) = slow(|_| ALLOWED);
    let (other_cluster, of_other) = upstream(|_| decided(ALLOWED).delayed(SECOND));
    let authorizer = authorizer.with_target(Target::new("other"), other_cluster);
    let name = |number: usize| format!("user-{number:03}");
    let mut checks = Vec::new();
    for number in 0..100 {
        checks.push(begin(&authorizer, Subject::new(name(number)).unwrap(), config_maps()).await);
    }
    assert_eq!(users(&record, "list"), (0..32).map(name).collect::<Vec<_>>());
    let elsewhere = Scope::builder("v1", "configmaps")
        .target("other")
        .build()
        .unwrap();
    let other = begin(&authorizer, ada(), elsewhere).await;
    assert_eq!(
        of_other.requests().len(),
        1,
        "another target is not held up by this one"
    );
    // One who waits for its turn may leave: the turn is the next one's.
    checks.remove(32).abort();
    settle().await;
    other.await.unwrap().unwrap();
    for check in checks {
        check.await.unwrap().unwrap();
    }
    let expected: Vec<_> = (0..100).filter(|number| *number != 32).map(name).collect();
    assert_eq!(users(&record, "list"), expected);
    assert!(idle(&authorizer));
}

#[tokio::test(start_paused = true)]
async fn a_check_with_a_trigger_joins_only_what_was_sent_after_it() {
    let (authorizer, record) = slow(|_| ALLOWED);
    let old = begin(&authorizer, ada(), config_maps()).await;
    tokio::time::advance(SECOND / 4).await;
    let trigger = Instant::now();
    let since = |authorizer: &SubjectAccessReviewAuthorizer| {
        let authorizer = authorizer.clone();
        tokio::spawn(async move {
            authorizer
                .authorize_since(trigger, &Principal::new(ada()), &config_maps())
                .await
        })
    };
    let first = since(&authorizer);
    settle().await;
    assert_eq!(
        record.requests().len(),
        2,
        "the one that was sent before was not joined"
    );
    tokio::time::advance(SECOND / 4).await;
    let (second, any) = (since(&authorizer), begin(&authorizer, ada(), config_maps()).await);
    settle().await;
    assert_eq!(record.requests().len(), 2, "the newer one was joined");
    for check in [old, first, second, any] {
        check.await.unwrap().unwrap();
    }
    assert_eq!(record.requests().len(), 4);
    assert!(idle(&authorizer));
}

#[tokio::test(start_paused = true)]
async fn a_check_that_waits_for_its_turn_may_be_joined_whatever_the_trigger() {
    let (authorizer, record) = slow(|_| ALLOWED);
    let mut checks = Vec::new();
    for number in 0..32 {
        checks.push(
            begin(
                &authorizer,
                Subject::new(format!("{number}")).unwrap(),
                config_maps(),
            )
            .await,
        );
    }
    checks.push(begin(&authorizer, ada(), config_maps()).await);
    tokio::time::advance(SECOND / 4).await;
    let triggered = authorizer.clone();
    checks.push(tokio::spawn(async move {
        triggered
            .authorize_since(Instant::now(), &Principal::new(ada()), &config_maps())
            .await
    }));
    for check in checks {
        check.await.unwrap().unwrap();
    }
    assert_eq!(record.requests().len(), 66, "33 checks of two verbs");
}

/// An authorizer whose decisions are kept for ten seconds, how often it was asked, and what it is answered.
fn caching(
    answers: impl Fn(usize) -> Answer + Send + Sync + 'static,
    most: usize,
) -> (SubjectAccessReviewAuthorizer, Record) {
    let asked = AtomicUsize::new(0);
    let (upstream, record) = upstream(move |_| answers(asked.fetch_add(1, Ordering::SeqCst)));
    let authorizer = SubjectAccessReviewAuthorizer::new(Target::default(), upstream)
        .with_decision_cache(SECOND * 10, NonZeroUsize::new(most).unwrap());
    (authorizer, record)
}

async fn check(authorizer: &SubjectAccessReviewAuthorizer, subject: Subject) -> Result<(), ErrorCode> {
    let outcome = authorizer
        .authorize(&Principal::new(subject), &config_maps())
        .await;
    outcome.map_err(|error| error.code())
}

#[tokio::test(start_paused = true)]
async fn decisions_are_kept_for_their_lifetime_counted_from_when_they_were_asked() {
    for (answer, outcome, per_check) in [
        (ALLOWED, Ok(()), 2),
        (DENIED, Err(ErrorCode::Forbidden), 1),
        (r#"{"allowed":true,"denied":true}"#, Err(ErrorCode::Forbidden), 1),
    ] {
        let (authorizer, record) = caching(move |_| decided(answer).delayed(SECOND), 100);
        let begun = Instant::now();
        assert_eq!(check(&authorizer, ada()).await, outcome);
        tokio::time::sleep_until(begun + SECOND * 10 - Duration::from_millis(1)).await;
        assert_eq!(check(&authorizer, ada()).await, outcome);
        assert_eq!(record.requests().len(), per_check);
        tokio::time::sleep_until(begun + SECOND * 10).await;
        assert_eq!(check(&authorizer, ada()).await, outcome);
        assert_eq!(record.requests().len(), per_check * 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_decision_is_used_for_the_same_subject_and_request_alone() {
    let (authorizer, record) = caching(|_| decided(ALLOWED), 100);
    check(&authorizer, ada()).await.unwrap();
    for other in [
        ada().uid("1"),
        ada().group("g"),
        ada().extra("k", "v"),
        Subject::new("bob").unwrap(),
    ] {
        let before = record.requests().len();
        check(&authorizer, other).await.unwrap();
        assert_eq!(record.requests().len(), before + 2);
    }
    let before = record.requests().len();
    let elsewhere = Scope::builder("v1", "configmaps")
        .namespace("other")
        .build()
        .unwrap();
    authorizer
        .authorize(&Principal::new(ada()), &elsewhere)
        .await
        .unwrap();
    assert_eq!(record.requests().len(), before + 2);
    check(&authorizer, ada()).await.unwrap();
    assert_eq!(record.requests().len(), before + 2);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_never_kept() {
    for failure in [
        Answer::new(500, ""),
        Answer::new(429, ""),
        Answer::new(403, ""),
        Answer::new(401, ""),
        Answer::new(410, ""),
        Answer::ok("<html>"),
        decided("{}"),
        decided(r#"{"allowed":false,"evaluationError":"webhook failed"}"#),
    ] {
        let shown = format!("{failure:?}");
        let (authorizer, _) = caching(
            move |asked| {
                if asked == 0 {
                    failure.clone()
                } else {
                    decided(ALLOWED)
                }
            },
            100,
        );
        check(&authorizer, ada()).await.unwrap_err();
        check(&authorizer, ada()).await.expect(&shown);
    }
}

#[tokio::test(start_paused = true)]
async fn the_number_of_kept_decisions_is_bounded() {
    let (authorizer, record) = caching(|_| decided(ALLOWED), 10);
    for number in 0..1000 {
        check(&authorizer, Subject::new(format!("{number}")).unwrap())
            .await
            .unwrap();
    }
    assert!(
        format!("{authorizer:?}").contains("decisions: 10"),
        "{authorizer:?}"
    );
    let before = record.requests().len();
    check(&authorizer, Subject::new("999").unwrap()).await.unwrap();
    assert_eq!(record.requests().len(), before);
    check(&authorizer, Subject::new("0").unwrap()).await.unwrap();
    assert_eq!(record.requests().len(), before + 2);
}

#[tokio::test(start_paused = true)]
async fn a_trigger_forgets_an_older_decision_and_no_older_check_brings_it_back() {
    // Allowed before the trigger; denied after it.
    let (authorizer, record) = caching(
        |asked| {
            if asked < 4 {
                decided(ALLOWED).delayed(SECOND)
            } else {
                decided(DENIED)
            }
        },
        100,
    );
    check(&authorizer, ada()).await.unwrap();
    assert_eq!(record.requests().len(), 2);
    tokio::time::sleep(SECOND * 10).await;
    // In flight at the trigger, and answered after the newer one.
    let old = begin(&authorizer, ada(), config_maps()).await;
    tokio::time::sleep(SECOND * 3 / 2).await;
    let principal = Principal::new(ada());
    let scope = config_maps();
    let denied = authorizer
        .authorize_since(Instant::now(), &principal, &scope)
        .await;
    assert_eq!(denied.unwrap_err().code(), ErrorCode::Forbidden);
    old.await.unwrap().unwrap();
    assert_eq!(check(&authorizer, ada()).await, Err(ErrorCode::Forbidden));

    // A decision from before the trigger is not used, and not kept either when the new check fails.
    let (authorizer, _) = caching(
        |asked| match asked {
            0 | 1 => decided(ALLOWED),
            2 => Answer::new(500, ""),
            _ => decided(DENIED),
        },
        100,
    );
    check(&authorizer, ada()).await.unwrap();
    tokio::time::sleep(SECOND).await;
    let unknown = authorizer
        .authorize_since(Instant::now(), &principal, &scope)
        .await;
    assert_eq!(unknown.unwrap_err().code(), ErrorCode::UpstreamUnavailable);
    assert_eq!(check(&authorizer, ada()).await, Err(ErrorCode::Forbidden));
}

#[tokio::test(start_paused = true)]
async fn a_lifetime_of_zero_keeps_nothing() {
    let (upstream, record) = upstream(|_| decided(ALLOWED));
    let authorizer = SubjectAccessReviewAuthorizer::new(Target::default(), upstream)
        .with_decision_cache(Duration::ZERO, NonZeroUsize::MIN);
    for _ in 0..3 {
        check(&authorizer, ada()).await.unwrap();
    }
    assert_eq!(record.requests().len(), 6);
}
