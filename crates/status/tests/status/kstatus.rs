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
/// `Reconciling` and `Stalled` that is True decides.
pub(crate) fn read(object: &Value) -> Reading {
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return Reading::Terminating;
    }
    let observed = &object["status"]["observedGeneration"];
    if !observed.is_null() && *observed != object["metadata"]["generation"] {
        return Reading::InProgress;
    }
    for condition in object["status"]["conditions"].as_array().into_iter().flatten() {
        match (condition["type"].as_str(), condition["status"].as_str()) {
            (Some("Reconciling"), Some("True")) => return Reading::InProgress,
            (Some("Stalled"), Some("True")) => return Reading::Failed,
            _ => {}
        }
    }
    Reading::Current
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
