//! What a real API server sent, through LIST and WATCH decoding, feeds and every projection that is granted by default.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a recording that cannot be played says why and fails"
)]

use std::fs;
use std::future::poll_fn;
use std::path::Path;
use std::time::Duration;

use krm_stream_protocol::{
    ErrorCode, Object, Partition, ScopeRequest, SessionItem, Start, Upstream as _, WatchEvent, json,
};
use krm_stream_simulator::{Answer, Fault, RequestMatch, Simulator};
use krm_stream_tests::{Connection, GatewayUnderTest, ScriptedSession, ScriptedUpstream, shared_inputs};
use krm_stream_upstream_kube::{KubeUpstream, kube};

/// A secret's value and its encoding in the recordings.
const CANARIES: [&str; 2] = ["canary-", "Y2FuYXJ5"];

/// How an API server without streaming lists answers.
const REFUSED: &str = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","message":"sendInitialEvents: Forbidden","code":422}"#;

const RESOURCES: [(&str, &str); 4] = [
    ("configmaps", "version=v1&resource=configmaps&namespace=rec"),
    ("secrets", "version=v1&resource=secrets&namespace=rec"),
    (
        "deployments",
        "group=apps&version=v1&resource=deployments&namespace=rec",
    ),
    (
        "oddities",
        "group=lab.example.com&version=v1&resource=oddities&namespace=rec",
    ),
];

/// An upstream whose API server answers the first such request with this body.
async fn recorded_upstream(request: RequestMatch, body: String) -> (Simulator, KubeUpstream) {
    let simulator = Simulator::start().await.expect("a simulator");
    simulator
        .faults()
        .add(request, Fault::Answer(Answer::json(200, body)));
    let config = kube::Config::new(simulator.url().parse().expect("an address"));
    (simulator, KubeUpstream::from_config(config).expect("an upstream"))
}

/// What the upstream's decoding makes of it, up to the recording's end.
async fn decoded(upstream: &KubeUpstream, query: &str) -> Vec<WatchEvent> {
    let request = ScopeRequest::parse(query).expect("a test's own scope");
    let mut session = upstream
        .open(request.scope(), Start::Fresh)
        .await
        .expect("it opens");
    let mut events = Vec::new();
    loop {
        let item = tokio::time::timeout(Duration::from_secs(10), poll_fn(|cx| session.poll_next(cx))).await;
        match item.expect("the recording ends") {
            SessionItem::Event(event) => events.push(event),
            SessionItem::End(_) => return events,
        }
    }
}

/// A live stream, and the session that a test feeds it from: all in the process, so that time may be paused.
struct Relay {
    connection: Connection,
    session: ScriptedSession,
}

impl Relay {
    async fn start(query: &str) -> Self {
        let (upstream, mut script) = ScriptedUpstream::new();
        let gateway = GatewayUnderTest::on(upstream);
        let mut connection = gateway.connect(query);
        let opened = tokio::select! {
            request = script.next_open() => request,
            event = connection.next() => panic!("nothing comes before the watch is open: {event:?}"),
        };
        let session = opened.accept();
        assert!(next(&mut connection).await.contains(r#""type":"reset""#));
        Self { connection, session }
    }

    /// Passes one event on, and returns what it makes the stream say, if anything, in 300 ms of the test's time.
    async fn pass(&mut self, event: WatchEvent) -> Option<String> {
        self.session.send(event);
        tokio::time::timeout(Duration::from_millis(300), self.connection.next())
            .await
            .ok()
            .flatten()
    }
}

async fn next(connection: &mut Connection) -> String {
    tokio::time::timeout(Duration::from_secs(20), connection.next())
        .await
        .expect("an event comes")
        .expect("the stream goes on")
}

fn member<'a>(text: &'a [u8], name: &str) -> &'a [u8] {
    json::last_member(text, name).unwrap_or_default()
}

/// Every member that came stands in the recorded object with the very same bytes.
fn assert_kept_bytes(recorded: &[u8], came: &[u8], place: &str) {
    for kept in json::members(came) {
        let key = String::from_utf8_lossy(kept.key).into_owned();
        let original = json::members(recorded)
            .filter(|member| member.key == kept.key)
            .map(|member| member.value)
            .last()
            .unwrap_or_else(|| panic!("{place}: {key} was not recorded"));
        if key == "metadata" || key == "annotations" {
            assert_kept_bytes(original, kept.value, place);
        } else {
            assert_eq!(
                String::from_utf8_lossy(original),
                String::from_utf8_lossy(kept.value),
                "{place}: {key}"
            );
        }
    }
    for name in [
        "managedFields",
        "kubectl.kubernetes.io/last-applied-configuration",
    ] {
        assert!(
            json::last_member(came, name).is_none(),
            "{place}: {name} is removed"
        );
    }
}

/// The objects of a recorded watch, in order.
fn recorded_objects(text: &str) -> Vec<Vec<u8>> {
    text.lines()
        .filter(|line| !line.starts_with(r#"{"type":"BOOKMARK""#))
        .map(|line| member(line.as_bytes(), "object").to_vec())
        .collect()
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[tokio::test]
async fn every_recorded_watch_comes_out_byte_for_byte_and_without_a_secret() {
    let Some(shared) = shared_inputs() else { return };
    let folder = shared.join("recordings");
    for (resource, scope) in RESOURCES {
        let recording = read(&folder, &format!("watchlist-{resource}.jsonl"));
        let request = RequestMatch::streaming_list();
        let (simulator, upstream) = recorded_upstream(request, recording.clone()).await;
        let events = decoded(&upstream, scope).await;
        drop((simulator, upstream));
        let recorded = recorded_objects(&recording);
        let came: Vec<_> = events
            .iter()
            .filter_map(object_of)
            .map(|object| object.json().to_vec())
            .collect();
        assert!(came == recorded, "{resource}: decoding keeps every byte");
        // No socket is in what follows: silence is known by all being idle.
        tokio::time::pause();
        for projection in ["krm-full/v1", "krm-spec/v1"] {
            let place = format!("{resource} under {projection}");
            let mut relay = Relay::start(&format!("{scope}&projection={projection}")).await;
            let mut last: Vec<u8> = Vec::new();
            for event in &events {
                let told = relay.pass(event.clone()).await;
                assert_told(event, told.as_deref(), projection, &mut last, &place);
            }
            assert_no_canary(&relay.connection, &place);
        }
        tokio::time::resume();
    }
}

fn object_of(event: &WatchEvent) -> Option<&Object> {
    match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
            Some(object)
        }
        WatchEvent::Bookmark { .. } | WatchEvent::SnapshotRestarted | WatchEvent::Unknown => None,
    }
}

/// The stream said of this event what it had to, and nothing else.
fn assert_told(event: &WatchEvent, told: Option<&str>, projection: &str, last: &mut Vec<u8>, place: &str) {
    match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) => {
            let under_spec = projection == "krm-spec/v1";
            if under_spec && is_status_only(last, object.json()) {
                return assert_eq!(told, None, "{place}: a change of status alone is silent");
            }
            let told = told.unwrap_or_else(|| panic!("{place}: a change is told"));
            let came = member(told.as_bytes(), "object");
            assert_kept_bytes(object.json(), came, place);
            assert_eq!(
                has_status(came),
                has_status(object.json()) && !under_spec,
                "{place}"
            );
            *last = object.json().to_vec();
        }
        WatchEvent::Deleted(_) => assert!(
            told.is_some_and(|told| told.contains(r#""type":"deleted""#)),
            "{place}"
        ),
        WatchEvent::Bookmark {
            initial_events_end: true,
            ..
        } => {
            assert!(
                told.is_some_and(|told| told.contains(r#""type":"synced""#)),
                "{place}"
            );
        }
        WatchEvent::Bookmark { .. } | WatchEvent::SnapshotRestarted | WatchEvent::Unknown => {
            assert_eq!(told, None, "{place}");
        }
    }
}

fn has_status(object: &[u8]) -> bool {
    json::last_member(object, "status").is_some()
}

/// Whether two states differ in their status and bookkeeping alone.
fn is_status_only(before: &[u8], after: &[u8]) -> bool {
    let annotations = |object| json::members(member(member(object, "metadata"), "annotations")).count();
    !before.is_empty()
        && has_status(after)
        && member(before, "spec") == member(after, "spec")
        && annotations(before) == annotations(after)
        && member(before, "status") != member(after, "status")
}

#[tokio::test]
async fn every_recorded_list_comes_out_byte_for_byte_and_without_a_secret() {
    let Some(shared) = shared_inputs() else { return };
    let folder = shared.join("recordings");
    for (name, (_, scope)) in [
        ("list-secrets.json", RESOURCES[1]),
        ("list-deployments.json", RESOURCES[2]),
        ("list-oddities.json", RESOURCES[3]),
    ] {
        let recording = read(&folder, name);
        let request = RequestMatch::list();
        let (simulator, upstream) = recorded_upstream(request, recording.clone()).await;
        simulator.faults().add(
            RequestMatch::streaming_list(),
            Fault::Answer(Answer::json(422, REFUSED)),
        );
        simulator.faults().add(
            RequestMatch::resumed_watch(),
            Fault::Answer(Answer::json(200, "")),
        );
        let events = decoded(&upstream, scope).await;
        let items: Vec<_> = json::elements(member(recording.as_bytes(), "items"))
            .map(|(item, _)| item.to_vec())
            .collect();
        assert!(!items.is_empty());
        drop((simulator, upstream));
        tokio::time::pause();
        let mut relay = Relay::start(scope).await;
        for (item, event) in items.iter().zip(&events) {
            let object = object_of(event).expect("an item is an object");
            assert_eq!(
                object.json().to_vec(),
                with_type_of(item, object.json()),
                "{name}"
            );
            let told = relay.pass(event.clone()).await.expect("it is told");
            assert_kept_bytes(object.json(), member(told.as_bytes(), "object"), name);
        }
        assert!(matches!(
            events[items.len()],
            WatchEvent::Bookmark {
                initial_events_end: true,
                ..
            }
        ));
        assert_no_canary(&relay.connection, name);
        tokio::time::resume();
    }
}

/// The item as a watch would have sent it: typed lists leave kind and apiVersion to the list.
fn with_type_of(item: &[u8], object: &[u8]) -> Vec<u8> {
    if json::last_member(item, "kind").is_some() {
        return item.to_vec();
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!(
        r#"{{"kind":{},"apiVersion":{},{}"#,
        text(member(object, "kind")),
        text(member(object, "apiVersion")),
        text(&item[1..])
    )
    .into_bytes()
}

#[tokio::test]
async fn every_recorded_refusal_becomes_its_error() {
    let Some(shared) = shared_inputs() else { return };
    let folder = shared.join("recordings");
    for (name, status, code) in [
        ("status-401.json", 401, ErrorCode::Unauthenticated),
        ("status-403.json", 403, ErrorCode::Forbidden),
        ("status-404-no-group.txt", 404, ErrorCode::ScopeInvalid),
        ("status-404-no-resource.json", 404, ErrorCode::ScopeInvalid),
        (
            "status-503-paths-not-installed.json",
            503,
            ErrorCode::UpstreamUnavailable,
        ),
        (
            "status-504-too-large-resource-version.json",
            504,
            ErrorCode::UpstreamUnavailable,
        ),
    ] {
        let simulator = Simulator::start().await.expect("a simulator");
        simulator.faults().add(
            RequestMatch::any().resource("configmaps").always(),
            Fault::Answer(Answer::json(status, read(&folder, name))),
        );
        let config = kube::Config::new(simulator.url().parse().expect("an address"));
        let upstream = KubeUpstream::from_config(config).expect("an upstream");
        let gateway = GatewayUnderTest::build(GatewayUnderTest::builder(upstream, Partition::per_caller()));
        let mut connection = gateway.connect(RESOURCES[0].1);
        let event = next(&mut connection).await;
        assert!(event.contains(&format!(r#""code":"{code}""#)), "{name}: {event}");
        assert!(
            event.contains(&format!(r#""terminal":{}"#, code.is_terminal())),
            "{name}: {event}"
        );
        assert!(connection.is_over().await);
    }
}

fn assert_no_canary(connection: &Connection, place: &str) {
    let raw = String::from_utf8_lossy(connection.raw());
    for canary in CANARIES {
        assert!(!raw.contains(canary), "{place}: a secret value is on the wire");
    }
}
