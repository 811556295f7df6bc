//! 410 in every form, and what a new cycle says of what happened meanwhile.

use std::time::Duration;

use krm_stream_simulator::{Answer, Ending, Fault, RequestMatch, Simulator, Status};
use krm_stream_tests::{Connection, GatewayUnderTest};

use crate::api_server::{self, APP, SECOND, added, boundary, line, status, words};
use crate::simulated::{asked, change, create, gateway, is_quiet};

async fn live(simulator: &Simulator) -> (GatewayUnderTest, Connection) {
    create(simulator, "a");
    let gateway = gateway(simulator);
    let mut connection = gateway.connect(APP);
    assert_eq!(words(&mut connection, 3).await, ["reset", "added a", "synced"]);
    (gateway, connection)
}

/// The next cycle came, and its first request carried no version.
async fn a_new_cycle_follows(simulator: &Simulator, connection: &mut Connection, before: &[&str]) {
    assert_eq!(
        words(connection, 4).await,
        ["RESYNC_REQUIRED", "reset", "added a", "synced"]
    );
    let expected = [before, &["streaming list"]].concat();
    assert_eq!(
        asked(simulator),
        expected,
        "one list for one expiry, without the old version"
    );
    assert!(is_quiet(connection).await);
    let raw = String::from_utf8(connection.raw().to_vec()).unwrap();
    assert!(!raw.contains("\"Status\""), "a status is never an object");
}

#[tokio::test]
async fn gone_as_an_http_status_at_a_reopen_begins_a_new_cycle_without_the_old_version() {
    for answer in [
        Status::expired("2", "9").to_answer(),
        Answer::json(410, "{\n    \"kind\": \"Status\",\n    \"code\": 410\n}"),
        Answer::text(410, ""),
        Answer::text(410, "<html><body>Gone</body></html>"),
    ] {
        let simulator = Simulator::start().await.unwrap();
        let (_gateway, mut connection) = live(&simulator).await;
        simulator
            .faults()
            .add(RequestMatch::resumed_watch(), Fault::Answer(answer));
        // Within a second after its boundary it is an early end, which is resumed all the same.
        simulator.close_watches();
        a_new_cycle_follows(&simulator, &mut connection, &["streaming list", "watch 2"]).await;
    }
}

#[tokio::test]
async fn gone_as_an_event_in_any_spelling_begins_a_new_cycle_without_the_old_version() {
    for object in [
        status(410, "Expired", "too old resource version: 1 (2)"),
        status(410, "Gone", "gone"),
        r#"{"status":"Failure","message":"old","reason":"Expired","code":410}"#.to_owned(),
        r#"{"kind":"Status","apiVersion":"v1","reason":"Expired"}"#.to_owned(),
        r#"{"kind":"Status","apiVersion":"v1","reason":"Gone"}"#.to_owned(),
        r#"{"code":410}"#.to_owned(),
    ] {
        let simulator = Simulator::start().await.unwrap();
        let (_gateway, mut connection) = live(&simulator).await;
        let injected = simulator.inject(&RequestMatch::watch(), line("ERROR", &object));
        assert_eq!(injected, 1);
        a_new_cycle_follows(&simulator, &mut connection, &["streaming list"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn from_the_second_expiry_in_a_row_on_each_list_waits_longer() {
    let mut lists = 0;
    let (gateway, server) = api_server::gateway(move |asked| {
        assert_eq!(asked.summary(), "streaming list", "the old version is gone");
        lists += 1;
        let snapshot = api_server::Answer::ok(added("a", "90") + &boundary("100"));
        let expired = line("ERROR", &status(410, "Expired", "too old resource version"));
        match lists {
            1 => snapshot.then_wait(SECOND * 10).then_data(expired),
            2..=6 => snapshot.then_wait(SECOND * 6).then_data(expired),
            _ => snapshot.then_hang(),
        }
    });
    let mut connection = gateway.connect(APP);
    let types = connection.types(3 + 6 * 4).await;
    assert_eq!(types.iter().filter(|kind| *kind == "RESYNC_REQUIRED").count(), 6);
    let gaps = server.gaps(0);
    assert_eq!(gaps.len(), 6, "one list for each expiry");
    // What a gap is longer than the session before it lived.
    let waited: Vec<_> = gaps
        .iter()
        .enumerate()
        .map(|(at, gap)| gap.saturating_sub(if at == 0 { SECOND * 10 } else { SECOND * 6 }))
        .collect();
    assert_eq!(waited[0], Duration::ZERO, "the first is answered at once");
    assert!(waited[1] > Duration::ZERO, "{waited:?}");
    assert!(
        waited.windows(2).skip(1).all(|pair| pair[1] > pair[0]),
        "{waited:?}"
    );
}

/// A was changed, B deleted, C deleted and made again, E added; D was left alone.
fn everything_happens(simulator: &Simulator) {
    change(simulator, "a", "changed");
    simulator.delete("configmaps", "app", "b").unwrap();
    simulator.delete("configmaps", "app", "c").unwrap();
    create(simulator, "c");
    create(simulator, "e");
}

async fn four_objects(simulator: &Simulator) -> (GatewayUnderTest, Connection, String) {
    for name in ["a", "b", "c", "d"] {
        create(simulator, name);
    }
    let old_uid = uid(simulator, "c");
    let gateway = gateway(simulator);
    let mut connection = gateway.connect(APP);
    assert_eq!(
        words(&mut connection, 6).await,
        ["reset", "added a", "added b", "added c", "added d", "synced"]
    );
    (gateway, connection, old_uid)
}

fn uid(simulator: &Simulator, name: &str) -> String {
    let object = simulator.get("configmaps", "app", name).unwrap();
    object["metadata"]["uid"].as_str().unwrap().to_owned()
}

fn holds_what_is_there(simulator: &Simulator, connection: &Connection) {
    let mut expected: Vec<_> = ["a", "c", "d", "e"].map(|name| uid(simulator, name)).into();
    expected.sort();
    assert_eq!(connection.uids(), expected);
}

#[tokio::test]
async fn a_new_cycle_tells_what_is_there_and_nothing_of_what_went_meanwhile() {
    let simulator = Simulator::start().await.unwrap();
    let (_gateway, mut connection, old_uid) = four_objects(&simulator).await;
    // The API server answers again only when all has happened and the history is gone.
    let reopen = simulator
        .faults()
        .add(RequestMatch::resumed_watch(), Fault::Delay(SECOND * 2));
    simulator.end_watches(&RequestMatch::watch(), Ending::Reset);
    crate::simulated::until(|| simulator.faults().hits(reopen) == 1).await;
    everything_happens(&simulator);
    simulator.compact();
    let events = connection.events(7).await;
    let said: Vec<_> = events.iter().map(|event| api_server::word_of(event)).collect();
    assert_eq!(said[..2], ["RESYNC_REQUIRED", "reset"]);
    let mut snapshot = said[2..6].to_vec();
    snapshot.sort();
    assert_eq!(snapshot, ["added a", "added c", "added d", "added e"]);
    assert_eq!(said[6], "synced");
    let a = events
        .iter()
        .find(|event| event.contains("\"name\":\"a\""))
        .unwrap();
    assert!(a.contains("\"value\":\"changed\""));
    assert!(events.iter().all(|event| !event.contains(&old_uid)));
    holds_what_is_there(&simulator, &connection);
    assert!(is_quiet(&mut connection).await);
}

#[tokio::test]
async fn a_resumed_watch_tells_exactly_what_happened_meanwhile() {
    let simulator = Simulator::start().await.unwrap();
    let (_gateway, mut connection, old_uid) = four_objects(&simulator).await;
    let reopen = simulator
        .faults()
        .add(RequestMatch::resumed_watch(), Fault::Delay(SECOND * 2));
    simulator.end_watches(&RequestMatch::watch(), Ending::Reset);
    crate::simulated::until(|| simulator.faults().hits(reopen) == 1).await;
    everything_happens(&simulator);
    let events = connection.events(5).await;
    let said: Vec<_> = events.iter().map(|event| api_server::word_of(event)).collect();
    let mut sorted = said.clone();
    sorted.sort();
    assert_eq!(
        sorted,
        ["added c", "added e", "deleted b", "deleted c", "modified a"],
        "nothing of d"
    );
    let place = |word: &str| said.iter().position(|said| said == word).unwrap();
    assert!(place("deleted c") < place("added c"), "{said:?}");
    assert!(events[place("deleted c")].contains(&old_uid));
    assert!(events[place("added c")].contains(&uid(&simulator, "c")));
    assert!(events[place("modified a")].contains("\"value\":\"changed\""));
    holds_what_is_there(&simulator, &connection);
    assert!(is_quiet(&mut connection).await);
}
