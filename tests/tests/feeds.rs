//! Feeds as streams see them: sharing, joining at bad moments, leaving, and what is silent.

use std::sync::Arc;
use std::time::Duration;

use krm_stream_protocol::{
    Observation, Ordering, Partition, SessionEnd, Start, UpstreamError, UpstreamErrorKind,
};
use krm_stream_tests::{
    Connection, GatewayUnderTest, Recorder, Script, ScriptedSession, ScriptedUpstream, config_map,
    config_map_with, object, secret,
};

const APP: &str = "version=v1&resource=configmaps&namespace=app";
const LINGER: Duration = Duration::from_secs(5);

fn gateway() -> (GatewayUnderTest, Script) {
    let (upstream, script) = ScriptedUpstream::new();
    (GatewayUnderTest::on(upstream), script)
}

/// Lets what is under way come to rest, without letting much of the test's time pass.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Reads until nothing comes for a moment; opens are left for the script.
async fn pump(connection: &mut Connection) -> Vec<String> {
    let mut events = Vec::new();
    while let Ok(Some(event)) = tokio::time::timeout(Duration::from_millis(10), connection.next()).await {
        events.push(event);
    }
    events
}

/// A connection that is live on one object, `a`.
async fn live(gateway: &GatewayUnderTest, script: &mut Script, query: &str) -> (Connection, ScriptedSession) {
    let mut connection = gateway.connect(query);
    pump(&mut connection).await;
    let mut session = script.next_open().await.accept();
    session.added(config_map("a", "10"));
    session.boundary("10");
    assert_eq!(connection.types(3).await, ["reset", "added", "synced"]);
    (connection, session)
}

#[tokio::test(start_paused = true)]
async fn three_subscribers_of_equal_scopes_are_one_upstream_session() {
    let (gateway, mut script) = gateway();
    let (mut first, mut session) =
        live(&gateway, &mut script, &format!("{APP}&labelSelector=a%3D1,b%3D2")).await;
    let mut second = gateway.connect(&format!("labelSelector=b%3D2,a%3D1&{APP}"));
    let mut third = gateway.connect(&format!("labelSelector=b%3D%3D2,+a%3D1&{APP}"));
    assert_eq!(second.types(3).await, ["reset", "added", "synced"]);
    assert_eq!(third.types(3).await, ["reset", "added", "synced"]);
    for change in 0..50 {
        session.modified(config_map("a", &(11 + change).to_string()));
        for connection in [&mut first, &mut second, &mut third] {
            assert_eq!(connection.types(1).await, ["modified"]);
        }
    }
    assert!(script.try_next_open().is_none());
    assert_eq!(script.open_sessions(), 1);
}

#[tokio::test(start_paused = true)]
async fn another_scope_or_projection_is_another_feed() {
    let (gateway, mut script) = gateway();
    let (_first, _session) = live(&gateway, &mut script, APP).await;
    let mut second = gateway.connect(&format!("{APP}&projection=krm-spec/v1"));
    let mut third = gateway.connect("version=v1&resource=configmaps&namespace=other");
    pump(&mut second).await;
    assert_eq!(script.next_open().await.scope.namespace(), Some("app"));
    pump(&mut third).await;
    assert_eq!(script.next_open().await.scope.namespace(), Some("other"));
}

#[tokio::test(start_paused = true)]
async fn callers_share_a_feed_only_as_the_same_complete_subject() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = GatewayUnderTest::with(upstream, Partition::per_caller(), Ordering::Strict, LINGER);
    let (_ada, _session) = {
        let mut ada = gateway.connect_as("ada", APP);
        pump(&mut ada).await;
        let mut session = script.next_open().await.accept();
        session.boundary("10");
        pump(&mut ada).await;
        (ada, session)
    };
    let mut ada_again = gateway.connect_as("ada", APP);
    pump(&mut ada_again).await;
    assert!(script.try_next_open().is_none(), "one caller's tabs share");
    let mut bob = gateway.connect_as("bob", APP);
    pump(&mut bob).await;
    assert!(script.try_next_open().is_some(), "another caller does not");
}

#[tokio::test(start_paused = true)]
async fn an_isolated_stream_has_a_session_of_its_own_and_gets_its_new_snapshot_as_it_arrives() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = GatewayUnderTest::with(upstream, Partition::Isolated, Ordering::Strict, LINGER);
    let (mut first, mut session) = live(&gateway, &mut script, APP).await;
    let (_second, _other) = live(&gateway, &mut script, APP).await;
    session.modified(config_map("a", "11"));
    assert_eq!(first.types(1).await, ["modified"]);
    session.end(SessionEnd::Expired);
    assert_eq!(first.types(2).await, ["RESYNC_REQUIRED", "reset"]);
    let mut session = script.next_open().await.accept();
    session.added(config_map("b", "20"));
    assert_eq!(first.types(1).await, ["added"], "before the boundary");
    session.boundary("20");
    assert_eq!(first.types(1).await, ["synced"]);
    assert_eq!(first.uids(), ["b"]);
    drop(first);
    settle().await;
    assert!(session.is_dropped(), "an isolated feed does not linger");
}

#[tokio::test(start_paused = true)]
async fn the_last_subscriber_of_a_quiet_stream_ends_its_session_within_the_linger_time() {
    let (gateway, mut script) = gateway();
    let (first, session) = live(&gateway, &mut script, APP).await;
    drop(first);
    tokio::time::sleep(
        LINGER
            .checked_sub(Duration::from_millis(10))
            .expect("the linger time is longer"),
    )
    .await;
    assert!(!session.is_dropped());
    tokio::time::timeout(Duration::from_millis(20), session.dropped())
        .await
        .expect("the session ends without another event");
    settle().await;
    assert_eq!(gateway.gateway().feeds().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_back_within_the_linger_time_finds_the_same_session_and_a_full_snapshot() {
    let (gateway, mut script) = gateway();
    let (first, mut session) = live(&gateway, &mut script, APP).await;
    drop(first);
    tokio::time::sleep(Duration::from_secs(4)).await;
    session.added(config_map("b", "11"));
    settle().await;
    let mut second = gateway.connect(APP);
    assert_eq!(second.types(4).await, ["reset", "added", "added", "synced"]);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(!session.is_dropped());
    assert!(script.try_next_open().is_none());
}

#[tokio::test(start_paused = true)]
async fn leaving_during_the_opening_cancels_it_at_once() {
    let (gateway, mut script) = gateway();
    let mut connection = gateway.connect(APP);
    pump(&mut connection).await;
    let request = script.next_open().await;
    assert!(!request.is_cancelled());
    drop(connection);
    settle().await;
    assert!(request.is_cancelled());
    assert_eq!(gateway.gateway().feeds().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn one_of_two_who_wait_for_an_opening_may_leave() {
    let (gateway, mut script) = gateway();
    let mut first = gateway.connect(APP);
    let mut second = gateway.connect(APP);
    pump(&mut first).await;
    pump(&mut second).await;
    let request = script.next_open().await;
    drop(first);
    settle().await;
    assert!(!request.is_cancelled());
    let mut session = request.accept();
    session.boundary("1");
    assert_eq!(second.types(2).await, ["reset", "synced"]);
}

#[tokio::test(start_paused = true)]
async fn leaving_during_the_snapshot_and_while_a_retry_waits_ends_the_feed() {
    let (gateway, mut script) = gateway();
    let mut connection = gateway.connect(APP);
    pump(&mut connection).await;
    let mut session = script.next_open().await.accept();
    session.added(config_map("a", "1"));
    assert_eq!(connection.types(2).await, ["reset", "added"]);
    drop(connection);
    tokio::time::timeout(LINGER * 2, session.dropped())
        .await
        .expect("it ends");

    let (connection, session) = live(&gateway, &mut script, APP).await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    session.end(SessionEnd::Closed);
    let unavailable =
        || UpstreamError::new(UpstreamErrorKind::Unavailable).with_retry_after(Some(Duration::from_secs(30)));
    script.next_open().await.refuse(unavailable());
    settle().await;
    drop(connection);
    tokio::time::sleep(LINGER * 2).await;
    assert!(script.try_next_open().is_none(), "nobody asks for it any more");
    assert_eq!(gateway.gateway().feeds().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_who_come_and_go_leave_no_session_and_no_task() {
    let (gateway, mut script) = gateway();
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    for round in 0..1000_u32 {
        let mut connection = gateway.connect(&format!("{APP}&name=n{}", round % 7));
        pump(&mut connection).await;
        if round % 3 == 0 {
            while let Some(request) = script.try_next_open() {
                let mut session = request.accept();
                session.boundary("1");
            }
            pump(&mut connection).await;
        }
    }
    tokio::time::sleep(LINGER * 3).await;
    while script.try_next_open().is_some() {}
    assert_eq!(script.open_sessions(), 0);
    assert_eq!(gateway.gateway().feeds().count(), 0);
    assert_eq!(tasks(), before);
}

#[tokio::test(start_paused = true)]
async fn whoever_joins_at_a_bad_moment_gets_one_snapshot_and_exactly_what_follows() {
    let (gateway, mut script) = gateway();
    let mut early = gateway.connect(APP);
    pump(&mut early).await;
    let mut session = script.next_open().await.accept();
    // Before the first item.
    let mut before_first = gateway.connect(APP);
    assert_eq!(before_first.types(1).await, ["reset"]);
    session.added(config_map("a", "1"));
    settle().await;
    // Between items.
    let mut between = gateway.connect(APP);
    assert_eq!(between.types(2).await, ["reset", "added"]);
    session.added(config_map("b", "2"));
    settle().await;
    // Just before the boundary.
    let mut before_boundary = gateway.connect(APP);
    assert_eq!(before_boundary.types(3).await, ["reset", "added", "added"]);
    session.boundary("2");
    for (connection, rest) in [
        (&mut early, vec!["reset", "added", "added", "synced"]),
        (&mut before_first, vec!["added", "added", "synced"]),
        (&mut between, vec!["added", "synced"]),
        (&mut before_boundary, vec!["synced"]),
    ] {
        assert_eq!(connection.types(rest.len()).await, rest);
    }
    // Between an event's arrival and its delivery.
    session.modified(config_map("a", "3"));
    let mut at_an_event = gateway.connect(APP);
    for connection in [&mut early, &mut before_first, &mut between, &mut before_boundary] {
        assert_eq!(connection.types(1).await, ["modified"]);
    }
    let joined = at_an_event.types(4).await;
    assert_eq!(joined[0], "reset");
    let rest = pump(&mut at_an_event).await;
    assert!(rest.len() <= 1, "at most the change that was under way: {rest:?}");
    session.deleted(config_map("b", "4"));
    session.added(config_map("c", "5"));
    for connection in [
        &mut early,
        &mut before_first,
        &mut between,
        &mut before_boundary,
        &mut at_an_event,
    ] {
        assert_eq!(connection.types(2).await, ["deleted", "added"]);
        assert_eq!(connection.uids(), ["a", "c"]);
        assert!(connection.is_quiet_for(Duration::from_secs(1)).await, "no repeat");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_joins_during_a_relist_gets_only_the_new_snapshot() {
    let (gateway, mut script) = gateway();
    let (mut first, session) = live(&gateway, &mut script, APP).await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    session.end(SessionEnd::Expired);
    let request = script.next_open().await;
    assert_eq!(request.start, Start::Fresh);
    let mut session = request.accept();
    let mut joined = gateway.connect(APP);
    assert_eq!(joined.types(1).await, ["reset"]);
    session.added(config_map("b", "20"));
    assert!(
        joined.is_quiet_for(Duration::from_secs(3)).await,
        "the old state may hold ghosts"
    );
    assert!(
        first.is_quiet_for(Duration::from_secs(3)).await,
        "the old state is served until the new one is complete"
    );
    session.boundary("20");
    assert_eq!(joined.types(2).await, ["added", "synced"]);
    assert_eq!(
        first.types(4).await,
        ["RESYNC_REQUIRED", "reset", "added", "synced"]
    );
    assert_eq!(first.uids(), ["b"]);
    assert_eq!(joined.uids(), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn an_empty_collection_is_reset_and_synced_at_once() {
    let (gateway, mut script) = gateway();
    let mut connection = gateway.connect(APP);
    pump(&mut connection).await;
    script.next_open().await.accept().boundary("1");
    assert_eq!(connection.types(2).await, ["reset", "synced"]);
}

#[tokio::test(start_paused = true)]
async fn churn_of_managed_fields_is_compared_once_per_event_and_sent_to_nobody() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let recorder = Arc::new(Recorder::default());
    let gateway = GatewayUnderTest::observed(upstream, Arc::<Recorder>::clone(&recorder));
    let churned = |version: u32, label: &str| {
        object(format!(
            r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"m","namespace":"app","uid":"m","resourceVersion":"{version}"{label},"managedFields":[{{"time":"{version}"}}]}}}}"#
        ))
    };
    let mut connections: Vec<_> = (0..10).map(|_| gateway.connect(APP)).collect();
    for connection in &mut connections {
        pump(connection).await;
    }
    let mut session = script.next_open().await.accept();
    session.added(churned(1, ""));
    session.boundary("1");
    for connection in &mut connections {
        assert_eq!(connection.types(3).await, ["reset", "added", "synced"]);
    }
    for version in 2..1002 {
        session.modified(churned(version, ""));
    }
    for connection in &mut connections {
        assert!(connection.is_quiet_for(Duration::from_secs(1)).await);
    }
    let suppressed =
        |recorder: &Recorder| recorder.count(|observation| *observation == Observation::EventSuppressed);
    assert_eq!(suppressed(&recorder), 1000, "once for all subscribers");
    session.modified(churned(2000, r#","labels":{"a":"b"}"#));
    for connection in &mut connections {
        assert_eq!(connection.types(1).await, ["modified"]);
    }
    assert_eq!(suppressed(&recorder), 1000);
}

#[tokio::test(start_paused = true)]
async fn a_rotated_value_grows_its_revision_by_one_and_a_thousand_equal_states_say_nothing() {
    let (gateway, mut script) = gateway();
    let mut connection = gateway.connect("version=v1&resource=secrets&namespace=app");
    pump(&mut connection).await;
    let mut session = script.next_open().await.accept();
    session.added(secret("t", "1", r#"{"p":"Y2FuYXJ5LTE="}"#));
    session.boundary("1");
    let first = connection.events(3).await;
    assert!(
        first[1].ends_with(r#""redacted":[{"path":"/data/p","rev":1}]}"#),
        "{}",
        first[1]
    );
    let mut version = 1;
    let mut rotate = |session: &mut ScriptedSession, data: &str| {
        version += 1;
        session.modified(secret("t", &version.to_string(), data));
    };
    rotate(&mut session, r#"{"p":"Y2FuYXJ5LTI="}"#);
    assert!(connection.events(1).await[0].contains(r#"{"path":"/data/p","rev":2}"#));
    rotate(&mut session, r#"{"p":"Y2FuYXJ5LWEtbXVjaC1sb25nZXItdmFsdWU="}"#);
    let longer = connection.events(1).await.remove(0);
    assert!(longer.contains(r#"{"path":"/data/p","rev":3}"#));
    for _ in 0..1000 {
        rotate(&mut session, r#"{"p":"Y2FuYXJ5LWEtbXVjaC1sb25nZXItdmFsdWU="}"#);
    }
    assert!(connection.is_quiet_for(Duration::from_secs(1)).await);
    rotate(
        &mut session,
        r#"{"p":"Y2FuYXJ5LWEtbXVjaC1sb25nZXItdmFsdWU=","q":"Y2FuYXJ5LTQ="}"#,
    );
    assert!(
        connection.events(1).await[0].contains(r#"{"path":"/data/q","rev":1}"#),
        "a key that comes"
    );
    rotate(&mut session, r#"{"q":"Y2FuYXJ5LTQ="}"#);
    assert!(
        !connection.events(1).await[0].contains("/data/p"),
        "a key that goes"
    );
    let raw = String::from_utf8_lossy(connection.raw()).into_owned();
    assert!(!raw.contains("Y2FuYXJ5") && !raw.contains("canary"));
    // Nothing but numbers differs between a short and a long value.
    assert!(raw.contains(&longer));
}

#[tokio::test(start_paused = true)]
async fn coalescing_leaves_out_states_but_never_a_deletion() {
    let (gateway, mut script) = gateway();
    let (mut connection, mut session) = live(&gateway, &mut script, APP).await;
    session.added(config_map("x", "11"));
    assert_eq!(connection.types(1).await, ["added"]);
    // While the connection reads nothing, nine changes come; the third is a deletion.
    for (version, uid) in [
        (12, "a"),
        (13, "b"),
        (15, "c"),
        (16, "a"),
        (17, "b"),
        (18, "c"),
        (19, "a"),
        (20, "b"),
    ] {
        if version == 15 {
            session.deleted(config_map("x", "14"));
        }
        session.modified(config_map_with(uid, &version.to_string(), &version.to_string()));
    }
    settle().await;
    assert_eq!(
        connection.types(4).await,
        ["deleted", "added", "modified", "added"].map(str::to_owned)
    );
    assert_eq!(connection.uids(), ["a", "b", "c"]);
    assert!(connection.is_quiet_for(Duration::from_secs(1)).await);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_waits_is_woken_by_everything_that_concerns_it() {
    let (gateway, mut script) = gateway();
    let mut connection = gateway.connect(APP);
    let (told, mut events) = tokio::sync::mpsc::unbounded_channel();
    // Nobody but the feed wakes this task.
    tokio::spawn(async move {
        while let Some(event) = connection.next().await {
            let json = event.as_bytes();
            let text = |name| krm_stream_protocol::json::last_member(json, name).map(String::from_utf8_lossy);
            let _ = told.send(
                text("code")
                    .or_else(|| text("type"))
                    .unwrap_or_default()
                    .replace('"', ""),
            );
        }
        let _ = told.send("over".to_owned());
    });
    let mut expect = async |wanted: &str| {
        let told = tokio::time::timeout(Duration::from_secs(10), events.recv()).await;
        assert_eq!(
            told.expect("it is woken before a heartbeat would wake it")
                .as_deref(),
            Some(wanted)
        );
    };
    let mut session = script.next_open().await.accept();
    expect("reset").await;
    session.added(config_map("a", "1"));
    expect("added").await;
    session.boundary("1");
    expect("synced").await;
    session.modified(config_map("a", "2"));
    expect("modified").await;
    session.deleted(config_map("a", "3"));
    expect("deleted").await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    session.end(SessionEnd::Expired);
    let mut session = script.next_open().await.accept();
    session.added(config_map("b", "9"));
    session.boundary("9");
    for wanted in ["RESYNC_REQUIRED", "reset", "added", "synced"] {
        expect(wanted).await;
    }
    session.end(SessionEnd::Failed(UpstreamError::forbidden(None)));
    // It begins a cycle of its own, and is refused as itself.
    script.next_open().await.refuse(UpstreamError::forbidden(None));
    expect("FORBIDDEN").await;
    expect("over").await;
}

#[tokio::test(start_paused = true)]
async fn a_warm_feed_gives_nothing_to_whom_the_authorizer_denies() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = GatewayUnderTest::build(
        GatewayUnderTest::builder(upstream, Partition::shared("tests")).authorizer(OnlyAdmin),
    );
    let mut admin = gateway.connect_as("admin", APP);
    pump(&mut admin).await;
    let mut session = script.next_open().await.accept();
    session.added(config_map("a", "1"));
    session.boundary("1");
    assert_eq!(admin.types(3).await, ["reset", "added", "synced"]);
    let mut viewer = gateway.connect_as("viewer", APP);
    assert_eq!(viewer.types(1).await, ["FORBIDDEN"]);
    assert!(viewer.is_over().await);
    assert!(!String::from_utf8_lossy(viewer.raw()).contains("object"));
}

struct OnlyAdmin;

impl krm_stream_protocol::Authorizer for OnlyAdmin {
    fn authorize<'a>(
        &'a self,
        principal: &'a krm_stream_protocol::Principal,
        _: &'a krm_stream_protocol::Scope,
    ) -> krm_stream_protocol::BoxFuture<'a, Result<(), krm_stream_protocol::StreamError>> {
        let allowed = principal.subject().user_name() == "admin";
        Box::pin(std::future::ready(allowed.then_some(()).ok_or_else(|| {
            krm_stream_protocol::StreamError::forbidden("only the admin may")
        })))
    }
}
