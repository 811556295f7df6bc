//! Watch lines as they come off the wire.

use krm_stream_protocol::{ResourceVersion, Scope, SessionItem, Start, Upstream as _, WatchEvent};

use crate::support::scripted::{Answer, Step, builder, upstream};
use crate::support::transcript::{next, read};
use crate::support::{config_maps, line, object};

fn after(version: &str) -> Start {
    Start::After(ResourceVersion::from(version))
}

async fn lines_of(answer: Answer) -> Vec<String> {
    let (upstream, _) = upstream(move |_| answer.clone());
    read(&upstream, &config_maps(), after("1")).await
}

#[tokio::test(start_paused = true)]
async fn every_split_of_a_body_gives_the_same_events() {
    let unicode = object("a", "2").replace(
        "\"metadata\"",
        "\"data\":{\"é\":\"日本 🦀 \u{2028}\"},\"metadata\"",
    );
    let body = [
        line("ADDED", &unicode),
        "\n\r\n".to_owned(),
        line("MODIFIED", &object("b", "3")).replace('\n', "\r\n"),
        line("DELETED", &object("c", "4")),
    ]
    .concat();
    let expected = ["added a@2", "modified b@3", "deleted c@4", "closed"];
    for size in [1, 2, 3, 7, 64, body.len()] {
        let answer = Answer::ok(body.clone()).in_chunks_of(size);
        assert_eq!(lines_of(answer).await, expected, "chunks of {size}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_line_passes_whole_and_one_over_the_limit_ends_the_session() {
    let data = "x".repeat(3 * 1024 * 1024);
    let large = object("a", "2").replace("\"metadata\"", &format!("\"data\":\"{data}\",\"metadata\""));
    let body = line("ADDED", &large);
    assert_eq!(
        lines_of(Answer::ok(body.clone()).in_chunks_of(8192)).await,
        ["added a@2", "closed"]
    );
    let (builder, _) = builder(move |_| Answer::ok(body.clone()).in_chunks_of(8192));
    let upstream = builder.max_line_bytes(1024 * 1024).build().unwrap();
    assert_eq!(
        read(&upstream, &config_maps(), after("1")).await,
        ["failed line too long 1048576"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_whole_last_line_without_a_line_feed_counts_and_half_a_line_is_dropped() {
    let whole = line("ADDED", &object("a", "2"));
    let cut = line("ADDED", &object("b", "3"));
    for ending in [None, Some(Step::Break)] {
        let end = |text: String| match &ending {
            None => Answer::ok(text),
            Some(step) => Answer::ok(text).then(step.clone()),
        };
        assert_eq!(
            lines_of(end(whole.trim().to_owned())).await,
            ["added a@2", "closed"]
        );
        for length in [1, 10, cut.len() / 2, cut.len() - 2] {
            let text = format!("{whole}{}", &cut[..length]);
            assert_eq!(lines_of(end(text)).await, ["added a@2", "closed"], "{length}");
        }
    }
    let within_a_character = [
        whole.as_bytes(),
        b"{\"type\":\"ADDED\",\"object\":{\"a\":\"\xf0\x9f",
    ]
    .concat();
    assert_eq!(
        lines_of(Answer::ok(within_a_character)).await,
        ["added a@2", "closed"]
    );
}

#[tokio::test(start_paused = true)]
async fn objects_arrive_byte_for_byte() {
    let odd = r#"{"spec":{"n":[12345678901234567890123,1e400,1E5,-0,1.0],"s":"\ud83d \u0026\/","e":{},"d":1,"d":2},"metadata":{"name":"n","namespace":"rec","uid":"u"}}"#;
    let body = format!("{{ \"extra\": 1, \"object\": {odd}, \"type\": \"MODIFIED\" }}\n");
    let (upstream, _) = upstream(move |_| Answer::ok(body.clone()));
    let mut session = upstream.open(&config_maps(), after("1")).await.unwrap();
    let SessionItem::Event(WatchEvent::Modified(object)) = next(&mut *session).await else {
        panic!("an object");
    };
    assert_eq!(object.json(), odd);
}

#[tokio::test(start_paused = true)]
async fn unknown_types_and_missing_objects_are_skipped_and_the_rest_goes_on() {
    let body = [
        line("modified", &object("a", "2")),
        line("X", &object("a", "3")),
        line("ADDED", "null"),
        "{\"type\":\"ADDED\"}\n".to_owned(),
        line("BOOKMARK", "{}"),
        line(
            "ADDED",
            r#"{"metadata":{"name":"odd","namespace":"rec","uid":"u","labels":"x"}}"#,
        ),
        line("ADDED", r#"{"metadata":{"name":5,"uid":"u"}}"#),
        line("ADDED", &object("b", "4")),
    ]
    .concat();
    assert_eq!(
        lines_of(Answer::ok(body)).await,
        [
            "unknown",
            "unknown",
            "unknown",
            "unknown",
            "bookmark without version",
            "added odd",
            "added partial",
            "added b@4",
            "closed"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_no_event_ends_the_session_as_unreadable() {
    let good = line("ADDED", &object("a", "2"));
    for odd in [
        "<html>\n",
        "hello",
        "[]\n",
        "{\"type\":\"ADDED\",\"object\":[]}\n",
        "{]\n",
    ] {
        assert_eq!(lines_of(Answer::ok(odd)).await, ["failed unreadable"], "{odd}");
        assert_eq!(
            lines_of(Answer::ok(format!("{good}{odd}{good}"))).await,
            ["added a@2", "failed unreadable"],
            "{odd}"
        );
    }
    let broken = format!("{good}{{\"type\":\n\"ADDED\"}}\n");
    assert_eq!(
        lines_of(Answer::ok(broken)).await,
        ["added a@2", "failed unreadable"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_outside_the_scope_ends_the_session() {
    let elsewhere = object("a", "2").replace("\"rec\"", "\"other\"");
    for event in ["ADDED", "MODIFIED", "DELETED"] {
        assert_eq!(
            lines_of(Answer::ok(line(event, &elsewhere))).await,
            ["failed out of scope"]
        );
    }
    let body = line("ADDED", &object("y", "2"));
    let (upstream, _) = upstream(move |_| Answer::ok(body.clone()));
    let named = Scope::builder("v1", "configmaps")
        .namespace("rec")
        .name("x")
        .build()
        .unwrap();
    assert_eq!(
        read(&upstream, &named, Start::Fresh).await,
        ["failed out of scope"]
    );
}

#[tokio::test(start_paused = true)]
async fn dropping_a_session_drops_the_body_it_reads() {
    let (upstream, record) = upstream(|_| Answer::ok(line("ADDED", &object("a", "2"))).then(Step::Hang));
    let mut session = upstream.open(&config_maps(), after("1")).await.unwrap();
    next(&mut *session).await;
    assert!(!record.a_body_was_dropped());
    drop(session);
    assert!(record.a_body_was_dropped());
}

#[test]
fn a_first_line_that_ends_within_a_string_is_unreadable_at_once_and_not_waited_for() {
    let torn = "{\"type\":\"ADDED\",\"object\":{\"data\":{\"k\":\"value}}\n";
    let (events, end) = krm_stream_upstream_kube::decode_watch([torn.into()], 1024);
    assert!(events.is_empty());
    let krm_stream_protocol::SessionEnd::Failed(error) = end else {
        panic!("{end:?}");
    };
    assert_eq!(error.kind(), &krm_stream_protocol::UpstreamErrorKind::Unreadable);
    // One that ends between two members may go on: so a Status that was printed for people does.
    let printed = "{\n  \"kind\": \"Status\",\n  \"code\": 410,\n  \"reason\": \"Gone\"\n}\n";
    let (_, end) = krm_stream_upstream_kube::decode_watch([printed.into()], 1024);
    assert!(matches!(end, krm_stream_protocol::SessionEnd::Expired), "{end:?}");
}
