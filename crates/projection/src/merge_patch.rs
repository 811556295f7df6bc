//! The guard of a host's save endpoint.

use krm_stream_protocol::Scope;
use krm_stream_protocol::json::{self, JsonError};

use crate::projection::Projection;
use crate::rules::{Action, Node, SECRET, push_escaped};

/// What the editor that made a patch had before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Editor {
    /// The projected object, as it was streamed. What the projection removed or withheld was never seen, so a patch has
    /// no business with it, not even to add to it.
    Projected,
    /// The native object, read from the API server by someone who may read it, or a form that sets a withheld value
    /// without showing it. Withheld values may be written and deleted, **each by its name**; what would sweep them away
    /// unnamed, and everything that the projection removes, is refused.
    Native,
}

/// Why a patch must not be sent. It names paths, never values.
#[derive(Debug, thiserror::Error)]
pub enum PatchViolation {
    /// It is not JSON.
    #[error("the patch is not valid json")]
    Json(#[from] JsonError),
    /// It is no object: by RFC 7386 it would replace the whole object.
    #[error("the patch is no json object, so it would replace the whole object")]
    NotAnObject,
    /// It touches what the projection removes.
    #[error("the patch touches {path}, which the projection removes: leave it out of the patch")]
    Removed {
        /// RFC 6901 pointer to it.
        path: String,
    },
    /// It touches what the projection withholds.
    #[error("the patch touches {path}, which the projection withholds: leave it out of the patch")]
    Redacted {
        /// RFC 6901 pointer to it.
        path: String,
    },
    /// It deletes or replaces something that holds what the projection removes or withholds.
    #[error(
        "the patch replaces {path} as a whole, and with it what the projection removes or withholds there: name what is to change"
    )]
    Replaces {
        /// RFC 6901 pointer to what is replaced.
        path: String,
    },
}

/// Checks that a merge patch ([RFC 7386](https://www.rfc-editor.org/rfc/rfc7386)) keeps off what the projection removes or
/// withholds of objects of `scope`. `kind` is the kind of the object that is to be patched, as the API server says; empty
/// if it is not known.
///
/// The rules decide, not what some object has at the moment: a path that a rule covers is refused also where nothing is.
/// Every one of duplicate keys counts, however it is escaped. A patch under `metadata.resourceVersion` is accepted: it is
/// a precondition.
///
/// The patch is taken to have the shape of the object, which is not at hand here: where the object has an array, an
/// object in the patch would replace it as a whole, with what a rule names in its elements. A structural schema admits no
/// such patch; a host whose rules reach into arrays of a resource without one compares the shapes itself.
///
/// # Errors
/// The first [`PatchViolation`] in the order of the patch.
pub fn validate_merge_patch(
    projection: &Projection,
    scope: &Scope,
    kind: &str,
    editor: Editor,
    patch: &[u8],
) -> Result<(), PatchViolation> {
    json::validate(patch)?;
    let patch = patch.trim_ascii();
    if !patch.starts_with(b"{") {
        return Err(PatchViolation::NotAnObject);
    }
    let says_secret = || {
        kind == SECRET
            || json::members(patch).any(|member| {
                member.key_is("kind") && json::string(member.value).is_some_and(|kind| kind == SECRET)
            })
    };
    let rules = projection.rules_for(scope, says_secret);
    let mut guard = Guard {
        editor,
        path: Vec::new(),
    };
    guard.members(patch, rules)
}

struct Guard {
    editor: Editor,
    /// Where the walk is, as a pointer.
    path: Vec<u8>,
}

impl Guard {
    fn members(&mut self, patch: &[u8], node: &Node) -> Result<(), PatchViolation> {
        for member in json::members(patch) {
            let Some(node) = node.member(member.key) else {
                continue;
            };
            let parent = self.path.len();
            self.path.push(b'/');
            push_escaped(&mut self.path, &json::unescape(member.key));
            self.value(member.value, node)?;
            self.path.truncate(parent);
        }
        Ok(())
    }

    /// Checks what the patch says of one place. The walk goes no deeper than the rules' paths do.
    fn value(&mut self, patch: &[u8], node: &Node) -> Result<(), PatchViolation> {
        match (node.action(), self.editor) {
            (Some(Action::Remove), _) => Err(PatchViolation::Removed { path: self.path() }),
            (Some(Action::Redact | Action::RedactValues), Editor::Projected) => {
                Err(PatchViolation::Redacted { path: self.path() })
            }
            (Some(Action::Redact), Editor::Native) => Ok(()),
            (Some(Action::RedactValues), Editor::Native) | (Some(Action::Version) | None, _) => {
                if patch.starts_with(b"{") {
                    self.members(patch, node)
                } else if self.may_replace(patch, node) {
                    Ok(())
                } else {
                    Err(PatchViolation::Replaces { path: self.path() })
                }
            }
        }
    }

    /// Whether the value at `node` may be replaced as a whole by `patch`, which is no object.
    fn may_replace(&self, patch: &[u8], node: &Node) -> bool {
        let is_removed = |action| action == Action::Remove;
        let is_protected = |action| match action {
            Action::Remove | Action::Redact | Action::RedactValues => true,
            Action::Version => false,
        };
        match self.editor {
            // RFC 7386 knows no other way to change an array, and this editor restates what it held.
            Editor::Native if patch.starts_with(b"[") && node.action().is_none() => !node.holds(&is_removed),
            Editor::Native | Editor::Projected => !node.holds(&is_protected),
        }
    }

    fn path(&self) -> String {
        String::from_utf8_lossy(&self.path).into_owned()
    }
}

#[cfg(test)]
mod tests;
