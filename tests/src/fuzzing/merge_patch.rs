//! The guard for merge patches: what it says is what the rules say, and what it lets pass changes nothing that must
//! not be touched.

use krm_stream_projection::{Editor, PatchViolation, validate_merge_patch};
use krm_stream_protocol::Scope;

use super::document::{Document, is_valid, units};
use super::patching;
use super::reference::{self, Action, Place, REFERENCES, Reference, Rule, SCOPES};

/// What the guard said, or should say.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Said {
    Allowed,
    NotJson,
    NotAnObject,
    Removed(String),
    Redacted(String),
    Replaces(String),
}

/// Checks [`validate_merge_patch`] for both kinds of editors, each projection, and objects of several kinds.
///
/// # Panics
/// When a rule does not hold.
pub fn merge_patch(input: &[u8]) {
    let Some(scopes) = &*SCOPES else { return };
    let document = Document::parse(input);
    for reference in &*REFERENCES {
        for (scope, kind) in [
            (&scopes.secrets, ""),
            (&scopes.config_maps, "ConfigMap"),
            (&scopes.config_maps, "Secret"),
            (&scopes.vaults, "Vault"),
        ] {
            for editor in [Editor::Projected, Editor::Native] {
                let said = guard(reference, scope, kind, editor, input);
                if !is_valid(input) {
                    assert_eq!(said, Said::NotJson);
                } else if let Some(patch) = &document {
                    let is_secret = kind == "Secret" || reference::says_secret(patch);
                    let rules = reference.rules_for(scope, is_secret);
                    assert_eq!(said, expected(patch, &rules, editor), "{editor:?} {kind:?}");
                    if said == Said::Allowed {
                        patching::touches_nothing(patch, &rules, editor);
                    }
                }
            }
        }
    }
}

fn guard(reference: &Reference, scope: &Scope, kind: &str, editor: Editor, patch: &[u8]) -> Said {
    match validate_merge_patch(&reference.projection, scope, kind, editor, patch) {
        Ok(()) => Said::Allowed,
        Err(PatchViolation::Json(_)) => Said::NotJson,
        Err(PatchViolation::NotAnObject) => Said::NotAnObject,
        Err(PatchViolation::Removed { path }) => Said::Removed(path),
        Err(PatchViolation::Redacted { path }) => Said::Redacted(path),
        Err(PatchViolation::Replaces { path }) => Said::Replaces(path),
    }
}

fn expected(patch: &Document, rules: &[Rule], editor: Editor) -> Said {
    match patch {
        Document::Object(_) => members(patch, rules, editor, &mut Vec::new()).unwrap_or(Said::Allowed),
        Document::Scalar(_) | Document::Array(_) => Said::NotAnObject,
    }
}

/// The first violation among the members of a patch.
fn members(patch: &Document, rules: &[Rule], editor: Editor, place: &mut Place) -> Option<Said> {
    let length = place.len();
    patch.members().iter().find_map(|(key, value)| {
        let name = units(key);
        reference::push_name(place, &name);
        let said = member(value, &reference::rules_below(rules, &name), editor, place);
        place.truncate(length);
        said
    })
}

fn member(value: &Document, rules: &[Rule], editor: Editor, place: &mut Place) -> Option<Said> {
    let action = reference::action_here(rules);
    match (action, editor) {
        (Some(Action::Remove), _) => return Some(Said::Removed(shown(place))),
        (Some(Action::Redact | Action::RedactValues), Editor::Projected) => {
            return Some(Said::Redacted(shown(place)));
        }
        (Some(Action::Redact), Editor::Native) => return None,
        (Some(Action::RedactValues), Editor::Native) | (None, _) => {}
    }
    let removes = rules.iter().any(|(_, action)| *action == Action::Remove);
    match value {
        // Members under RedactValues are redacted, which a native editor may write.
        Document::Object(_) => members(value, rules, editor, place),
        Document::Array(_) if editor == Editor::Native && action.is_none() && !removes => None,
        Document::Array(_) | Document::Scalar(_) => (!rules.is_empty()).then(|| Said::Replaces(shown(place))),
    }
}

/// A place in words: each byte of a lone surrogate's three is shown as the replacement character.
fn shown(place: &Place) -> String {
    let text = |code| char::from_u32(code).map_or("\u{FFFD}".repeat(3), String::from);
    place.iter().copied().map(text).collect()
}
