//! Lines as they come off the wire: split, cut, odd, or about an object that cannot be placed.

use krm_stream_protocol::Partition;
use krm_stream_simulator::{Ending, Fault, RawObject, RequestMatch, Simulator, StreamAction, StreamPoint};
use krm_stream_tests::GatewayUnderTest;
use krm_stream_upstream_kube::KubeUpstream;

use crate::api_server::{
    self, APP, SECOND, added, boundary, item, line, modified, object, page, refused_streaming_list, type_of,
    types_for, words,
};
use crate::simulated::{asked, change, config, create, gateway, is_quiet};

/// Text of more than one byte a character.
const TEXT: &str = "é 日本 🦀 \u{2028}";

#[tokio::test]
async fn single_bytes_large_lines_blank_lines_and_crlf_give_the_same_objects() {
    let large = "x".repeat(3 << 20);
    let unicode = object("u", "10").replace("\"at\":\"10\"", &format!("\"é\":\"{TEXT}\""));
    let big = object("big", "11").replace("\"at\":\"11\"", &format!("\"big\":\"{large}\""));
    for one_byte in [true, false] {
        let simulator = Simulator::start().await.unwrap();
        simulator
            .put_raw("configmaps", RawObject::new(unicode.clone()))
            .unwrap();
        if one_byte {
            simulator
                .faults()
                .add(RequestMatch::watch().always(), Fault::OneByteChunks);
        } else {
            simulator
                .put_raw("configmaps", RawObject::new(big.clone()))
                .unwrap();
        }
        let gateway = gateway(&simulator);
        let mut connection = gateway.connect(APP);
        let count = if one_byte { 3 } else { 4 };
        let events = connection.events(count).await;
        assert_eq!(type_of(&events[count - 1]), "synced");
        let snapshot = events.concat();
        assert!(snapshot.contains(&unicode), "byte for byte");
        assert_eq!(snapshot.contains(&large), !one_byte);
        // Two events in one chunk, blank lines, CRLF.
        let two = added("v", "20") + "\n\r\n" + &modified("v", "21").replace('\n', "\r\n");
        simulator.inject(&RequestMatch::watch(), two + &added("w", "22"));
        let mut held = Vec::new();
        while held.len() < count {
            connection.events(1).await;
            held = connection.uids();
        }
        assert!(held.contains(&"uid-v".to_owned()) && held.contains(&"uid-w".to_owned()));
        assert!(is_quiet(&mut connection).await || connection.uids() == held);
        assert!(String::from_utf8_lossy(connection.raw()).contains("\"at\":\"21\""));
    }
}

/// Where the last line of a watch ends.
#[derive(Clone, Copy)]
enum Cut {
    LineEndOnly,
    AtTheEnd,
    WithinACharacter,
    AtTheBegin,
}

#[tokio::test]
async fn a_whole_last_line_counts_and_half_a_line_is_dropped_and_asked_for_again() {
    for cut in [
        Cut::LineEndOnly,
        Cut::AtTheEnd,
        Cut::WithinACharacter,
        Cut::AtTheBegin,
    ] {
        let simulator = Simulator::start().await.unwrap();
        create(&simulator, "a");
        let uid = simulator.get("configmaps", "app", "a").unwrap()["metadata"]["uid"].clone();
        let changed = object("a", "50")
            .replace("\"uid-a\"", &uid.to_string())
            .replace("\"at\":\"50\"", &format!("\"at\":\"{TEXT}\""));
        let changed = line("MODIFIED", &changed);
        let (length, whole) = match cut {
            Cut::LineEndOnly => (changed.len() - 1, true),
            Cut::AtTheEnd => (changed.len() - 3, false),
            Cut::WithinACharacter => (changed.find('🦀').unwrap() + 2, false),
            Cut::AtTheBegin => (10, false),
        };
        let gateway = gateway(&simulator);
        let mut connection = gateway.connect(APP);
        assert_eq!(words(&mut connection, 3).await, ["reset", "added a", "synced"]);
        simulator.advance_resource_version(50);
        simulator.inject(&RequestMatch::watch(), changed.as_bytes()[..length].to_vec());
        simulator.end_watches(&RequestMatch::watch(), Ending::Close);
        if whole {
            assert_eq!(words(&mut connection, 1).await, ["modified a"]);
        }
        crate::simulated::until(|| asked(&simulator).len() >= 2 && simulator.counts().open_watches == 1)
            .await;
        let version = if whole { "50" } else { "2" };
        assert_eq!(asked(&simulator)[1], format!("watch {version}"));
        simulator.advance_resource_version(60);
        change(&simulator, "a", "again");
        assert_eq!(
            words(&mut connection, 1).await,
            ["modified a"],
            "no reset and no error"
        );
        assert_eq!(String::from_utf8_lossy(connection.raw()).contains(TEXT), whole);
    }
}

#[tokio::test]
async fn a_line_cut_by_the_connection_is_dropped_and_resumed_from() {
    let cuts = [1, 40, 120].map(|bytes| StreamAction::CutLine {
        bytes,
        ending: Ending::Abort,
    });
    let within_a_character =
        [Ending::Close, Ending::Abort].map(|ending| StreamAction::CutWithinCharacter { ending });
    for cut in cuts.into_iter().chain(within_a_character) {
        let simulator = Simulator::start().await.unwrap();
        create(&simulator, "a");
        simulator.faults().add(
            RequestMatch::watch(),
            Fault::stream(StreamPoint::AfterBoundary, cut.clone()),
        );
        let gateway = gateway(&simulator);
        let mut connection = gateway.connect(APP);
        assert_eq!(words(&mut connection, 3).await, ["reset", "added a", "synced"]);
        change(&simulator, "a", TEXT);
        let events = connection.events(1).await;
        assert_eq!(
            type_of(&events[0]),
            "modified",
            "told by the resumed watch, {cut:?}"
        );
        assert!(events[0].contains("日本 🦀"));
        assert_eq!(asked(&simulator), ["streaming list", "watch 2"]);
    }
}

#[tokio::test]
async fn a_line_over_the_limit_is_an_error_that_names_it_and_is_not_asked_for_again() {
    let simulator = Simulator::start().await.unwrap();
    create(&simulator, "a");
    let upstream = KubeUpstream::builder(config(&simulator))
        .max_line_bytes(4096)
        .build()
        .unwrap();
    let gateway = GatewayUnderTest::build(GatewayUnderTest::builder(upstream, Partition::shared("tests")));
    let mut connection = gateway.connect(APP);
    assert_eq!(words(&mut connection, 3).await, ["reset", "added a", "synced"]);
    change(&simulator, "a", &"x".repeat(5000));
    let events = connection.events(1).await;
    assert_eq!(type_of(&events[0]), "INTERNAL");
    assert!(
        events[0].contains("\"terminal\":true") && events[0].contains("4096"),
        "{}",
        events[0]
    );
    assert!(connection.is_over().await);
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert_eq!(asked(&simulator), ["streaming list"]);
}

#[tokio::test(start_paused = true)]
async fn envelopes_in_any_order_are_read_and_what_is_no_event_is_skipped() {
    let odd = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"n","namespace":"app","uid":"uid-n","resourceVersion":"101"},"data":{"n":1e400}}"#;
    let (gateway, _server) = api_server::gateway(move |asked| {
        assert!(!asked.is_watch());
        let lines = [
            format!("{{\"object\":{odd},\"type\":\"MODIFIED\"}}\n"),
            format!(
                "{{\"extra\":[{{}}],\"type\":\"ADDED\",\"more\":\"}}\",\"object\":{}}}\n",
                object("m", "102")
            ),
            line("modified", &object("no", "103")),
            line("X", &object("no", "104")),
            line("ADDED", "null"),
            "{\"type\":\"ADDED\"}\n".to_owned(),
        ];
        api_server::Answer::ok(boundary("100"))
            .then_wait(SECOND)
            .then_data(lines.concat())
            .then_wait(SECOND)
            .then_data(modified("m", "105"))
            .then_hang()
    });
    let mut connection = gateway.connect(APP);
    assert_eq!(words(&mut connection, 2).await, ["reset", "synced"]);
    assert_eq!(
        words(&mut connection, 3).await,
        ["added n", "added m", "modified m"]
    );
    assert!(
        String::from_utf8_lossy(connection.raw()).contains(odd),
        "verbatim"
    );
    assert!(connection.is_quiet_for(SECOND * 30).await);
    assert_eq!(connection.uids(), ["uid-m", "uid-n"]);
}

const ODD_LABELS: &str = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"odd","namespace":"app","uid":"uid-odd","resourceVersion":"20","labels":"x"}}"#;

#[tokio::test(start_paused = true)]
async fn odd_labels_in_the_middle_of_a_list_or_a_watch_are_carried() {
    for by_list in [true, false] {
        let (gateway, _server) = api_server::gateway(move |asked| {
            if by_list && asked.is_streaming_list() {
                return refused_streaming_list();
            }
            if by_list && !asked.is_watch() {
                let items = [item("a", "10"), ODD_LABELS.to_owned(), item("b", "30")];
                return api_server::Answer::ok(page("100", "null", &items));
            }
            let lines = added("a", "10") + &line("ADDED", ODD_LABELS) + &added("b", "30");
            api_server::Answer::ok(lines + &boundary("100")).then_hang()
        });
        let mut connection = gateway.connect(APP);
        assert_eq!(
            words(&mut connection, 5).await,
            ["reset", "added a", "added odd", "added b", "synced"]
        );
        assert!(String::from_utf8_lossy(connection.raw()).contains("\"labels\":\"x\""));
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_placed_begins_a_new_cycle_and_a_second_in_a_row_is_unavailable() {
    let partial = [
        // No name, no uid, no metadata, metadata only, and a deletion that names nobody.
        (
            "MODIFIED",
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":5,"uid":"u","resourceVersion":"101"}}"#,
        ),
        (
            "ADDED",
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"no","namespace":"app","resourceVersion":"101"}}"#,
        ),
        ("MODIFIED", r#"{"kind":"ConfigMap","apiVersion":"v1","data":{}}"#),
        (
            "MODIFIED",
            r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"no","namespace":"app","uid":"uid-no","resourceVersion":"101"}}"#,
        ),
        (
            "DELETED",
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"app","resourceVersion":"101"}}"#,
        ),
    ];
    for (event, object) in partial {
        for again in [false, true] {
            let mut lists = 0;
            let (gateway, server) = api_server::gateway(move |asked| {
                assert_eq!(asked.summary(), "streaming list", "no old version goes with it");
                lists += 1;
                let begun = added("a", "90") + &added("b", "91");
                let bad = line(event, object);
                match lists {
                    1 => api_server::Answer::ok(begun + &boundary("100"))
                        .then_wait(SECOND * 10)
                        .then_data(bad + &modified("b", "102"))
                        .then_hang(),
                    // It is in the snapshots too, for ever.
                    _ if again => api_server::Answer::ok(begun + &bad + &boundary("100")).then_hang(),
                    _ => api_server::Answer::ok(begun + &boundary("103")).then_hang(),
                }
            });
            let mut connection = gateway.connect(APP);
            assert_eq!(
                words(&mut connection, 4).await,
                ["reset", "added a", "added b", "synced"]
            );
            let types = types_for(&mut connection, SECOND * 120).await;
            if again {
                assert_eq!(types.last().unwrap(), "UPSTREAM_UNAVAILABLE", "{object}");
                assert!(server.asked().len() <= 4, "{:?}", server.summaries());
            } else {
                assert_eq!(
                    types,
                    ["RESYNC_REQUIRED", "reset", "added", "added", "synced"],
                    "{object}"
                );
                assert_eq!(connection.uids(), ["uid-a", "uid-b"], "nothing is guessed at");
            }
            let raw = String::from_utf8_lossy(connection.raw()).into_owned();
            assert!(!raw.contains("PartialObjectMetadata") && !raw.contains("\"name\":\"no\""));
        }
    }
}
