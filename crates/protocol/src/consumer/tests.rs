//! Tests of the reducer.

use std::time::Duration;

use super::*;

const RESET: &str =
    r#""type":"reset","scope":{"target":"","version":"v1","resource":"pods"},"projection":"krm-full/v1""#;

/// Applies bodies of events with the right `seq`.
struct Script {
    consumer: Consumer,
    seq: u64,
}

impl Script {
    fn new() -> Self {
        Self {
            consumer: Consumer::new(),
            seq: 0,
        }
    }

    fn try_apply(&mut self, body: &str) -> Result<Step, ConsumerError> {
        self.seq += 1;
        self.consumer.apply(&format!("{{\"seq\":{},{body}}}", self.seq))
    }

    fn apply(&mut self, body: &str) -> Step {
        self.try_apply(body).unwrap()
    }

    fn upsert(&mut self, uid: &str) {
        let step = self.apply(&upsert("added", uid));
        assert_eq!(step, Step::Upserted { uid: uid.into() });
    }

    fn reconnect(&mut self) {
        self.consumer.reconnected();
        self.seq = 0;
    }

    fn uids(&self) -> Vec<&str> {
        self.consumer.objects().map(HeldObject::uid).collect()
    }
}

fn upsert(event_type: &str, uid: &str) -> String {
    format!(r#""type":"{event_type}","object":{{"metadata":{{"uid":"{uid}"}}}},"redacted":[]"#)
}

fn deleted(uid: &str) -> String {
    format!(
        r#""type":"deleted","identity":{{"uid":"{uid}","apiVersion":"v1","kind":"Pod","namespace":"a","name":"n"}}"#
    )
}

fn error(code: &str, terminal: bool, rest: &str) -> String {
    format!(r#""type":"error","code":"{code}","message":"m","terminal":{terminal}{rest}"#)
}

fn pruned(uids: &[&str]) -> Step {
    Step::Synced {
        pruned: uids.iter().map(|uid| Arc::from(*uid)).collect(),
    }
}

const SYNCED: &str = r#""type":"synced""#;

#[test]
fn an_upsert_replaces_the_whole_object_and_its_redactions() {
    let mut script = Script::new();
    assert_eq!(script.apply(RESET), Step::Reset);
    let _ = script.apply(
        r#""type":"added","object":{"metadata":{"uid":"u"},"n":1E5,"a":"\ud800"},"redacted":[{"path":"/data/x","rev":2}]"#,
    );
    let held = script.consumer.get("u").unwrap();
    assert_eq!(held.json(), r#"{"metadata":{"uid":"u"},"n":1E5,"a":"\ud800"}"#);
    assert_eq!(
        held.redacted(),
        [Redaction {
            path: "/data/x".into(),
            rev: 2
        }]
    );
    assert_eq!(script.apply(SYNCED), pruned(&[]));
    let _ = script.apply(r#""type":"modified","object":{"metadata":{"uid":"u"}},"redacted":[]"#);
    let held = script.consumer.get("u").unwrap();
    assert_eq!(
        (held.json(), held.redacted()),
        (r#"{"metadata":{"uid":"u"}}"#, &[][..])
    );
    assert_eq!(script.consumer.len(), 1);
}

#[test]
fn only_synced_prunes_what_a_cycle_did_not_tell_of() {
    let mut script = Script::new();
    let _ = script.apply(RESET);
    script.upsert("a");
    script.upsert("b");
    assert!(!script.consumer.is_synced());
    assert_eq!(script.apply(SYNCED), pruned(&[]));
    assert!(script.consumer.is_synced());
    script.reconnect();
    assert!(!script.consumer.is_synced());
    let _ = script.apply(RESET);
    script.upsert("a");
    assert_eq!(
        script.consumer.unseen().map(HeldObject::uid).collect::<Vec<_>>(),
        ["b"]
    );
    // The connection breaks off: nothing is pruned.
    script.reconnect();
    assert_eq!(script.uids(), ["a", "b"]);
    let _ = script.apply(RESET);
    script.upsert("c");
    assert_eq!(script.apply(SYNCED), pruned(&["a", "b"]));
    assert_eq!(script.uids(), ["c"]);
}

#[test]
fn a_deletion_drops_its_uid_within_a_snapshot_too() {
    let mut script = Script::new();
    let _ = script.apply(RESET);
    script.upsert("a");
    let step = script.apply(&deleted("a"));
    assert_eq!(
        step,
        Step::Deleted {
            uid: "a".into(),
            was_held: true
        }
    );
    let step = script.apply(&deleted("b"));
    assert_eq!(
        step,
        Step::Deleted {
            uid: "b".into(),
            was_held: false
        }
    );
    assert!(script.consumer.is_empty());
}

#[test]
fn one_uid_on_two_targets_is_two_objects() {
    let mut script = Script::new();
    let reset = |target: &str| format!(r#""type":"reset","target":"{target}","scope":{{}},"projection":"p""#);
    let _ = script.apply(&reset("one"));
    script.upsert("u");
    script.reconnect();
    let _ = script.apply(&reset("two"));
    script.upsert("u");
    let targets: Vec<_> = script
        .consumer
        .objects()
        .map(|object| (object.target().as_str().to_owned(), object.is_seen()))
        .collect();
    assert_eq!(targets, [("one".to_owned(), false), ("two".to_owned(), true)]);
    assert_eq!(script.consumer.get("u").unwrap().target().as_str(), "two");
    assert_eq!(script.apply(SYNCED), pruned(&["u"]));
    assert_eq!(script.consumer.len(), 1);
}

#[test]
fn each_error_has_its_decision() {
    let decide = |body: &str| {
        let mut script = Script::new();
        match script.apply(body) {
            Step::Error { error, decision } => (error, decision),
            other => panic!("{other:?}"),
        }
    };
    let (report, decision) = decide(&error("FORBIDDEN", true, ""));
    assert_eq!(decision, Decision::Close);
    assert_eq!(
        (report.code(), report.message(), report.is_terminal()),
        (Some(ErrorCode::Forbidden), "m", true)
    );
    assert_eq!(
        decide(&error("UPSTREAM_UNAVAILABLE", false, r#","retryAfterMs":1500"#)).1,
        Decision::Reopen {
            after: Some(Duration::from_millis(1500))
        }
    );
    assert_eq!(
        decide(&error("INTERNAL", false, "")).1,
        Decision::Reopen { after: None }
    );
    assert_eq!(decide(&error("RESYNC_REQUIRED", false, "")).1, Decision::Continue);
    assert_eq!(decide(&error("RESYNC_REQUIRED", true, "")).1, Decision::Close);
    let (report, decision) = decide(&error("FROM_THE_FUTURE", false, ""));
    assert_eq!(
        (report.code(), report.code_text(), decision),
        (None, "FROM_THE_FUTURE", Decision::Reopen { after: None })
    );
    assert_eq!(decide(&error("FROM_THE_FUTURE", true, "")).1, Decision::Close);
}

#[test]
fn after_a_resync_a_new_cycle_follows_and_after_other_errors_nothing() {
    let mut script = Script::new();
    let _ = script.apply(RESET);
    script.upsert("a");
    let _ = script.apply(&error("RESYNC_REQUIRED", false, ""));
    assert_eq!(script.uids(), ["a"]);
    assert!(matches!(
        script
            .consumer
            .apply(&format!("{{\"seq\":4,{}}}", upsert("added", "b"))),
        Err(ConsumerError::OutsideCycle {
            event_type: EventType::Added
        })
    ));
    let _ = script.apply(RESET);
    let _ = script.apply(&error("UPSTREAM_UNAVAILABLE", false, ""));
    assert!(matches!(script.try_apply(RESET), Err(ConsumerError::AfterEnd)));
    script.reconnect();
    assert_eq!(script.apply(RESET), Step::Reset);
    assert_eq!(script.uids(), ["a"]);
}

#[test]
fn a_gap_or_a_repetition_in_seq_is_reported_and_changes_nothing() {
    let mut script = Script::new();
    let _ = script.apply(RESET);
    script.upsert("a");
    for (seq, body) in [(4, deleted("a")), (2, deleted("a")), (0, SYNCED.to_owned())] {
        match script.consumer.apply(&format!("{{\"seq\":{seq},{body}}}")) {
            Err(ConsumerError::SequenceGap { expected: 3, found }) => assert_eq!(found, seq),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(script.uids(), ["a"]);
    assert!(!script.consumer.is_synced());
}

#[test]
fn events_of_a_cycle_are_refused_outside_of_one() {
    for body in [
        upsert("added", "a"),
        upsert("modified", "a"),
        deleted("a"),
        SYNCED.to_owned(),
    ] {
        assert!(
            matches!(
                Script::new().try_apply(&body),
                Err(ConsumerError::OutsideCycle { .. })
            ),
            "{body}"
        );
    }
    let mut script = Script::new();
    let _ = script.apply(RESET);
    let _ = script.apply(SYNCED);
    assert!(matches!(
        script.try_apply(SYNCED),
        Err(ConsumerError::OutsideCycle {
            event_type: EventType::Synced
        })
    ));
}

#[test]
fn unknown_types_and_fields_are_passed_over() {
    let mut script = Script::new();
    assert_eq!(script.apply(r#""type":"hello","object":5"#), Step::Ignored);
    assert_eq!(
        script.apply(r#""type":"reset","future":{"a":[]},"scope":1"#),
        Step::Reset
    );
    let step = script.apply(r#""object":{"metadata":{"uid":"a"}},"new":null,"type":"added""#);
    assert_eq!(step, Step::Upserted { uid: "a".into() });
}

#[test]
fn what_is_no_event_is_refused_by_the_field_it_lacks() {
    for (data, field) in [
        ("[]", "seq"),
        ("5", "seq"),
        (r#"{"type":"reset"}"#, "seq"),
        (r#"{"seq":"1","type":"reset"}"#, "seq"),
        (r#"{"seq":-1,"type":"reset"}"#, "seq"),
        (r#"{"seq":1}"#, "type"),
        (r#"{"seq":1,"type":null}"#, "type"),
        (r#"{"seq":1,"type":"added"}"#, "object"),
        (r#"{"seq":1,"type":"added","object":[]}"#, "object.metadata.uid"),
        (
            r#"{"seq":1,"type":"added","object":{"metadata":{"uid":""}}}"#,
            "object.metadata.uid",
        ),
        (
            r#"{"seq":1,"type":"added","object":{"metadata":{"uid":"u"}},"redacted":[{}]}"#,
            "redacted.path",
        ),
        (
            r#"{"seq":1,"type":"added","object":{"metadata":{"uid":"u"}},"redacted":[{"path":"/a"}]}"#,
            "redacted.rev",
        ),
        (r#"{"seq":1,"type":"deleted","identity":{}}"#, "identity.uid"),
        (r#"{"seq":1,"type":"error","terminal":true}"#, "code"),
        (r#"{"seq":1,"type":"error","code":"INTERNAL"}"#, "terminal"),
        (
            r#"{"seq":1,"type":"error","code":"INTERNAL","terminal":"no"}"#,
            "terminal",
        ),
    ] {
        match Consumer::new().apply(data) {
            Err(ConsumerError::Malformed { field: found }) => assert_eq!(found, field, "{data}"),
            other => panic!("{data}: {other:?}"),
        }
    }
    assert!(matches!(
        Consumer::new().apply(r#"{"seq":1"#),
        Err(ConsumerError::NotJson(_))
    ));
}

#[test]
fn of_duplicate_and_escaped_keys_the_last_counts() {
    let mut script = Script::new();
    let _ = script.apply(RESET);
    let step = script.apply(
        r#""type":"deleted","ty\u0070e":"added","object":{"metadata":{"uid":"a"},"metadata":{"uid":"b","u\u0069d":"c"}}"#,
    );
    assert_eq!(step, Step::Upserted { uid: "c".into() });
}

#[test]
fn an_object_of_any_depth_is_held_as_it_is() {
    let mut script = Script::new();
    let _ = script.apply(RESET);
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let object = format!(r#"{{"metadata":{{"uid":"a"}},"spec":{deep}}}"#);
    let _ = script.apply(&format!(r#""type":"added","object":{object},"redacted":[]"#));
    assert_eq!(script.consumer.get("a").unwrap().json(), object);
}

#[test]
fn an_adopted_object_waits_for_the_streams_word() {
    let created = r#"{"metadata":{"uid":"new"},"v":1}"#;
    let mut script = Script::new();
    assert!(matches!(
        script.consumer.adopt(created),
        Err(ConsumerError::OutsideCycle { .. })
    ));
    let _ = script.apply(RESET);
    let _ = script.apply(SYNCED);
    assert!(script.consumer.adopt(created).unwrap());
    assert!(!script.consumer.adopt(created).unwrap());
    assert_eq!(script.consumer.get("new").unwrap().json(), created);
    assert_eq!(script.consumer.unseen().count(), 1);
    script.upsert("new");
    assert_eq!(script.uids(), ["new"]);
    assert!(
        !script.consumer.adopt(created).unwrap(),
        "the stream's word stands"
    );
    assert!(script.consumer.adopt("{}").is_err());
    assert!(script.consumer.adopt("{").is_err());
    // One that the stream never tells of is no ghost.
    assert!(script.consumer.adopt(r#"{"metadata":{"uid":"gone"}}"#).unwrap());
    script.reconnect();
    let _ = script.apply(RESET);
    script.upsert("new");
    assert_eq!(script.apply(SYNCED), pruned(&["gone"]));
}

#[test]
fn debug_shows_no_object() {
    let mut script = Script::new();
    let _ = script.apply(RESET);
    let _ = script.apply(r#""type":"added","object":{"metadata":{"uid":"a"},"x":"canary"},"redacted":[]"#);
    let held = script.consumer.get("a").unwrap();
    assert!(!format!("{:?} {held:?}", script.consumer).contains("canary"));
}
