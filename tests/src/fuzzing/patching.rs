//! What a merge patch does to an object: an object that has something at each place that rules name.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use krm_stream_projection::Editor;
use serde_json::{Value, json};

use super::document::Document;
use super::reference::{self, Lost, Rule};

/// Has something to lose under every rule.
static PATCHED: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "apiVersion": "v1",
        "kind": "Example",
        "metadata": {
            "name": "n",
            "uid": "u",
            "resourceVersion": "7",
            "managedFields": [{"manager": "m"}],
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
                "kapp.k14s.io/original": "{}",
                "team": "a",
            },
        },
        "data": {"token": "QQ==", "drop": "QQ=="},
        "stringData": {"token": "x"},
        "binaryData": {"token": "QQ=="},
        "spec": {
            "password": "p",
            "list": [0, 1, 2],
            "values": {"drop": 1, "keep": 2, "x": 3},
            "a/b~c": {"y": 1},
            "other": {"x": 1, "y": 2},
            "items": [{"secret": 1, "open": 2}, {"secret": 3}],
        },
        "status": {"a": {"noise": 1, "b": 2}},
    })
});

/// Checks that an allowed patch leaves alone what the editor must not touch, by applying it.
///
/// # Panics
/// When it does not.
pub(super) fn touches_nothing(patch: &Document, rules: &[Rule], editor: Editor) {
    let Some(patch) = patch.to_value() else { return };
    if has_other_shape(&PATCHED, &patch) {
        return;
    }
    let mut after = PATCHED.clone();
    merge(&mut after, &patch);
    let (had, has) = (protected(&PATCHED, rules), protected(&after, rules));
    match editor {
        Editor::Projected => assert_eq!(has, had),
        Editor::Native => {
            let removed = |all: &BTreeMap<String, (Lost, Value)>| {
                let mut all = all.clone();
                all.retain(|_, (how, _)| *how == Lost::Removed);
                all
            };
            assert_eq!(removed(&has), removed(&had));
            for (pointer, value) in had.iter().filter(|(pointer, _)| !is_named(&patch, pointer)) {
                assert_eq!(has.get(pointer), Some(value), "{pointer} is swept away");
            }
        }
    }
}

/// Whether the patch makes an object of an array. The guard does not see the object that is patched, and takes a patch to
/// have its shape.
fn has_other_shape(patched: &Value, patch: &Value) -> bool {
    match (patched, patch) {
        (Value::Array(_), Value::Object(_)) => true,
        (Value::Object(patched), Value::Object(patch)) => patch.iter().any(|(name, value)| {
            let below = patched.get(name);
            below.is_some_and(|patched| has_other_shape(patched, value))
        }),
        _ => false,
    }
}

/// What rules take out of a value, each with what it is.
fn protected(value: &Value, rules: &[Rule]) -> BTreeMap<String, (Lost, Value)> {
    let lost = reference::lost(value, rules).into_iter();
    lost.filter_map(|(pointer, how)| {
        let lost = value.pointer(&pointer)?.clone();
        Some((pointer, (how, lost)))
    })
    .collect()
}

/// Whether the patch says something of this very place, or restates an array that holds it.
fn is_named(patch: &Value, pointer: &str) -> bool {
    let ends = pointer.match_indices('/').map(|(at, _)| at).skip(1);
    patch.pointer(pointer).is_some()
        || ends
            .into_iter()
            .any(|end| patch.pointer(&pointer[..end]).is_some_and(Value::is_array))
}

/// [RFC 7386](https://www.rfc-editor.org/rfc/rfc7386#section-2)'s own pseudocode.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    if let Value::Object(target) = target {
        for (name, value) in patch {
            if value.is_null() {
                target.remove(name);
            } else {
                merge(target.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
    }
}
