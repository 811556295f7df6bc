//! `Gateway::recheck`: nothing passes before a check that was asked after it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use krm_stream_http::{Gateway, GatewayBuilder};
use krm_stream_protocol::{
    Authorizer, BoxFuture, Check, Principal, ProjectionName, Scope, StreamError, WatchEvent,
};
use tokio::time::Instant;

use super::support::{
    AskedAuthorizer, Connection, MOMENT, QUERY, Questions, Recorder, Script, ScriptedSession,
    ScriptedUpstream, Seam, builder, code_of, config_map, get, get_as, is_opening, nothing_comes,
};

/// A gateway whose checks the test answers.
fn asked() -> (GatewayBuilder, Questions, Script) {
    let (upstream, script) = ScriptedUpstream::new();
    let (authorizer, questions) = AskedAuthorizer::new();
    (builder(&upstream).authorizer(authorizer), questions, script)
}

/// Opens a stream of one object.
async fn live(
    gateway: &Gateway,
    questions: &mut Questions,
    script: &mut Script,
) -> (Connection, ScriptedSession) {
    let mut connection = get(gateway, QUERY);
    let (types, session) = tokio::join!(connection.types(3), async {
        questions.allow_next().await;
        script
            .next_open()
            .await
            .accept_with([config_map("a", 1, "v")], "1")
    });
    assert_eq!(types, ["reset", "added", "synced"]);
    nothing_comes(&mut connection, MOMENT).await;
    (connection, session)
}

#[tokio::test(start_paused = true)]
async fn objects_wait_for_the_answer_and_heartbeats_do_not() {
    let (builder, mut questions, mut script) = asked();
    let gateway = builder
        .heartbeat_interval(Duration::from_secs(2))
        .build()
        .unwrap();
    let (mut connection, session) = live(&gateway, &mut questions, &mut script).await;
    assert_eq!(gateway.recheck(|_, _| true), 1);
    let trigger = Instant::now();
    session.send(WatchEvent::Modified(config_map("a", 2, "w")));
    let before = connection.raw().len();
    nothing_comes(&mut connection, Duration::from_secs(9)).await;
    let came = String::from_utf8_lossy(&connection.raw()[before..]).into_owned();
    assert_eq!(came, ": heartbeat\n\n".repeat(4));
    let question = questions.next().await;
    assert_eq!(question.trigger, Some(trigger));
    question.answer(Ok(()));
    assert_eq!(connection.types(1).await, ["modified"]);
    assert!(questions.try_next().is_none(), "it was asked once");
}

#[tokio::test(start_paused = true)]
async fn a_denial_ends_the_stream_before_anything_that_came_meanwhile() {
    let (builder, mut questions, mut script) = asked();
    let gateway = builder.build().unwrap();
    let (mut connection, session) = live(&gateway, &mut questions, &mut script).await;
    session.send(WatchEvent::Modified(config_map("canary", 2, "w")));
    gateway.recheck(|_, _| true);
    nothing_comes(&mut connection, MOMENT).await;
    questions.next().await.deny();
    assert_eq!(connection.types(1).await, ["FORBIDDEN"]);
    assert_eq!(connection.next().await, None);
    assert!(!String::from_utf8_lossy(connection.raw()).contains("canary"));
}

#[tokio::test(start_paused = true)]
async fn no_answer_ends_the_stream_at_the_timeout_counted_from_the_recheck() {
    let (builder, mut questions, mut script) = asked();
    let reauthorization_timeout = Duration::from_secs(7);
    let gateway = builder
        .reauthorization_timeout(reauthorization_timeout)
        .build()
        .unwrap();
    let (mut connection, _session) = live(&gateway, &mut questions, &mut script).await;
    gateway.recheck(|_, _| true);
    let trigger = Instant::now();
    // That it waits for its turn does not matter here.
    let event = connection.events(1).await.remove(0);
    assert_eq!(trigger.elapsed().as_secs(), 7);
    assert_eq!(code_of(&event), "UPSTREAM_UNAVAILABLE");
    assert!(event.contains("\"terminal\":false,\"retryAfterMs\":"), "{event}");
    assert_eq!(connection.next().await, None);
    assert!(questions.next().await.is_abandoned());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_still_opening_is_checked_again_before_its_first_event() {
    for is_allowed in [true, false] {
        let (builder, mut questions, mut script) = asked();
        let gateway = builder.build().unwrap();
        let mut connection = get(&gateway, QUERY);
        let opening = is_opening(&mut connection, &mut questions, &mut script).await;
        assert_eq!(gateway.recheck(|_, _| true), 1);
        let trigger = Instant::now();
        let _session = opening.accept_with([config_map("canary", 1, "v")], "1");
        nothing_comes(&mut connection, Duration::from_secs(1)).await;
        assert_eq!(connection.raw(), b"", "not even reset");
        let question = questions.next().await;
        assert_eq!(question.trigger, Some(trigger));
        if is_allowed {
            question.answer(Ok(()));
            assert_eq!(connection.types(3).await, ["reset", "added", "synced"]);
        } else {
            question.deny();
            assert_eq!(code_of(&connection.only_event().await), "FORBIDDEN");
            tokio::time::sleep(MOMENT).await;
            assert_eq!(gateway.feeds().count(), 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_allowed_that_was_asked_for_before_the_recheck_does_not_count() {
    let (builder, mut questions, mut script) = asked();
    let gateway = builder.build().unwrap();
    let mut connection = get(&gateway, QUERY);
    nothing_comes(&mut connection, MOMENT).await;
    let mut first = questions.next().await;
    first.send();
    nothing_comes(&mut connection, MOMENT).await;
    gateway.recheck(|_, _| true);
    let trigger = Instant::now();
    nothing_comes(&mut connection, MOMENT).await;
    first.answer(Ok(()));
    nothing_comes(&mut connection, MOMENT).await;
    assert_eq!(script.asked(), 0, "nothing was opened on its strength");
    let second = questions.next().await;
    assert_eq!(second.trigger, Some(trigger));
    second.deny();
    assert_eq!(code_of(&connection.only_event().await), "FORBIDDEN");
    assert!(script.try_next_open().is_none());
}

/// Answers at once, without a word of when it asked; has its stream rechecked within the first question.
struct Silent {
    gateway: Arc<OnceLock<Gateway>>,
    asked: AtomicUsize,
}

impl Authorizer for Silent {
    fn authorize<'a>(
        &'a self,
        principal: &'a Principal,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        self.authorize_check(Check::new(principal, scope))
    }

    fn authorize_check<'a>(&'a self, _: Check<'a>) -> BoxFuture<'a, Result<(), StreamError>> {
        let answer = match self.asked.fetch_add(1, Ordering::SeqCst) {
            0 => {
                assert_eq!(self.gateway.get().unwrap().recheck(|_, _| true), 1);
                Ok(())
            }
            _ => Err(StreamError::forbidden("no longer yours")),
        };
        Box::pin(std::future::ready(answer))
    }
}

#[tokio::test]
async fn an_allowed_of_an_authorizer_that_does_not_say_when_it_asked_is_as_old_as_the_question() {
    let (upstream, script) = ScriptedUpstream::new();
    let known = Arc::<OnceLock<Gateway>>::default();
    let authorizer = Silent {
        gateway: Arc::clone(&known),
        asked: AtomicUsize::new(0),
    };
    let gateway = builder(&upstream).authorizer(authorizer).build().unwrap();
    known.set(gateway.clone()).unwrap();
    assert_eq!(code_of(&get(&gateway, QUERY).only_event().await), "FORBIDDEN");
    assert_eq!(script.asked(), 0, "nothing was opened on its strength");
}

#[tokio::test(start_paused = true)]
async fn a_check_that_is_sent_after_the_recheck_counts() {
    let (builder, mut questions, mut script) = asked();
    let gateway = builder.build().unwrap();
    let mut connection = get(&gateway, QUERY);
    nothing_comes(&mut connection, MOMENT).await;
    gateway.recheck(|_, _| true);
    nothing_comes(&mut connection, MOMENT).await;
    // It waited for its turn until now.
    questions.allow_next().await;
    let (types, _session) = tokio::join!(connection.types(2), async {
        script.next_open().await.accept_with([], "1")
    });
    assert_eq!(types, ["reset", "synced"]);
    assert!(questions.try_next().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_second_recheck_replaces_the_check_of_the_first_and_does_not_put_off_its_end() {
    let (builder, mut questions, mut script) = asked();
    let gateway = builder.build().unwrap();
    let (mut connection, session) = live(&gateway, &mut questions, &mut script).await;
    session.send(WatchEvent::Modified(config_map("canary", 2, "w")));
    let begun = Instant::now();
    gateway.recheck(|_, _| true);
    nothing_comes(&mut connection, Duration::from_secs(6)).await;
    let older = questions.next().await;
    gateway.recheck(|_, _| true);
    nothing_comes(&mut connection, MOMENT).await;
    assert!(older.is_abandoned());
    // The newer is left unanswered: the first reason is the oldest that is open.
    let newer = questions.next().await;
    assert_eq!(code_of(&connection.only_event().await), "UPSTREAM_UNAVAILABLE");
    assert_eq!(begun.elapsed().as_secs(), 10);
    assert!(newer.is_abandoned());
}

#[tokio::test(start_paused = true)]
async fn only_the_streams_that_are_named_are_checked_and_ended() {
    let (builder, mut questions, mut script) = asked();
    let gateway = builder.build().unwrap();
    let mut connections = Vec::new();
    let mut sessions = Vec::new();
    for user in ["ada", "bob", "eve"] {
        let mut connection = get_as(&gateway, user, QUERY);
        let (_, session) = tokio::join!(connection.types(2), async {
            questions.allow_next().await;
            script.next_open().await.accept_with([], "1")
        });
        connections.push(connection);
        sessions.push(session);
    }
    assert_eq!(gateway.recheck(|_, scope| scope.resource() == "secrets"), 0);
    assert_eq!(
        gateway.recheck(|principal, _| principal.subject().user_name() == "bob"),
        1
    );
    for session in &sessions {
        session.send(WatchEvent::Added(config_map("b", 2, "v")));
    }
    nothing_comes(&mut connections[1], MOMENT).await;
    let question = questions.next().await;
    assert_eq!(question.user, "bob");
    question.deny();
    for (at, expected) in ["added", "FORBIDDEN", "added"].into_iter().enumerate() {
        assert_eq!(connections[at].types(1).await, [expected]);
    }
    assert!(questions.try_next().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_comes_after_a_recheck_joins_no_check_from_before() {
    let (builder, mut questions, _script) = asked();
    let gateway = builder.build().unwrap();
    gateway.recheck(|_, _| false);
    let trigger = Instant::now();
    tokio::time::sleep(MOMENT).await;
    let mut connection = get(&gateway, QUERY);
    nothing_comes(&mut connection, MOMENT).await;
    assert_eq!(questions.next().await.trigger, Some(trigger));
}

#[tokio::test(start_paused = true)]
async fn another_projection_or_none_ends_the_stream() {
    for (second, code, is_terminal) in [
        (Ok(ProjectionName::new("krm-spec/v1")), "INTERNAL", false),
        (Err(StreamError::forbidden("no view")), "FORBIDDEN", true),
        (Ok(ProjectionName::new("krm-full/v1")), "modified", false),
    ] {
        let (upstream, mut script) = ScriptedUpstream::new();
        let recorder = Arc::new(Recorder::default());
        let policy = Seam::new(move |asked| {
            Some(match asked {
                0 => Ok(ProjectionName::new("krm-full/v1")),
                _ => second.clone(),
            })
        });
        let gateway = builder(&upstream)
            .projection_policy(policy.clone())
            .observer(recorder.clone())
            .build()
            .unwrap();
        let mut connection = get(&gateway, QUERY);
        let (_, session) = tokio::join!(connection.types(2), async {
            script.next_open().await.accept_with([], "1")
        });
        session.send(WatchEvent::Added(config_map("a", 2, "v")));
        connection.events(1).await;
        session.send(WatchEvent::Modified(config_map("a", 3, "w")));
        gateway.recheck(|_, _| true);
        let event = connection.events(1).await.remove(0);
        assert!(event.contains(code), "{event}");
        assert_eq!(event.contains("\"terminal\":true"), is_terminal);
        assert_eq!(policy.asked(), 2);
        assert_eq!(
            recorder.count(|seen| matches!(
                seen,
                krm_stream_protocol::Observation::AuthorizationChecked { .. }
            )),
            2,
            "each check is observed"
        );
    }
}
