//! Tests of frames, byte by byte.

use proptest::prelude::*;

use super::*;

fn wire(event: Event<'_>, seq: u64) -> String {
    let mut out = Vec::new();
    event.encode(seq, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_reset_of_the_default_target_leaves_the_target_out_but_not_in_the_scope() {
    let scope = Scope::builder("v1", "nodes").build().unwrap();
    assert_eq!(
        wire(
            Event::Reset {
                scope: &scope,
                projection: &"krm-full/v1".into()
            },
            1
        ),
        concat!(
            r#"data: {"seq":1,"type":"reset","scope":{"target":"","version":"v1","resource":"nodes"},"#,
            r#""projection":"krm-full/v1"}"#,
            "\n\n"
        )
    );
}

#[test]
fn the_scope_of_a_reset_is_what_serde_writes() {
    let scope = Scope::builder("v1", "deployments")
        .group("apps")
        .target("demo")
        .namespace("app")
        .name("a\"\\\u{e9}b c")
        .label_selector("a in (b,c)")
        .build()
        .unwrap();
    let frame = wire(
        Event::Reset {
            scope: &scope,
            projection: &"krm-spec/v1".into(),
        },
        1,
    );
    assert_eq!(
        frame,
        format!(
            "data: {{\"seq\":1,\"type\":\"reset\",\"target\":\"demo\",\"scope\":{},\"projection\":\"krm-spec/v1\"}}\n\n",
            serde_json::to_string(&scope).unwrap()
        )
    );
}

#[test]
fn a_deletion_carries_its_identity_in_order() {
    let mut identity = Identity {
        uid: "u-1".into(),
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        namespace: Some("app".into()),
        name: "c".into(),
    };
    assert_eq!(
        wire(Event::Deleted(&identity), 9),
        concat!(
            r#"data: {"seq":9,"type":"deleted","identity":{"uid":"u-1","apiVersion":"v1","kind":"ConfigMap","#,
            r#""namespace":"app","name":"c"}}"#,
            "\n\n"
        )
    );
    identity.namespace = None;
    assert_eq!(
        wire(Event::Deleted(&identity), 9),
        format!(
            "data: {{\"seq\":9,\"type\":\"deleted\",\"identity\":{}}}\n\n",
            serde_json::to_string(&identity).unwrap()
        )
    );
}

#[test]
fn an_error_that_says_when_to_come_back_says_it_to_a_bare_event_source_too() {
    let error = |wait| StreamError::unavailable("busy", Some(wait));
    assert_eq!(
        wire(Event::Error(&error(Duration::from_micros(1_500_001))), 2),
        concat!(
            "retry: 1501\n",
            r#"data: {"seq":2,"type":"error","code":"UPSTREAM_UNAVAILABLE","message":"busy","terminal":false,"#,
            r#""retryAfterMs":1501}"#,
            "\n\n"
        )
    );
    assert!(wire(Event::Error(&error(Duration::ZERO)), 2).starts_with("retry: 0\ndata: "));
    assert!(wire(Event::Error(&error(Duration::MAX)), 2).ends_with("\"retryAfterMs\":2147483647}\n\n"));
    assert!(wire(Event::Error(&StreamError::unavailable("busy", None)), 2).starts_with("data: "));
}

#[test]
fn a_message_of_any_characters_stays_inside_its_line() {
    let error = StreamError::forbidden("a\r\n\ndata: {\"x\"}\u{0}\u{7f}\u{2028}\\\tz");
    assert_eq!(
        wire(Event::Error(&error), 1),
        concat!(
            r#"data: {"seq":1,"type":"error","code":"FORBIDDEN","message":"a\r\n\ndata: {\"x\"}\u0000"#,
            "\u{7f}\u{2028}",
            r#"\\\tz","terminal":true}"#,
            "\n\n"
        )
    );
}

#[test]
fn the_longest_beginning_is_as_long_as_it_says() {
    let mut out = Vec::new();
    frame::begin(&mut out, u64::MAX, EventType::Modified);
    assert_eq!(out.len(), frame::LONGEST_BEGIN);
    assert_eq!(frame::HEARTBEAT, b": heartbeat\n\n");
}

#[test]
fn the_frame_names_every_type_as_the_type_does() {
    for event_type in [
        EventType::Reset,
        EventType::Added,
        EventType::Modified,
        EventType::Deleted,
        EventType::Synced,
        EventType::Error,
    ] {
        let mut out = Vec::new();
        frame::begin(&mut out, 1, event_type);
        let expected = format!("data: {{\"seq\":1,\"type\":\"{}\"", event_type.as_str());
        assert_eq!(out, expected.as_bytes());
    }
}

proptest! {
    #[test]
    fn integers_and_strings_are_written_as_serde_writes_them(number: u64, shift in 0..64_u32, text in any::<String>()) {
        let mut out = Vec::new();
        frame::put_integer(&mut out, number >> shift);
        prop_assert_eq!(String::from_utf8_lossy(&out), (number >> shift).to_string());
        out.clear();
        frame::put_string(&mut out, &text);
        prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        prop_assert!(!out.iter().any(|byte| *byte < b' '));
    }
}
