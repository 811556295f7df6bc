//! The watch that follows a list: what refuses it, what it is asked for again after, and the boundary that it is.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use krm_stream_protocol::{Start, Upstream as _};
use tokio::time::Instant;

use crate::support::scripted::{Answer, Received, Step, builder, upstream};
use crate::support::transcript::{line as describe, next, read};
use crate::support::{SECOND, config_maps, item, line, object, page, status};

/// An API server without streaming lists that answers its watches with `watch`, after a list of one object.
fn watches(
    watch: impl Fn(&Received) -> Answer + Send + Sync + 'static,
) -> impl Fn(&Received) -> Answer + Send + Sync + 'static {
    move |request| {
        if request.is_streaming_list() {
            Answer::new(405, "")
        } else if request.is_watch() {
            watch(request)
        } else {
            Answer::ok(page("9", "null", &[item("a", "1")]))
        }
    }
}

#[tokio::test(start_paused = true)]
async fn there_is_no_boundary_where_the_watch_after_the_list_is_refused() {
    for (answer, expected) in [
        (
            Answer::new(403, status(403, "Forbidden", "no")),
            "failed forbidden no",
        ),
        (Answer::new(401, ""), "failed unauthenticated"),
        (Answer::new(404, ""), "failed not found"),
        (
            Answer::new(504, status(504, "Timeout", "Too large resource version: 9")),
            "failed version too large",
        ),
        (Answer::new(204, ""), "failed unreadable"),
    ] {
        let (upstream, record) = upstream(watches(move |_| answer.clone()));
        let lines = read(&upstream, &config_maps(), Start::Fresh).await;
        assert_eq!(lines, ["added a@1", expected]);
        assert_eq!(record.summaries(), ["streaming list", "list", "watch 9"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_accepted_is_the_boundary_whatever_comes_of_it() {
    for (answer, expected) in [
        (Answer::ok(""), "closed"),
        (Answer::ok("").then(Step::Break), "closed"),
        (
            Answer::ok(line("ERROR", &status(410, "Expired", "old"))),
            "expired",
        ),
        (Answer::ok(status(403, "Forbidden", "no")), "failed forbidden no"),
        (Answer::ok(line("ADDED", &object("z", "11"))), "added z@11"),
    ] {
        let (upstream, _) = upstream(watches(move |_| answer.clone()));
        let lines = read(&upstream, &config_maps(), Start::Fresh).await;
        assert_eq!(lines[..3], ["added a@1", "boundary 9", expected]);
    }
}

#[tokio::test(start_paused = true)]
async fn objects_pass_while_the_watch_is_waited_for_and_the_boundary_comes_with_its_headers() {
    let (upstream, record) = upstream(watches(|_| Answer::ok("").then(Step::Hang).delayed(SECOND * 7)));
    let mut session = upstream.open(&config_maps(), Start::Fresh).await.unwrap();
    let before = Instant::now();
    assert_eq!(describe(&next(&mut *session).await), "added a@1");
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(describe(&next(&mut *session).await), "boundary 9");
    assert_eq!(before.elapsed(), SECOND * 7, "with the headers, and no later");
    assert_eq!(record.summaries(), ["streaming list", "list", "watch 9"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_whose_headers_never_come_is_an_end_of_transport_before_the_boundary() {
    let (builder, record) = builder(watches(|_| Answer::hanging()));
    let upstream = builder.open_timeout(SECOND * 3).build().unwrap();
    let before = Instant::now();
    assert_eq!(
        read(&upstream, &config_maps(), Start::Fresh).await,
        ["added a@1", "closed"]
    );
    assert_eq!(
        record.summaries()[1..],
        ["list", "watch 9", "watch 9", "watch 9", "watch 9"]
    );
    assert!((17_250..18_600).contains(&before.elapsed().as_millis()));
}

#[tokio::test(start_paused = true)]
async fn a_list_whose_version_is_forgotten_when_it_is_to_be_watched_is_started_again() {
    let (lists, gone) = (
        AtomicU32::new(0),
        status(410, "Expired", "too old resource version"),
    );
    let (upstream, record) = upstream(move |request| {
        if request.is_streaming_list() {
            return Answer::new(405, "");
        }
        if request.is_watch() {
            return match request.parameter("resourceVersion") {
                Some("1") => Answer::new(410, gone.clone()),
                _ => Answer::ok(""),
            };
        }
        Answer::ok(match lists.fetch_add(1, Ordering::SeqCst) {
            0 => page("1", "null", &[item("a", "1"), item("b", "1")]),
            _ => page("2", "null", &[item("a", "2")]),
        })
    });
    assert_eq!(
        read(&upstream, &config_maps(), Start::Fresh).await,
        [
            "added a@1",
            "added b@1",
            "restarted",
            "added a@2",
            "boundary 2",
            "closed"
        ]
    );
    assert_eq!(
        record.summaries(),
        ["streaming list", "list", "watch 1", "list", "watch 2"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_whose_version_is_always_forgotten_ends_after_a_few_spaced_attempts() {
    let (upstream, record) = upstream(watches(|_| Answer::new(410, "")));
    let before = Instant::now();
    let lines = read(&upstream, &config_maps(), Start::Fresh).await;
    assert_eq!(
        lines,
        [
            "added a@1",
            "restarted",
            "added a@1",
            "restarted",
            "added a@1",
            "restarted",
            "added a@1",
            "expired"
        ]
    );
    assert_eq!(record.summaries().len(), 1 + 4 * 2);
    assert_eq!(before.elapsed().as_secs(), 1 + 2);
}

/// When the watches of an API server were asked for.
type Times = Arc<Mutex<Vec<Instant>>>;

/// The same, its watches answered one by one: with the next of `answers`, and with the last from then on.
fn watches_in_turn(
    answers: impl Into<Vec<Answer>>,
) -> (impl Fn(&Received) -> Answer + Send + Sync + 'static, Times) {
    let (answers, times) = (answers.into(), Times::default());
    let asked = Arc::clone(&times);
    let answer = watches(move |_| {
        let mut asked = asked.lock().unwrap();
        asked.push(Instant::now());
        answers[(asked.len() - 1).min(answers.len() - 1)].clone()
    });
    (answer, times)
}

/// How far the entries are apart, in milliseconds.
fn waits(times: &Times) -> Vec<u128> {
    let times = times.lock().unwrap();
    times
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_millis())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_put_off_is_asked_for_again_when_the_hint_says_and_the_list_is_kept() {
    let busy = Answer::new(429, "").header("retry-after", "2");
    let details = r#"{"kind":"Status","code":429,"details":{"retryAfterSeconds":3}}"#;
    let (answers, times) = watches_in_turn([
        busy,
        Answer::new(429, details),
        Answer::ok(line("ADDED", &object("b", "10"))),
    ]);
    let (upstream, record) = upstream(answers);
    assert_eq!(
        read(&upstream, &config_maps(), Start::Fresh).await,
        ["added a@1", "boundary 9", "added b@10", "closed"]
    );
    assert_eq!(
        record.summaries(),
        ["streaming list", "list", "watch 9", "watch 9", "watch 9"]
    );
    assert_eq!(waits(&times), [2_000, 3_000]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_fails_four_times_is_the_end_with_the_last_answer() {
    for code in [408, 429, 500, 502, 503, 504] {
        let (answers, times) = watches_in_turn([Answer::new(code, "")]);
        let (upstream, record) = upstream(answers);
        assert_eq!(
            read(&upstream, &config_maps(), Start::Fresh).await,
            ["added a@1", "failed unavailable"],
            "{code}"
        );
        assert_eq!(
            record.summaries()[1..],
            ["list", "watch 9", "watch 9", "watch 9", "watch 9"]
        );
        let waits = waits(&times);
        assert!((250..=313).contains(&waits[0]), "{waits:?}");
        assert!((1_000..=1_251).contains(&waits[1]), "{waits:?}");
        assert!((4_000..=5_001).contains(&waits[2]), "{waits:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_longer_of_hint_and_delay_is_waited_for_and_no_hint_beyond_half_a_minute() {
    let hinting = |seconds: &str| Answer::new(503, "").header("retry-after", seconds);
    let (answers, times) = watches_in_turn([hinting("0"), hinting("999999"), hinting("1"), Answer::ok("")]);
    let (upstream, _) = upstream(answers);
    let lines = read(&upstream, &config_maps(), Start::Fresh).await;
    assert_eq!(lines, ["added a@1", "boundary 9", "closed"]);
    let waits = waits(&times);
    assert!((250..=313).contains(&waits[0]), "{waits:?}");
    assert_eq!(waits[1], 30_000);
    assert!((4_000..=5_001).contains(&waits[2]), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_after_a_failure_is_the_end_at_once() {
    for (answer, expected) in [
        (
            Answer::new(403, status(403, "Forbidden", "no")),
            "failed forbidden no",
        ),
        (Answer::new(401, ""), "failed unauthenticated"),
        (Answer::new(404, ""), "failed not found"),
        (Answer::new(422, ""), "failed rejected"),
        (Answer::new(204, ""), "failed unreadable"),
    ] {
        let (answers, times) = watches_in_turn([Answer::new(503, ""), answer, Answer::ok("")]);
        let (upstream, record) = upstream(answers);
        let before = Instant::now();
        let lines = read(&upstream, &config_maps(), Start::Fresh).await;
        assert_eq!(lines, ["added a@1", expected]);
        assert_eq!(record.summaries()[1..], ["list", "watch 9", "watch 9"]);
        assert_eq!(before.elapsed().as_millis(), waits(&times)[0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_forgotten_between_two_attempts_starts_the_list_again() {
    let (answers, _) = watches_in_turn([Answer::new(503, ""), Answer::new(410, ""), Answer::ok("")]);
    let (upstream, record) = upstream(answers);
    assert_eq!(
        read(&upstream, &config_maps(), Start::Fresh).await,
        ["added a@1", "restarted", "added a@1", "boundary 9", "closed"]
    );
    assert_eq!(
        record.summaries(),
        ["streaming list", "list", "watch 9", "watch 9", "list", "watch 9"]
    );
}

#[tokio::test(start_paused = true)]
async fn no_watch_is_asked_for_later_than_the_bound_of_a_snapshot_after_the_first() {
    for (seconds, attempts) in [("2", 3), ("5", 2), ("6", 1)] {
        let (answers, times) = watches_in_turn([Answer::new(503, "").header("retry-after", seconds)]);
        let (builder, _) = builder(answers);
        let upstream = builder.snapshot_timeout(SECOND, SECOND * 5).build().unwrap();
        let before = Instant::now();
        let lines = read(&upstream, &config_maps(), Start::Fresh).await;
        assert_eq!(lines, ["added a@1", "failed unavailable"]);
        assert_eq!(times.lock().unwrap().len(), attempts);
        assert_eq!(
            before.elapsed().as_millis(),
            waits(&times).iter().sum(),
            "nothing is waited for in vain"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_dropped_while_it_waits_asks_for_nothing_more() {
    let (answers, times) = watches_in_turn([Answer::new(503, "").header("retry-after", "9")]);
    let (upstream, _) = upstream(answers);
    let mut session = upstream.open(&config_maps(), Start::Fresh).await.unwrap();
    assert_eq!(describe(&next(&mut *session).await), "added a@1");
    let waiting = tokio::time::timeout(SECOND, next(&mut *session)).await;
    assert!(waiting.is_err(), "it waits");
    drop(session);
    tokio::time::sleep(SECOND * 60).await;
    assert_eq!(times.lock().unwrap().len(), 1);
}
