//! Clients that come back.

use std::sync::Arc;
use std::time::Duration;

use krm_stream_protocol::{
    Client, Partition, SessionEnd, Start, StreamError, UpstreamError, UpstreamErrorKind, json,
};
use tokio::time::Instant;

use super::support::{QUERY, ScriptedUpstream, Seam, builder, code_of, config_map, get};

fn unavailable() -> UpstreamError {
    UpstreamError::new(UpstreamErrorKind::Unavailable)
}

fn retry_after_ms(event: &str) -> u64 {
    let number = json::last_member(event.as_bytes(), "retryAfterMs");
    let number = number.unwrap_or_else(|| panic!("{event} says when to come back"));
    String::from_utf8_lossy(number).parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn fifty_reconnects_in_ten_seconds_cause_one_upstream_attempt_per_backoff_period() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream).build().unwrap();
    let began = Instant::now();
    let mut attempts = Vec::new();
    for _ in 0..50 {
        let mut connection = get(&gateway, QUERY);
        let event = {
            let refusing = async {
                let opening = script.next_open().await;
                attempts.push(began.elapsed().as_millis());
                opening.refuse(unavailable());
                std::future::pending::<()>().await;
            };
            tokio::select! {
                events = connection.events(1) => events[0].clone(),
                () = refusing => unreachable!(),
            }
        };
        assert_eq!(code_of(&event), "UPSTREAM_UNAVAILABLE");
        assert!(event.contains("\"terminal\":false"));
        let wait = retry_after_ms(&event);
        assert!((1..=30_000).contains(&wait), "{event}");
        let raw = String::from_utf8(connection.raw().to_vec()).unwrap();
        assert!(raw.starts_with(&format!("retry: {wait}\ndata: ")), "{raw}");
        assert_eq!(connection.next().await, None, "the connection ends with it");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(attempts, [0, 1000, 3000, 7000], "1 s, 2 s, 4 s, 8 s");
}

#[tokio::test(start_paused = true)]
async fn the_api_servers_hint_is_passed_on() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream).build().unwrap();
    let connection = get(&gateway, QUERY);
    let (event, ()) = tokio::join!(connection.only_event(), async {
        let error = unavailable().with_retry_after(Some(Duration::from_secs(7)));
        script.next_open().await.refuse(error);
    });
    assert_eq!(retry_after_ms(&event), 7000);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let event = get(&gateway, QUERY).only_event().await;
    assert_eq!(retry_after_ms(&event), 2000, "what is left of it");
    assert_eq!(script.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_is_given_up_in_mid_life_ends_its_streams_with_the_time_to_wait() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream).build().unwrap();
    let mut connection = get(&gateway, QUERY);
    let (_, session) = tokio::join!(connection.types(3), async {
        script
            .next_open()
            .await
            .accept_with([config_map("a", 1, "v")], "1")
    });
    tokio::time::sleep(Duration::from_secs(10)).await;
    session.end(SessionEnd::Closed);
    let refuse_all = async {
        loop {
            script.next_open().await.refuse(unavailable());
        }
    };
    let event = tokio::select! {
        event = connection.only_event() => event,
        () = refuse_all => unreachable!(),
    };
    assert_eq!(code_of(&event), "UPSTREAM_UNAVAILABLE");
    assert_eq!(retry_after_ms(&event), 1000);
    assert_eq!(
        script.asked(),
        6,
        "the session, the reopen, three retries and a fresh cycle"
    );
}

#[tokio::test(start_paused = true)]
async fn a_refused_namespace_is_asked_for_again_and_never_all_namespaces() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream).build().unwrap();
    let query = "version=v1&resource=configmaps&namespace=team-a";
    for _ in 0..3 {
        let connection = get(&gateway, query);
        let (event, opening) = tokio::join!(connection.only_event(), async {
            let opening = script.next_open().await;
            let asked = (
                opening.scope.namespace().map(str::to_owned),
                opening.start.clone(),
            );
            opening.refuse(UpstreamError::forbidden(Some(
                "configmaps is forbidden in team-a",
            )));
            asked
        });
        assert_eq!(code_of(&event), "FORBIDDEN");
        assert!(event.contains("\"message\":\"configmaps is forbidden in team-a\",\"terminal\":true"));
        assert!(!event.contains("retryAfterMs"));
        assert_eq!(opening.0.as_deref(), Some("team-a"));
        assert_eq!(opening.1, Start::Fresh);
    }
    assert_eq!(script.asked(), 3, "a refusal puts nothing aside");
}

#[tokio::test(start_paused = true)]
async fn an_expired_login_is_one_terminal_error_at_connect_and_the_last_event_in_mid_stream() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let client = Client {
        upstream: Arc::new(upstream.clone()),
        partition: Partition::per_caller(),
    };
    // Signed in at first; when the next cycle begins the login has expired.
    let client_for = Seam::new(move |asked| {
        Some(match asked {
            0 => Ok(client.clone()),
            _ => Err(StreamError::unauthenticated("your login has expired")),
        })
    });
    let gateway = builder(&upstream).client_for(client_for).build().unwrap();
    let mut connection = get(&gateway, QUERY);
    let (_, session) = tokio::join!(connection.types(2), async {
        script.next_open().await.accept_with([], "1")
    });
    tokio::time::sleep(Duration::from_secs(10)).await;
    session.end(SessionEnd::Closed);
    script
        .next_open()
        .await
        .refuse(UpstreamError::new(UpstreamErrorKind::Unauthenticated));
    let last = connection.only_event().await;
    assert_eq!(code_of(&last), "UNAUTHENTICATED");
    let first = get(&gateway, QUERY).only_event().await;
    assert!(first.starts_with("{\"seq\":1,\"type\":\"error\",\"code\":\"UNAUTHENTICATED\""));
    assert_eq!(script.asked(), 2);
}
