//! API servers that ask to come back later.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::api_server::{
    APP, Answer, SECOND, added, boundary, gateway, line, modified, status, types_for, words,
};

/// A `Status` with a wait in its details, and with this cause.
fn later(code: u16, reason: &str, seconds: u64, cause: &str) -> String {
    format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"later","reason":"{reason}","details":{{"causes":[{{"reason":"{cause}"}}],"retryAfterSeconds":{seconds}}},"code":{code}}}"#
    )
}

/// How long after a routine end's refused reopen the next request comes, if the refusal is this answer.
async fn wait_after(refusal: Answer) -> Duration {
    let mut watches = 0;
    let (gateway, server) = gateway(move |asked| {
        if asked.is_streaming_list() {
            return Answer::ok(added("a", "90") + &boundary("100")).then_wait(SECOND * 10);
        }
        watches += 1;
        match watches {
            1 => refusal.clone(),
            _ => Answer::ok(modified("a", "101")).then_hang(),
        }
    });
    let mut connection = gateway.connect(APP);
    assert_eq!(words(&mut connection, 3).await, ["reset", "added a", "synced"]);
    assert_eq!(
        words(&mut connection, 1).await,
        ["modified a"],
        "no reset, no error"
    );
    assert_eq!(
        server.summaries(),
        ["streaming list", "watch 100", "watch 100"],
        "the saved version is kept"
    );
    server.gaps(1)[0]
}

#[tokio::test(start_paused = true)]
async fn a_refused_reopen_waits_as_long_as_it_was_asked_to_in_any_form() {
    let details = || later(429, "TooManyRequests", 7, "");
    for (refusal, least, most) in [
        (Answer::new(429, "").header("retry-after", "7"), 7000, 8800),
        (Answer::new(429, details()), 7000, 8800),
        (
            Answer::new(429, details()).header("retry-after", "9"),
            9000,
            11_300,
        ),
        (Answer::new(429, details()).header("retry-after", "2"), 7000, 8800),
        (Answer::new(503, "").header("retry-after", "0"), 250, 350),
        (
            Answer::new(503, "").header("retry-after", "999999"),
            30_000,
            37_600,
        ),
        (Answer::new(503, "<html>"), 250, 350),
        (Answer::new(503, "").header("retry-after", "soon"), 250, 350),
    ] {
        let described = format!("{refusal:?}");
        let waited = wait_after(refusal).await.as_millis();
        assert!((least..=most).contains(&waited), "{waited} ms for {described}");
    }
}

/// A time as HTTP writes it (<https://www.rfc-editor.org/rfc/rfc9110#section-5.6.7>).
fn http_date(time: SystemTime) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let seconds = time.duration_since(UNIX_EPOCH).unwrap().as_secs();
    let (mut days, of_day) = (seconds / 86_400, seconds % 86_400);
    let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][usize::try_from(days % 7).unwrap()];
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [
        31,
        28 + u64::from(is_leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!(
        "{weekday}, {:02} {} {year} {hour:02}:{minute:02}:{second:02} GMT",
        days + 1,
        MONTHS[month]
    )
}

#[tokio::test(start_paused = true)]
async fn a_refused_reopen_waits_until_the_date_that_it_was_told() {
    #[expect(
        clippy::disallowed_methods,
        reason = "a date in a header is on the wall clock"
    )]
    let date = SystemTime::now() + SECOND * 20;
    let refusal = Answer::new(503, "").header("retry-after", http_date(date));
    let waited = wait_after(refusal).await.as_secs();
    assert!((15..=25).contains(&waited), "{waited} s");
}

#[tokio::test(start_paused = true)]
async fn an_error_event_that_asks_to_wait_keeps_the_version_and_resets_nobody() {
    let (gateway, server) = gateway(|asked| {
        if asked.is_watch() {
            return Answer::ok(modified("a", "101")).then_hang();
        }
        Answer::ok(added("a", "90") + &boundary("100"))
            .then_wait(SECOND * 10)
            .then_data(line("ERROR", &later(429, "TooManyRequests", 7, "")))
    });
    let mut connection = gateway.connect(APP);
    assert_eq!(words(&mut connection, 3).await, ["reset", "added a", "synced"]);
    assert_eq!(words(&mut connection, 1).await, ["modified a"]);
    assert_eq!(server.summaries(), ["streaming list", "watch 100"]);
    let waited = server.gaps(0)[0];
    assert!(waited >= SECOND * 17 && waited < SECOND * 19, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn retries_grow_with_jitter_and_end_in_one_unavailable_that_says_when_to_come_back() {
    let mut delays = Vec::new();
    for _ in 0..5 {
        let (gateway, server) = gateway(|asked| {
            if asked.after < SECOND * 5 {
                return Answer::ok(added("a", "90") + &boundary("100")).then_wait(SECOND * 10);
            }
            if asked.after > SECOND * 60 {
                return Answer::ok(added("a", "90") + &boundary("200")).then_hang();
            }
            Answer::new(429, "")
        });
        let mut connection = gateway.connect(APP);
        let types = types_for(&mut connection, SECOND * 60).await;
        assert_eq!(types, ["reset", "added", "synced", "UPSTREAM_UNAVAILABLE"]);
        assert!(String::from_utf8_lossy(connection.raw()).contains("\"retryAfterMs\":1000"));
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
        let gaps = server.gaps(1);
        assert!(gaps[0] < gaps[1] && gaps[1] < gaps[2], "{gaps:?}");
        delays.push(gaps[2]);
        // Nothing is left dead: whoever comes back later is served.
        tokio::time::sleep(SECOND * 60).await;
        let mut again = gateway.connect(APP);
        assert_eq!(words(&mut again, 3).await, ["reset", "added a", "synced"]);
    }
    delays.sort();
    delays.dedup();
    assert!(delays.len() > 1, "no jitter: {delays:?}");
}

#[tokio::test(start_paused = true)]
async fn a_version_that_the_server_has_not_reached_is_left_aside_after_the_hint() {
    let by_cause = || Answer::new(504, later(504, "Timeout", 3, "ResourceVersionTooLarge"));
    let by_message = || {
        let body = status(
            504,
            "Timeout",
            "Timeout: Too large resource version: 100, current: 42",
        );
        Answer::new(504, body).header("retry-after", "3")
    };
    let in_stream = || {
        let event = line("ERROR", &later(504, "Timeout", 3, "ResourceVersionTooLarge"));
        Answer::ok(event)
    };
    let answers: [fn() -> Answer; 3] = [by_cause, by_message, in_stream];
    for answer in answers {
        let mut lists = 0;
        let (gateway, server) = gateway(move |asked| {
            if asked.is_watch() {
                return answer();
            }
            lists += 1;
            let snapshot = Answer::ok(added("a", "40") + &boundary(if lists == 1 { "100" } else { "42" }));
            if lists == 1 {
                snapshot.then_wait(SECOND * 10)
            } else {
                snapshot.then_hang()
            }
        });
        let mut connection = gateway.connect(APP);
        assert_eq!(
            types_for(&mut connection, SECOND * 60).await,
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
            ["streaming list", "watch 100", "streaming list"],
            "the version is not asked for again, and the list asks for none"
        );
        let waited = server.gaps(1)[0];
        assert!(waited >= SECOND * 3 && waited < SECOND * 5, "{waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_reaches_the_version_is_no_endless_loop() {
    let (gateway, server) = gateway(|asked| {
        if asked.after < SECOND {
            return Answer::ok(added("a", "40") + &boundary("100")).then_wait(SECOND * 10);
        }
        Answer::new(504, later(504, "Timeout", 1, "ResourceVersionTooLarge"))
    });
    let mut connection = gateway.connect(APP);
    let types = types_for(&mut connection, SECOND * 120).await;
    assert_eq!(types, ["reset", "added", "synced", "UPSTREAM_UNAVAILABLE"]);
    assert!(server.asked().len() <= 8, "{:?}", server.summaries());
}
