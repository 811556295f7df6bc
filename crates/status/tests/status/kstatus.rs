//! How kstatus reads an object, by its published rules: written from them, not from the code under test.
//!
//! <https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md>

use serde_json::Value;

/// What tools make of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// It is being deleted.
    Terminating,
    /// It is on its way.
    InProgress,
    /// It failed.
    Failed,
    /// It is as it was asked for.
    Current,
}

/// Reads an object: its deletion, then its generation, then its conditions in list order, of which the first of
/// `Reconciling` and `Stalled` that is True decides, and at last `Ready`, which many have: what is not True is on its way.
/// An object of which nothing speaks against it is as it was asked for.
pub(crate) fn read(object: &Value) -> Reading {
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return Reading::Terminating;
    }
    let generation = &object["metadata"]["generation"];
    let observed = &object["status"]["observedGeneration"];
    if !generation.is_null() && !observed.is_null() && observed != generation {
        return Reading::InProgress;
    }
    let conditions = || {
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        conditions.map(|condition| (condition["type"].as_str(), condition["status"].as_str()))
    };
    let decided = conditions().find_map(|condition| match condition {
        (Some("Reconciling"), Some("True")) => Some(Reading::InProgress),
        (Some("Stalled"), Some("True")) => Some(Reading::Failed),
        _ => None,
    });
    let ready = || {
        conditions().find_map(|condition| match condition {
            (Some("Ready"), Some("True")) => Some(Reading::Current),
            (Some("Ready"), Some("False" | "Unknown")) => Some(Reading::InProgress),
            _ => None,
        })
    };
    decided.or_else(ready).unwrap_or(Reading::Current)
}

#[test]
fn deletion_and_an_old_generation_come_before_conditions() {
    let stalled = serde_json::json!({
        "metadata": {"generation": 2},
        "status": {"conditions": [{"type": "Stalled", "status": "True"}]},
    });
    assert_eq!(read(&stalled), Reading::Failed);
    let mut behind = stalled.clone();
    behind["status"]["observedGeneration"] = 1.into();
    assert_eq!(read(&behind), Reading::InProgress);
    behind["metadata"]["deletionTimestamp"] = "2026-08-01T09:30:00Z".into();
    assert_eq!(read(&behind), Reading::Terminating);
}

#[test]
fn an_object_of_which_nothing_is_published_reads_as_current_unless_it_says_that_nobody_has_looked() {
    let bare = serde_json::json!({"metadata": {"generation": 1}, "spec": {"streams": []}});
    assert_eq!(read(&bare), Reading::Current);
    let mut defaulted = bare;
    defaulted["status"] = serde_json::json!({"observedGeneration": -1, "conditions": []});
    assert_eq!(read(&defaulted), Reading::InProgress);
}

#[test]
fn ready_is_asked_last() {
    let object = |conditions: &[(&str, &str)]| {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(type_, status)| serde_json::json!({"type": type_, "status": status}))
            .collect();
        serde_json::json!({
            "metadata": {"generation": 3},
            "status": {"observedGeneration": 3, "conditions": conditions},
        })
    };
    for (conditions, reading) in [
        (&[("Ready", "True")][..], Reading::Current),
        (&[("Ready", "False")], Reading::InProgress),
        (&[("Ready", "Unknown")], Reading::InProgress),
        (&[("Stalled", "False"), ("Ready", "False")], Reading::InProgress),
        (&[("Ready", "False"), ("Stalled", "True")], Reading::Failed),
        (&[("Ready", "True"), ("Reconciling", "True")], Reading::InProgress),
        (
            &[("Reconciling", "False"), ("Stalled", "False")],
            Reading::Current,
        ),
    ] {
        assert_eq!(read(&object(conditions)), reading, "{conditions:?}");
    }
}
