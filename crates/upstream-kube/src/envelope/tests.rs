//! Lines as they arrive, and as they should not.

use super::*;

fn line(text: &str) -> Line {
    decode(&Bytes::copy_from_slice(text.as_bytes()))
}

fn object_of(line: Line) -> Object {
    match line {
        Line::Event(
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object),
        ) => object,
        other => panic!("expected an object, got {other:?}"),
    }
}

fn bookmark_of(text: &str) -> (Option<String>, bool) {
    match line(text) {
        Line::Event(WatchEvent::Bookmark {
            resource_version,
            initial_events_end,
        }) => (
            resource_version.map(|version| version.as_str().to_owned()),
            initial_events_end,
        ),
        other => panic!("expected a bookmark, got {other:?}"),
    }
}

#[test]
fn envelope_keys_may_stand_in_any_order_among_others_and_the_last_duplicate_counts() {
    let object = r#"{"metadata":{"uid":"u","name":"n"},"n":1e400}"#;
    for text in [
        format!(r#"{{"object":{object},"type":"MODIFIED"}}"#),
        format!(r#"{{"extra":[{{}}],"type":"MODIFIED","more":{{"type":"X"}},"object":{object}}}"#),
        format!(r#"{{"type":"ADDED","object":{{}},"type":"MODIFIED","object":{object}}}"#),
        format!(r#" {{ "ty\u0070e" : "MODIFI\u0045D" , "object" : {object} }} "#),
        format!("{{\"type\":\"MODIFIED\",\"object\":{object}}}\r"),
    ] {
        let decoded = line(&text);
        assert!(matches!(decoded, Line::Event(WatchEvent::Modified(_))), "{text}");
        assert_eq!(object_of(decoded).json(), object, "{text}");
    }
}

#[test]
fn an_object_is_a_slice_of_its_line() {
    let bytes = Bytes::from_static(br#"{"type":"ADDED","object":{"metadata":{"uid":"u","name":"n"}}}"#);
    let object = object_of(decode(&bytes));
    assert_eq!(object.json().as_ptr(), bytes[25..].as_ptr());
}

#[test]
fn an_unknown_type_or_a_missing_object_is_never_an_object() {
    for text in [
        r#"{"type":"modified","object":{"metadata":{}}}"#,
        r#"{"type":"X","object":{}}"#,
        r#"{"type":7,"object":{}}"#,
        r#"{"object":{}}"#,
        r#"{"type":"ADDED"}"#,
        r#"{"type":"ADDED","object":null}"#,
        r#"{"type":"ERROR","object":null}"#,
        r#"{"type":"BOOKMARK"}"#,
        "{}",
    ] {
        assert!(matches!(line(text), Line::Event(WatchEvent::Unknown)), "{text}");
    }
}

#[test]
fn bookmarks_give_their_version_and_nothing_else() {
    assert_eq!(
        bookmark_of(
            r#"{"type":"BOOKMARK","object":{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"resourceVersion":"71","creationTimestamp":null},"spec":{"selector":null,"template":{"spec":{"containers":null}}}}}"#
        ),
        (Some("71".into()), false)
    );
    for text in [
        r#"{"type":"BOOKMARK","object":{}}"#,
        r#"{"type":"BOOKMARK","object":{"metadata":null}}"#,
        r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":""}}}"#,
        r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":5}}}"#,
        r#"{"type":"BOOKMARK","object":5}"#,
    ] {
        assert_eq!(bookmark_of(text), (None, false), "{text}");
    }
}

#[test]
fn only_a_bookmark_whose_annotation_is_true_is_the_boundary() {
    let with = |value: &str| {
        bookmark_of(&format!(
            r#"{{"type":"BOOKMARK","object":{{"metadata":{{"resourceVersion":"9","annotations":{{"k8s.io/initial-events-end":{value}}}}}}}}}"#
        ))
    };
    assert_eq!(with(r#""true""#), (Some("9".into()), true));
    for value in [r#""false""#, "true", "null", r#""""#] {
        assert_eq!(with(value), (Some("9".into()), false), "{value}");
    }
    let ordinary = r#"{"type":"ADDED","object":{"metadata":{"uid":"u","name":"n","annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
    assert!(matches!(line(ordinary), Line::Event(WatchEvent::Added(_))));
}

#[test]
fn an_error_event_and_a_bare_status_are_errors() {
    for text in [
        r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#,
        r#"{"type":"ERROR","object":{"code":410,"reason":"Expired"}}"#,
        r#"{"kind":"Status","code":410,"reason":"Expired"}"#,
    ] {
        let Line::Error(status) = line(text) else {
            panic!("{text}")
        };
        assert_eq!(status.code, Some(410), "{text}");
    }
}

#[test]
fn a_cut_line_is_told_from_one_that_was_never_json() {
    let text = r#"{"type":"ADDED","object":{"a":"é\u0041","b":[1.5e3,true,null],"c":{}}}"#;
    for end in 1..text.len() {
        assert!(
            matches!(
                decode(&Bytes::copy_from_slice(&text.as_bytes()[..end])),
                Line::Incomplete
            ),
            "{end}"
        );
    }
    for odd in ["<html>", "hello", "{]", "{}{}", "{\"a\":\u{1}\"\"}"] {
        assert!(matches!(line(odd), Line::Unreadable(_)), "{odd}");
    }
    assert!(matches!(line("[]"), Line::Unreadable(Unreadable::NoObject)));
    assert!(matches!(
        line(r#"{"type":"ADDED","object":[]}"#),
        Line::Unreadable(Unreadable::OddObject)
    ));
    assert!(matches!(
        decode(&Bytes::from_static(b"{\"a\":\"\xff\"}")),
        Line::Unreadable(Unreadable::NotJson(_))
    ));
    assert!(matches!(line(" \r"), Line::Blank));
}

#[test]
fn odd_labels_are_carried_and_odd_names_make_the_object_partial() {
    let odd = r#"{"type":"ADDED","object":{"metadata":{"uid":"u","name":"n","labels":"x"}}}"#;
    assert!(object_of(line(odd)).identity().is_some());
    for metadata in [r#"{"uid":"u","name":5}"#, r#"{"name":"n"}"#, "null"] {
        let text = format!(r#"{{"type":"ADDED","object":{{"metadata":{metadata}}}}}"#);
        assert!(object_of(line(&text)).identity().is_none(), "{metadata}");
    }
}
