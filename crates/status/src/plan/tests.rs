//! Plans of writes: what is in a patch, when there is none, and what each outcome leads to.

use serde_json::{Value, json};

use super::*;
use crate::{ConditionStatus, ConditionUpdate, Gate, Level, NotReady, READY, Readiness, STALLED, Timestamp};

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct TestStatus {
    conditions: Conditions,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    nested: Nested,
}

#[derive(Clone, Debug, Default, Serialize)]
struct Nested {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pending: Vec<String>,
    total: usize,
}

impl Status for TestStatus {
    fn conditions(&self) -> &Conditions {
        &self.conditions
    }
}

fn status(level: Level, reason: &'static str) -> TestStatus {
    let mut status = TestStatus::default();
    Readiness::of(Gate::new(level, reason, "in words")).publish(
        &mut status.conditions,
        1,
        Timestamp::from_unix_seconds(0),
    );
    status
}

fn plan(read: Option<&TestStatus>, desired: &TestStatus) -> Option<WritePlan> {
    let resource_version = &ResourceVersion::from("42");
    let read = ReadStatus {
        resource_version,
        status: read,
    };
    plan_write(&read, desired).unwrap()
}

fn event(plan: WritePlan) -> Option<EventPlan> {
    match plan.settle(WriteOutcome::Persisted("43".into())) {
        AfterWrite::Tell { event, .. } => event,
        after @ (AfterWrite::ReadAgain | AfterWrite::Gone) => panic!("{after:?}"),
    }
}

/// RFC 7386, section 2: what an API server makes of a patch.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        let Value::Object(target) = &mut *target else {
            unreachable!()
        };
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

#[test]
fn a_status_equal_to_the_one_read_is_not_written() {
    let read = status(Level::Converged, "AllStreamsReady");
    assert_eq!(plan(Some(&read), &read.clone()), None);
}

#[test]
fn a_patch_carries_the_version_that_was_read_and_the_whole_status() {
    let desired = status(Level::Converged, "AllStreamsReady");
    let patch = plan(None, &desired).unwrap().patch().clone();
    assert_eq!(
        *patch.body(),
        json!({"metadata": {"resourceVersion": "42"}, "status": serde_json::to_value(&desired).unwrap()})
    );
}

#[test]
fn applying_a_patch_leaves_exactly_what_was_wanted() {
    let read = TestStatus {
        note: Some("old".into()),
        nested: Nested {
            pending: vec!["a".into(), "b".into()],
            total: 2,
        },
        ..status(Level::Stalled, "WatchError")
    };
    let desired = status(Level::Converged, "AllStreamsReady");
    let mut stored = json!({"status": read});
    stored["status"]["ofAnother"] = json!({"kept": true});
    merge(&mut stored, plan(Some(&read), &desired).unwrap().patch().body());
    let mut wanted = serde_json::to_value(&desired).unwrap();
    wanted["ofAnother"] = json!({"kept": true});
    assert_eq!(stored["status"], wanted);
}

#[test]
fn without_a_version_nothing_is_planned() {
    let desired = status(Level::Converged, "AllStreamsReady");
    let resource_version = &ResourceVersion::from("");
    let read = ReadStatus {
        resource_version,
        status: None,
    };
    assert!(matches!(
        plan_write(&read, &desired),
        Err(PlanError::NoResourceVersion)
    ));
}

#[test]
fn an_event_comes_out_only_after_its_change_has_persisted() {
    let read = status(Level::Progressing(NotReady::NotYet), "Replaying");
    let desired = status(Level::Converged, "AllStreamsReady");
    let planned = || plan(Some(&read), &desired).unwrap();
    assert_eq!(planned().settle(WriteOutcome::Conflict), AfterWrite::ReadAgain);
    assert_eq!(planned().settle(WriteOutcome::NotFound), AfterWrite::Gone);
    let told = event(planned()).unwrap();
    assert_eq!(
        (told.severity(), told.reason(), told.note()),
        (EventSeverity::Normal, "AllStreamsReady", "in words")
    );
}

#[test]
fn there_is_one_event_for_a_change_of_readys_status_or_reason_and_none_for_anything_else() {
    let read = status(Level::Stalled, "WatchError");
    let mut other_words = read.clone();
    let update = ConditionUpdate::new(READY, ConditionStatus::False, "WatchError", "in other words");
    other_words
        .conditions
        .upsert(update, 2, Timestamp::from_unix_seconds(9));
    assert_eq!(event(plan(Some(&read), &other_words).unwrap()), None);

    let other_figures = TestStatus {
        nested: Nested {
            pending: Vec::new(),
            total: 9,
        },
        ..read.clone()
    };
    assert_eq!(event(plan(Some(&read), &other_figures).unwrap()), None);

    let other_reason = status(Level::Stalled, "WatchNotPermitted");
    let told = event(plan(Some(&read), &other_reason).unwrap()).unwrap();
    assert_eq!(
        (told.severity(), told.reason()),
        (EventSeverity::Warning, "WatchNotPermitted")
    );
    assert!(event(plan(None, &read).unwrap()).is_some());
}

#[test]
fn severity_goes_by_ready_and_then_by_stalled() {
    use ConditionStatus::{False, True, Unknown};

    for (ready, stalled, expected) in [
        (True, None, EventSeverity::Normal),
        (True, Some(True), EventSeverity::Normal),
        (False, Some(True), EventSeverity::Warning),
        (False, Some(Unknown), EventSeverity::Warning),
        (False, None, EventSeverity::Warning),
        (False, Some(False), EventSeverity::Normal),
        (Unknown, Some(False), EventSeverity::Normal),
        (Unknown, None, EventSeverity::Warning),
    ] {
        let mut desired = TestStatus::default();
        let now = Timestamp::from_unix_seconds(0);
        for (type_, status) in [(READY, Some(ready)), (STALLED, stalled)] {
            if let Some(status) = status {
                let update = ConditionUpdate::new(type_, status, "Why", "");
                desired.conditions.upsert(update, 1, now);
            }
        }
        let told = event(plan(None, &desired).unwrap()).unwrap();
        assert_eq!(told.severity(), expected, "Ready={ready:?}, Stalled={stalled:?}");
    }
}

#[test]
fn an_event_is_cut_to_what_an_api_server_takes() {
    let mut desired = TestStatus::default();
    let update = ConditionUpdate::new(READY, ConditionStatus::True, "R".repeat(1024), "語".repeat(1000));
    desired
        .conditions
        .upsert(update, 1, Timestamp::from_unix_seconds(0));
    let told = event(plan(None, &desired).unwrap()).unwrap();
    assert_eq!((told.reason().len(), told.note().len()), (128, 1023));
}

#[test]
fn a_status_that_is_no_object_is_refused() {
    #[derive(Serialize)]
    struct Bare(#[serde(skip)] Conditions, u8);
    impl Status for Bare {
        fn conditions(&self) -> &Conditions {
            &self.0
        }
    }
    let read = ReadStatus {
        resource_version: &ResourceVersion::from("1"),
        status: None,
    };
    let refused = plan_write(&read, &Bare(Conditions::default(), 1));
    assert!(matches!(refused, Err(PlanError::NotAnObject)), "{refused:?}");
}
