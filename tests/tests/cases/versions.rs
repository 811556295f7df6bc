//! Which version a session resumes from, and what bookmarks say of it.

use krm_stream_simulator::{Fault, RequestMatch, Simulator, StreamAction, StreamPoint, StreamStep};

use crate::api_server::{
    APP, Answer, SECOND, added, bookmark, boundary, deleted, gateway, item, line, modified, page,
    refused_streaming_list, words,
};
use crate::simulated::{self, change, create};

#[tokio::test(start_paused = true)]
async fn after_a_list_the_watch_starts_at_the_lists_version_and_not_at_an_items() {
    let (gateway, server) = gateway(|asked| {
        if asked.is_streaming_list() {
            refused_streaming_list()
        } else if asked.is_watch() {
            Answer::ok("").then_hang()
        } else {
            let items = [item("a", "150"), item("b", "30"), item("c", "90")];
            Answer::ok(page("200", "null", &items))
        }
    });
    let mut connection = gateway.connect(APP);
    assert_eq!(
        words(&mut connection, 5).await,
        ["reset", "added a", "added b", "added c", "synced"]
    );
    assert!(connection.is_quiet_for(SECOND).await);
    assert_eq!(server.summaries(), ["streaming list", "list", "watch 200"]);
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_cut_before_its_bookmark_starts_from_nothing_and_after_it_at_the_bookmark() {
    let mut lists = 0;
    let (gateway, server) = gateway(move |asked| {
        if asked.is_watch() {
            return Answer::ok("").then_hang();
        }
        lists += 1;
        let begun = Answer::ok(added("a", "150") + &added("b", "30") + &added("c", "90"));
        match lists {
            1 => begun.then_wait(SECOND).then_break(),
            _ => begun
                .then_data(boundary("200"))
                .then_wait(SECOND * 10)
                .then_break(),
        }
    });
    let mut connection = gateway.connect(APP);
    assert_eq!(
        words(&mut connection, 4).await,
        ["reset", "added a", "added b", "added c"]
    );
    assert_eq!(
        words(&mut connection, 6).await,
        [
            "RESYNC_REQUIRED",
            "reset",
            "added a",
            "added b",
            "added c",
            "synced"
        ]
    );
    assert!(connection.is_quiet_for(SECOND * 30).await);
    assert_eq!(
        server.summaries(),
        ["streaming list", "streaming list", "watch 200"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_is_no_event_and_its_version_is_resumed_from() {
    let odd = r#"{"type":"BOOKMARK","object":{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"resourceVersion":"71","creationTimestamp":null},"spec":{"selector":null,"template":{"spec":{"containers":null}}}}}"#;
    let (gateway, server) = gateway(move |asked| {
        if asked.is_watch() {
            return Answer::ok("").then_hang();
        }
        let bare = line("BOOKMARK", r#"{"kind":"Deployment","apiVersion":"apps/v1"}"#);
        Answer::ok(boundary("60"))
            .then_data(format!("{odd}\n{bare}"))
            .then_wait(SECOND * 10)
    });
    let mut connection = gateway.connect("group=apps&version=v1&resource=deployments&namespace=app");
    assert_eq!(words(&mut connection, 2).await, ["reset", "synced"]);
    assert!(connection.is_quiet_for(SECOND * 30).await);
    assert_eq!(server.summaries(), ["streaming list", "watch 71"]);
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_that_goes_backwards_brings_nothing_back() {
    let (gateway, server) = gateway(|asked| {
        if !asked.is_watch() {
            return Answer::ok(added("a", "90") + &added("b", "91") + &boundary("100"))
                .then_wait(SECOND)
                .then_data(bookmark("500") + &deleted("a", "510") + &bookmark("530") + &bookmark("470"))
                .then_wait(SECOND * 10)
                .then_break();
        }
        // The server replays what was told already, and an object that came and went before the bookmark.
        Answer::ok(added("a", "505") + &deleted("a", "510") + &added("gone", "520") + &modified("b", "530"))
            .then_wait(SECOND)
            .then_data(modified("b", "531"))
            .then_hang()
    });
    let mut connection = gateway.connect(APP);
    assert_eq!(
        words(&mut connection, 4).await,
        ["reset", "added a", "added b", "synced"]
    );
    assert_eq!(words(&mut connection, 1).await, ["deleted a"]);
    assert_eq!(words(&mut connection, 1).await, ["modified b"]);
    assert!(connection.is_quiet_for(SECOND * 30).await);
    assert_eq!(connection.uids(), ["uid-b"]);
    assert!(String::from_utf8_lossy(connection.raw()).contains("\"at\":\"531\""));
    assert!(!String::from_utf8_lossy(connection.raw()).contains("\"at\":\"530\""));
    assert!(!String::from_utf8_lossy(connection.raw()).contains("gone"));
    assert_eq!(server.summaries(), ["streaming list", "watch 530"]);
}

#[tokio::test]
async fn changes_that_a_server_tells_once_more_out_of_order_are_told_to_nobody() {
    let simulator = Simulator::start().await.unwrap();
    create(&simulator, "a");
    create(&simulator, "gone");
    let gateway = simulated::gateway(&simulator);
    let mut connection = gateway.connect(APP);
    assert_eq!(
        words(&mut connection, 4).await,
        ["reset", "added a", "added gone", "synced"]
    );
    for value in ["second", "third"] {
        change(&simulator, "a", value);
        assert_eq!(words(&mut connection, 1).await, ["modified a"]);
    }
    simulator.delete("configmaps", "app", "gone").unwrap();
    assert_eq!(words(&mut connection, 1).await, ["deleted gone"]);
    let step = |action| StreamStep {
        at: StreamPoint::Start,
        action,
    };
    simulator.faults().add(
        RequestMatch::resumed_watch(),
        Fault::Stream(vec![
            step(StreamAction::BookmarkAt("3".to_owned())),
            step(StreamAction::Replay { after: 1 }),
        ]),
    );
    simulator.close_watches();
    simulated::until(|| simulator.counts().watch == 2 && simulator.counts().open_watches == 1).await;
    assert!(simulated::is_quiet(&mut connection).await);
    change(&simulator, "a", "last");
    let event = connection.events(1).await.concat();
    assert!(event.contains("\"value\":\"last\""), "{event}");
    let uid = simulator.get("configmaps", "app", "a").unwrap()["metadata"]["uid"].clone();
    assert_eq!(connection.uids(), [uid.as_str().unwrap()]);
    // An open watch that tells old states once more changes nothing either.
    simulator.order(&RequestMatch::watch(), StreamAction::Replay { after: 1 });
    assert!(simulated::is_quiet(&mut connection).await);
    assert_eq!(connection.uids(), [uid.as_str().unwrap()]);
}
