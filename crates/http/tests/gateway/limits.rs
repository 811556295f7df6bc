//! Limits on the number of streams.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use krm_stream_protocol::{Observation, SessionEnd, StreamError, UpstreamError};

use super::random::Random;
use super::support::{
    Connection, MOMENT, QUERY, Recorder, ScriptedUpstream, Seam, builder, code_of, get, get_as, nothing_comes,
};

async fn is_refused(connection: Connection) -> String {
    let event = connection.only_event().await;
    assert_eq!(code_of(&event), "UPSTREAM_UNAVAILABLE");
    assert!(event.contains("\"terminal\":false,\"retryAfterMs\":"), "{event}");
    event
}

#[tokio::test(start_paused = true)]
async fn one_stream_too_many_is_told_to_come_back_and_costs_nothing() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let recorder = Arc::new(Recorder::default());
    let gateway = builder(&upstream)
        .max_streams(3)
        .max_streams_per_caller(2)
        .observer(recorder.clone())
        .build()
        .unwrap();
    let mut open = Vec::new();
    for user in ["ada", "ada"] {
        let mut connection = get_as(&gateway, user, QUERY);
        nothing_comes(&mut connection, MOMENT).await;
        open.push(connection);
    }
    let asked = script.asked();
    let event = is_refused(get_as(&gateway, "ada", QUERY)).await;
    assert!(event.contains("one caller"), "{event}");
    assert_eq!(script.asked(), asked);
    let mut connection = get_as(&gateway, "bob", QUERY);
    nothing_comes(&mut connection, MOMENT).await;
    open.push(connection);
    let asked = script.asked();
    let event = is_refused(get_as(&gateway, "eve", QUERY)).await;
    assert!(event.contains("as many streams as it may"), "{event}");
    assert_eq!(script.asked(), asked);
    assert_eq!(
        recorder.count(|seen| *seen == Observation::StreamOpened),
        3,
        "they never were streams"
    );
    drop(open.remove(0));
    let mut again = get_as(&gateway, "ada", QUERY);
    nothing_comes(&mut again, MOMENT).await;
    is_refused(get_as(&gateway, "eve", QUERY)).await;
    open.remove(1);
    let event = is_refused(get_as(&gateway, "ada", QUERY)).await;
    assert!(event.contains("one caller"), "{event}");
    drop((open, again));
    tokio::time::sleep(MOMENT).await;
    while let Some(opening) = script.try_next_open() {
        assert!(opening.is_abandoned());
    }
}

#[tokio::test(start_paused = true)]
async fn a_place_is_free_again_after_every_kind_of_end() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let authorizer = Seam::new(|asked| match asked {
        0 => Some(Err(StreamError::forbidden("no"))),
        1 => None,
        _ => Some(Ok(())),
    });
    let gateway = builder(&upstream)
        .authorizer(authorizer)
        .max_streams(1)
        .build()
        .unwrap();
    assert_eq!(code_of(&get(&gateway, QUERY).only_event().await), "FORBIDDEN");
    assert_eq!(
        code_of(&get(&gateway, "version=v1").only_event().await),
        "SCOPE_INVALID"
    );
    // The check takes too long.
    assert_eq!(
        code_of(&get(&gateway, QUERY).only_event().await),
        "UPSTREAM_UNAVAILABLE"
    );
    // Left while the upstream was being opened.
    let mut connection = get(&gateway, QUERY);
    nothing_comes(&mut connection, MOMENT).await;
    drop(connection);
    tokio::time::sleep(MOMENT).await;
    assert!(script.next_open().await.is_abandoned());
    // Ended by the API server.
    let mut connection = get(&gateway, QUERY);
    let (_, session) = tokio::join!(connection.types(2), async {
        script.next_open().await.accept_with([], "1")
    });
    session.end(SessionEnd::Failed(UpstreamError::forbidden(None)));
    assert_eq!(connection.types(1).await, ["FORBIDDEN"]);
    is_refused(get(&gateway, QUERY)).await;
    assert_eq!(connection.next().await, None);
    // Now its last event is taken.
    let mut connection = get(&gateway, QUERY);
    let (types, _session) = tokio::join!(connection.types(2), async {
        script.next_open().await.accept_with([], "1")
    });
    assert_eq!(types, ["reset", "synced"]);
}

#[tokio::test(start_paused = true)]
async fn streams_whose_caller_is_being_resolved_count_in_all_and_for_nobody() {
    let (upstream, script) = ScriptedUpstream::new();
    let resolver = Seam::hangs();
    let gateway = builder(&upstream)
        .resolver(resolver.clone())
        .max_streams(2)
        .max_streams_per_caller(1)
        .build()
        .unwrap();
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut connection = get(&gateway, QUERY);
        nothing_comes(&mut connection, MOMENT).await;
        open.push(connection);
    }
    assert_eq!(resolver.asked(), 2);
    for _ in 0..100 {
        let event = is_refused(get(&gateway, QUERY)).await;
        assert!(event.contains("as many streams as it may"), "{event}");
    }
    assert_eq!(resolver.asked(), 2, "nobody is asked about one too many");
    drop(open.pop());
    let mut connection = get(&gateway, QUERY);
    nothing_comes(&mut connection, MOMENT).await;
    assert_eq!(resolver.asked(), 3);
    is_refused(get(&gateway, QUERY)).await;
    // Nobody could say who they are.
    for connection in open.into_iter().chain([connection]) {
        let event = is_refused(connection).await;
        assert!(event.contains("who you are"), "{event}");
    }
    let mut connection = get(&gateway, QUERY);
    nothing_comes(&mut connection, MOMENT).await;
    assert_eq!(script.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn any_order_of_coming_and_going_is_counted_exactly() {
    const USERS: [&str; 4] = ["ada", "bob", "eve", "dan"];
    for seed in 1..60 {
        let mut random = Random::new(seed);
        let (upstream, _script) = ScriptedUpstream::new();
        let gateway = builder(&upstream)
            .max_streams(7)
            .max_streams_per_caller(3)
            .build()
            .unwrap();
        let mut open: Vec<(&str, Connection)> = Vec::new();
        for _ in 0..200 {
            if random.below(2) == 0 && !open.is_empty() {
                let at = usize::try_from(random.below(open.len() as u64)).unwrap();
                drop(open.swap_remove(at));
                continue;
            }
            let user = USERS[usize::try_from(random.below(4)).unwrap()];
            let mut by_user: HashMap<&str, usize> = HashMap::new();
            for (user, _) in &open {
                *by_user.entry(user).or_default() += 1;
            }
            let has_room = open.len() < 7 && by_user.get(user).is_none_or(|count| *count < 3);
            let mut connection = get_as(&gateway, user, QUERY);
            if has_room {
                nothing_comes(&mut connection, Duration::from_millis(1)).await;
                open.push((user, connection));
            } else {
                is_refused(connection).await;
            }
        }
    }
}
