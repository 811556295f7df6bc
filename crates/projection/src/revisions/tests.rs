//! Tests of the revisions of one connection.

use bytes::Bytes;
use krm_stream_protocol::{Object, Scope};

use super::*;
use crate::{DigestKey, Projection};

/// A Secret with these keys and values.
fn secret(uid: &str, values: &[(&str, &str)]) -> Projected {
    let values: Vec<_> = values
        .iter()
        .map(|(key, value)| format!(r#""{key}":"{value}""#))
        .collect();
    let text = format!(
        r#"{{"kind":"Secret","metadata":{{"uid":"{uid}","name":"n"}},"data":{{{}}}}}"#,
        values.join(",")
    );
    let object = Object::parse(Bytes::from(text)).unwrap();
    let scope = Scope::builder("v1", "secrets").build().unwrap();
    Projection::full()
        .project(&scope, &object, &DigestKey::new([1; 32]))
        .unwrap()
}

/// Sends a state and says which revision each path got: `a1 b2`.
fn send(revisions: &mut Revisions, projected: &Projected) -> String {
    let mut out = Vec::new();
    revisions.write_redacted(projected, &mut out);
    let text = String::from_utf8(out).unwrap();
    if text.is_empty() {
        return text;
    }
    let inner = text
        .strip_prefix(r#","redacted":[{"path":"/data/"#)
        .and_then(|text| text.strip_suffix("}]}\n\n"))
        .unwrap();
    inner
        .replace(r#"","rev":"#, "")
        .replace(r#"},{"path":"/data/"#, " ")
}

fn connection() -> Revisions {
    let mut revisions = Revisions::new();
    revisions.begin_cycle();
    revisions
}

#[test]
fn a_revision_starts_at_one_and_grows_with_its_own_value_alone() {
    let mut revisions = connection();
    assert_eq!(
        send(&mut revisions, &secret("u", &[("a", "x"), ("b", "y")])),
        "a1 b1"
    );
    assert_eq!(
        send(&mut revisions, &secret("u", &[("a", "x"), ("b", "y")])),
        "a1 b1"
    );
    assert_eq!(
        send(&mut revisions, &secret("u", &[("a", "z"), ("b", "y")])),
        "a2 b1"
    );
    assert_eq!(send(&mut revisions, &secret("v", &[("a", "z")])), "a1");
    assert_eq!(
        send(&mut revisions, &secret("u", &[("a", "x"), ("b", "q")])),
        "a3 b2"
    );
}

#[test]
fn the_same_state_sent_again_keeps_its_revisions() {
    let mut revisions = connection();
    let state = secret("u", &[("a", "x")]);
    send(&mut revisions, &secret("u", &[("a", "w")]));
    for _ in 0..3 {
        assert_eq!(send(&mut revisions, &state), "a2");
    }
}

#[test]
fn paths_that_come_start_at_one_and_paths_that_return_go_on() {
    let mut revisions = connection();
    send(&mut revisions, &secret("u", &[("a", "1"), ("b", "1")]));
    assert_eq!(
        send(
            &mut revisions,
            &secret("u", &[("a", "2"), ("b", "1"), ("c", "1")])
        ),
        "a2 b1 c1"
    );
    assert_eq!(send(&mut revisions, &secret("u", &[("b", "1")])), "b1");
    assert_eq!(send(&mut revisions, &secret("u", &[])), "");
    assert_eq!(revisions.len(), 1, "the uid is not forgotten");
    assert_eq!(
        send(
            &mut revisions,
            &secret("u", &[("a", "2"), ("b", "1"), ("d", "1")])
        ),
        "a3 b2 d1"
    );
}

#[test]
fn revisions_survive_new_cycles_and_not_a_cycle_without_the_uid() {
    let mut revisions = connection();
    send(&mut revisions, &secret("u", &[("a", "1")]));
    send(&mut revisions, &secret("u", &[("a", "2")]));
    send(&mut revisions, &secret("v", &[("a", "1")]));
    revisions.end_snapshot();
    assert_eq!(revisions.len(), 2);
    // A cycle that does not reach `synced` forgets nothing.
    revisions.begin_cycle();
    revisions.begin_cycle();
    assert_eq!(send(&mut revisions, &secret("u", &[("a", "3")])), "a3");
    revisions.end_snapshot();
    assert_eq!(revisions.len(), 1);
    assert_eq!(send(&mut revisions, &secret("v", &[("a", "2")])), "a1");
}

#[test]
fn a_uid_sent_without_withheld_values_is_still_sent() {
    let mut revisions = connection();
    send(&mut revisions, &secret("u", &[("a", "1")]));
    revisions.begin_cycle();
    assert_eq!(send(&mut revisions, &secret("u", &[])), "");
    revisions.end_snapshot();
    assert_eq!(send(&mut revisions, &secret("u", &[("a", "1")])), "a2");
}

#[test]
fn a_deleted_uid_is_forgotten() {
    let mut revisions = connection();
    send(&mut revisions, &secret("u", &[("a", "1")]));
    send(&mut revisions, &secret("u", &[("a", "2")]));
    revisions.forget("u");
    revisions.forget("never seen");
    assert!(revisions.is_empty());
    assert_eq!(send(&mut revisions, &secret("u", &[("a", "3")])), "a1");
}

#[test]
fn an_end_encoded_for_all_who_join_is_what_each_would_write() {
    let state = secret("u", &[("a", "1"), ("b", "2")]);
    let (mut shared, mut own) = (Vec::new(), Vec::new());
    state.redactions().unwrap().write_first(&mut shared);
    connection().write_redacted(&state, &mut own);
    assert_eq!(shared, own);
    let mut joined = connection();
    joined.advance(&state);
    assert_eq!(
        send(&mut joined, &secret("u", &[("a", "1"), ("b", "3")])),
        "a1 b2"
    );
}

#[test]
fn an_object_without_withheld_values_costs_no_memory() {
    let mut revisions = connection();
    assert_eq!(send(&mut revisions, &secret("u", &[])), "");
    assert!(revisions.is_empty());
}

#[test]
fn keys_that_change_for_ever_stay_bounded_and_no_revision_names_two_values() {
    let mut revisions = connection();
    let mut told = HashMap::new();
    for step in 0..2_000_u32 {
        // 150 names come and go; each time with another value.
        let (name, value) = (format!("k{}-", step * 7 % 150), step.to_string());
        let sent = send(&mut revisions, &secret("u", &[(&name, &value)]));
        assert_eq!(told.insert(sent.clone(), value), None, "{sent} named two values");
    }
    let known = revisions.objects.values().next().unwrap();
    assert_eq!(known.gone.as_ref().unwrap().paths.len(), GONE_PATHS);
}
