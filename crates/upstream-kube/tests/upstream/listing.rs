//! Paged lists.

use std::sync::atomic::{AtomicU32, Ordering};

use krm_stream_protocol::{SessionItem, Start, Upstream as _, WatchEvent};

use crate::support::scripted::{Answer, Received, Step, builder, upstream};
use crate::support::transcript::{next, read};
use crate::support::{SECOND, config_maps, item, line, page, refused_streaming_list, status};

/// An API server that refuses streaming lists and answers lists with `list`.
fn lists(
    list: impl Fn(&Received) -> Answer + Send + Sync + 'static,
) -> impl Fn(&Received) -> Answer + Send + Sync + 'static {
    move |request| {
        if request.is_streaming_list() {
            Answer::new(422, refused_streaming_list())
        } else if request.is_watch() {
            Answer::ok("")
        } else {
            list(request)
        }
    }
}

/// Pages of 2, 2 and 1 objects.
fn three_pages(request: &Received) -> Answer {
    Answer::ok(match request.parameter("continue") {
        None => page("200", "\"t1\"", &[item("a", "150"), item("b", "30")]),
        Some("t1") => page("200", "\"t2\"", &[item("c", "90"), item("d", "40")]),
        Some("t2") => page("200", "\"\"", &[item("e", "50")]),
        Some(other) => panic!("an unknown token: {other}"),
    })
}

#[tokio::test(start_paused = true)]
async fn pages_are_read_to_the_end_and_the_watch_starts_at_the_list_s_version() {
    let (upstream, record) = upstream(lists(three_pages));
    assert_eq!(
        read(&upstream, &config_maps(), Start::Fresh).await,
        [
            "added a@150",
            "added b@30",
            "added c@90",
            "added d@40",
            "added e@50",
            "boundary 200",
            "closed"
        ]
    );
    assert_eq!(
        record.summaries(),
        [
            "streaming list",
            "list",
            "list continue=t1",
            "list continue=t2",
            "watch 200"
        ]
    );
    let requests = record.requests();
    for page in &requests[1..4] {
        let names: Vec<_> = page.query.iter().map(|(name, _)| name.as_str()).collect();
        let expected: &[&str] = if page.parameter("continue").is_some() {
            &["limit", "continue"]
        } else {
            &["limit"]
        };
        assert_eq!(names, expected);
        assert_eq!(page.parameter("limit"), Some("500"));
    }
    assert_eq!(requests[4].parameter("sendInitialEvents"), None);
}

#[tokio::test(start_paused = true)]
async fn an_empty_page_with_a_token_goes_on_and_null_ends_the_list() {
    let (upstream, _) = upstream(lists(|request| {
        Answer::ok(match request.parameter("continue") {
            None => page("9", "\"t\"", &[]),
            Some(_) => page("9", "null", &[item("a", "1")]),
        })
    }));
    assert_eq!(
        read(&upstream, &config_maps(), Start::Fresh).await,
        ["added a@1", "boundary 9", "closed"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_that_expires_midway_is_started_again() {
    let gone = status(410, "Expired", "The provided continue parameter is too old");
    let inconsistent = gone.replace("\"metadata\":{}", "\"metadata\":{\"continue\":\"inconsistent\"}");
    assert!(inconsistent.contains("inconsistent"));
    for body in [gone, inconsistent] {
        let expirations = AtomicU32::new(0);
        let (upstream, record) = upstream(lists(move |request| {
            if request.parameter("continue") == Some("t2") && expirations.fetch_add(1, Ordering::SeqCst) == 0
            {
                return Answer::new(410, body.clone());
            }
            three_pages(request)
        }));
        assert_eq!(
            read(&upstream, &config_maps(), Start::Fresh).await,
            [
                "added a@150",
                "added b@30",
                "added c@90",
                "added d@40",
                "restarted",
                "added a@150",
                "added b@30",
                "added c@90",
                "added d@40",
                "added e@50",
                "boundary 200",
                "closed"
            ]
        );
        assert_eq!(
            record.summaries()[4],
            "list",
            "from its first page, without a token"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_always_expires_midway_ends_after_a_few_spaced_attempts() {
    let (upstream, record) = upstream(lists(|request| {
        if request.parameter("continue").is_some() {
            Answer::new(410, "")
        } else {
            three_pages(request)
        }
    }));
    let before = tokio::time::Instant::now();
    let lines = read(&upstream, &config_maps(), Start::Fresh).await;
    assert_eq!(lines.last().unwrap(), "expired");
    assert_eq!(lines.iter().filter(|line| *line == "restarted").count(), 3);
    assert_eq!(record.summaries().len(), 1 + 4 * 2);
    assert_eq!(before.elapsed().as_secs(), 1 + 2);
}

#[tokio::test(start_paused = true)]
async fn items_get_the_kind_that_a_watch_would_have_sent_so_that_both_paths_agree() {
    let by_list = r#"{"metadata":{"name":"s","namespace":"rec","uid":"u1"},"data":{"p":"QUFB"}}"#;
    let by_watch = format!(r#"{{"kind":"ConfigMap","apiVersion":"v1",{}"#, &by_list[1..]);
    let (list, watch) = (
        page("10", "null", &[by_list.to_owned()]),
        line("MODIFIED", &by_watch),
    );
    let (upstream, _) = upstream(move |request| {
        if request.is_streaming_list() {
            Answer::new(405, "")
        } else if request.is_watch() {
            Answer::ok(watch.clone())
        } else {
            Answer::ok(list.clone())
        }
    });
    let mut session = upstream.open(&config_maps(), Start::Fresh).await.unwrap();
    let mut objects = Vec::new();
    while let SessionItem::Event(event) = next(&mut *session).await {
        if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event {
            objects.push(object);
        }
    }
    assert_eq!(objects.len(), 2);
    assert_eq!(objects[0].json(), &by_watch);
    assert_eq!(objects[1].json(), &by_watch);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_cannot_be_followed_or_does_not_advance_is_an_error() {
    for (list, expected) in [
        (page("", "null", &[]), "failed unreadable"),
        ("<html>".to_owned(), "failed unreadable"),
        ("{}".to_owned(), "failed unreadable"),
        (page("9", "null", &["5".to_owned()]), "failed unreadable"),
        (page("9", "\"same\"", &[]), "failed unreadable"),
        (status(403, "Forbidden", "no"), "failed forbidden no"),
        (status(410, "Expired", "old"), "expired"),
    ] {
        let answer = list.clone();
        let (upstream, _) = upstream(lists(move |_| Answer::ok(answer.clone())));
        let lines = read(&upstream, &config_maps(), Start::Fresh).await;
        assert_eq!(lines.last().unwrap(), expected, "{list}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_page_that_is_silent_or_breaks_off_ends_the_transport() {
    for step in [Step::Hang, Step::Break] {
        let (upstream, _) = upstream(lists(move |_| Answer::ok("{\"kind\":").then(step.clone())));
        assert_eq!(read(&upstream, &config_maps(), Start::Fresh).await, ["closed"]);
    }
    let (upstream, _) = upstream(lists(|request| match request.parameter("continue") {
        None => Answer::ok(page("9", "\"t\"", &[item("a", "1")])),
        Some(_) => Answer::hanging(),
    }));
    let before = tokio::time::Instant::now();
    assert_eq!(
        read(&upstream, &config_maps(), Start::Fresh).await,
        ["added a@1", "closed"]
    );
    assert_eq!(before.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_slow_page_is_read_as_long_as_it_moves() {
    let whole = page("9", "null", &[item("a", "1")]);
    let (begin, rest) = whole.split_at(20);
    let (begin, rest) = (begin.to_owned(), rest.to_owned());
    let (upstream, _) = upstream(lists(move |_| {
        Answer::ok(begin.clone())
            .then(Step::Wait(SECOND * 29))
            .then_data(rest.clone())
            .then(Step::Wait(SECOND * 29))
    }));
    assert_eq!(
        read(&upstream, &config_maps(), Start::Fresh).await,
        ["added a@1", "boundary 9", "closed"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_too_large_is_asked_for_again_with_fewer_objects() {
    // 1 KiB a line, hence 16 KiB a page; the objects have some 900 bytes.
    let (builder, record) = builder(lists(|request| {
        let limit: usize = request.parameter("limit").unwrap().parse().unwrap();
        let from: usize = request
            .parameter("continue")
            .map_or(0, |token| token.parse().unwrap());
        let to = (from + limit).min(100);
        let items: Vec<_> = (from..to)
            .map(|number| {
                item(&format!("n{number}"), "1")
                    .replace("\"uid\"", &format!("\"pad\":\"{}\",\"uid\"", "x".repeat(800)))
            })
            .collect();
        let next = if to == 100 {
            "\"\"".to_owned()
        } else {
            format!("\"{to}\"")
        };
        Answer::ok(page("9", &next, &items))
    }));
    let upstream = builder.max_line_bytes(1024).page_limit(100).build().unwrap();
    let lines = read(&upstream, &config_maps(), Start::Fresh).await;
    assert_eq!(lines.len(), 102);
    assert_eq!(lines[100..], ["boundary 9", "closed"]);
    assert_eq!(record.requests()[2].parameter("limit"), Some("12"));
}

#[tokio::test(start_paused = true)]
async fn an_item_over_the_limit_is_an_error_that_names_it() {
    for bytes in [2_000, 40_000] {
        let (builder, _) = builder(lists(move |_| {
            let large = format!(r#"{{"metadata":{{"name":"a","pad":"{}"}}}}"#, "x".repeat(bytes));
            Answer::ok(page("9", "null", &[large]))
        }));
        let upstream = builder.max_line_bytes(1024).build().unwrap();
        assert_eq!(
            read(&upstream, &config_maps(), Start::Fresh).await,
            ["failed line too long 1024"]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn one_odd_item_does_not_stop_the_rest() {
    let items = [
        item("a", "1"),
        r#"{"metadata":{"name":"odd","namespace":"rec","uid":"u","resourceVersion":"2","labels":"x"}}"#
            .to_owned(),
        r#"{"metadata":{"name":5,"uid":"u","resourceVersion":"3"}}"#.to_owned(),
        r#"{"data":{}}"#.to_owned(),
        item("b", "4"),
    ];
    let (upstream, _) = upstream(lists(move |_| Answer::ok(page("9", "null", &items))));
    assert_eq!(
        read(&upstream, &config_maps(), Start::Fresh).await,
        [
            "added a@1",
            "added odd@2",
            "added partial@3",
            "added partial",
            "added b@4",
            "boundary 9",
            "closed"
        ]
    );
}
