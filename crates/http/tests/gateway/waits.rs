//! Seams that do not answer: each wait is bounded, and heartbeats go on meanwhile.

use std::sync::Arc;
use std::time::Duration;

use krm_stream_http::{Gateway, GatewayBuilder};
use krm_stream_protocol::{AuthorizationOutcome, Observation};
use tokio::time::Instant;

use super::support::{QUERY, Recorder, Reports, ScriptedUpstream, Seam, builder, code_of, get};

/// A seam that hangs is given up after 35 s; a heartbeat is due every 10 s until then.
async fn is_given_up(builder: GatewayBuilder) -> Vec<String> {
    let reports = Arc::new(Reports::default());
    let gateway: Gateway = builder
        .reauthorization_timeout(Duration::from_secs(35))
        .heartbeat_interval(Duration::from_secs(10))
        .diagnostics(reports.clone())
        .build()
        .unwrap();
    let began = Instant::now();
    let mut connection = get(&gateway, QUERY);
    assert_eq!(connection.chunk().await.unwrap(), ": heartbeat\n\n");
    assert_eq!(began.elapsed().as_secs(), 10);
    let event = connection.events(1).await.remove(0);
    assert_eq!(began.elapsed().as_secs(), 35);
    assert_eq!(code_of(&event), "UPSTREAM_UNAVAILABLE");
    assert!(
        event.contains("\"terminal\":false,\"retryAfterMs\":5000"),
        "{event}"
    );
    assert_eq!(connection.next().await, None, "it ends the connection");
    let raw = String::from_utf8(connection.raw().to_vec()).unwrap();
    assert!(
        raw.starts_with(": heartbeat\n\n: heartbeat\n\n: heartbeat\n\nretry: 5000\ndata: {\"seq\":1,"),
        "{raw}"
    );
    reports.all()
}

#[tokio::test(start_paused = true)]
async fn a_resolver_that_hangs_is_given_up() {
    let (upstream, script) = ScriptedUpstream::new();
    let reports = is_given_up(builder(&upstream).resolver(Seam::hangs())).await;
    assert!(reports[0].starts_with("resolving the caller: "), "{reports:?}");
    assert_eq!(script.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_authorizer_that_hangs_is_given_up_and_counted_as_failed() {
    let (upstream, script) = ScriptedUpstream::new();
    let recorder = Arc::new(Recorder::default());
    let builder = builder(&upstream)
        .authorizer(Seam::hangs())
        .observer(recorder.clone());
    let reports = is_given_up(builder).await;
    assert!(reports[0].starts_with("checking access: "), "{reports:?}");
    assert!(recorder.has(&Observation::AuthorizationChecked {
        outcome: AuthorizationOutcome::Failed,
        duration: Duration::from_secs(35),
    }));
    assert_eq!(script.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_projection_policy_that_hangs_is_given_up() {
    let (upstream, script) = ScriptedUpstream::new();
    let reports = is_given_up(builder(&upstream).projection_policy(Seam::hangs())).await;
    assert!(
        reports[0].starts_with("selecting the projection: "),
        "{reports:?}"
    );
    assert_eq!(script.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_client_for_that_hangs_is_given_up() {
    let (upstream, script) = ScriptedUpstream::new();
    let reports = is_given_up(builder(&upstream).client_for(Seam::hangs())).await;
    assert!(reports[0].starts_with("choosing the upstream: "), "{reports:?}");
    assert_eq!(script.asked(), 0);
}
