//! Each fault, as a client meets it.

use std::time::Duration;

use bytes::Bytes;
use krm_stream_simulator::{
    Answer, BodyFault, Ending, Fault, RequestMatch, Simulator, Status, StreamAction, StreamPoint, StreamStep,
    Verb,
};
use serde_json::json;

use crate::client::{Client, End, PATIENCE};

const CONFIGMAPS: &str = "/api/v1/namespaces/shop/configmaps";
const STREAMING_LIST: &str = "/api/v1/namespaces/shop/configmaps?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

/// A simulator with the ConfigMaps `a` (version 2) and `b` (version 3).
async fn simulator() -> Simulator {
    let simulator = Simulator::start().await.unwrap();
    for name in ["a", "b"] {
        simulator
            .create(
                "configmaps",
                json!({"metadata": {"name": name, "namespace": "shop"}}),
            )
            .unwrap();
    }
    simulator
}

fn clients(simulator: &Simulator) -> [Client; 2] {
    [Client::new(simulator), Client::http2(simulator)]
}

/// Reads summaries until the end.
async fn read_all(watch: &mut crate::client::Watch) -> (Vec<String>, End, String) {
    let mut lines = Vec::new();
    loop {
        match watch.try_line().await {
            Ok(line) => {
                let event: serde_json::Value = serde_json::from_str(&line).unwrap();
                let name = event["object"]["metadata"]["name"]
                    .as_str()
                    .unwrap_or("-")
                    .to_owned();
                lines.push(format!("{} {name}", event["type"].as_str().unwrap()));
            }
            Err((end, rest)) => return (lines, end, rest),
        }
    }
}

#[tokio::test]
async fn an_answer_is_given_instead_as_often_as_was_said() {
    let simulator = simulator().await;
    let client = Client::new(&simulator);
    let faults = simulator.faults();
    let lists = RequestMatch::list().resource("configmaps");
    let first = faults.add(
        lists.clone().skip(1),
        Fault::status(&Status::too_many_requests(7)),
    );
    faults.add(
        lists.clone().nth(2),
        Fault::Answer(Answer::text(502, "<html>").header("X-Test", "1")),
    );
    assert_eq!(client.get(CONFIGMAPS).await.status, 200);
    assert_eq!(
        client.get("/api/v1/secrets").await.status,
        200,
        "another resource"
    );
    assert_eq!(
        client.get(&format!("{CONFIGMAPS}/a")).await.status,
        200,
        "another verb"
    );
    let refused = client.get(CONFIGMAPS).await;
    assert_eq!(refused.status, 429);
    assert_eq!(refused.headers["retry-after"], "7");
    assert_eq!(refused.json()["details"]["retryAfterSeconds"], 7);
    let page = client.get(CONFIGMAPS).await;
    assert_eq!((page.status.as_u16(), page.text()), (502, "<html>"));
    assert_eq!(page.headers["x-test"], "1");
    assert_eq!(client.get(CONFIGMAPS).await.status, 200);
    assert_eq!(faults.hits(first), 1);

    let always = faults.add(lists.always(), Fault::redirect(307, "http://127.0.0.1:1/"));
    for _ in 0..3 {
        assert_eq!(
            client.get(CONFIGMAPS).await.headers["location"],
            "http://127.0.0.1:1/"
        );
    }
    assert_eq!(faults.hits(always), 3);
    assert!(faults.remove(always));
    assert_eq!(client.get(CONFIGMAPS).await.status, 200);
}

#[tokio::test]
async fn requests_are_matched_by_what_they_ask() {
    let simulator = simulator().await;
    let client = Client::new(&simulator);
    let teapot = || Fault::Answer(Answer::text(418, ""));
    for (wanted, hit, missed) in [
        (
            RequestMatch::streaming_list(),
            STREAMING_LIST.to_owned(),
            format!("{CONFIGMAPS}?watch=1&timeoutSeconds=1"),
        ),
        (
            RequestMatch::resumed_watch(),
            format!("{CONFIGMAPS}?watch=1&resourceVersion=2"),
            format!("{CONFIGMAPS}?watch=1&resourceVersion=0&timeoutSeconds=1"),
        ),
        (
            RequestMatch::any().namespace("shop"),
            CONFIGMAPS.to_owned(),
            "/api/v1/configmaps".to_owned(),
        ),
        (
            RequestMatch::any().with_parameter("continue"),
            format!("{CONFIGMAPS}?continue=x"),
            CONFIGMAPS.to_owned(),
        ),
        (
            RequestMatch::any().parameter("limit", "2"),
            format!("{CONFIGMAPS}?limit=2"),
            format!("{CONFIGMAPS}?limit=3"),
        ),
        (
            RequestMatch::any().filter(|request| request.path().ends_with("/b")),
            format!("{CONFIGMAPS}/b"),
            format!("{CONFIGMAPS}/a"),
        ),
        (
            RequestMatch::any().verb(Verb::NonResource),
            "/readyz".to_owned(),
            CONFIGMAPS.to_owned(),
        ),
    ] {
        simulator.faults().clear();
        simulator.faults().add(wanted, teapot());
        assert_ne!(client.get(&missed).await.status, 418, "{missed}");
        assert_eq!(client.get(&hit).await.status, 418, "{hit}");
    }
}

#[tokio::test]
async fn requests_hang_before_and_after_their_headers() {
    let simulator = simulator().await;
    for client in clients(&simulator) {
        let hang = simulator
            .faults()
            .add(RequestMatch::any(), Fault::HangBeforeHeaders);
        let asked_and_then_a_moment = async {
            while simulator.faults().hits(hang) == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            tokio::time::sleep(Duration::from_millis(150)).await;
        };
        tokio::select! {
            answer = client.open("GET", CONFIGMAPS, "", "") => panic!("{answer:?}"),
            () = asked_and_then_a_moment => {}
        }
        simulator
            .faults()
            .add(RequestMatch::watch(), Fault::HangAfterHeaders);
        let mut silent = client.watch(&format!("{STREAMING_LIST}&timeoutSeconds=1")).await;
        assert!(silent.is_silent().await);
        simulator.send_bookmark_now();
        assert!(silent.is_silent().await);
        assert_eq!(simulator.close_watches(), 1);
        assert_eq!(silent.end().await, End::Clean);
        simulator
            .faults()
            .add(RequestMatch::list(), Fault::HangAfterHeaders);
        let mut list = client.watch(CONFIGMAPS).await;
        assert!(list.is_silent().await);
    }
}

#[tokio::test]
async fn a_connection_is_reset_without_an_answer() {
    let simulator = simulator().await;
    for client in clients(&simulator) {
        simulator
            .faults()
            .add(RequestMatch::any(), Fault::ResetConnection);
        // The client may try once more on a new connection, which works.
        let answer = client.open("POST", CONFIGMAPS, "application/json", "{}").await;
        assert!(answer.is_err(), "{:?}", answer.map(|answer| answer.status()));
    }
}

#[tokio::test]
async fn a_delay_comes_before_the_answer() {
    let simulator = simulator().await;
    let client = Client::new(&simulator);
    let delay = Duration::from_millis(80);
    simulator.faults().add(RequestMatch::any(), Fault::Delay(delay));
    let asked = tokio::time::Instant::now();
    assert_eq!(client.get(CONFIGMAPS).await.status, 200);
    assert!(asked.elapsed() >= delay);
}

#[tokio::test]
async fn bodies_of_lists_stall_and_break_off() {
    let simulator = simulator().await;
    for client in clients(&simulator) {
        let whole = client.get(CONFIGMAPS).await.text().to_owned();
        for (ending, end) in [
            (Ending::Close, End::Clean),
            (Ending::Abort, End::Broken),
            (Ending::Reset, End::Broken),
        ] {
            let cut = BodyFault::CutAfter { bytes: 40, ending };
            simulator.faults().add(RequestMatch::list(), Fault::Body(cut));
            let mut list = client.watch(CONFIGMAPS).await;
            let (how, rest) = list.try_line().await.unwrap_err();
            assert_eq!(how, end);
            if ending == Ending::Reset {
                assert!(whole[..40].starts_with(&rest));
            } else {
                assert_eq!(rest, whole[..40]);
            }
        }
        simulator
            .faults()
            .add(RequestMatch::list(), Fault::Body(BodyFault::StallAfter(40)));
        assert!(client.watch(CONFIGMAPS).await.is_silent().await);
    }
}

#[tokio::test]
async fn watches_end_at_every_point_and_in_every_way() {
    let simulator = simulator().await;
    let boundary = vec!["ADDED a", "ADDED b", "BOOKMARK -"];
    for client in clients(&simulator) {
        for (at, expected) in [
            (StreamPoint::Start, vec![]),
            (StreamPoint::AfterEvents(1), vec!["ADDED a"]),
            (StreamPoint::BeforeBoundary, vec!["ADDED a", "ADDED b"]),
            (StreamPoint::AfterBoundary, boundary.clone()),
            (StreamPoint::AfterLines(3), boundary.clone()),
            (
                StreamPoint::Elapsed(Duration::from_millis(1500)),
                boundary.clone(),
            ),
        ] {
            for (ending, end) in [(Ending::Close, End::Clean), (Ending::Abort, End::Broken)] {
                simulator.faults().add(
                    RequestMatch::watch(),
                    Fault::stream(at, StreamAction::End(ending)),
                );
                let mut watch = client.watch(STREAMING_LIST).await;
                let (lines, how, rest) = read_all(&mut watch).await;
                assert_eq!(
                    (lines, how, rest.as_str()),
                    (expected.iter().map(|line| (*line).to_owned()).collect(), end, "")
                );
            }
        }
    }
}

#[tokio::test]
async fn a_line_is_cut_in_its_middle() {
    let simulator = simulator().await;
    for client in clients(&simulator) {
        let whole = client.watch(STREAMING_LIST).await.line().await;
        for (ending, end) in [(Ending::Close, End::Clean), (Ending::Abort, End::Broken)] {
            let cut = StreamAction::CutLine {
                bytes: whole.len() - 3,
                ending,
            };
            simulator
                .faults()
                .add(RequestMatch::watch(), Fault::stream(StreamPoint::Start, cut));
            let (lines, how, rest) = read_all(&mut client.watch(STREAMING_LIST).await).await;
            assert_eq!((lines.len(), how), (0, end));
            assert_eq!(rest, whole[..whole.len() - 3]);
        }
    }
}

#[tokio::test]
async fn a_script_sends_replaces_skips_and_falls_silent() {
    let simulator = simulator().await;
    let client = Client::new(&simulator);
    let step = |at, action| StreamStep { at, action };
    let script = vec![
        step(StreamPoint::Start, StreamAction::Send(Bytes::from_static(b"\n"))),
        step(StreamPoint::Start, StreamAction::Skip),
        step(
            StreamPoint::AfterEvents(1),
            StreamAction::Replace(Bytes::from_static(b"{\"type\":\"X\"}\n")),
        ),
        step(
            StreamPoint::AfterBoundary,
            StreamAction::Send(Status::expired("1", "2").to_error_event()),
        ),
        step(StreamPoint::AfterEvents(3), StreamAction::Silence),
    ];
    simulator
        .faults()
        .add(RequestMatch::watch(), Fault::Stream(script));
    let mut watch = client.watch(STREAMING_LIST).await;
    assert_eq!(watch.line().await, "");
    assert_eq!(watch.line().await, r#"{"type":"X"}"#);
    assert!(watch.summary().await.starts_with("BOOKMARK"));
    assert_eq!(watch.event().await["object"]["code"], 410);
    simulator
        .create(
            "configmaps",
            json!({"metadata": {"name": "c", "namespace": "shop"}}),
        )
        .unwrap();
    assert!(watch.summary().await.starts_with("ADDED c"));
    simulator.delete("configmaps", "shop", "c").unwrap();
    assert!(watch.is_silent().await);
}

#[tokio::test]
async fn a_script_waits_paces_and_sends_bookmarks() {
    let simulator = simulator().await;
    let client = Client::new(&simulator);
    let time = Duration::from_millis(60);
    let step = |at, action| StreamStep { at, action };
    let script = vec![
        step(StreamPoint::Start, StreamAction::Bookmark),
        step(StreamPoint::AfterLines(1), StreamAction::Wait(time)),
        step(StreamPoint::AfterLines(1), StreamAction::Pace(time)),
        step(StreamPoint::AfterBoundary, StreamAction::End(Ending::Close)),
    ];
    simulator
        .faults()
        .add(RequestMatch::watch(), Fault::Stream(script));
    let opened = tokio::time::Instant::now();
    let mut watch = client.watch(STREAMING_LIST).await;
    for (expected, after) in [
        ("BOOKMARK -@3", 0),
        ("ADDED a@2", 1),
        ("ADDED b@3", 2),
        ("BOOKMARK -@3", 3),
    ] {
        assert_eq!(watch.summary().await, expected);
        assert!(
            opened.elapsed() >= time * after,
            "{expected} came after {:?}",
            opened.elapsed()
        );
    }
    assert_eq!(watch.end().await, End::Clean);
}

#[tokio::test]
async fn anything_can_be_injected_into_open_watches() {
    let simulator = simulator().await;
    for client in clients(&simulator) {
        let mut watch = client.watch(STREAMING_LIST).await;
        let mut other = client.watch("/api/v1/secrets?watch=1").await;
        let tombstone = "{\"type\":\"DELETED\",\"object\":{\"kind\":\"ConfigMap\"}}\n";
        assert_eq!(
            simulator.inject(&RequestMatch::watch().resource("configmaps"), tombstone),
            1
        );
        for _ in 0..3 {
            watch.line().await;
        }
        assert_eq!(watch.line().await, tombstone.trim_end());
        assert!(other.is_silent().await);
        drop((watch, other));
        let closed = simulator.wait_for(|counts| counts.open_watches == 0);
        tokio::time::timeout(PATIENCE, closed).await.unwrap();
    }
}

#[tokio::test]
async fn streaming_lists_are_refused_or_ignored() {
    let simulator = simulator().await;
    let client = Client::new(&simulator);
    let refused = |reply: crate::client::Reply| {
        assert_eq!(reply.status, 422);
        assert_eq!(
            reply.text().trim_end(),
            concat!(
                r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"ListOptions.meta.k8s.io \"\" is invalid: "#,
                r#"sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled","#,
                r#""reason":"Invalid","details":{"group":"meta.k8s.io","kind":"ListOptions","causes":[{"reason":"FieldValueForbidden","#,
                r#""message":"Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled","field":"sendInitialEvents"}]},"code":422}"#
            )
        );
    };
    simulator
        .faults()
        .add(RequestMatch::watch(), Fault::RefuseStreamingList);
    refused(client.get(STREAMING_LIST).await);
    simulator
        .faults()
        .add(RequestMatch::watch(), Fault::IgnoreStreamingList);
    let mut ignored = client.watch(STREAMING_LIST).await;
    assert!(ignored.summary().await.starts_with("ADDED a"));
    assert!(ignored.summary().await.starts_with("ADDED b"));
    assert!(ignored.is_silent().await, "no boundary");
    let never = Simulator::builder().streaming_lists(false).start().await.unwrap();
    refused(Client::new(&never).get(STREAMING_LIST).await);
    for (query, field) in [
        ("watch=1&sendInitialEvents=true", "resourceVersionMatch"),
        (
            "watch=1&resourceVersionMatch=NotOlderThan",
            "resourceVersionMatch",
        ),
        ("sendInitialEvents=true", "sendInitialEvents"),
        ("resourceVersionMatch=Exact", "resourceVersionMatch"),
        (
            "resourceVersionMatch=Exact&resourceVersion=0",
            "resourceVersionMatch",
        ),
        (
            "resourceVersionMatch=Odd&resourceVersion=1",
            "resourceVersionMatch",
        ),
    ] {
        let reply = client.get(&format!("{CONFIGMAPS}?{query}")).await;
        assert_eq!(reply.status, 422, "{query}");
        assert_eq!(reply.json()["details"]["causes"][0]["field"], field, "{query}");
    }
}

#[tokio::test]
async fn bookmarks_stay_away() {
    let simulator = Simulator::builder()
        .bookmark_interval(Duration::from_millis(20))
        .start()
        .await
        .unwrap();
    let client = Client::new(&simulator);
    simulator.faults().add(RequestMatch::watch(), Fault::NoBookmarks);
    assert!(client.watch(STREAMING_LIST).await.is_silent().await);
    simulator
        .faults()
        .add(RequestMatch::watch(), Fault::NoInitialEventsEnd);
    let mut watch = client.watch(STREAMING_LIST).await;
    assert!(!watch.line().await.contains("initial-events-end"));
}

#[tokio::test]
async fn a_body_comes_in_single_bytes() {
    let simulator = simulator().await;
    for client in clients(&simulator) {
        let plain = client.watch(STREAMING_LIST).await.line().await;
        simulator
            .faults()
            .add(RequestMatch::watch(), Fault::OneByteChunks);
        let response = client.open("GET", STREAMING_LIST, "", "").await.unwrap();
        let mut body = response.into_body();
        for byte in plain.bytes() {
            let frame = http_body_util::BodyExt::frame(&mut body).await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap(), Bytes::copy_from_slice(&[byte]));
        }
        simulator.faults().add(RequestMatch::list(), Fault::OneByteChunks);
        assert_eq!(
            client.get(CONFIGMAPS).await.json()["items"]
                .as_array()
                .unwrap()
                .len(),
            2
        );
    }
}
