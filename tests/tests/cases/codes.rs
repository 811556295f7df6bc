//! What the API server says instead of a stream, and what a browser is told of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use krm_stream_protocol::{Diagnostic, Diagnostics, Partition};
use krm_stream_simulator::{Answer, Fault, RequestMatch, Rule, Simulator, Status, User};
use krm_stream_tests::{Connection, GatewayUnderTest};
use krm_stream_upstream_kube::{KubeUpstream, kube};

use crate::api_server::{APP, status, type_of, words};
use crate::simulated::{asked, builder, change, config, create, gateway, is_quiet, until};

/// The whole stream: a few events, the last of which ends it.
async fn whole(mut connection: Connection) -> Vec<String> {
    let mut events = Vec::new();
    let reading = async {
        while let Some(event) = connection.next().await {
            events.push(event);
        }
    };
    tokio::time::timeout(crate::simulated::PATIENCE, reading)
        .await
        .unwrap();
    events
}

/// A `Status` as it is printed for people.
fn pretty(code: u16, reason: &str) -> String {
    let lines = [
        "{",
        "    \"kind\": \"Status\",",
        "    \"apiVersion\": \"v1\",",
        "    \"status\": \"Failure\",",
        "    \"message\": \"no\",",
        &format!("    \"reason\": \"{reason}\","),
        &format!("    \"code\": {code}"),
        "}",
        "",
    ];
    lines.join("\n")
}

const CODES: [(u16, &str, &str, bool); 8] = [
    (401, "Unauthorized", "UNAUTHENTICATED", true),
    (403, "Forbidden", "FORBIDDEN", true),
    (404, "NotFound", "SCOPE_INVALID", true),
    (429, "TooManyRequests", "UPSTREAM_UNAVAILABLE", false),
    (500, "InternalError", "UPSTREAM_UNAVAILABLE", false),
    (502, "BadGateway", "UPSTREAM_UNAVAILABLE", false),
    (503, "ServiceUnavailable", "UPSTREAM_UNAVAILABLE", false),
    (504, "Timeout", "UPSTREAM_UNAVAILABLE", false),
];

#[tokio::test]
async fn a_refusal_of_any_shape_is_one_error_of_its_status_code() {
    for (code, reason, expected, terminal) in CODES {
        for body in [
            pretty(code, reason),
            status(code, reason, "no"),
            String::new(),
            "<html><body>\n<h1>410 Gone, 403 Forbidden</h1>\n</body></html>".to_owned(),
        ] {
            let simulator = Simulator::start().await.unwrap();
            simulator.faults().add(
                RequestMatch::any().always(),
                Fault::Answer(Answer::json(code, body)),
            );
            let events = whole(gateway(&simulator).connect(APP)).await;
            assert_eq!(events.len(), 1, "{code}: {events:?}");
            assert_eq!(type_of(&events[0]), expected);
            assert!(events[0].contains(&format!("\"terminal\":{terminal}")));
            assert_eq!(events[0].contains("retryAfterMs"), !terminal, "{}", events[0]);
        }
    }
}

#[tokio::test]
async fn a_refusal_with_a_hint_passes_it_on() {
    let simulator = Simulator::start().await.unwrap();
    simulator.faults().add(
        RequestMatch::any(),
        Fault::Answer(Status::too_many_requests(7).to_answer()),
    );
    let events = whole(gateway(&simulator).connect(APP)).await;
    assert_eq!(events.len(), 1);
    assert!(
        events[0].ends_with("\"terminal\":false,\"retryAfterMs\":7000}"),
        "{}",
        events[0]
    );
}

#[tokio::test]
async fn a_rejected_request_of_our_own_is_internal_and_asked_once() {
    let simulator = Simulator::builder().streaming_lists(false).start().await.unwrap();
    for code in [400, 422] {
        simulator.faults().clear();
        simulator.faults().add(
            RequestMatch::list().always(),
            Fault::Answer(Answer::json(code, pretty(code, "Invalid"))),
        );
        let events = whole(gateway(&simulator).connect(APP)).await;
        assert_eq!(events.len(), 1, "{events:?}");
        assert_eq!(type_of(&events[0]), "INTERNAL");
        assert!(events[0].contains("\"terminal\":true"));
    }
}

#[tokio::test]
async fn a_status_with_200_in_place_of_the_stream_is_one_error_of_its_code() {
    for (code, reason, expected, _) in CODES.into_iter().filter(|(code, ..)| *code < 429) {
        let simulator = Simulator::start().await.unwrap();
        simulator.faults().add(
            RequestMatch::any().always(),
            Fault::Answer(Answer::json(200, pretty(code, reason))),
        );
        let events = whole(gateway(&simulator).connect(APP)).await;
        let errors: Vec<_> = events
            .iter()
            .map(|event| type_of(event))
            .filter(|kind| kind != "reset")
            .collect();
        assert_eq!(errors, [expected], "{events:?}");
    }
}

#[tokio::test]
async fn numbers_in_a_text_class_nothing() {
    let simulator = Simulator::start().await.unwrap();
    let text = "read 54031 bytes, 403 keys; peer said 410 Gone";
    simulator.faults().add(
        RequestMatch::any().always(),
        Fault::Answer(Answer::json(500, status(500, "InternalError", text))),
    );
    let events = whole(gateway(&simulator).connect(APP)).await;
    assert_eq!(events.len(), 1);
    assert_eq!(type_of(&events[0]), "UPSTREAM_UNAVAILABLE");
    assert!(
        !events[0].contains("54031"),
        "the API server's own words are for diagnostics"
    );
}

/// A gateway that acts as `reader`, who may read config maps until told otherwise.
async fn reader() -> (Simulator, GatewayUnderTest) {
    let simulator = Simulator::start().await.unwrap();
    create(&simulator, "a");
    simulator.access().add_token("t", User::new("reader"));
    let mut config = config(&simulator);
    config.auth_info.token = Some(String::from("t").into());
    let upstream = KubeUpstream::from_config(config).unwrap();
    let gateway = GatewayUnderTest::build(GatewayUnderTest::builder(upstream, Partition::per_caller()));
    (simulator, gateway)
}

#[tokio::test]
async fn a_right_that_is_missing_or_taken_away_is_forbidden_in_kubernetes_words_and_not_asked_for_again() {
    let (simulator, gateway) = reader().await;
    let mut connection = gateway.connect(APP);
    assert_eq!(words(&mut connection, 3).await, ["reset", "added a", "synced"]);
    simulator
        .access()
        .set_rules([Rule::allow().user("somebody-else")]);
    simulator.close_watches();
    let events = whole(connection).await;
    let said: Vec<_> = events.iter().map(|event| type_of(event)).collect();
    assert_eq!(said.last().unwrap(), "FORBIDDEN", "{said:?}");
    assert!(
        events
            .last()
            .unwrap()
            .contains("configmaps is forbidden: User \\\"reader\\\" cannot"),
        "{events:?}"
    );
    let requests = asked(&simulator).len();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(asked(&simulator).len(), requests);

    // At the first opening too, once for each connection.
    let before = asked(&simulator).len();
    let events = whole(gateway.connect(APP)).await;
    assert_eq!(events.len(), 1);
    assert_eq!(type_of(&events[0]), "FORBIDDEN");
    assert_eq!(asked(&simulator).len(), before + 1);
}

#[tokio::test]
async fn a_rejected_token_is_read_from_its_file_again_and_a_second_rejection_is_told() {
    let simulator = Simulator::start().await.unwrap();
    create(&simulator, "a");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "first").unwrap();
    simulator.access().add_token("first", User::new("gateway"));
    simulator.access().add_token("of-another", User::new("another"));
    let mut config = config(&simulator);
    config.auth_info.token_file = Some(file.to_str().unwrap().to_owned());
    let upstream = KubeUpstream::from_config(config).unwrap();
    let gateway = GatewayUnderTest::build(GatewayUnderTest::builder(upstream, Partition::shared("tests")));
    let mut connection = gateway.connect(APP);
    assert_eq!(words(&mut connection, 3).await, ["reset", "added a", "synced"]);

    // Rotated: the old one is rejected, the file holds the new one.
    simulator.access().add_token("second", User::new("gateway"));
    simulator.access().remove_token("first");
    std::fs::write(&file, "second").unwrap();
    simulator.close_watches();
    until(|| asked(&simulator).len() >= 3).await;
    until(|| simulator.counts().open_watches == 1).await;
    change(&simulator, "a", "second");
    assert_eq!(
        words(&mut connection, 1).await,
        ["modified a"],
        "no reset, no error"
    );
    assert_eq!(asked(&simulator), ["streaming list", "watch 2", "watch 2"]);

    // Revoked: the file holds nothing better. One more request is made, then each stream is told.
    simulator.access().remove_token("second");
    simulator.close_watches();
    let events = whole(connection).await;
    assert_eq!(type_of(events.last().unwrap()), "UNAUTHENTICATED", "{events:?}");
    assert!(events.last().unwrap().contains("\"terminal\":true"));
    assert!(asked(&simulator).len() <= 3 + 4, "{:?}", asked(&simulator));
}

#[tokio::test]
async fn a_kind_that_is_taken_away_ends_its_streams_as_an_invalid_scope() {
    let simulator = Simulator::start().await.unwrap();
    simulator.register(krm_stream_simulator::Resource::custom(
        "lab.example.com",
        "v1",
        "oddities",
        "Oddity",
    ));
    let gateway = gateway(&simulator);
    let scope = "group=lab.example.com&version=v1&resource=oddities&namespace=app";
    let mut connection = gateway.connect(scope);
    assert_eq!(words(&mut connection, 2).await, ["reset", "synced"]);
    assert!(simulator.unregister("oddities.lab.example.com"));
    let events = whole(connection).await;
    assert_eq!(type_of(events.last().unwrap()), "SCOPE_INVALID", "{events:?}");
    let events = whole(gateway.connect(scope)).await;
    assert_eq!(events.len(), 1);
    assert_eq!(type_of(&events[0]), "SCOPE_INVALID");
}

#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Diagnostics for Told {
    fn report(&self, diagnostic: &Diagnostic<'_>) {
        self.0.lock().unwrap().push(format!("{diagnostic:?}"));
    }
}

#[tokio::test]
async fn what_cannot_be_reached_is_unavailable_and_its_address_is_for_diagnostics_alone() {
    let simulator = Simulator::start().await.unwrap();
    let stopped = Simulator::start().await.unwrap();
    let refuses = stopped.url();
    stopped.shutdown().await;
    let speaks_no_tls = format!("https://{}", simulator.address());
    for url in [refuses, speaks_no_tls] {
        let upstream = KubeUpstream::from_config(kube::Config::new(url.parse().unwrap())).unwrap();
        let told = Arc::new(Told::default());
        let gateway = GatewayUnderTest::build(
            GatewayUnderTest::builder(upstream, Partition::shared("tests")).diagnostics(told.clone()),
        );
        let events = whole(gateway.connect(APP)).await;
        assert_eq!(events.len(), 1, "{url}: {events:?}");
        assert_eq!(type_of(&events[0]), "UPSTREAM_UNAVAILABLE", "{url}");
        assert!(events[0].contains("retryAfterMs"));
        assert!(!events[0].contains("127.0.0.1"));
        assert!(!told.0.lock().unwrap().is_empty(), "{url}");
    }
}

#[tokio::test]
async fn a_redirect_to_another_host_is_not_followed() {
    let elsewhere = Simulator::start().await.unwrap();
    let simulator = Simulator::start().await.unwrap();
    simulator.access().add_token("t", User::new("gateway"));
    for code in [301, 302, 307, 308] {
        simulator.faults().add(
            RequestMatch::any().always(),
            Fault::redirect(code, &format!("{}/api/v1/configmaps?watch=1", elsewhere.url())),
        );
        let mut config = config(&simulator);
        config.auth_info.token = Some(String::from("t").into());
        let upstream = KubeUpstream::from_config(config).unwrap();
        let gateway = GatewayUnderTest::build(GatewayUnderTest::builder(upstream, Partition::per_caller()));
        let events = whole(gateway.connect(APP)).await;
        assert_eq!(events.len(), 1);
        assert_eq!(type_of(&events[0]), "INTERNAL");
        simulator.faults().clear();
    }
    assert_eq!(elsewhere.requests().len(), 0);
}

#[tokio::test]
async fn a_line_of_a_page_of_html_in_a_watch_is_no_event() {
    let simulator = Simulator::start().await.unwrap();
    create(&simulator, "a");
    let gateway = GatewayUnderTest::build(builder(&simulator));
    let mut connection = gateway.connect(APP);
    assert_eq!(words(&mut connection, 3).await, ["reset", "added a", "synced"]);
    assert!(is_quiet(&mut connection).await);
    simulator.inject(&RequestMatch::watch(), "<html>\n");
    let events = whole(connection).await;
    assert_eq!(events.len(), 1);
    assert_eq!(type_of(&events[0]), "INTERNAL");
}
