//! Streaming lists that are accepted and never finished, and those that are refused.

use std::sync::Arc;
use std::time::Duration;

use krm_stream_protocol::{Observation, Partition};
use krm_stream_simulator::{Answer, Fault, RequestMatch, Rule, Simulator, Status, User};
use krm_stream_tests::{GatewayUnderTest, Recorder};
use krm_stream_upstream_kube::KubeUpstream;

use crate::api_server::{
    self, APP, SECOND, added, annotated_bookmark, bookmark, boundary, item, line, modified, page, status,
    types_for, words,
};
use crate::simulated::{asked, config, create, is_quiet, until};

#[tokio::test(start_paused = true)]
async fn a_streaming_list_that_never_ends_is_finished_by_a_list_with_one_synced() {
    let beginning = || api_server::Answer::ok(added("a", "1") + &added("gone", "2"));
    for answer in [
        beginning().then_hang(),
        beginning().then_data(bookmark("5")).then_hang(),
        beginning()
            .then_data(annotated_bookmark("6", "false"))
            .then_hang(),
    ] {
        let (gateway, server) = api_server::gateway(move |asked| {
            if asked.is_streaming_list() {
                answer.clone()
            } else if asked.is_watch() {
                api_server::Answer::ok("")
                    .then_wait(SECOND)
                    .then_data(modified("b", "11"))
                    .then_hang()
            } else {
                api_server::Answer::ok(page("10", "null", &[item("a", "1"), item("b", "3")]))
            }
        });
        let began = tokio::time::Instant::now();
        let mut connection = gateway.connect(APP);
        assert_eq!(
            words(&mut connection, 3).await,
            ["reset", "added a", "added gone"]
        );
        assert_eq!(
            words(&mut connection, 3).await,
            ["deleted gone", "added b", "synced"],
            "a is not told again; what is not there any more is taken back before the end"
        );
        assert_eq!(began.elapsed().as_secs(), 30);
        assert_eq!(words(&mut connection, 1).await, ["modified b"]);
        assert!(connection.is_quiet_for(SECOND * 30).await);
        assert_eq!(server.summaries(), ["streaming list", "list", "watch 10"]);
        assert_eq!(connection.uids(), ["uid-a", "uid-b"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_with_the_annotation_is_not_the_end_of_the_snapshot() {
    let (gateway, _server) = api_server::gateway(|asked| {
        let annotated = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b","namespace":"app","uid":"uid-b","resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}"#;
        assert!(asked.is_streaming_list());
        api_server::Answer::ok(added("a", "1") + &line("ADDED", annotated))
            .then_wait(SECOND * 3)
            .then_data(added("c", "8") + &boundary("9"))
            .then_hang()
    });
    let mut connection = gateway.connect(APP);
    assert_eq!(
        words(&mut connection, 5).await,
        ["reset", "added a", "added b", "added c", "synced"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_boundary_then_a_close_then_an_expiry_again_and_again_is_no_storm() {
    let (gateway, server) = api_server::gateway(|asked| {
        if asked.is_watch() {
            return api_server::Answer::new(410, status(410, "Expired", "too old resource version"));
        }
        assert_eq!(asked.summary(), "streaming list");
        api_server::Answer::ok(added("a", "90") + &boundary("100"))
    });
    let began = tokio::time::Instant::now();
    let mut resets = 0;
    let mut ends = 0;
    while began.elapsed() < SECOND * 300 {
        let mut connection = gateway.connect(APP);
        let types = types_for(&mut connection, SECOND * 300).await;
        resets += types.iter().filter(|kind| *kind == "reset").count();
        ends += 1;
        assert_eq!(types.last().unwrap(), "UPSTREAM_UNAVAILABLE", "{types:?}");
        let raw = String::from_utf8(connection.raw().to_vec()).unwrap();
        let wait = raw.rsplit("retryAfterMs\":").next().unwrap();
        let wait: u64 = wait.split('}').next().unwrap().parse().unwrap();
        tokio::time::sleep(Duration::from_millis(wait)).await;
    }
    assert!(
        resets <= 40 && ends <= 30,
        "{resets} resets, {ends} ends in five minutes"
    );
    let late: Vec<_> = server
        .asked()
        .into_iter()
        .filter(|asked| asked.after > SECOND * 200)
        .collect();
    assert!(
        late.len() <= 20,
        "{} requests in its last 100 seconds",
        late.len()
    );
}

#[tokio::test]
async fn each_refusal_of_streaming_lists_is_followed_by_a_list_and_remembered() {
    for refusal in [
        Status::streaming_list_refused().to_answer(),
        Answer::json(
            400,
            status(400, "BadRequest", "unknown parameter sendInitialEvents"),
        ),
        Answer::text(500, "something about this request went wrong\n"),
        Answer::text(405, "<html>Method Not Allowed</html>"),
    ] {
        let simulator = Simulator::start().await.unwrap();
        create(&simulator, "a");
        simulator
            .faults()
            .add(RequestMatch::streaming_list().always(), Fault::Answer(refusal));
        let builder = crate::simulated::builder(&simulator).linger(Duration::ZERO);
        let gateway = GatewayUnderTest::build(builder);
        for _ in 0..3 {
            let mut connection = gateway.connect(APP);
            assert_eq!(words(&mut connection, 3).await, ["reset", "added a", "synced"]);
            drop(connection);
            until(|| gateway.gateway().feeds().count() == 0).await;
        }
        let summaries = asked(&simulator);
        let streaming = summaries.iter().filter(|line| *line == "streaming list").count();
        assert_eq!(streaming, 1, "{summaries:?}");
        assert_eq!(summaries.iter().filter(|line| *line == "list").count(), 3);
    }
}

#[tokio::test]
async fn who_may_list_and_not_watch_is_forbidden_once_and_nothing_loops() {
    for streaming in [true, false] {
        let simulator = Simulator::builder()
            .streaming_lists(streaming)
            .start()
            .await
            .unwrap();
        create(&simulator, "a");
        simulator.access().add_token("t", User::new("lister"));
        simulator.access().set_rules([Rule::allow()
            .user("lister")
            .verbs(["list"])
            .resource("", "configmaps")
            .namespace("app")]);
        let mut config = config(&simulator);
        config.auth_info.token = Some(String::from("t").into());
        let recorder = Arc::new(Recorder::default());
        let upstream = KubeUpstream::from_config(config).unwrap();
        let gateway = GatewayUnderTest::build(
            GatewayUnderTest::builder(upstream, Partition::per_caller()).observer(recorder.clone()),
        );
        let mut connection = gateway.connect(APP);
        let mut types = Vec::new();
        while let Some(event) = connection.next().await {
            types.push(api_server::type_of(&event));
        }
        assert_eq!(types.last().unwrap(), "FORBIDDEN");
        assert_eq!(types.iter().filter(|kind| *kind == "FORBIDDEN").count(), 1);
        let before = asked(&simulator).len();
        assert!(before <= 3, "{:?}", asked(&simulator));
        tokio::time::sleep(Duration::from_millis(600)).await;
        assert_eq!(asked(&simulator).len(), before);
        assert_eq!(
            recorder.count(|observation| matches!(observation, Observation::TerminalError { .. })),
            1
        );
    }
}

#[tokio::test]
async fn a_list_whose_watch_is_refused_is_never_called_complete() {
    for streaming in [true, false] {
        let simulator = Simulator::builder()
            .streaming_lists(streaming)
            .start()
            .await
            .unwrap();
        create(&simulator, "a");
        let builder = crate::simulated::builder(&simulator).linger(Duration::ZERO);
        let gateway = GatewayUnderTest::build(builder);
        // From here on it is known whether streaming lists are served. Rights come first: a refusal would hide it.
        let mut connection = gateway.connect(APP);
        assert_eq!(words(&mut connection, 3).await, ["reset", "added a", "synced"]);
        drop(connection);
        until(|| gateway.gateway().feeds().count() == 0).await;

        simulator
            .access()
            .set_rules([Rule::allow(), Rule::deny().verbs(["watch"])]);
        for _ in 0..3 {
            let before = asked(&simulator).len();
            let mut connection = gateway.connect(APP);
            let mut types = Vec::new();
            while let Some(event) = connection.next().await {
                types.push(api_server::type_of(&event));
            }
            assert_eq!(types.last().unwrap(), "FORBIDDEN");
            assert!(!types.contains(&"synced".to_owned()), "{types:?}");
            let asked = asked(&simulator).split_off(before);
            if streaming {
                assert_eq!(types.len(), 1, "refused before anything else: {types:?}");
                assert_eq!(asked, ["streaming list"]);
            } else {
                assert_eq!(asked.len(), 2, "{asked:?}");
                assert_eq!(asked[0], "list");
            }
        }
    }
}

#[tokio::test]
async fn an_ignored_request_for_initial_events_is_finished_by_a_list() {
    let simulator = Simulator::start().await.unwrap();
    create(&simulator, "a");
    simulator
        .faults()
        .add(RequestMatch::streaming_list(), Fault::IgnoreStreamingList);
    let upstream = KubeUpstream::builder(config(&simulator))
        .snapshot_timeout(Duration::from_secs(2), Duration::from_secs(20))
        .build()
        .unwrap();
    let gateway = GatewayUnderTest::build(GatewayUnderTest::builder(upstream, Partition::shared("tests")));
    let mut connection = gateway.connect(APP);
    assert_eq!(words(&mut connection, 3).await, ["reset", "added a", "synced"]);
    assert!(is_quiet(&mut connection).await);
    assert_eq!(asked(&simulator)[..2], ["streaming list", "list"]);
}
