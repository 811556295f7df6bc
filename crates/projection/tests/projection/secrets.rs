//! No withheld value reaches a consumer, however it was spelled.

use krm_stream_projection::{Applies, GroupResource, Projection, Revisions, Upsert};

use crate::support::*;

const METADATA: &str = r#""metadata":{"name":"s","uid":"u1","resourceVersion":"9"}"#;

#[test]
fn the_last_the_first_and_any_escaped_kind_makes_a_secret() {
    for kinds in [
        r#""kind":"ConfigMap","kind":"Secret""#,
        r#""kind":"Secret","kind":"ConfigMap""#,
        r#""\u006bind":"Secret""#,
        r#""kind":"\u0053ecret""#,
        r#""kind":7,"k\u0069nd":"Secret""#,
    ] {
        let text = format!(r#"{{{kinds},"apiVersion":"v1",{METADATA},"d\u0061ta":{{"p":"QQ=="}}}}"#);
        let frame = first_frame(&Projection::full(), &config_maps(), &text);
        assert!(!frame.contains("QQ=="), "{frame}");
        assert_eq!(redacted_of(&frame), r#"[{"path":"/data/p","rev":1}]"#);
        assert!(frame.contains(kinds), "the kinds themselves are carried");
    }
    let map = format!(r#"{{"kind":"ConfigMap",{METADATA},"data":{{"kind":"Secret"}}}}"#);
    assert_eq!(projected_text(&Projection::full(), &config_maps(), &map), map);
}

#[test]
fn every_one_of_duplicate_keys_is_withheld() {
    let text = format!(
        r#"{{"kind":"Secret","data":{{"p":"QUFB","p":"WFhY","\u0070":"WVlZ"}},{METADATA},"data":{{"q":"QkJC"}},"data":"Q0ND"}}"#
    );
    let frame = first_frame(&Projection::full(), &secrets(), &text);
    for value in ["QUFB", "WFhY", "WVlZ", "QkJC", "Q0ND"] {
        assert!(!frame.contains(value), "{frame}");
    }
    assert_eq!(
        redacted_of(&frame),
        r#"[{"path":"/data","rev":1},{"path":"/data/p","rev":1},{"path":"/data/q","rev":1}]"#
    );
    assert!(frame.contains(&format!(r#""object":{{"kind":"Secret",{METADATA}}},"redacted""#)));
}

#[test]
fn a_change_of_any_duplicate_is_a_change_of_the_path() {
    let at = |first: &str, second: &str| {
        let text = format!(r#"{{"kind":"Secret",{METADATA},"data":{{"p":"{first}","p":"{second}"}}}}"#);
        project(&Projection::full(), &secrets(), text)
    };
    assert!(at("a", "b").is_same_state(&at("a", "b")));
    for (first, second) in [("x", "b"), ("a", "x"), ("b", "a")] {
        assert!(!at(first, second).is_same_state(&at("a", "b")));
    }
}

#[test]
fn the_copy_of_the_manifest_goes_in_every_metadata_and_spelling() {
    let copy = r#"{\"stringData\":{\"p\":\"canary-2\"},\"data\":{\"old\":\"Y2FuYXJ5\"}}"#;
    for spelling in [
        "kubectl.kubernetes.io/last-applied-configuration",
        r"kubectl.kubernetes.io\/last-applied-configuration",
        r"\u006bubectl.kubernetes.io\u002flast-applied-configuratio\u006E",
    ] {
        let annotations = format!(r#""annotations":{{"{spelling}":"{copy}","team":"shop"}}"#);
        let text = format!(
            r#"{{"kind":"Secret","metadata":{{"uid":"u","name":"n",{annotations},{annotations}}},"metadata":{{{annotations},"uid":"u","name":"n"}}}}"#
        );
        for projection in [Projection::raw(), Projection::full(), Projection::spec()] {
            let kept = projected_text(&projection, &secrets(), &text);
            assert!(!kept.contains("canary") && !kept.contains("Y2Fu"), "{kept}");
            assert_eq!(kept.matches(r#""annotations":{"team":"shop"}"#).count(), 3);
        }
    }
}

#[test]
fn annotations_of_any_shape_do_no_harm() {
    for (annotations, kept) in [
        (format!(r#"{{"{LAST_APPLIED}":null}}"#), ""),
        (format!(r#"{{"{LAST_APPLIED}":{{"p":["canary-3"]}}}}"#), ""),
        ("null".to_owned(), r#","annotations":null"#),
        ("[]".to_owned(), r#","annotations":[]"#),
        (r#""text""#.to_owned(), r#","annotations":"text""#),
    ] {
        let text =
            format!(r#"{{"kind":"Secret","metadata":{{"uid":"u","name":"n","annotations":{annotations}}}}}"#);
        let expected = format!(r#"{{"kind":"Secret","metadata":{{"uid":"u","name":"n"{kept}}}}}"#);
        assert_eq!(projected_text(&Projection::full(), &secrets(), &text), expected);
    }
    let object =
        krm_stream_protocol::Object::parse(r#"{"kind":"Secret","data":{"a":"canary-4"}}"#.into()).unwrap();
    let error = Projection::full()
        .project(&secrets(), &object, &key())
        .unwrap_err();
    assert!(!format!("{error} {error:?}").contains("canary"));
}

#[test]
fn copies_of_other_tools_are_carried_until_a_host_removes_them() {
    let text = r#"{"kind":"Secret","metadata":{"name":"n","uid":"u","annotations":{"kapp.k14s.io/original":"{\"data\":{\"p\":\"QUFB\"}}","example.io/copy":"QUFB"}},"data":{"p":"QUFB"}}"#;
    let carried = first_frame(&Projection::full(), &secrets(), text);
    assert_eq!(carried.matches("QUFB").count(), 2);
    for applies in [
        Applies::ToAll,
        Applies::ToSecrets,
        Applies::To(GroupResource::core("secrets")),
    ] {
        let without = Projection::define("example.io/secrets/v1")
            .remove_annotation(applies.clone(), "kapp.k14s.io/original")
            .remove_annotation(applies, "example.io/copy")
            .build()
            .unwrap();
        for scope in [secrets(), config_maps()] {
            let frame = first_frame(&without, &scope, text);
            assert!(
                !frame.contains("QUFB") && !frame.contains("annotations"),
                "{frame}"
            );
            assert_eq!(redacted_of(&frame), r#"[{"path":"/data/p","rev":1}]"#);
        }
    }
}

#[test]
fn secrets_of_every_shape_are_withheld() {
    let odd = r#""a":12345,"b":null,"c":["x1"],"d":{"e":"x2"},"f":"not base64 ***""#;
    for (fields, kept, paths) in [
        (
            format!(r#","data":{{{odd}}}"#),
            "",
            "/data/a /data/b /data/c /data/d /data/f",
        ),
        (r#","data":"x3""#.to_owned(), "", "/data"),
        (r#","data":[{"x":"x4"}]"#.to_owned(), "", "/data"),
        (r#","data":true,"data":3e5"#.to_owned(), "", "/data"),
        (r#","stringData":{"a":"x5"}"#.to_owned(), "", "/stringData/a"),
        (r#","binaryData":{"a":"x6DY="}"#.to_owned(), "", "/binaryData/a"),
        (
            r#","immutable":true,"data":{"a":"x1"},"type":"t""#.to_owned(),
            r#","immutable":true,"type":"t""#,
            "/data/a",
        ),
        (
            r#","data":{"a/b":"x1","c~d":"x2"}"#.to_owned(),
            "",
            "/data/a~1b /data/c~0d",
        ),
        (
            r#","data":null,"stringData":{}"#.to_owned(),
            r#","data":null,"stringData":{}"#,
            "",
        ),
    ] {
        let text = format!(r#"{{"kind":"Secret",{METADATA}{fields}}}"#);
        let frame = first_frame(&Projection::full(), &secrets(), &text);
        assert!(
            frame.contains(&format!(r#""object":{{"kind":"Secret",{METADATA}{kept}}}"#)),
            "{frame}"
        );
        for value in ["x1", "x2", "x3", "x4", "x5", "x6", "12345", "base64"] {
            assert!(!frame.contains(value), "{value} in {frame}");
        }
        let named: Vec<_> = paths
            .split_terminator(' ')
            .map(|path| format!(r#"{{"path":"{path}","rev":1}}"#))
            .collect();
        assert_eq!(redacted_of(&frame), format!("[{}]", named.join(",")));
    }
}

#[test]
fn a_field_that_no_rule_names_is_carried_and_a_host_can_name_it() {
    let text = format!(r#"{{"kind":"Secret",{METADATA},"dataFrom":{{"x":"x7"}}}}"#);
    assert_eq!(projected_text(&Projection::full(), &secrets(), &text), text);
    let named = Projection::define("example.io/v1")
        .redact_values(Applies::ToSecrets, "/dataFrom")
        .build()
        .unwrap();
    let frame = first_frame(&named, &secrets(), &text);
    assert!(!frame.contains("x7"));
    assert_eq!(redacted_of(&frame), r#"[{"path":"/dataFrom/x","rev":1}]"#);
}

#[test]
fn an_item_of_a_list_is_a_secret_by_its_scope_and_equals_the_watched_object() {
    let item = r#"{"metadata":{"name":"s","uid":"u1","resourceVersion":"9"},"data":{"p":"QUFB"}}"#;
    let bare = first_frame(&Projection::full(), &secrets(), item);
    assert!(!bare.contains("QUFB"));
    assert_eq!(redacted_of(&bare), r#"[{"path":"/data/p","rev":1}]"#);
    // A session puts the kind that the list implies in front, where a watch has it.
    let listed = item.replacen('{', r#"{"kind":"Secret","apiVersion":"v1","#, 1);
    let listed = project(&Projection::full(), &secrets(), listed);
    let watched = project(
        &Projection::full(),
        &secrets(),
        r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","uid":"u1","resourceVersion":"12","managedFields":[{"time":"x"}]},"data":{"p":"QUFB"}}"#,
    );
    assert!(watched.is_same_state(&listed) && listed.is_same_state(&watched));
    assert!(!watched.is_same_state(&project(&Projection::full(), &secrets(), item)));
    let item = &item[1..];
    let map = format!("{{\"kind\":\"ConfigMap\",{item}");
    assert_eq!(projected_text(&Projection::full(), &config_maps(), &map), map);
    let mixed = format!("{{\"kind\":\"Secret\",{item}");
    assert!(!first_frame(&Projection::full(), &config_maps(), mixed).contains("QUFB"));
}

#[test]
fn raw_carries_the_values_and_only_raw_does() {
    let text = format!(r#"{{"kind":"Secret",{METADATA},"data":{{"p":"QUFB"}}}}"#);
    assert_eq!(projected_text(&Projection::raw(), &secrets(), &text), text);
    assert!(!projected_text(&Projection::spec(), &secrets(), &text).contains("QUFB"));
}

#[test]
fn a_rotated_value_sends_a_grown_revision_and_nothing_that_depends_on_it() {
    let at = |version: u32, data: &str| {
        let text = format!(
            r#"{{"kind":"Secret","metadata":{{"name":"s","uid":"u","resourceVersion":"{version}"}},"data":{{{data}}}}}"#
        );
        project(&Projection::full(), &secrets(), text)
    };
    let mut revisions = Revisions::new();
    revisions.begin_cycle();
    let first = at(1, r#""a":"QQ==","b":"Qg==""#);
    let sent = frame(&mut revisions, 1, Upsert::Added, &first);
    assert_eq!(
        redacted_of(&sent),
        r#"[{"path":"/data/a","rev":1},{"path":"/data/b","rev":1}]"#
    );
    let mut previous = first;
    for (data, expected) in [
        (
            r#""a":"WA==","b":"Qg==""#,
            r#"[{"path":"/data/a","rev":2},{"path":"/data/b","rev":1}]"#,
        ),
        (
            r#""a":"bG9uZ2VyIHRoYW4gaXQgd2Fz","b":"Qg==""#,
            r#"[{"path":"/data/a","rev":3},{"path":"/data/b","rev":1}]"#,
        ),
        (
            r#""a":"bG9uZ2VyIHRoYW4gaXQgd2Fz","b":"Qg==","c":"Qg==""#,
            r#"[{"path":"/data/a","rev":3},{"path":"/data/b","rev":1},{"path":"/data/c","rev":1}]"#,
        ),
        (
            r#""b":"Qg==","c":"Qg==""#,
            r#"[{"path":"/data/b","rev":1},{"path":"/data/c","rev":1}]"#,
        ),
    ] {
        let next = at(2, data);
        assert!(!next.is_same_state(&previous), "{data}");
        let sent = frame(&mut revisions, 2, Upsert::Modified, &next);
        assert_eq!(redacted_of(&sent), expected);
        previous = next;
    }
    for version in 3..1_003 {
        assert!(at(version, r#""b":"Qg==","c":"Qg==""#).is_same_state(&previous));
    }
}

#[test]
fn nothing_that_can_be_printed_holds_a_value() {
    let text = format!(r#"{{"kind":"Secret",{METADATA},"data":{{"p":"canary-5"}}}}"#);
    let projected = project(&Projection::full(), &secrets(), &text);
    let mut revisions = Revisions::new();
    revisions.advance(&projected);
    let raw = project(&Projection::raw(), &secrets(), &text);
    let shown = format!(
        "{projected:?} {raw:?} {revisions:?} {:?} {:?}",
        key(),
        projected.state()
    );
    assert!(!shown.contains("canary"), "{shown}");
    assert!(!shown.contains("42"), "{shown}");
}

#[test]
fn a_text_that_was_never_validated_and_is_cut_short_does_no_harm() {
    let text = format!(
        r#"{{{METADATA},"kind":"Secret","data":{{"p":"canary-6"}},"stringData":["canary-7",{{}}],"status":1e4}}"#
    );
    for end in METADATA.len() + 1..text.len() {
        let cut = bytes::Bytes::copy_from_slice(&text.as_bytes()[..end]);
        let object = krm_stream_protocol::Object::parse_validated(cut).unwrap();
        let projected = Projection::spec().project(&secrets(), &object, &key()).unwrap();
        let kept = String::from_utf8_lossy(projected.object());
        assert!(!kept.contains("canary-"), "{kept}");
    }
}

#[test]
fn a_key_that_is_renamed_with_its_value_is_a_change() {
    let at = |name: &str| {
        let text = format!(r#"{{"kind":"Secret",{METADATA},"data":{{"{name}":"QQ=="}}}}"#);
        project(&Projection::full(), &secrets(), text)
    };
    assert!(!at("old").is_same_state(&at("new")));
}

#[test]
fn secrets_of_another_group_are_secrets_by_their_kind_only() {
    let scope = scope_of("example.io", "v1", "secrets");
    let text = |kind: &str| format!(r#"{{"kind":"{kind}",{METADATA},"data":{{"p":"QUFB"}}}}"#);
    let reference = text("SecretReference");
    assert_eq!(projected_text(&Projection::full(), &scope, &reference), reference);
    assert!(!projected_text(&Projection::full(), &scope, text("Secret")).contains("QUFB"));
}
