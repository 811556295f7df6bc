//! Over any JSON object: what is kept are the input's own tokens, in order; what is withheld is gone.

use krm_stream_projection::Projection;
use proptest::prelude::*;
use serde_json::Value;

use crate::support::*;

fn white_space() -> impl Strategy<Value = &'static str> {
    prop_oneof![12 => Just(""), 1 => Just(" "), 1 => Just("\n  "), 1 => Just("\r"), 1 => Just("\r\n\t")]
}

fn key_token() -> impl Strategy<Value = String> {
    let named = prop::sample::select(vec![
        "kind",
        "metadata",
        "annotations",
        "managedFields",
        "data",
        "stringData",
        "binaryData",
        "status",
        "resourceVersion",
        LAST_APPLIED,
        "labels",
        "a",
        "b~c",
        "d/e",
        "",
        "*",
        "0",
    ]);
    prop_oneof![
        6 => named.clone().prop_map(|name| format!("\"{name}\"")),
        1 => (named.clone(), any::<prop::sample::Index>()).prop_map(|(name, at)| escaped_at(name, at)),
        1 => named.prop_map(|name| format!("\"{}\"", name.replace('/', "\\/"))),
        1 => string_token(),
    ]
}

/// The name with one of its characters as an escape.
fn escaped_at(name: &str, at: prop::sample::Index) -> String {
    if name.is_empty() {
        return "\"\"".to_owned();
    }
    let at = at.index(name.len());
    let code = name.as_bytes()[at];
    format!("\"{}\\u{code:04X}{}\"", &name[..at], &name[at + 1..])
}

fn string_token() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z{}\\[\\],: /~é日😀]{0,4}".prop_map(|text| text),
        1 => prop::sample::select(vec![r"\ud83d", r"\udc00", r"\ud83d\ude00", r#"\""#, r"\\", r"\n", r"\u0000", r"\/"])
            .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..4).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "null",
            "true",
            "1e400",
            "-0",
            "1.0",
            "12345678901234567890123",
            "\"Secret\"",
            "{}",
            "[]"
        ])
        .prop_map(str::to_owned),
        string_token(),
    ]
}

fn object_of(value: impl Strategy<Value = String>) -> impl Strategy<Value = Vec<String>> {
    let member = (key_token(), white_space(), white_space(), value, white_space())
        .prop_map(|(key, before, after, value, end)| format!("{key}{before}:{after}{value}{end}"));
    prop::collection::vec(member, 0..6)
}

fn braces((members, before): (Vec<String>, &'static str)) -> String {
    format!("{{{before}{}}}", members.join(","))
}

fn value() -> impl Strategy<Value = String> {
    scalar().prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            2 => (object_of(inner.clone()), white_space()).prop_map(braces),
            1 => (prop::collection::vec(inner, 0..4), white_space())
                .prop_map(|(elements, before)| format!("[{before}{}]", elements.join(","))),
        ]
    })
}

/// An object with an identity, in the last `metadata` as in the API server's.
pub(crate) fn object() -> impl Strategy<Value = String> {
    (
        object_of(value()),
        object_of(value()),
        prop::option::of(Just(r#""kind":"Secret""#)),
        white_space(),
    )
        .prop_map(|(mut members, mut metadata, kind, space)| {
            metadata.extend([r#""uid":"u""#, r#""name":"n""#, r#""resourceVersion":"7""#].map(str::to_owned));
            members.extend(kind.map(str::to_owned));
            members.push(format!("\"metadata\":{space}{}", braces((metadata, space))));
            format!("{space}{}{space}", braces((members, space)))
        })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_kept_are_the_inputs_tokens_in_order_and_exactly_those_that_should_be(
        text in object(),
        scope_is_secrets in any::<bool>(),
    ) {
        let scope = if scope_is_secrets { secrets() } else { config_maps() };
        for (projection, withholds_secrets, removes_status) in [
            (Projection::raw(), false, false),
            (Projection::full(), true, false),
            (Projection::spec(), true, true),
        ] {
            let projected = project(&projection, &scope, &text);
            let kept = std::str::from_utf8(projected.object()).unwrap();
            krm_stream_protocol::json::validate(kept.as_bytes()).unwrap();
            prop_assert!(!kept.contains(['\r', '\n']));
            prop_assert!(is_subsequence(&tokens(kept), &tokens(&text)));
            let reference = Reference { withholds_secrets, removes_status, scope_is_secrets };
            let (expected, withheld) = reference.project(&Tree::read(&text));
            let mut expected_text = String::new();
            expected.write(&mut expected_text);
            prop_assert_eq!(tokens(kept).concat(), expected_text);

            let frame = first_frame(&projection, &scope, &text);
            let events = sse_data(&frame);
            prop_assert_eq!(events.len(), 1);
            if let Ok(event) = serde_json::from_str::<Value>(&events[0]) {
                let paths: Vec<_> = event["redacted"].as_array().unwrap().iter()
                    .map(|entry| entry["path"].as_str().unwrap().to_owned()).collect();
                // A lone surrogate is no text here, so such a text is compared by its tokens alone.
                if !text.contains("\\ud") {
                    prop_assert_eq!(paths, withheld);
                }
            } else {
                prop_assert!(text.contains("\\ud") || text.contains("1e400"));
            }
        }
    }

    #[test]
    fn a_projected_object_projects_to_itself(text in object()) {
        let once = projected_text(&Projection::full(), &secrets(), &text);
        let twice = projected_text(&Projection::full(), &secrets(), &once);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn another_version_is_the_same_state_and_another_label_is_not(text in object()) {
        let at = text.rfind(r#""resourceVersion":"7""#).unwrap();
        let (before, after) = text.split_at(at);
        let other_version = format!("{before}{}", after.replacen("\"7\"", "\"1234\"", 1));
        let labelled = format!("{before}\"label\":1,{after}");
        let project = |text: &str| project(&Projection::full(), &secrets(), text);
        prop_assert!(project(&text).is_same_state(&project(&other_version)));
        prop_assert!(!project(&text).is_same_state(&project(&labelled)));
        let newer = project(&other_version);
        prop_assert_eq!(newer.resource_version().unwrap().as_str(), "1234");
    }
}
