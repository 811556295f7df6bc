//! Every fault that a client of an API server should survive, on command and by schedule, over real HTTP.

use std::time::Duration;

use bytes::Bytes;
use krm_stream_simulator::{
    Answer, Ending, Fault, RawObject, RequestMatch, Simulator, Status, StreamAction, StreamPoint, StreamStep,
};
use serde_json::json;

use crate::client::{Client, End, PATIENCE, Watch};

const CONFIGMAPS: &str = "/api/v1/namespaces/shop/configmaps";
const FROM_NOW_ON: &str = "/api/v1/namespaces/shop/configmaps?watch=1&resourceVersion=3";
const STREAMING_LIST: &str = "/api/v1/namespaces/shop/configmaps?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

/// A simulator with the ConfigMaps `a` (version 2) and `b` (version 3).
async fn simulator() -> Simulator {
    let simulator = Simulator::start().await.unwrap();
    for name in ["a", "b"] {
        create(&simulator, name, "first");
    }
    simulator
}

fn create(simulator: &Simulator, name: &str, value: &str) {
    let object = json!({"metadata": {"name": name, "namespace": "shop"}, "data": {"value": value}});
    simulator.create("configmaps", object).unwrap();
}

fn change(simulator: &Simulator, name: &str, value: &str) {
    simulator
        .patch("configmaps", "shop", name, &json!({"data": {"value": value}}))
        .unwrap();
}

fn clients(simulator: &Simulator) -> [Client; 2] {
    [Client::new(simulator), Client::http2(simulator)]
}

async fn summaries(watch: &mut Watch, count: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for _ in 0..count {
        lines.push(watch.summary().await);
    }
    lines
}

#[tokio::test]
async fn every_watch_closes_at_once_for_as_long_as_it_was_ordered() {
    let simulator = simulator().await;
    for client in clients(&simulator) {
        let fault = simulator.faults().add(
            RequestMatch::watch().always(),
            Fault::stream(StreamPoint::Start, StreamAction::End(Ending::Close)),
        );
        for path in [STREAMING_LIST, FROM_NOW_ON, FROM_NOW_ON] {
            assert_eq!(client.watch(path).await.end().await, End::Clean);
        }
        assert_eq!(simulator.faults().hits(fault), 3);
        simulator.faults().clear();
        assert_eq!(client.watch(STREAMING_LIST).await.summary().await, "ADDED a@2");
    }
}

#[tokio::test]
async fn a_schedule_ends_one_watch_after_the_other_in_its_own_way() {
    let simulator = simulator().await;
    let client = Client::new(&simulator);
    let end = |at, ending| Fault::stream(at, StreamAction::End(ending));
    let watches = RequestMatch::watch;
    simulator
        .faults()
        .add(watches(), end(StreamPoint::BeforeBoundary, Ending::Abort));
    simulator
        .faults()
        .add(watches(), end(StreamPoint::AfterBoundary, Ending::Close));
    simulator
        .faults()
        .add(watches().nth(3), Fault::status(&Status::expired("1", "2")));
    simulator.faults().add(
        watches().times(2),
        end(StreamPoint::AfterEvents(1), Ending::Close),
    );
    let mut first = client.watch(STREAMING_LIST).await;
    assert_eq!(summaries(&mut first, 2).await, ["ADDED a@2", "ADDED b@3"]);
    assert_eq!(first.end().await, End::Broken);
    let mut second = client.watch(STREAMING_LIST).await;
    assert_eq!(
        summaries(&mut second, 3).await,
        ["ADDED a@2", "ADDED b@3", "BOOKMARK -@3"]
    );
    assert_eq!(second.end().await, End::Clean);
    assert_eq!(client.get(STREAMING_LIST).await.status, 410);
    for _ in 0..2 {
        let mut watch = client.watch(STREAMING_LIST).await;
        assert_eq!(watch.summary().await, "ADDED a@2");
        assert_eq!(watch.end().await, End::Clean);
    }
    let mut last = client.watch(STREAMING_LIST).await;
    assert_eq!(summaries(&mut last, 3).await.len(), 3);
    assert!(last.is_silent().await);
}

#[tokio::test]
async fn gone_comes_as_a_status_as_an_event_without_a_kind_and_midway_through_pages() {
    let simulator = simulator().await;
    let expired = Status::expired("1", "2");
    for client in clients(&simulator) {
        simulator
            .faults()
            .add(RequestMatch::watch(), Fault::status(&expired));
        let reply = client.get(FROM_NOW_ON).await;
        assert_eq!(
            (reply.status.as_u16(), reply.json()["reason"].as_str()),
            (410, Some("Expired"))
        );
        for (action, kind) in [
            (StreamAction::error(&expired), Some("Status")),
            (StreamAction::error_without_kind(&expired), None),
            (
                StreamAction::error(&Status::new(410, "gone").reason("Gone")),
                Some("Status"),
            ),
        ] {
            simulator.faults().add(
                RequestMatch::watch(),
                Fault::stream(StreamPoint::Start, action.clone()),
            );
            let by_schedule = client.watch(FROM_NOW_ON).await.event().await;
            let mut watch = client.watch(FROM_NOW_ON).await;
            let on_command = simulator.order(&RequestMatch::watch(), action);
            assert!(on_command >= 1);
            for event in [by_schedule, watch.event().await] {
                assert_eq!(
                    (event["type"].as_str(), event["object"]["code"].as_u64()),
                    (Some("ERROR"), Some(410))
                );
                assert_eq!(event["object"]["kind"].as_str(), kind);
            }
        }
        simulator.faults().add(
            RequestMatch::list().with_parameter("continue"),
            Fault::status(&expired),
        );
        let first = client.get(&format!("{CONFIGMAPS}?limit=1")).await.json();
        let token = first["metadata"]["continue"].as_str().unwrap().to_owned();
        let second = format!("{CONFIGMAPS}?limit=1&continue={token}");
        assert_eq!(client.get(&second).await.status, 410);
        assert_eq!(client.get(&second).await.status, 200, "once");
    }
}

#[tokio::test]
async fn refusals_have_every_code_with_and_without_a_hint_and_bodies_of_every_kind() {
    let simulator = simulator().await;
    for client in clients(&simulator) {
        for code in [401, 403, 404, 422, 429, 500, 502, 503, 504] {
            let status = Status::new(code, "no").reason("Because").retry_after_seconds(7);
            let answer = status.to_answer();
            for (answer, hint, body) in [
                (answer.clone(), Some("7"), status.to_json() + "\n"),
                (
                    answer.clone().without_header("retry-after"),
                    None,
                    status.to_json() + "\n",
                ),
                (
                    Answer::empty(code).header("Retry-After", "0"),
                    Some("0"),
                    String::new(),
                ),
                (Answer::empty(code), None, String::new()),
            ] {
                simulator
                    .faults()
                    .add(RequestMatch::list(), Fault::Answer(answer));
                let reply = client.get(CONFIGMAPS).await;
                assert_eq!(reply.status, code);
                let header = reply
                    .headers
                    .get("retry-after")
                    .map(|value| value.to_str().unwrap());
                assert_eq!((header, reply.text().trim_end()), (hint, body.trim_end()));
            }
            simulator
                .faults()
                .add(RequestMatch::list(), Fault::Answer(answer.indented()));
            let pretty = client.get(CONFIGMAPS).await;
            assert!(pretty.text().lines().count() > 8, "{}", pretty.text());
            assert_eq!(pretty.json()["code"], code);
            simulator
                .faults()
                .add(RequestMatch::list(), Fault::Answer(Answer::html(code)));
            let page = client.get(CONFIGMAPS).await;
            assert_eq!(
                (page.status.as_u16(), &page.headers["content-type"]),
                (code, &"text/html".parse().unwrap())
            );
            assert!(page.text().starts_with("<html>"));
        }
    }
}

#[tokio::test]
async fn a_line_is_cut_within_a_character() {
    let simulator = simulator().await;
    change(&simulator, "a", "é日本");
    for client in clients(&simulator) {
        for (path, version) in [(FROM_NOW_ON, 4), (STREAMING_LIST, 4)] {
            let cut = StreamAction::CutWithinCharacter {
                ending: Ending::Close,
            };
            simulator
                .faults()
                .add(RequestMatch::watch(), Fault::stream(StreamPoint::Start, cut));
            let (end, rest) = client.watch(path).await.try_line().await.unwrap_err();
            assert_eq!(end, End::Clean);
            assert!(
                rest.contains(&format!("\"resourceVersion\":\"{version}\"")),
                "{rest}"
            );
            assert!(rest.ends_with('\u{fffd}'), "the rest is no UTF-8: {rest}");
        }
    }
}

#[tokio::test]
async fn a_host_that_vanishes_sends_neither_an_end_nor_a_reset() {
    let simulator = simulator().await;
    for client in clients(&simulator) {
        let vanish = StreamAction::End(Ending::Vanish);
        simulator.faults().add(
            RequestMatch::watch(),
            Fault::stream(StreamPoint::AfterBoundary, vanish),
        );
        let mut by_schedule = client.watch(STREAMING_LIST).await;
        assert_eq!(summaries(&mut by_schedule, 3).await.len(), 3);
        assert!(by_schedule.is_silent().await);
        let other = Client::new(&simulator);
        let mut on_command = other.watch(STREAMING_LIST).await;
        assert_eq!(summaries(&mut on_command, 3).await.len(), 3);
        simulator.vanish_connections();
        create(&simulator, "late", "");
        assert!(on_command.is_silent().await && by_schedule.is_silent().await);
        let gone = simulator.wait_for(|counts| counts.open_watches == 0 && counts.open_connections == 0);
        tokio::time::timeout(PATIENCE, gone).await.unwrap();
        // Whoever connects anew is served.
        assert_eq!(Client::new(&simulator).get(CONFIGMAPS).await.status, 200);
        simulator.pause().await;
        assert_eq!(by_schedule.end().await, End::Broken);
        assert_eq!(on_command.end().await, End::Broken);
        simulator.resume().unwrap();
        simulator.delete("configmaps", "shop", "late").unwrap();
    }
}

#[tokio::test]
async fn bookmarks_go_backwards_and_do_not_order() {
    let simulator = simulator().await;
    for client in clients(&simulator) {
        let at = |version: &str| StreamStep {
            at: StreamPoint::AfterBoundary,
            action: StreamAction::BookmarkAt(version.to_owned()),
        };
        simulator.faults().add(
            RequestMatch::watch(),
            Fault::Stream(vec![at("500"), at("470"), at("opaque"), at("")]),
        );
        let mut watch = client.watch(STREAMING_LIST).await;
        assert_eq!(
            summaries(&mut watch, 7).await[3..],
            [
                "BOOKMARK -@500",
                "BOOKMARK -@470",
                "BOOKMARK -@opaque",
                "BOOKMARK -@"
            ]
        );
        simulator.order(&RequestMatch::watch(), StreamAction::BookmarkAt("1".to_owned()));
        assert_eq!(watch.summary().await, "BOOKMARK -@1");
    }
}

#[tokio::test]
async fn changes_are_replayed_out_of_order() {
    let simulator = simulator().await;
    change(&simulator, "a", "second");
    simulator.delete("configmaps", "shop", "b").unwrap();
    for client in clients(&simulator) {
        let replay = StreamAction::Replay { after: 2 };
        simulator.faults().add(
            RequestMatch::watch(),
            Fault::stream(StreamPoint::Start, replay.clone()),
        );
        let history = ["ADDED b@3", "MODIFIED a@4", "DELETED b@5"];
        let mut watch = client
            .watch("/api/v1/namespaces/shop/configmaps?watch=1&resourceVersion=5")
            .await;
        assert_eq!(
            summaries(&mut watch, 3).await,
            history,
            "what it had said that it knows"
        );
        assert!(watch.is_silent().await);
        simulator.order(&RequestMatch::watch(), replay);
        assert_eq!(summaries(&mut watch, 3).await, history);
    }
}

#[tokio::test]
async fn objects_that_cannot_be_placed_are_sent_as_they_are() {
    let simulator = simulator().await;
    let odd = [
        r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"no-uid","namespace":"shop","resourceVersion":"10"}}"#,
        r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"only","namespace":"shop","uid":"u1","resourceVersion":"11"}}"#,
        r#"{"kind":"ConfigMap","kind":"Secret","apiVersion":"v1","metadata":{"name":"twice","namespace":"shop","uid":"u2","uid":"u3","resourceVersion":"12"},"data":{"a":"1"},"data":{"b":"2"}}"#,
        r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"opaque","namespace":"shop","uid":"u4","resourceVersion":"a-b-c"}}"#,
    ];
    for object in odd {
        simulator.put_raw("configmaps", RawObject::new(object)).unwrap();
    }
    simulator
        .delete_raw("configmaps", "shop", "a", r#"{"kind":"ConfigMap","metadata":{}}"#)
        .unwrap();
    for client in clients(&simulator) {
        let mut watch = client.watch(FROM_NOW_ON).await;
        for object in odd {
            assert_eq!(
                watch.line().await,
                format!("{{\"type\":\"ADDED\",\"object\":{object}}}")
            );
        }
        assert_eq!(
            watch.line().await,
            r#"{"type":"DELETED","object":{"kind":"ConfigMap","metadata":{}}}"#
        );
        let list = client.get(CONFIGMAPS).await;
        assert!(list.text().contains(r#""uid":"u2","uid":"u3""#));
    }
}

#[tokio::test]
async fn a_line_of_three_mebibytes_arrives_whole_by_any_size_of_chunk() {
    let simulator = simulator().await;
    let value = "x".repeat(3 << 20);
    change(&simulator, "a", &value);
    for client in clients(&simulator) {
        let line = client.watch(FROM_NOW_ON).await.line().await;
        assert!(line.len() > 3 << 20 && line.contains(&value));
        let list = client.get(CONFIGMAPS).await;
        assert!(list.body.len() > 3 << 20);
    }
}

#[tokio::test]
async fn a_redirect_names_another_host() {
    let (simulator, elsewhere) = (simulator().await, simulator().await);
    let client = Client::new(&simulator);
    for code in [301, 302, 303, 307, 308] {
        let location = format!("{}{CONFIGMAPS}", elsewhere.url());
        simulator
            .faults()
            .add(RequestMatch::any(), Fault::redirect(code, &location));
        let reply = client.get(CONFIGMAPS).await;
        assert_eq!(
            (reply.status.as_u16(), reply.headers["location"].to_str().unwrap()),
            (code, location.as_str())
        );
    }
    assert_eq!(elsewhere.requests().len(), 0);
}

#[tokio::test]
async fn any_bytes_and_any_pause_stand_where_they_were_ordered() {
    let simulator = simulator().await;
    for client in clients(&simulator) {
        let step = |action| StreamStep {
            at: StreamPoint::AfterEvents(1),
            action,
        };
        simulator.faults().add(
            RequestMatch::watch(),
            Fault::Stream(vec![
                step(StreamAction::Send(Bytes::from_static(b"\xff\xfe\n"))),
                step(StreamAction::Wait(Duration::from_secs(2))),
            ]),
        );
        let response = client.open("GET", STREAMING_LIST, "", "").await.unwrap();
        let mut body = response.into_body();
        let mut read = Vec::new();
        while !read.ends_with(b"\xff\xfe\n") {
            let frame = http_body_util::BodyExt::frame(&mut body).await.unwrap().unwrap();
            read.extend_from_slice(&frame.into_data().unwrap());
        }
        let paused = tokio::time::timeout(
            Duration::from_millis(100),
            http_body_util::BodyExt::frame(&mut body),
        );
        assert!(paused.await.is_err());
        assert!(http_body_util::BodyExt::frame(&mut body).await.is_some());
    }
}
