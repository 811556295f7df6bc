//! Watches that are answered and closed at once, again and again.

use std::time::Duration;

use crate::api_server::{
    APP, Answer, SECOND, added, bookmark, boundary, gateway, item, line, page, refused_streaming_list,
    status, type_of, types_for,
};

const SHORTLY: Duration = Duration::from_millis(50);

#[tokio::test(start_paused = true)]
async fn a_version_that_is_answered_by_closing_is_left_for_a_fresh_list_after_a_few_requests() {
    let mut lists = 0;
    let (gateway, server) = gateway(move |asked| {
        if asked.is_watch() {
            return Answer::ok("").then_wait(SHORTLY);
        }
        lists += 1;
        let snapshot = Answer::ok(added("a", "90") + &boundary("100"));
        if lists == 1 {
            snapshot.then_wait(SECOND * 20)
        } else {
            snapshot.then_hang()
        }
    });
    let mut connection = gateway.connect(APP);
    let types = types_for(&mut connection, SECOND * 60).await;
    assert_eq!(
        types,
        [
            "reset",
            "added",
            "synced",
            "RESYNC_REQUIRED",
            "reset",
            "added",
            "synced"
        ]
    );
    assert_eq!(
        server.summaries(),
        [
            "streaming list",
            "watch 100",
            "watch 100",
            "watch 100",
            "watch 100",
            "streaming list"
        ]
    );
    assert!(server.most_within(SECOND * 10) < 10);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_closes_every_watch_at_once_is_asked_fewer_than_ten_times_in_ten_seconds() {
    let (gateway, server) = gateway(|asked| {
        if asked.is_streaming_list() {
            refused_streaming_list()
        } else if asked.is_watch() {
            Answer::ok("").then_wait(SHORTLY)
        } else {
            Answer::ok(page("100", "null", &[item("a", "90")]))
        }
    });
    let began = tokio::time::Instant::now();
    // A consumer that comes back when it is told to, for five minutes.
    while began.elapsed() < SECOND * 300 {
        let mut connection = gateway.connect(APP);
        let mut wait = SECOND;
        while let Some(event) = connection.next().await {
            let value: serde_json::Value = serde_json::from_str(&event).unwrap();
            if type_of(&event) == "UPSTREAM_UNAVAILABLE" {
                wait = Duration::from_millis(value["retryAfterMs"].as_u64().unwrap());
            }
        }
        tokio::time::sleep(wait).await;
    }
    assert!(server.asked().len() > 50, "the row goes on");
    assert!(server.most_within(SECOND * 10) < 10, "{:?}", server.summaries());
}

#[tokio::test(start_paused = true)]
async fn one_bookmark_and_a_close_for_ever_is_spaced_up_to_half_a_minute_and_nobody_notices() {
    let mut version = 100;
    let (gateway, server) = gateway(move |asked| {
        if !asked.is_watch() {
            return Answer::ok(added("a", "90") + &boundary("100")).then_wait(SECOND * 20);
        }
        assert_eq!(asked.parameter("resourceVersion").unwrap(), version.to_string());
        version += 1;
        Answer::ok(bookmark(&version.to_string())).then_wait(SHORTLY)
    });
    let mut connection = gateway.connect(APP);
    assert_eq!(connection.types(3).await, ["reset", "added", "synced"]);
    assert!(connection.is_quiet_for(SECOND * 600).await);
    assert!(server.most_within(SECOND * 10) < 10);
    let gaps = server.gaps(1);
    let last = &gaps[gaps.len() - 3..];
    assert!(
        last.iter().all(|gap| *gap > SECOND * 29 && *gap < SECOND * 38),
        "{gaps:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_expiry_two_seconds_after_each_boundary_for_ever_is_spaced_up_to_half_a_minute() {
    let (gateway, server) = gateway(|asked| {
        assert_eq!(asked.summary(), "streaming list");
        Answer::ok(added("a", "90") + &boundary("100"))
            .then_wait(SECOND * 2)
            .then_data(line("ERROR", &status(410, "Expired", "too old resource version")))
    });
    let mut connection = gateway.connect(APP);
    let types = types_for(&mut connection, SECOND * 600).await;
    assert_eq!(types[..3], ["reset", "added", "synced"]);
    for cycle in types[3..].chunks(4).filter(|cycle| cycle.len() == 4) {
        assert_eq!(cycle, ["RESYNC_REQUIRED", "reset", "added", "synced"]);
    }
    assert!(server.most_within(SECOND * 10) < 10);
    let gaps = server.gaps(0);
    let last = &gaps[gaps.len() - 3..];
    assert!(
        last.iter().all(|gap| *gap > SECOND * 29 && *gap < SECOND * 40),
        "{gaps:?}"
    );
    assert_eq!(
        types.iter().filter(|kind| *kind == "reset").count(),
        gaps.len() + 1
    );
}

#[tokio::test(start_paused = true)]
async fn quiet_sessions_that_end_at_the_timeout_they_asked_for_are_resumed_however_many() {
    let (gateway, server) = gateway(|asked| {
        if asked.is_watch() {
            return Answer::ok("").then_wait(asked.timeout());
        }
        Answer::ok(added("a", "90") + &boundary("100")).then_wait(asked.timeout())
    });
    let mut connection = gateway.connect(APP);
    assert_eq!(connection.types(3).await, ["reset", "added", "synced"]);
    assert!(connection.is_quiet_for(SECOND * 60 * 60 * 12).await);
    let asked = server.asked();
    assert!(asked.len() > 70, "{}", asked.len());
    assert!(asked[1..].iter().all(|asked| asked.summary() == "watch 100"));
    for (gap, asked) in server.gaps(0).iter().zip(&asked) {
        assert_eq!(*gap, asked.timeout(), "the next one starts at once");
    }
}
