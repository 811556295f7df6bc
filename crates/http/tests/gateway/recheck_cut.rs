//! A recheck at every point of what is being handed out.

use futures_util::StreamExt as _;
use krm_stream_protocol::{Principal, Subject};

use super::support::{
    AskedAuthorizer, MOMENT, QUERY, ScriptedUpstream, builder, code_of, is_cut_off, nothing_comes, scope,
    small_and_large, stalled_after,
};

#[tokio::test(start_paused = true)]
async fn nothing_of_what_was_written_passes_after_it_and_the_refusal_takes_its_place() {
    let (mut between, mut within) = (0, 0);
    for taken in 0..20 {
        for is_allowed in [false, true] {
            let (gateway, mut connection, mut questions, session) = stalled_after(taken).await;
            let before = connection.raw().len();
            gateway.recheck(|_, _| true);
            nothing_comes(&mut connection, MOMENT).await;
            assert_eq!(connection.raw().len(), before, "nothing passes meanwhile");
            if is_allowed {
                questions.allow_next().await;
                while connection.received() < 11 {
                    connection.chunk_events().await.unwrap();
                }
                assert_eq!(
                    String::from_utf8_lossy(connection.raw())
                        .matches("\"uid\":\"uid-")
                        .count(),
                    9
                );
                continue;
            }
            questions.next().await.deny();
            if let Some(last) = is_cut_off(&mut connection, &format!("after {taken}")).await {
                between += 1;
                assert_eq!(code_of(&last), "FORBIDDEN", "after {taken}");
            } else {
                within += 1;
            }
            drop(session);
        }
    }
    assert!(
        between > 5 && within >= 6,
        "{between} between events, {within} within one"
    );
}

#[tokio::test(start_paused = true)]
async fn without_http_what_was_taken_and_not_handed_out_is_taken_back() {
    for taken in 0..12_u64 {
        let (upstream, mut script) = ScriptedUpstream::new();
        let (authorizer, mut questions) = AskedAuthorizer::new();
        let gateway = builder(&upstream).authorizer(authorizer).build().unwrap();
        let principal = Principal::new(Subject::new("ada").unwrap());
        let mut frames = gateway.stream(principal, scope(QUERY), None);
        let opening = async {
            questions.allow_next().await;
            script.next_open().await.accept_with(small_and_large(), "1")
        };
        let (first, _session) = tokio::join!(frames.next(), opening);
        assert!(first.is_some());
        tokio::time::sleep(MOMENT).await;
        for _ in 1..taken {
            // The last of these waits for what does not come.
            let _ = tokio::time::timeout(MOMENT, frames.next()).await;
        }
        gateway.recheck(|_, _| true);
        let held = tokio::time::timeout(MOMENT, frames.next()).await;
        assert!(held.is_err(), "{held:?}");
        questions.next().await.deny();
        let last = frames.next().await.unwrap();
        let expected = format!(
            "{{\"seq\":{},\"type\":\"error\",\"code\":\"FORBIDDEN\"",
            taken.clamp(1, 11) + 1
        );
        assert!(last.json().starts_with(expected.as_bytes()), "{:?}", last.json());
        assert!(frames.next().await.is_none());
    }
}
