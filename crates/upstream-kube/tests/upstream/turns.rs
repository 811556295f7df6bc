//! Checks that wait for their turn, as a gateway's streams see it.

use std::sync::{Arc, OnceLock};

use futures_util::FutureExt as _;
use krm_stream_protocol::{Authorizer as _, Check, Principal, StreamError, Subject};
use krm_stream_upstream_kube::SubjectAccessReviewAuthorizer;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::checks::{ALLOWED, ada, idle, settle, slow, users};
use crate::support::{SECOND, config_maps};

/// A check through the seam that a gateway uses, and when it was said to be sent.
async fn begin_through_seam(
    authorizer: &SubjectAccessReviewAuthorizer,
    user: &str,
    trigger: Option<Instant>,
) -> (JoinHandle<Result<(), StreamError>>, Arc<OnceLock<Instant>>) {
    let (authorizer, sent) = (authorizer.clone(), Arc::new(OnceLock::new()));
    let principal = Principal::new(Subject::new(user).unwrap());
    let told = Arc::clone(&sent);
    let check = tokio::spawn(async move {
        let mark = |at: Option<std::time::Instant>| {
            told.get_or_init(|| at.map_or_else(Instant::now, Instant::from_std));
        };
        let scope = config_maps();
        let check = Check::new(&principal, &scope)
            .triggered_at(trigger.map(Instant::into_std))
            .on_sent(&mark);
        authorizer.authorize_check(check).await
    });
    settle().await;
    (check, sent)
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_check_is_told_when_it_is_sent_and_not_while_it_waits_for_its_turn() {
    let (authorizer, record) = slow(|_| ALLOWED);
    let begun = Instant::now();
    let mut checks = Vec::new();
    for number in 0..32 {
        let (check, sent) = begin_through_seam(&authorizer, &format!("{number}"), None).await;
        assert_eq!(sent.get(), Some(&begun));
        checks.push(check);
    }
    // The first in the queue, and one that joins it there.
    let (first, sent_first) = begin_through_seam(&authorizer, "ada", None).await;
    let (second, sent_second) = begin_through_seam(&authorizer, "ada", Some(Instant::now())).await;
    assert_eq!((sent_first.get(), sent_second.get()), (None, None));
    tokio::time::sleep(SECOND * 5 / 2).await;
    assert_eq!(
        sent_first.get(),
        Some(&(begun + SECOND * 2)),
        "two verbs of a second each"
    );
    assert_eq!(sent_second.get(), sent_first.get());
    // One that joins a check that was sent before hears so at once; one whose reason is younger asks anew.
    let (third, sent_third) = begin_through_seam(&authorizer, "ada", None).await;
    assert_eq!(sent_third.get(), sent_first.get());
    assert_eq!(record.requests().len(), 65);
    let (fourth, _) = begin_through_seam(&authorizer, "ada", Some(Instant::now())).await;
    assert_eq!(record.requests().len(), 66);
    checks.extend([first, second, third, fourth]);
    for check in checks {
        check.await.unwrap().unwrap();
    }
    assert_eq!(record.requests().len(), 68);
    assert!(idle(&authorizer));
}

#[tokio::test(start_paused = true)]
async fn streams_that_are_not_polled_keep_no_turn_from_others() {
    let (authorizer, record) = slow(|_| ALLOWED);
    let scope = config_maps();
    let stalled: Vec<_> = (0..40)
        .map(|number| Principal::new(Subject::new(format!("{number}")).unwrap()))
        .collect();
    let mut waiting: Vec<_> = stalled
        .iter()
        .map(|principal| authorizer.authorize(principal, &scope))
        .collect();
    // Each is looked at once, and then no more.
    for check in &mut waiting {
        assert!(check.now_or_never().is_none());
    }
    let live = timeout(SECOND * 10, authorizer.authorize(&Principal::new(ada()), &scope)).await;
    live.expect("it gets its turn").unwrap();
    assert!(users(&record, "watch").len() >= 32);
    drop(waiting);
    settle().await;
    assert!(idle(&authorizer));
}
