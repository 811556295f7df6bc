//! Connections that end, break or fall silent in the middle of a watch: nobody notices.

use std::sync::Arc;
use std::time::Duration;

use krm_stream_protocol::{Observation, Partition};
use krm_stream_simulator::{Ending, RequestMatch, Simulator};
use krm_stream_tests::{GatewayUnderTest, Recorder};

use crate::api_server::{self, APP, SECOND, added, boundary, modified, words};
use crate::simulated::{asked, builder, change, create, is_quiet, until};

/// The observations of a stream that notices nothing: one cycle, no error.
fn one_cycle_and_no_error(recorder: &Recorder) {
    let cycles = recorder.count(|observation| matches!(observation, Observation::CycleStarted { .. }));
    let errors = recorder.count(|observation| {
        matches!(
            observation,
            Observation::RetryableError { .. }
                | Observation::TerminalError { .. }
                | Observation::ConsumerResync
        )
    });
    assert_eq!((cycles, errors), (1, 0));
}

/// How a watch ends.
type End = fn(&Simulator);

const ENDS: [(&str, End); 6] = [
    ("a clean end", |simulator| {
        simulator.close_watches();
    }),
    ("no end of the body", |simulator| {
        simulator.end_watches(&RequestMatch::watch(), Ending::Abort);
    }),
    ("a reset", |simulator| {
        simulator.end_watches(&RequestMatch::watch(), Ending::Reset);
    }),
    ("a reset of every connection", Simulator::reset_connections),
    ("half a line", |simulator| {
        simulator.inject(
            &RequestMatch::watch(),
            "{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"Conf",
        );
        simulator.end_watches(&RequestMatch::watch(), Ending::Abort);
    }),
    ("a notice to go away", |simulator| {
        simulator.go_away();
        simulator.close_watches();
    }),
];

#[tokio::test]
async fn a_watch_that_ends_in_any_way_is_resumed_and_the_browser_sees_only_what_changed() {
    for (end, happens) in ENDS {
        let simulator = Simulator::start().await.unwrap();
        create(&simulator, "a");
        let recorder = Arc::new(Recorder::default());
        let gateway = GatewayUnderTest::build(builder(&simulator).observer(recorder.clone()));
        let mut connection = gateway.connect(APP);
        assert_eq!(words(&mut connection, 3).await, ["reset", "added a", "synced"]);
        happens(&simulator);
        until(|| asked(&simulator).len() > 1 && simulator.counts().open_watches == 1).await;
        assert_eq!(asked(&simulator), ["streaming list", "watch 2"], "{end}");
        change(&simulator, "a", "later");
        assert_eq!(words(&mut connection, 1).await, ["modified a"], "{end}");
        assert!(is_quiet(&mut connection).await);
        one_cycle_and_no_error(&recorder);
    }
}

#[tokio::test]
async fn a_server_that_restarts_in_a_moment_is_not_noticed() {
    let simulator = Simulator::start().await.unwrap();
    create(&simulator, "a");
    let recorder = Arc::new(Recorder::default());
    let gateway = GatewayUnderTest::build(builder(&simulator).observer(recorder.clone()));
    let mut connection = gateway.connect(APP);
    assert_eq!(words(&mut connection, 3).await, ["reset", "added a", "synced"]);
    simulator.pause().await;
    change(&simulator, "a", "meanwhile");
    tokio::time::sleep(Duration::from_millis(300)).await;
    simulator.resume().unwrap();
    assert_eq!(words(&mut connection, 1).await, ["modified a"]);
    one_cycle_and_no_error(&recorder);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_falls_silent_past_its_timeout_is_dropped_and_resumed() {
    let server = api_server::ApiServer::new(|asked| {
        if asked.is_watch() {
            return api_server::Answer::ok(modified("a", "102")).then_hang();
        }
        api_server::Answer::ok(added("a", "90") + &boundary("100"))
            .then_wait(SECOND)
            .then_data(modified("a", "101"))
            .then_hang()
    });
    let recorder = Arc::new(Recorder::default());
    let upstream = server.upstream().watch_timeout(SECOND * 120).build().unwrap();
    let gateway = GatewayUnderTest::build(
        GatewayUnderTest::builder(upstream, Partition::shared("tests")).observer(recorder.clone()),
    );
    let mut connection = gateway.connect(APP);
    assert_eq!(words(&mut connection, 3).await, ["reset", "added a", "synced"]);
    assert_eq!(words(&mut connection, 1).await, ["modified a"]);
    assert!(connection.is_quiet_for(SECOND * 100).await);
    let mut seen = Vec::new();
    while seen.is_empty() {
        seen = api_server::types_for(&mut connection, SECOND * 60).await;
    }
    assert_eq!(seen, ["modified"]);
    assert_eq!(server.summaries()[..2], ["streaming list", "watch 101"]);
    let lived = server.gaps(0)[0];
    assert!(lived >= SECOND * 120 && lived <= SECOND * 131, "{lived:?}");
    one_cycle_and_no_error(&recorder);
}
