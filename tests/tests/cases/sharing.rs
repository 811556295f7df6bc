//! Who shares a watch with whom, and who ends it.

use std::time::Duration;

use krm_stream_protocol::{
    Authorizer, BoxFuture, Ordering, Partition, Principal, Scope, StreamError, Subject,
};
use krm_stream_simulator::{Fault, RequestMatch, Simulator, Status};
use krm_stream_tests::{Connection, GatewayUnderTest, ScriptedUpstream};
use krm_stream_upstream_kube::{KubeUpstream, kube};

use crate::api_server::{APP, type_of, words};
use crate::simulated::{asked, builder, change, config, create, gateway, is_quiet, until};

/// Asks as this user, in these groups and with this credential.
fn connect(gateway: &GatewayUnderTest, user: &str, groups: &str, token: &str, query: &str) -> Connection {
    let request = http::Request::get(format!("/resource-stream/v1?{query}"))
        .header("x-user", user)
        .header("x-groups", groups)
        .header("authorization", format!("Bearer {token}"))
        .body(());
    Connection::new(gateway.answer(request).into_body())
}

async fn admin_sees_a_secret(gateway: &GatewayUnderTest, query: &str) -> Connection {
    let mut admin = connect(gateway, "admin", "", "t", query);
    assert_eq!(words(&mut admin, 3).await, ["reset", "added s", "synced"]);
    admin
}

struct OnlyAdmin;

impl Authorizer for OnlyAdmin {
    fn authorize<'a>(
        &'a self,
        principal: &'a Principal,
        _: &'a Scope,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        let allowed = principal.subject().user_name() == "admin";
        let answer = allowed
            .then_some(())
            .ok_or_else(|| StreamError::forbidden("only the admin may"));
        Box::pin(std::future::ready(answer))
    }
}

#[tokio::test]
async fn who_may_not_see_a_warm_scope_is_told_so_and_nothing_else() {
    let secrets = "version=v1&resource=secrets&namespace=app";
    let simulator = Simulator::start().await.unwrap();
    let secret = serde_json::json!({"metadata": {"name": "s", "namespace": "app"}, "data": {"p": "QUFB"}});
    simulator.create("secrets", secret).unwrap();
    let gateway = GatewayUnderTest::build(builder(&simulator).authorizer(OnlyAdmin));
    let _admin = admin_sees_a_secret(&gateway, secrets).await;
    let mut viewer = connect(&gateway, "viewer", "", "t", secrets);
    let events = viewer.events(1).await;
    assert_eq!(type_of(&events[0]), "FORBIDDEN");
    assert!(viewer.is_over().await);
    assert!(!String::from_utf8_lossy(viewer.raw()).contains("object"));
    assert_eq!(asked(&simulator), ["streaming list"]);
}

#[tokio::test]
async fn callers_share_by_their_complete_subject_and_not_by_their_credential() {
    let simulator = Simulator::start().await.unwrap();
    create(&simulator, "a");
    let upstream = KubeUpstream::from_config(config(&simulator)).unwrap();
    let gateway = GatewayUnderTest::build(GatewayUnderTest::builder(upstream, Partition::per_caller()));
    let mut open = Vec::new();
    for (user, groups, token, watches) in [
        ("ada", "red,blue", "first", 1),
        ("ada", "red,blue", "second", 1),
        ("ada", "blue,red", "first", 1),
        ("ada", "blue,red,blue", "first", 1),
        ("ada", "blue", "first", 2),
        ("ada", "", "first", 3),
        ("ada", "red,blue,green", "first", 4),
        ("bob", "red,blue", "first", 5),
    ] {
        let mut connection = connect(&gateway, user, groups, token, APP);
        assert_eq!(words(&mut connection, 3).await, ["reset", "added a", "synced"]);
        assert_eq!(asked(&simulator).len(), watches, "{user} {groups} {token}");
        open.push(connection);
    }
}

#[tokio::test]
async fn nobody_is_made_somebody_else() {
    let simulator = Simulator::start().await.unwrap();
    let mut config = config(&simulator);
    config.auth_info.impersonate = Some("admin".to_owned());
    assert!(KubeUpstream::from_config(config).is_err());
    let mut headers = kube::Config::new(simulator.url().parse().unwrap());
    headers.headers.push((
        http::HeaderName::from_static("impersonate-user"),
        http::HeaderValue::from_static("admin"),
    ));
    assert!(KubeUpstream::from_config(headers).is_err());
    assert!(Subject::new("").is_err());
    let gateway = gateway(&simulator);
    let mut nobody = connect(&gateway, "", "", "t", APP);
    assert_eq!(type_of(&nobody.events(1).await[0]), "UNAUTHENTICATED");
    assert_eq!(asked(&simulator).len(), 0);
}

#[tokio::test]
async fn a_name_with_a_second_term_reaches_no_other_object() {
    let simulator = Simulator::start().await.unwrap();
    create(&simulator, "x");
    create(&simulator, "y");
    let gateway = gateway(&simulator);
    for name in [
        "x,metadata.name%3Dy",
        "x%2Cmetadata.name%3Dy",
        "x%5C,metadata.name%3Dy",
    ] {
        let mut connection = gateway.connect(&format!("{APP}&name={name}"));
        let said = words(&mut connection, 1).await;
        if said == ["reset"] {
            assert_eq!(words(&mut connection, 1).await, ["synced"], "{name}");
        } else {
            assert_eq!(said, ["SCOPE_INVALID"], "{name}");
        }
        assert!(!String::from_utf8_lossy(connection.raw()).contains("\"object\""));
    }
}

#[tokio::test]
async fn three_subscribers_and_fifty_events_are_one_list_and_one_watch() {
    let labels = |selector: &str| format!("{APP}&labelSelector={selector}");
    for streaming in [true, false] {
        let simulator = Simulator::builder()
            .streaming_lists(streaming)
            .start()
            .await
            .unwrap();
        let object = serde_json::json!({
            "metadata": {"name": "a", "namespace": "app", "labels": {"a": "1", "b": "2"}}
        });
        simulator.create("configmaps", object).unwrap();
        let gateway = gateway(&simulator);
        let mut open = Vec::new();
        for selector in ["a%3D1,b%3D2", "b%3D2,a%3D1", "b%3D%3D2,%20a%3D1"] {
            let mut connection = gateway.connect(&labels(selector));
            assert_eq!(words(&mut connection, 3).await, ["reset", "added a", "synced"]);
            open.push(connection);
        }
        for number in 0..50 {
            change(&simulator, "a", &number.to_string());
            for connection in &mut open {
                assert_eq!(words(connection, 1).await, ["modified a"]);
            }
        }
        let summaries = asked(&simulator);
        if streaming {
            assert_eq!(summaries, ["streaming list"]);
        } else {
            assert_eq!(summaries[..2], ["streaming list", "list"]);
            assert_eq!(summaries.len(), 3, "{summaries:?}");
        }
        assert_eq!(simulator.counts().open_watches, 1);
    }
}

/// Whether the API server holds no connection of this gateway's watches, and the gateway no feed.
async fn nothing_is_left(simulator: &Simulator, gateway: &GatewayUnderTest) {
    until(|| simulator.counts().open_watches == 0 && gateway.gateway().feeds().count() == 0).await;
}

#[tokio::test]
async fn the_last_to_leave_a_quiet_stream_closes_the_upstream_connection_within_the_linger_time() {
    let linger = Duration::from_secs(3);
    let simulator = Simulator::start().await.unwrap();
    create(&simulator, "a");
    let gateway = GatewayUnderTest::build(builder(&simulator).linger(linger));
    let mut connection = gateway.connect(APP);
    assert_eq!(words(&mut connection, 3).await, ["reset", "added a", "synced"]);
    drop(connection);
    // Back within the time: the same watch, and all of the snapshot.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut again = gateway.connect(APP);
    assert_eq!(words(&mut again, 3).await, ["reset", "added a", "synced"]);
    assert_eq!(asked(&simulator), ["streaming list"]);
    let left = tokio::time::Instant::now();
    drop(again);
    nothing_is_left(&simulator, &gateway).await;
    assert!(left.elapsed() >= linger * 9 / 10);
    until(|| simulator.counts().open_connections == 0).await;
    assert_eq!(asked(&simulator), ["streaming list"], "no event was needed");
}

#[tokio::test]
async fn leaving_at_any_moment_frees_everything() {
    let simulator = Simulator::start().await.unwrap();
    for name in ["a", "b"] {
        create(&simulator, name);
    }
    let gateway = GatewayUnderTest::build(builder(&simulator).linger(Duration::ZERO));
    // While the headers are waited for.
    let hang = simulator
        .faults()
        .add(RequestMatch::any(), Fault::HangBeforeHeaders);
    let mut connection = gateway.connect(APP);
    assert!(is_quiet(&mut connection).await);
    until(|| simulator.faults().hits(hang) == 1).await;
    drop(connection);
    nothing_is_left(&simulator, &gateway).await;
    // In the snapshot.
    simulator.faults().add(
        RequestMatch::watch(),
        Fault::stream(
            krm_stream_simulator::StreamPoint::AfterEvents(1),
            krm_stream_simulator::StreamAction::Silence,
        ),
    );
    let mut connection = gateway.connect(APP);
    assert_eq!(words(&mut connection, 2).await, ["reset", "added a"]);
    drop(connection);
    nothing_is_left(&simulator, &gateway).await;
    // While a retry is waited for.
    let mut connection = gateway.connect(APP);
    assert_eq!(
        words(&mut connection, 4).await,
        ["reset", "added a", "added b", "synced"]
    );
    simulator.faults().add(
        RequestMatch::resumed_watch().always(),
        Fault::status(&Status::too_many_requests(20)),
    );
    simulator.close_watches();
    until(|| {
        asked(&simulator)
            .last()
            .is_some_and(|last| last.starts_with("watch"))
    })
    .await;
    drop(connection);
    nothing_is_left(&simulator, &gateway).await;
}

#[tokio::test]
async fn a_thousand_who_come_and_go_leave_no_connection_and_no_task() {
    let simulator = Simulator::start().await.unwrap();
    create(&simulator, "a");
    let gateway = GatewayUnderTest::build(builder(&simulator).linger(Duration::ZERO));
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    for round in 0..1000 {
        let mut connection = gateway.connect(APP);
        if round % 10 == 0 {
            assert_eq!(words(&mut connection, 3).await, ["reset", "added a", "synced"]);
        } else if round % 3 == 0 {
            assert_eq!(words(&mut connection, 1).await, ["reset"]);
        } else {
            tokio::task::yield_now().await;
        }
    }
    nothing_is_left(&simulator, &gateway).await;
    drop(gateway);
    until(|| simulator.counts().open_connections == 0).await;
    until(|| tasks() <= before).await;
}

#[tokio::test(start_paused = true)]
async fn the_linger_time_runs_from_the_last_one_to_leave_however_short_its_visit() {
    let linger = Duration::from_secs(5);
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = GatewayUnderTest::with(upstream, Partition::shared("tests"), Ordering::Strict, linger);
    let mut connection = gateway.connect(APP);
    let opening = async {
        let mut session = script.next_open().await.accept();
        session.boundary("1");
        session
    };
    let (said, session) = tokio::join!(words(&mut connection, 2), opening);
    assert_eq!(said, ["reset", "synced"]);
    drop(connection);
    for _ in 0..3 {
        tokio::time::sleep(linger * 4 / 5).await;
        // So short a visit that the feed's task does not run in it.
        let mut visit = gateway.connect(APP);
        assert_eq!(words(&mut visit, 2).await, ["reset", "synced"]);
        drop(visit);
    }
    tokio::time::sleep(linger * 4 / 5).await;
    assert!(!session.is_dropped());
    tokio::time::sleep(linger / 4).await;
    assert!(session.is_dropped());
}
