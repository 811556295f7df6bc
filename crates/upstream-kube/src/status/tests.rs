//! The error map, row by row.

use super::*;

fn kind(http: Option<u16>, body: &str) -> Option<UpstreamErrorKind> {
    match Status::read(body.as_bytes()).classify(http, None) {
        Class::Expired => None,
        Class::Error(error) => Some(error.kind().clone()),
    }
}

#[test]
fn the_http_status_decides_and_the_body_only_where_there_is_none() {
    use UpstreamErrorKind::{NotFound, Rejected, Unauthenticated, Unavailable};
    for (code, expected) in [
        (401, Unauthenticated),
        (404, NotFound),
        (408, Unavailable),
        (429, Unavailable),
        (500, Unavailable),
        (503, Unavailable),
        (504, Unavailable),
        (599, Unavailable),
        (400, Rejected),
        (405, Rejected),
        (409, Rejected),
        (422, Rejected),
        (301, Rejected),
        (307, Rejected),
    ] {
        for body in ["", "<html>403 410 Gone</html>", r#"{"kind":"Status","code":403}"#] {
            assert_eq!(kind(Some(code), body), Some(expected.clone()), "{code} {body}");
        }
        assert_eq!(kind(None, &format!(r#"{{"code":{code}}}"#)), Some(expected));
    }
}

#[test]
fn a_text_that_holds_other_numbers_changes_nothing() {
    let body = r#"{"kind":"Status","message":"read 54031 bytes, 403 keys; peer said 410 Gone","code":500}"#;
    assert_eq!(kind(None, body), Some(UpstreamErrorKind::Unavailable));
    assert_eq!(kind(Some(500), body), Some(UpstreamErrorKind::Unavailable));
}

#[test]
fn gone_is_recognised_in_every_form() {
    for body in [
        r#"{"kind":"Status","apiVersion":"v1","code":410,"reason":"Expired"}"#,
        r#"{"code":410,"reason":"Gone"}"#,
        r#"{"reason":"Gone"}"#,
        r#"{"reason":"Expired"}"#,
        r#"{"code":410}"#,
        r#"{"code":"410","reason":"Expired"}"#,
    ] {
        assert_eq!(kind(None, body), None, "{body}");
    }
    assert_eq!(kind(Some(410), ""), None);
}

#[test]
fn a_version_that_is_too_large_is_told_by_its_cause_or_its_message() {
    for body in [
        r#"{"message":"Timeout: Too large resource version: 9, current: 4","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1},"code":504}"#,
        r#"{"message":"Timeout: Too large resource version: 9, current: 4","code":504}"#,
        r#"{"details":{"causes":[{"reason":"ResourceVersionTooLarge"}]},"reason":"Timeout"}"#,
    ] {
        assert_eq!(
            kind(None, body),
            Some(UpstreamErrorKind::VersionTooLarge),
            "{body}"
        );
        assert_eq!(kind(Some(504), body), Some(UpstreamErrorKind::VersionTooLarge));
        assert!(matches!(
            kind(Some(403), body),
            Some(UpstreamErrorKind::Forbidden { .. })
        ));
    }
}

#[test]
fn a_status_without_code_is_classed_by_its_reason_and_without_either_as_unavailable() {
    use UpstreamErrorKind::{NotFound, Rejected, Unauthenticated, Unavailable};
    assert_eq!(kind(None, r#"{"reason":"Unauthorized"}"#), Some(Unauthenticated));
    assert_eq!(kind(None, r#"{"reason":"NotFound"}"#), Some(NotFound));
    assert_eq!(kind(None, r#"{"reason":"Invalid"}"#), Some(Rejected));
    assert_eq!(kind(None, r#"{"reason":"TooManyRequests"}"#), Some(Unavailable));
    assert_eq!(kind(None, r#"{"reason":"Novelty"}"#), Some(Unavailable));
    assert_eq!(kind(None, "{}"), Some(Unavailable));
    assert_eq!(
        kind(None, r#"{"reason":"Forbidden","message":"no"}"#),
        Some(UpstreamErrorKind::Forbidden {
            message: Some("no".into())
        })
    );
}

#[test]
fn the_longer_hint_counts() {
    let hint = |body: &str, header: Option<u64>| match Status::read(body.as_bytes())
        .classify(Some(429), header.map(Duration::from_secs))
    {
        Class::Error(error) => error.retry_after().map(|hint| hint.as_secs()),
        Class::Expired => unreachable!("429"),
    };
    let details = r#"{"details":{"retryAfterSeconds":7}}"#;
    assert_eq!(hint("", Some(7)), Some(7));
    assert_eq!(hint(details, None), Some(7));
    assert_eq!(hint(details, Some(3)), Some(7));
    assert_eq!(hint(details, Some(9)), Some(9));
    assert_eq!(hint("", Some(0)), Some(0));
    assert_eq!(hint("", None), None);
}

#[test]
fn parts_of_other_types_are_absent_and_nothing_panics() {
    for body in [
        "",
        "{",
        "[1]",
        "null",
        r#"{"code":"x","reason":5,"message":{},"details":[]}"#,
    ] {
        assert_eq!(Status::read(body.as_bytes()), Status::default(), "{body}");
    }
    let odd = r#"{"details":{"causes":"x","retryAfterSeconds":-1}}"#;
    assert_eq!(Status::read(odd.as_bytes()), Status::default());
}

#[test]
fn a_refused_streaming_list_is_told_by_the_parameters_it_names() {
    for body in [
        r#"{"message":"ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden"}"#,
        r#"{"details":{"causes":[{"field":"sendInitialEvents"}]}}"#,
        r#"{"details":{"causes":[{"message":"resourceVersionMatch is forbidden for watch"}]}}"#,
    ] {
        assert!(Status::read(body.as_bytes()).names_streaming_list(), "{body}");
    }
    assert!(!Status::read(br#"{"message":"unable to parse requirement"}"#).names_streaming_list());
}

#[test]
fn the_message_kept_is_bounded_at_a_character_boundary() {
    let body = format!(r#"{{"message":"{}"}}"#, "é".repeat(2000));
    let message = Status::read(body.as_bytes()).message.unwrap();
    assert!(message.len() <= MESSAGE_BYTES && message.chars().all(|character| character == 'é'));
}

#[test]
fn a_missing_right_to_impersonate_is_not_the_callers_fault() {
    for about in ["users", "groups", "uids", "userextras/scopes", "serviceaccounts"] {
        let body = format!(
            r#"{{"kind":"Status","message":"{about} \"ada\" is forbidden: User \"gateway\" cannot impersonate resource \"{about}\"","reason":"Forbidden","details":{{"name":"ada","kind":"{about}"}},"code":403}}"#
        );
        assert_eq!(
            kind(Some(403), &body),
            Some(UpstreamErrorKind::Rejected),
            "{about}"
        );
    }
    let refused = r#"{"kind":"Status","message":"serviceaccounts is forbidden: User \"ada\" cannot list","reason":"Forbidden","details":{"kind":"serviceaccounts"},"code":403}"#;
    assert!(matches!(
        kind(Some(403), refused),
        Some(UpstreamErrorKind::Forbidden { .. })
    ));
}
