//! Shutting down: every stream ends at once, whatever it waits for.

use std::sync::Arc;
use std::time::Duration;

use krm_stream_http::{Gateway, GatewayBuilder};
use krm_stream_protocol::{SessionEnd, UpstreamError, UpstreamErrorKind, WatchEvent, json};
use tokio::time::Instant;

use super::support::{
    AskedAuthorizer, Connection, MOMENT, QUERY, Questions, Recorder, Script, ScriptedUpstream, Seam, builder,
    code_of, config_map, get, is_opening, nothing_comes,
};

const SPREAD: Duration = Duration::from_secs(20);

fn retry_after_ms(event: &str) -> u64 {
    let number = json::last_member(event.as_bytes(), "retryAfterMs").unwrap();
    String::from_utf8_lossy(number).parse().unwrap()
}

/// The one event that is left is the farewell, and it comes without any time passing.
async fn says_farewell(mut connection: Connection) -> u64 {
    let begun = Instant::now();
    let before = connection.raw().len();
    let event = connection.events(1).await.remove(0);
    assert_eq!(code_of(&event), "UPSTREAM_UNAVAILABLE");
    assert!(
        event.contains("\"message\":\"the gateway is shutting down\",\"terminal\":false"),
        "{event}"
    );
    let wait = retry_after_ms(&event);
    assert!((500..=20_500).contains(&wait));
    let raw = String::from_utf8_lossy(&connection.raw()[before..]).into_owned();
    assert!(raw.starts_with(&format!("retry: {wait}\ndata: ")), "{raw}");
    assert_eq!(connection.next().await, None);
    assert_eq!(begun.elapsed(), Duration::ZERO);
    wait
}

async fn drains(gateway: &Gateway, connection: Connection) {
    gateway.drain(SPREAD);
    assert!(tokio::time::timeout(MOMENT, gateway.drained()).await.is_err());
    says_farewell(connection).await;
    tokio::time::timeout(MOMENT, gateway.drained()).await.unwrap();
    // Those who come now are told the same, and are nothing to wait for.
    let late = get(gateway, QUERY);
    gateway.drained().await;
    says_farewell(late).await;
}

fn asked(set: impl FnOnce(GatewayBuilder) -> GatewayBuilder) -> (Gateway, Questions, Script) {
    let (upstream, script) = ScriptedUpstream::new();
    let (authorizer, questions) = AskedAuthorizer::new();
    let gateway = set(builder(&upstream).authorizer(authorizer)).build().unwrap();
    (gateway, questions, script)
}

#[tokio::test(start_paused = true)]
async fn while_the_caller_is_being_resolved() {
    let (gateway, _questions, _script) = asked(|builder| builder.resolver(Seam::hangs()));
    let mut connection = get(&gateway, QUERY);
    nothing_comes(&mut connection, MOMENT).await;
    drains(&gateway, connection).await;
}

#[tokio::test(start_paused = true)]
async fn before_the_stream_is_looked_at_for_the_first_time() {
    let (gateway, _questions, script) = asked(|builder| builder);
    let connection = get(&gateway, QUERY);
    drains(&gateway, connection).await;
    assert_eq!(script.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn while_access_is_being_checked() {
    let (gateway, mut questions, _script) = asked(|builder| builder);
    let mut connection = get(&gateway, QUERY);
    nothing_comes(&mut connection, MOMENT).await;
    let question = questions.next().await;
    drains(&gateway, connection).await;
    assert!(question.is_abandoned());
}

#[tokio::test(start_paused = true)]
async fn while_the_upstream_is_being_opened() {
    let (gateway, mut questions, mut script) = asked(|builder| builder);
    let mut connection = get(&gateway, QUERY);
    let opening = is_opening(&mut connection, &mut questions, &mut script).await;
    drains(&gateway, connection).await;
    tokio::time::sleep(MOMENT).await;
    assert!(opening.is_abandoned());
}

#[tokio::test(start_paused = true)]
async fn while_it_is_idle_in_backoff_held_or_behind() {
    for situation in ["idle", "in backoff", "held", "behind"] {
        let recorder = Arc::new(Recorder::default());
        let (gateway, mut questions, mut script) = asked(|builder| builder.observer(recorder.clone()));
        let mut connection = get(&gateway, QUERY);
        let (_, session) = tokio::join!(connection.types(2), async {
            questions.allow_next().await;
            script.next_open().await.accept_with([], "1")
        });
        nothing_comes(&mut connection, Duration::from_secs(10)).await;
        match situation {
            "in backoff" => {
                session.end(SessionEnd::Closed);
                let error = UpstreamError::new(UpstreamErrorKind::Unavailable);
                let error = error.with_retry_after(Some(Duration::from_secs(20)));
                script.next_open().await.refuse(error);
                nothing_comes(&mut connection, MOMENT).await;
            }
            "held" => {
                session.send(WatchEvent::Added(config_map("canary", 2, "v")));
                gateway.recheck(|_, _| true);
                nothing_comes(&mut connection, MOMENT).await;
            }
            "behind" => {
                session.send(WatchEvent::Added(config_map("large", 2, &"x".repeat(1 << 20))));
                tokio::time::sleep(MOMENT).await;
                // A part of it is taken: what was begun is finished.
                connection.chunk_events().await.unwrap();
                gateway.drain(SPREAD);
                assert!(
                    tokio::time::timeout(SPREAD, gateway.drained()).await.is_err(),
                    "it is still there"
                );
                assert_eq!(connection.types(2).await, ["added", "UPSTREAM_UNAVAILABLE"]);
                assert_eq!(connection.next().await, None);
                gateway.drained().await;
                continue;
            }
            _ => {}
        }
        drains(&gateway, connection).await;
        assert_eq!(recorder.still_open()[..2], [0, 0], "{situation}");
    }
}

#[tokio::test(start_paused = true)]
async fn clients_are_spread_and_a_second_drain_changes_nothing() {
    let (gateway, _questions, _script) = asked(|builder| builder);
    let mut connections = Vec::new();
    for _ in 0..200 {
        let mut connection = get(&gateway, QUERY);
        nothing_comes(&mut connection, Duration::from_millis(1)).await;
        connections.push(connection);
    }
    gateway.drain(SPREAD);
    gateway.drain(Duration::ZERO);
    let mut waits = Vec::new();
    for connection in connections {
        waits.push(says_farewell(connection).await);
    }
    waits.push(says_farewell(get(&gateway, QUERY)).await);
    waits.sort_unstable();
    assert!(waits[40] < 8_000 && waits[160] > 12_000, "{waits:?}");
    gateway.drained().await;
}

#[tokio::test(start_paused = true)]
async fn any_spread_is_drawn_from() {
    for spread in [Duration::ZERO, Duration::MAX] {
        let (gateway, _questions, _script) = asked(|builder| builder);
        let mut connection = get(&gateway, QUERY);
        nothing_comes(&mut connection, MOMENT).await;
        gateway.drain(spread);
        let event = connection.only_event().await;
        assert_eq!(code_of(&event), "UPSTREAM_UNAVAILABLE");
        assert!(retry_after_ms(&event) >= 500, "{event}");
        gateway.drained().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_nothing_is_waited_for_until_its_connection_is_closed() {
    let (gateway, mut questions, mut script) = asked(|builder| builder);
    let mut connection = get(&gateway, QUERY);
    let (_, _session) = tokio::join!(connection.types(2), async {
        questions.allow_next().await;
        script.next_open().await.accept_with([], "1")
    });
    gateway.drain(SPREAD);
    assert!(
        tokio::time::timeout(SPREAD * 10, gateway.drained())
            .await
            .is_err()
    );
    drop(connection);
    tokio::time::timeout(MOMENT, gateway.drained()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nobody_is_drained_who_does_not_ask_for_it() {
    let (gateway, _questions, _script) = asked(|builder| builder);
    assert!(tokio::time::timeout(SPREAD, gateway.drained()).await.is_err());
}
