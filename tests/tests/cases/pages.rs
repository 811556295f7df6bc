//! Lists in pages.

use krm_stream_protocol::Partition;
use krm_stream_simulator::{Answer, Fault, RequestMatch, Simulator, Status};
use krm_stream_tests::GatewayUnderTest;
use krm_stream_upstream_kube::KubeUpstream;

use crate::api_server::{self, APP, SECOND, item, page, refused_streaming_list, words};
use crate::simulated::{asked, change, config, create, is_quiet, until};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// An API server without streaming lists that has five objects, and a gateway that asks for two at a time.
async fn five_objects() -> (Simulator, GatewayUnderTest) {
    let simulator = Simulator::builder().streaming_lists(false).start().await.unwrap();
    for name in NAMES {
        create(&simulator, name);
    }
    let upstream = KubeUpstream::builder(config(&simulator))
        .page_limit(2)
        .build()
        .unwrap();
    let gateway = GatewayUnderTest::build(GatewayUnderTest::builder(upstream, Partition::shared("tests")));
    (simulator, gateway)
}

#[tokio::test]
async fn five_objects_come_in_pages_of_two_each_once() {
    let (simulator, gateway) = five_objects().await;
    let mut connection = gateway.connect(APP);
    assert_eq!(
        words(&mut connection, 7).await,
        [
            "reset", "added a", "added b", "added c", "added d", "added e", "synced"
        ]
    );
    let watch = format!("watch {}", simulator.resource_version());
    until(|| asked(&simulator).len() == 5).await;
    assert_eq!(
        asked(&simulator),
        ["streaming list", "list", "list page", "list page", &watch]
    );
    for request in &simulator.requests()[2..4] {
        let names: Vec<_> = request
            .query()
            .split('&')
            .filter_map(|pair| pair.split('=').next())
            .collect();
        assert_eq!(names, ["limit", "continue"], "nothing else goes with a token");
    }
    change(&simulator, "b", "changed");
    assert_eq!(words(&mut connection, 1).await, ["modified b"]);
}

#[tokio::test]
async fn a_list_that_expires_on_its_third_page_is_begun_again_and_forgets_what_vanished() {
    let (simulator, gateway) = five_objects().await;
    let third = simulator.faults().add(
        RequestMatch::list().with_parameter("continue").nth(2),
        Fault::Delay(SECOND * 2),
    );
    let mut connection = gateway.connect(APP);
    assert_eq!(
        words(&mut connection, 5).await,
        ["reset", "added a", "added b", "added c", "added d"]
    );
    until(|| simulator.faults().hits(third) == 1).await;
    simulator.delete("configmaps", "app", "a").unwrap();
    simulator.compact();
    // An object of the list passes as it comes, or waits for the boundary, by which it is known what is gone.
    let mut told = words(&mut connection, 3).await;
    told[..2].sort();
    assert_eq!(
        told,
        ["added e", "deleted a", "synced"],
        "what was forwarded and is not in the list is taken back, the rest is not told twice"
    );
    assert!(is_quiet(&mut connection).await);
    assert_eq!(
        asked(&simulator)[..7],
        [
            "streaming list",
            "list",
            "list page",
            "list page",
            "list",
            "list page",
            &format!("watch {}", simulator.resource_version())
        ]
    );
}

#[tokio::test]
async fn a_page_that_expires_by_a_bare_answer_is_taken_the_same_way() {
    for answer in [
        Answer::text(410, ""),
        Status::new(410, "gone").reason("Gone").to_answer(),
    ] {
        let (simulator, gateway) = five_objects().await;
        simulator.faults().add(
            RequestMatch::list().with_parameter("continue").nth(2),
            Fault::Answer(answer),
        );
        let mut connection = gateway.connect(APP);
        assert_eq!(
            words(&mut connection, 7).await,
            [
                "reset", "added a", "added b", "added c", "added d", "added e", "synced"
            ]
        );
        assert!(is_quiet(&mut connection).await);
    }
}

#[tokio::test(start_paused = true)]
async fn null_and_empty_tokens_end_a_list_and_an_empty_page_with_a_token_does_not() {
    for last in ["\"\"", "null"] {
        let (gateway, server) = api_server::gateway(move |asked| {
            if asked.is_streaming_list() {
                return refused_streaming_list();
            }
            if asked.is_watch() {
                return api_server::Answer::ok("").then_hang();
            }
            api_server::Answer::ok(match asked.parameter("continue") {
                None => page("200", "\"t1\"", &[item("a", "150"), item("b", "30")]),
                Some("t1") => page("200", "\"t2\"", &[]),
                _ => page("200", last, &[item("c", "90")]),
            })
        });
        let mut connection = gateway.connect(APP);
        assert_eq!(
            words(&mut connection, 5).await,
            ["reset", "added a", "added b", "added c", "synced"]
        );
        assert!(connection.is_quiet_for(SECOND * 30).await);
        assert_eq!(
            server.summaries(),
            ["streaming list", "list", "list t1", "list t2", "watch 200"],
            "the watch starts at the list's version, whatever its items' are"
        );
    }
}
