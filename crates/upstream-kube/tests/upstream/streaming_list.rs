//! Streaming lists: served, refused in each form, and never finished.

use krm_stream_protocol::{Scope, Start};

use crate::support::scripted::{Answer, Received, Step, builder, upstream};
use crate::support::transcript::read;
use crate::support::{
    SECOND, bookmark, boundary, config_maps, item, line, object, page, refused_streaming_list, status,
};

const LIST_THEN_WATCH: [&str; 4] = ["added a@1", "added b@2", "boundary 10", "modified a@11"];

/// An API server without streaming lists.
fn list_then_watch(request: &Received) -> Answer {
    if request.is_watch() {
        Answer::ok(line("MODIFIED", &object("a", "11")))
    } else {
        Answer::ok(page("10", "null", &[item("a", "1"), item("b", "2")]))
    }
}

#[tokio::test(start_paused = true)]
async fn the_annotated_bookmark_is_the_boundary_and_an_annotated_object_is_not() {
    let annotated = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b","namespace":"rec","uid":"u","resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}"#;
    let body = [
        line("ADDED", &object("a", "150")),
        line("ADDED", annotated),
        boundary("200"),
        line("MODIFIED", &object("a", "201")),
        boundary("202"),
        bookmark("203"),
        line("DELETED", &object("a", "204")),
    ]
    .concat();
    let (upstream, record) = upstream(move |_| Answer::ok(body.clone()));
    assert_eq!(
        read(&upstream, &config_maps(), Start::Fresh).await,
        [
            "added a@150",
            "added b@7",
            "boundary 200",
            "modified a@201",
            "bookmark 202",
            "bookmark 203",
            "deleted a@204",
            "closed"
        ]
    );
    assert_eq!(record.summaries(), ["streaming list"]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_in_any_form_falls_back_to_a_list_and_is_remembered_for_its_group_version() {
    for refusal in [
        Answer::new(422, refused_streaming_list()),
        Answer::new(
            400,
            status(400, "BadRequest", "resourceVersionMatch is forbidden for watch"),
        ),
        Answer::new(400, status(400, "BadRequest", "no")),
        Answer::new(405, ""),
        Answer::new(405, status(405, "MethodNotAllowed", "no")),
        Answer::new(500, "something went wrong\n"),
        Answer::ok(line("ERROR", &refused_streaming_list())),
    ] {
        let described = format!("{refusal:?}");
        let (upstream, record) = upstream(move |request| {
            if request.is_streaming_list() {
                refusal.clone()
            } else {
                list_then_watch(request)
            }
        });
        for round in 0..2 {
            let lines = read(&upstream, &config_maps(), Start::Fresh).await;
            let lines: Vec<_> = lines.iter().filter(|line| *line != "restarted").collect();
            assert_eq!(lines[..4], LIST_THEN_WATCH, "{described}, round {round}");
            assert_eq!(lines[4..], ["closed"]);
        }
        assert_eq!(
            record.summaries(),
            ["streaming list", "list", "watch 10", "list", "watch 10"],
            "{described}"
        );
        let other = Scope::builder("v1", "widgets")
            .group("example.org")
            .build()
            .unwrap();
        read(&upstream, &other, Start::Fresh).await;
        assert_eq!(record.summaries()[5], "streaming list", "{described}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_forgotten_after_a_day() {
    let (upstream, record) = upstream(|request| {
        if request.is_streaming_list() {
            Answer::new(422, refused_streaming_list())
        } else {
            list_then_watch(request)
        }
    });
    read(&upstream, &config_maps(), Start::Fresh).await;
    tokio::time::advance(SECOND * 24 * 60 * 60).await;
    read(&upstream, &config_maps(), Start::Fresh).await;
    assert_eq!(record.summaries()[3], "streaming list");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_refusal_of_the_streaming_list_is_not_asked_again_as_a_list() {
    for (answer, expected) in [
        (
            Answer::new(403, status(403, "Forbidden", "no")),
            "not opened: forbidden no",
        ),
        (
            Answer::new(401, status(401, "Unauthorized", "no")),
            "not opened: unauthenticated",
        ),
        (Answer::new(404, "404 page not found\n"), "not opened: not found"),
        (Answer::new(429, ""), "not opened: unavailable"),
        (Answer::new(503, ""), "not opened: unavailable"),
        (Answer::new(410, ""), "not opened: expired"),
    ] {
        let (upstream, record) = upstream(move |_| answer.clone());
        assert_eq!(read(&upstream, &config_maps(), Start::Fresh).await, [expected]);
        assert_eq!(record.summaries(), ["streaming list"]);
    }
}

#[tokio::test(start_paused = true)]
async fn where_the_list_fails_too_its_error_counts_and_nothing_is_remembered() {
    for (code, expected) in [(500, "not opened: unavailable"), (400, "not opened: rejected")] {
        let (upstream, record) = upstream(move |_| Answer::new(code, "no"));
        for _ in 0..2 {
            assert_eq!(read(&upstream, &config_maps(), Start::Fresh).await, [expected]);
        }
        assert_eq!(
            record.summaries(),
            ["streaming list", "list", "streaming list", "list"]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_that_reaches_no_boundary_in_time_is_given_up_for_a_list() {
    let begun = Answer::ok(line("ADDED", &object("a", "1")) + &line("ADDED", &object("gone", "2")));
    let silence = begun.clone().then(Step::Hang);
    let plain = begun.clone().then_data(bookmark("5")).then(Step::Hang);
    let no = line(
        "BOOKMARK",
        r#"{"metadata":{"resourceVersion":"6","annotations":{"k8s.io/initial-events-end":"false"}}}"#,
    );
    let explicit = begun.clone().then_data(no).then(Step::Hang);
    let mut endless = begun;
    for _ in 0..100 {
        endless = endless.then(Step::Wait(SECOND * 20)).then_data(bookmark("7"));
    }
    for (answer, seconds) in [(silence, 30), (plain, 30), (explicit, 30), (endless, 300)] {
        let (upstream, record) = upstream(move |request| {
            if request.is_streaming_list() {
                answer.clone()
            } else {
                list_then_watch(request)
            }
        });
        let before = tokio::time::Instant::now();
        let lines = read(&upstream, &config_maps(), Start::Fresh).await;
        assert_eq!(before.elapsed().as_secs(), seconds);
        assert_eq!(lines[..2], ["added a@1", "added gone@2"]);
        let restart = lines.iter().position(|line| line == "restarted").unwrap();
        assert_eq!(lines[restart + 1..restart + 5], LIST_THEN_WATCH);
        assert_eq!(
            lines.iter().filter(|line| line.starts_with("boundary")).count(),
            1
        );
        assert_eq!(record.summaries(), ["streaming list", "list", "watch 10"]);
        read(&upstream, &config_maps(), Start::Fresh).await;
        assert_eq!(record.summaries()[3..], ["list", "watch 10"], "it is remembered");
    }
}

#[tokio::test(start_paused = true)]
async fn the_bounds_of_a_snapshot_can_be_set() {
    let (builder, _) = builder(|request| {
        if request.is_streaming_list() {
            Answer::ok("").then(Step::Hang)
        } else {
            list_then_watch(request)
        }
    });
    let upstream = builder.snapshot_timeout(SECOND * 2, SECOND * 9).build().unwrap();
    let before = tokio::time::Instant::now();
    read(&upstream, &config_maps(), Start::Fresh).await;
    assert_eq!(before.elapsed().as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_that_is_cut_before_its_boundary_is_closed_without_one() {
    let body = line("ADDED", &object("a", "150")) + &line("ADDED", &object("b", "30"));
    let (upstream, _) = upstream(move |_| Answer::ok(body.clone()).then(Step::Break));
    assert_eq!(
        read(&upstream, &config_maps(), Start::Fresh).await,
        ["added a@150", "added b@30", "closed"]
    );
}
