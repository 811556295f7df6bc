//! One object as a consumer holds it.

use std::fmt;
use std::sync::Arc;

use crate::Target;

/// One object as a consumer holds it: its JSON text as it was sent, and what was withheld from it.
#[derive(Clone, PartialEq, Eq)]
pub struct HeldObject {
    target: Target,
    uid: Arc<str>,
    json: Box<str>,
    redacted: Box<[Redaction]>,
    is_seen: bool,
}

/// One withheld value: where it is, and a count that grows when it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redaction {
    /// The path of the value as a JSON pointer, [RFC 6901](https://www.rfc-editor.org/rfc/rfc6901).
    pub path: Box<str>,
    /// Begins at 1 on a connection and grows whenever the withheld value changes.
    pub rev: u64,
}

impl HeldObject {
    pub(super) fn sent(target: Target, uid: Arc<str>, json: Box<str>, redacted: Box<[Redaction]>) -> Self {
        Self {
            target,
            uid,
            json,
            redacted,
            is_seen: true,
        }
    }

    pub(super) fn adopted(target: Target, uid: Arc<str>, json: Box<str>) -> Self {
        Self {
            target,
            uid,
            json,
            redacted: Box::default(),
            is_seen: false,
        }
    }

    pub(super) fn mark_unseen(&mut self) {
        self.is_seen = false;
    }

    /// The target it is on.
    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// Its `metadata.uid`.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// Its JSON text as it was sent: numbers, escapes and key order untouched.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// The values that were withheld from it.
    pub fn redacted(&self) -> &[Redaction] {
        &self.redacted
    }

    /// Whether the current cycle has told of it.
    pub const fn is_seen(&self) -> bool {
        self.is_seen
    }
}

impl fmt::Debug for HeldObject {
    /// Shows the length of the object only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldObject")
            .field("uid", &self.uid)
            .field("bytes", &self.json.len())
            .field("redacted", &self.redacted.len())
            .field("is_seen", &self.is_seen)
            .finish_non_exhaustive()
    }
}
