//! The check at a cycle's begin: its time runs from when it is sent.

use std::time::Duration;

use tokio::time::Instant;

use super::support::{AskedAuthorizer, QUERY, ScriptedUpstream, builder, code_of, get, nothing_comes};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn the_wait_for_its_turn_does_not_count_and_the_wait_for_the_answer_does() {
    for (answered_after, is_in_time) in [(9, true), (11, false)] {
        let (upstream, mut script) = ScriptedUpstream::new();
        let (authorizer, mut questions) = AskedAuthorizer::new();
        let gateway = builder(&upstream).authorizer(authorizer).build().unwrap();
        let mut connection = get(&gateway, QUERY);
        nothing_comes(&mut connection, SECOND * 60).await;
        let mut question = questions.next().await;
        assert_eq!(question.trigger, None, "any answer will do that still stands");
        question.send();
        let sent = Instant::now();
        let (types, _session) = tokio::join!(connection.types(1), async {
            tokio::time::sleep(SECOND * answered_after).await;
            question.answer(Ok(()));
            if is_in_time {
                Some(script.next_open().await.accept_with([], "1"))
            } else {
                None
            }
        });
        assert_eq!(
            types,
            [if is_in_time {
                "reset"
            } else {
                "UPSTREAM_UNAVAILABLE"
            }]
        );
        assert_eq!(script.asked(), usize::from(is_in_time));
        assert_eq!(sent.elapsed().as_secs(), u64::from(answered_after));
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_that_never_gets_its_turn_is_given_up_all_the_same() {
    let (upstream, script) = ScriptedUpstream::new();
    let (authorizer, mut questions) = AskedAuthorizer::new();
    let gateway = builder(&upstream).authorizer(authorizer).build().unwrap();
    let begun = Instant::now();
    let event = get(&gateway, QUERY).only_event().await;
    assert_eq!(code_of(&event), "UPSTREAM_UNAVAILABLE");
    assert_eq!(begun.elapsed(), SECOND * 300);
    assert!(questions.next().await.is_abandoned());
    assert_eq!(script.asked(), 0);
}
