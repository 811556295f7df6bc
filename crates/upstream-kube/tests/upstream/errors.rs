//! What an API server says instead of a stream.

use std::error::Error as _;
use std::time::{Duration, SystemTime};

use krm_stream_protocol::{OpenError, ResourceVersion, Start, Upstream as _, UpstreamError};

use crate::support::scripted::{Answer, Step, upstream};
use crate::support::transcript::read;
use crate::support::{config_maps, line, status};

fn after() -> Start {
    Start::After(ResourceVersion::from("100"))
}

async fn read_answer(answer: Answer) -> Vec<String> {
    let (upstream, _) = upstream(move |_| answer.clone());
    read(&upstream, &config_maps(), after()).await
}

/// The same `Status` over several lines, as it is printed for people.
fn pretty(code: u16, reason: &str) -> String {
    format!(
        "{{\n    \"kind\": \"Status\",\n    \"apiVersion\": \"v1\",\n    \"metadata\": {{}},\n    \"status\": \"Failure\",\n    \"message\": \"no\",\n    \"reason\": \"{reason}\",\n    \"details\": {{\n        \"kind\": \"pods\"\n    }},\n    \"code\": {code}\n}}"
    )
}

const ERRORS: [(u16, &str, &str); 9] = [
    (401, "Unauthorized", "unauthenticated"),
    (403, "Forbidden", "forbidden no"),
    (404, "NotFound", "not found"),
    (410, "Expired", "expired"),
    (422, "Invalid", "rejected"),
    (429, "TooManyRequests", "unavailable"),
    (500, "InternalError", "unavailable"),
    (503, "ServiceUnavailable", "unavailable"),
    (504, "Timeout", "unavailable"),
];

#[tokio::test(start_paused = true)]
async fn an_error_answer_is_one_error_classed_by_its_http_status_whatever_its_body() {
    for (code, reason, expected) in ERRORS {
        let expected = format!("not opened: {expected}");
        for body in [
            pretty(code, reason),
            pretty(code, reason) + "\n",
            status(code, reason, "no"),
        ] {
            assert_eq!(read_answer(Answer::new(code, body)).await, [expected.as_str()]);
        }
        let without_text = expected.replace("forbidden no", "forbidden without text");
        for body in ["", "<html><body>410 Gone</body></html>", "{", "[]", "null"] {
            assert_eq!(
                read_answer(Answer::new(code, body)).await,
                [without_text.as_str()],
                "{body}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_in_place_of_a_stream_is_one_error_classed_by_its_code() {
    for (code, reason, expected) in ERRORS {
        let expected = if code == 410 {
            "expired".to_owned()
        } else {
            format!("failed {expected}")
        };
        for body in [
            pretty(code, reason),
            pretty(code, reason) + "\n",
            pretty(code, reason).replace('\n', "\r\n"),
            status(code, reason, "no"),
            status(code, reason, "no") + "\n",
        ] {
            for size in [1, 1024] {
                let answer = Answer::ok(body.clone()).in_chunks_of(size);
                assert_eq!(read_answer(answer).await, [expected.as_str()], "{body}");
            }
            // A server that keeps the connection open after it.
            let answer = Answer::ok(body.clone() + "\n").then(Step::Hang);
            assert_eq!(read_answer(answer).await, [expected.as_str()], "{body}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_success_is_a_closed_session() {
    assert_eq!(read_answer(Answer::ok("")).await, ["closed"]);
}

#[tokio::test(start_paused = true)]
async fn a_document_that_is_no_status_is_unreadable_and_one_that_is_cut_is_closed() {
    assert_eq!(
        read_answer(Answer::ok("{\n  \"kind\": \"Pod\"\n}\n")).await,
        ["failed unreadable"]
    );
    assert_eq!(read_answer(Answer::ok("{\n  \"kind\": \"Sta")).await, ["closed"]);
    let endless = format!("{{\n{}", "  \"a\": 1,\n".repeat(10_000));
    assert_eq!(read_answer(Answer::ok(endless)).await, ["failed unreadable"]);
}

#[tokio::test(start_paused = true)]
async fn gone_within_the_stream_is_expired_in_every_form() {
    for object in [
        status(410, "Expired", "too old resource version"),
        status(410, "Gone", "gone"),
        r#"{"code":410,"reason":"Expired"}"#.to_owned(),
        r#"{"kind":"Status","reason":"Expired"}"#.to_owned(),
        r#"{"kind":"Status","code":410}"#.to_owned(),
    ] {
        assert_eq!(
            read_answer(Answer::ok(line("ERROR", &object))).await,
            ["expired"],
            "{object}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn other_errors_within_the_stream_are_classed_by_code() {
    for (object, expected) in [
        (status(429, "TooManyRequests", "slow down"), "failed unavailable"),
        (
            status(500, "InternalError", "403 keys, 410 Gone"),
            "failed unavailable",
        ),
        (status(403, "Forbidden", "no"), "failed forbidden no"),
        (
            status(504, "Timeout", "Too large resource version: 9, current: 4"),
            "failed version too large",
        ),
        ("{}".to_owned(), "failed unavailable"),
    ] {
        assert_eq!(
            read_answer(Answer::ok(line("ERROR", &object))).await,
            [expected],
            "{object}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_the_server_has_not_seen_is_its_own_error() {
    let by_cause = r#"{"kind":"Status","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge"}],"retryAfterSeconds":1},"code":504}"#;
    let by_message = status(
        504,
        "Timeout",
        "Timeout: Too large resource version: 99, current: 4",
    );
    for body in [by_cause.to_owned(), by_message] {
        assert_eq!(
            read_answer(Answer::new(504, body)).await,
            ["not opened: version too large"]
        );
    }
}

async fn failure(answer: Answer) -> UpstreamError {
    let (upstream, _) = upstream(move |_| answer.clone());
    match upstream.open(&config_maps(), after()).await {
        Err(OpenError::Failed(error)) => error,
        Err(OpenError::Expired) => panic!("expired"),
        Ok(_) => panic!("opened"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_hint_is_taken_from_the_header_or_the_body_and_the_longer_counts() {
    let details = r#"{"kind":"Status","code":429,"details":{"retryAfterSeconds":7}}"#;
    for (answer, seconds) in [
        (Answer::new(429, "").header("retry-after", "7"), Some(7)),
        (Answer::new(429, details), Some(7)),
        (Answer::new(429, details).header("retry-after", "9"), Some(9)),
        (Answer::new(429, details).header("retry-after", "2"), Some(7)),
        (Answer::new(503, "").header("retry-after", "0"), Some(0)),
        (
            Answer::new(503, "").header("retry-after", "999999"),
            Some(999_999),
        ),
        (Answer::new(503, ""), None),
    ] {
        let hint = failure(answer).await.retry_after();
        assert_eq!(hint.map(|hint| hint.as_secs()), seconds);
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "a date in a header is on the wall clock"
    )]
    let soon = SystemTime::now() + Duration::from_secs(90);
    let date = httpdate::fmt_http_date(soon);
    let hint = failure(Answer::new(503, "").header("retry-after", date))
        .await
        .retry_after();
    assert!((80..=90).contains(&hint.unwrap().as_secs()));
}

#[tokio::test(start_paused = true)]
async fn the_cause_keeps_what_the_server_said_for_diagnostics() {
    let error = failure(Answer::new(500, status(500, "InternalError", "etcd is away"))).await;
    let cause = error.source().unwrap().to_string();
    assert_eq!(cause, "the api server answered 500 InternalError: etcd is away");
}

#[tokio::test(start_paused = true)]
async fn the_body_of_an_error_is_read_within_bounds() {
    let endless = Answer::new(503, "x".repeat(1024 * 1024)).then(Step::Hang);
    assert_eq!(read_answer(endless).await, ["not opened: unavailable"]);
    let before = tokio::time::Instant::now();
    let silent = Answer::new(403, "").then(Step::Hang);
    assert_eq!(read_answer(silent).await, ["not opened: forbidden without text"]);
    assert_eq!(before.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_not_asked_for_is_an_error() {
    for code in [301, 302, 303, 307, 308] {
        let answer = Answer::new(code, "").header("location", "http://elsewhere.example/");
        assert_eq!(read_answer(answer).await, ["not opened: rejected"], "{code}");
    }
    assert_eq!(
        read_answer(Answer::new(204, "")).await,
        ["not opened: unreadable"]
    );
    let encoded = Answer::ok("").header("content-encoding", "gzip");
    assert_eq!(read_answer(encoded).await, ["not opened: unreadable"]);
}
