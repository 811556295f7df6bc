//! Everything that no rule names is carried byte for byte.

use krm_stream_projection::{Projection, Revisions, Upsert};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::support::*;

const NUMBERS: [&str; 17] = [
    "12345678901234567890123",
    "1e400",
    "1E5",
    "0.1e1",
    "1.10",
    "-0",
    "1e-400",
    "117.63331139400017",
    "9007199254740993",
    "18446744073709551616",
    "-9223372036854775809",
    "1.0",
    "1",
    "1e5",
    "1E+05",
    "100000000000000000000.0",
    "-0.0e-0",
];

fn object(kind: &str, rest: &str) -> String {
    format!(
        r#"{{"kind":"{kind}","apiVersion":"v1","metadata":{{"name":"n","uid":"u","resourceVersion":"7"}}{rest}}}"#
    )
}

#[test]
fn number_tokens_are_carried_as_they_are_spelled() {
    let long = "7".repeat(400);
    let numbers = format!("{},{long}", NUMBERS.join(","));
    let spec = format!(r#","spec":{{"numbers":[{numbers}],"password":"canary-1","last":1e400}}"#);
    let text = object("Widget", &spec);
    let redacting = Projection::define("example.io/v1")
        .redact_path(krm_stream_projection::Applies::ToAll, "/spec/password")
        .build()
        .unwrap();
    for projection in [Projection::raw(), Projection::full(), Projection::spec()] {
        assert_eq!(projected_text(&projection, &widgets(), &text), text);
    }
    let frame = first_frame(&redacting, &widgets(), &text);
    assert!(frame.contains(&format!(r#""spec":{{"numbers":[{numbers}],"last":1e400}}"#)));
    assert_eq!(redacted_of(&frame), r#"[{"path":"/spec/password","rev":1}]"#);
    assert!(!frame.contains("canary"));
}

#[test]
fn a_number_of_equal_value_and_other_spelling_is_a_change() {
    for (one, other) in [
        ("1", "1.0"),
        ("1e5", "100000"),
        ("-0", "0"),
        ("9007199254740993", "9007199254740992"),
    ] {
        let project = |number: &str| {
            let text = object("Widget", &format!(r#","spec":{{"n":{number}}}"#));
            project(&Projection::full(), &widgets(), text)
        };
        assert!(project(one).is_same_state(&project(one)));
        assert!(!project(one).is_same_state(&project(other)), "{one} {other}");
    }
}

#[test]
fn escapes_and_lone_surrogates_are_carried_as_they_are_spelled() {
    let data = r#","data":{"lone":"\ud83d","\udc00":"key","pair":"\ud83d\ude00","html":"\u0026\u003c\/","é":"日本"}"#;
    let text = object("ConfigMap", data);
    for projection in [Projection::raw(), Projection::full(), Projection::spec()] {
        assert_eq!(projected_text(&projection, &config_maps(), &text), text);
    }
    let frame = first_frame(&Projection::full(), &secrets(), &text);
    assert!(!frame.contains("html\":"), "{frame}");
    assert_eq!(
        redacted_of(&frame),
        r#"[{"path":"/data/html","rev":1},{"path":"/data/lone","rev":1},{"path":"/data/pair","rev":1},{"path":"/data/é","rev":1},{"path":"/data/\udc00","rev":1}]"#
    );
}

#[test]
fn any_depth_is_carried_on_a_small_stack() {
    let walk = || {
        for depth in [126, 127, 128, 200, 5_000, 200_000] {
            let half = depth / 2;
            let shapes = [
                format!("{}{}", "[".repeat(depth), "]".repeat(depth)),
                format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth)),
                format!("{}null{}", r#"[{"a":"#.repeat(half), "}]".repeat(half)),
            ];
            for deep in shapes {
                let carried = format!(r#"{{"metadata":{{"uid":"u","name":"n"}},"spec":{deep}}}"#);
                let sent = format!(
                    r#"{{"metadata":{{"managedFields":{deep},"uid":"u","name":"n"}},"spec":{deep},"status":{deep}}}"#
                );
                let withheld = format!(
                    r#"{{"kind":"Secret","metadata":{{"uid":"u","name":"n","annotations":{deep}}},"data":{{"x":{deep}}},"stringData":{deep}}}"#
                );
                assert!(projected_text(&Projection::spec(), &widgets(), &sent) == carried);
                let secret = project(&Projection::full(), &widgets(), &withheld);
                assert_eq!(secret.redactions().unwrap().as_slice().len(), 2);
                assert!(!String::from_utf8_lossy(secret.object()).contains("\"data\":"));
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(512 * 1024).spawn(walk);
    thread.unwrap().join().unwrap();
}

/// An event as a consumer reads it, numbers and strings unread.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    object: &'a RawValue,
}

#[test]
fn line_breaks_outside_strings_are_dropped_and_nothing_else() {
    let compact = r#"{"kind":"ConfigMap","n":1e400,"metadata":{"uid":"u","name":"n"},"data":{"a":"x\r\n y\\n","b":[1,2]}}"#;
    for space in ["", "\r", "\r\n", "\n  ", "\n\n\t ", " "] {
        let separator = format!("{space}{space}");
        let text = format!("{space}{}{space}", tokens(compact).join(&separator));
        let frame = first_frame(&Projection::full(), &config_maps(), &text);
        assert_eq!(frame.find(['\r', '\n']), Some(frame.len() - 2), "{frame:?}");
        let events = sse_data(&frame);
        assert_eq!(events.len(), 1);
        let event: Event<'_> = serde_json::from_str(&events[0]).unwrap();
        assert_eq!(tokens(event.object.get()), tokens(compact));
        // White space that holds a line break goes as a whole; any other stays.
        let expected = if space.contains(['\r', '\n']) {
            compact
        } else {
            text.trim()
        };
        assert_eq!(event.object.get(), expected);
    }
}

#[test]
fn a_frame_has_its_fields_in_order_on_one_line() {
    let text = object("ConfigMap", r#","data":{}"#);
    let projected = project(&Projection::full(), &config_maps(), &text);
    let mut revisions = Revisions::new();
    assert_eq!(
        frame(&mut revisions, 1, Upsert::Added, &projected),
        format!("data: {{\"seq\":1,\"type\":\"added\",\"object\":{text},\"redacted\":[]}}\n\n")
    );
    assert_eq!(
        frame(&mut revisions, u64::MAX, Upsert::Modified, &projected),
        format!(
            "data: {{\"seq\":18446744073709551615,\"type\":\"modified\",\"object\":{text},\"redacted\":[]}}\n\n"
        )
    );
    assert!(
        revisions.is_empty(),
        "nothing is withheld, so nothing is remembered"
    );
    assert_eq!(
        projected.tail().len(),
        text.len() + r#","object":"#.len() + ",\"redacted\":[]}\n\n".len()
    );
}

#[test]
fn a_removed_member_takes_one_comma_along_wherever_it_stands() {
    let fields = "\"managedFields\":[{}]";
    for (metadata, expected) in [
        (
            format!(r#"{{{fields},"uid":"u","name":"n"}}"#),
            r#"{"uid":"u","name":"n"}"#,
        ),
        (
            format!(r#"{{"uid":"u",{fields},"name":"n"}}"#),
            r#"{"uid":"u","name":"n"}"#,
        ),
        (
            format!(r#"{{"uid":"u","name":"n",{fields}}}"#),
            r#"{"uid":"u","name":"n"}"#,
        ),
        (
            format!(r#"{{{fields},{fields},"uid":"u",{fields},{fields},"name":"n",{fields},{fields}}}"#),
            r#"{"uid":"u","name":"n"}"#,
        ),
        (
            format!(r#"{{ {fields} , "uid" : "u" , {fields} , "name" : "n" , {fields} }}"#),
            r#"{ "uid" : "u" , "name" : "n" }"#,
        ),
    ] {
        let text = format!(r#"{{"metadata":{metadata}}}"#);
        let expected = format!(r#"{{"metadata":{expected}}}"#);
        assert_eq!(
            projected_text(&Projection::raw(), &widgets(), &text),
            expected,
            "{text}"
        );
    }
}

#[test]
fn a_container_that_is_emptied_goes_and_one_that_was_empty_or_null_stays() {
    let copy = format!(r#""{LAST_APPLIED}":"{{}}""#);
    for (annotations, expected) in [
        (format!(r#","annotations":{{{copy}}}"#), ""),
        (
            format!(r#","annotations":{{{copy},"a":"b"}}"#),
            r#","annotations":{"a":"b"}"#,
        ),
        (r#","annotations":{}"#.to_owned(), r#","annotations":{}"#),
        (r#","annotations":null"#.to_owned(), r#","annotations":null"#),
        (r#","annotations":"odd""#.to_owned(), r#","annotations":"odd""#),
        (r#","managedFields":null"#.to_owned(), ""),
    ] {
        let text = format!(r#"{{"metadata":{{"uid":"u","name":"n"{annotations}}}}}"#);
        let expected = format!(r#"{{"metadata":{{"uid":"u","name":"n"{expected}}}}}"#);
        assert_eq!(projected_text(&Projection::full(), &widgets(), &text), expected);
    }
    let empty = object("Secret", r#","data":{},"stringData":null"#);
    assert_eq!(projected_text(&Projection::full(), &secrets(), &empty), empty);
    let emptied = object("Secret", r#","data":{"a":"Yg=="},"stringData":{}"#);
    assert_eq!(
        projected_text(&Projection::full(), &secrets(), &emptied),
        object("Secret", r#","stringData":{}"#)
    );
}

#[test]
fn status_goes_under_spec_alone() {
    let text = object("Deployment", r#","spec":{"status":1},"status":{"replicas":1}"#);
    let deployments = scope_of("apps", "v1", "deployments");
    assert_eq!(projected_text(&Projection::full(), &deployments, &text), text);
    assert_eq!(
        projected_text(&Projection::spec(), &deployments, &text),
        object("Deployment", r#","spec":{"status":1}"#)
    );
}

#[test]
fn churn_of_what_is_removed_and_of_the_version_is_no_change() {
    let at = |version: u32, second: u32, label: &str| {
        let text = format!(
            r#"{{"kind":"Deployment","metadata":{{"name":"n","uid":"u","resourceVersion":"{version}","labels":{{"a":"{label}"}},"managedFields":[{{"time":"2026-01-01T00:{second:04}Z"}}]}},"spec":{{}}}}"#
        );
        project(&Projection::full(), &scope_of("apps", "v1", "deployments"), text)
    };
    let first = at(1, 1, "x");
    let changes = (2..=1_001).filter(|step| !at(*step, *step, "x").is_same_state(&first));
    assert_eq!(changes.count(), 0);
    assert!(!at(1_002, 1, "y").is_same_state(&first));
    assert_eq!(at(9, 1, "x").resource_version().unwrap().as_str(), "9");
    let labelled = object("ConfigMap", r#","labels":{"resourceVersion":"8"}"#);
    let relabelled = object("ConfigMap", r#","labels":{"resourceVersion":"9"}"#);
    assert!(
        !project(&Projection::full(), &config_maps(), labelled).is_same_state(&project(
            &Projection::full(),
            &config_maps(),
            relabelled
        )),
        "only the version of the object itself is left aside"
    );
}

#[test]
fn whatever_a_consumer_can_see_is_a_change() {
    let at = |metadata: &str, rest: &str| {
        let text = format!(r#"{{"kind":"Event","metadata":{{"name":"n","uid":"u"{metadata}}}{rest}}}"#);
        project(&Projection::spec(), &scope_of("", "v1", "events"), text)
    };
    let base = at("", r#","count":1"#);
    for (metadata, rest) in [
        (r#","labels":{"a":"b"}"#, r#","count":1"#),
        (r#","ownerReferences":[{"uid":"o"}]"#, r#","count":1"#),
        (r#","finalizers":["f"]"#, r#","count":1"#),
        (r#","deletionTimestamp":"2026-01-01T00:00:00Z""#, r#","count":1"#),
        (r#","generation":2"#, r#","count":1"#),
        ("", r#","count":2"#),
        ("", r#","count":1,"other":null"#),
        ("", ""),
    ] {
        assert!(!at(metadata, rest).is_same_state(&base), "{metadata} {rest}");
    }
    assert!(at("", r#","count":1,"status":{}"#).is_same_state(&base));
}
