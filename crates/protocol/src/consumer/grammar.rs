//! The order in which events may come on one connection, checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::wire_event::{Body, WireEvent};
use super::{ConsumerError, ReportedError};
use crate::{ErrorCode, EventType, Ordering, ResourceVersion, json};

/// Checks one connection's events against the rules of the wire, more strictly than a consumer needs to: a test's tool
/// for gateways, and for other implementations of the protocol.
///
/// - `seq` begins at 1 and has no gap; every field stands where the protocol puts it and there is no other one.
/// - A connection begins with `reset` or `error`. A cycle is `reset`, then `added` and `deleted` in any number, then
///   `synced`, then changes. Another cycle begins after `RESYNC_REQUIRED` alone.
/// - After `synced`, `added` is for a uid that this cycle has not sent or has deleted since.
/// - An error is terminal as its code says; any error but `RESYNC_REQUIRED` is the last event.
/// - Within a cycle no version of a uid is older than one already sent (versions that do not order are passed over).
/// - `redacted` is sorted by path.
///
/// ```
/// use krm_stream_protocol::{FrameGrammar, FrameGrammarError};
///
/// let mut grammar = FrameGrammar::new();
/// assert!(matches!(
///     grammar.check(r#"{"seq":1,"type":"synced"}"#),
///     Err(FrameGrammarError::OutOfOrder { .. }),
/// ));
/// ```
#[derive(Clone, Debug)]
pub struct FrameGrammar {
    checked: u64,
    phase: Phase,
    ordering: Ordering,
    /// The uids that this cycle sent and did not delete, with the version last sent.
    present: BTreeMap<Arc<str>, Option<ResourceVersion>>,
}

/// How an event breaks the rules of the wire.
#[derive(Debug, thiserror::Error)]
pub enum FrameGrammarError {
    /// It cannot be read as an event at all.
    #[error("the event cannot be read")]
    Unreadable(#[source] ConsumerError),
    /// Its `seq` is not the next one.
    #[error("expected seq {expected}, found {found}")]
    Sequence {
        /// The `seq` that was due.
        expected: u64,
        /// The `seq` that came.
        found: u64,
    },
    /// Its type is none of the protocol's.
    #[error("the type is none of the protocol's")]
    UnknownType,
    /// Its fields are others, or in another order, than the protocol says.
    #[error("the fields of `{}` are not the protocol's, in its order", .event_type.as_str())]
    Fields {
        /// The type of the event.
        event_type: EventType,
    },
    /// It may not come at this point.
    #[error("`{}` may not come {after}", .event_type.as_str())]
    OutOfOrder {
        /// The type of the event.
        event_type: EventType,
        /// The point.
        after: &'static str,
    },
    /// It calls an object new that this cycle has sent already.
    #[error("`added` after `synced` for a uid that the cycle has sent already")]
    AddedTwice,
    /// It carries an older version than one already sent.
    #[error("a version older than one that this cycle has sent already")]
    WentBack,
    /// It is terminal where its code is not, or the reverse, or the code is unknown.
    #[error("an error must be terminal as its code says")]
    Terminality,
    /// `redacted` is not sorted by path.
    #[error("`redacted` is not sorted by path")]
    UnsortedRedactions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Begin,
    Snapshot,
    Live,
    Resync,
    Ended,
}

impl Phase {
    const fn in_words(self) -> &'static str {
        match self {
            Self::Begin => "at the beginning of a connection",
            Self::Snapshot => "between `reset` and `synced`",
            Self::Live => "after `synced`",
            Self::Resync => "between RESYNC_REQUIRED and `reset`",
            Self::Ended => "after an error that ends the connection",
        }
    }
}

impl Default for FrameGrammar {
    fn default() -> Self {
        Self::new()
    }
}

impl FrameGrammar {
    /// At the beginning of a connection.
    pub const fn new() -> Self {
        Self::with_ordering(Ordering::Strict)
    }

    /// The same for a gateway of this ordering: a lenient one delivers whatever comes, so versions are not compared.
    pub const fn with_ordering(ordering: Ordering) -> Self {
        Self {
            checked: 0,
            phase: Phase::Begin,
            ordering,
            present: BTreeMap::new(),
        }
    }

    /// Checks the next event's data and returns its type.
    ///
    /// # Errors
    /// [`FrameGrammarError`] says which rule it breaks. What follows is then checked as if the event had not come.
    pub fn check(&mut self, data: &str) -> Result<EventType, FrameGrammarError> {
        let event = WireEvent::read(data).map_err(FrameGrammarError::Unreadable)?;
        let expected = self.checked + 1;
        if event.seq != expected {
            return Err(FrameGrammarError::Sequence {
                expected,
                found: event.seq,
            });
        }
        let event_type = event_type(&event.body).ok_or(FrameGrammarError::UnknownType)?;
        if !has_fields_in_order(data, event_type) {
            return Err(FrameGrammarError::Fields { event_type });
        }
        self.phase = self.next_phase(event_type, &event.body)?;
        self.checked = expected;
        Ok(event_type)
    }

    /// Whether an error has ended the connection.
    pub fn is_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// Whether the current cycle's snapshot is complete.
    pub fn is_synced(&self) -> bool {
        self.phase == Phase::Live
    }

    fn next_phase(&mut self, event_type: EventType, body: &Body<'_>) -> Result<Phase, FrameGrammarError> {
        match (self.phase, body) {
            (Phase::Begin | Phase::Resync, Body::Reset { .. }) => {
                self.present.clear();
                Ok(Phase::Snapshot)
            }
            (Phase::Snapshot, Body::Synced) => Ok(Phase::Live),
            (Phase::Snapshot | Phase::Live, Body::Deleted { uid }) => {
                self.present.remove(&**uid);
                Ok(self.phase)
            }
            (Phase::Snapshot | Phase::Live, Body::Upsert(upsert))
                if self.phase == Phase::Live || event_type == EventType::Added =>
            {
                if !upsert.redacted.is_sorted_by(|one, next| one.path < next.path) {
                    return Err(FrameGrammarError::UnsortedRedactions);
                }
                self.upsert(event_type, upsert.uid.as_ref().into(), upsert.object)
            }
            (Phase::Begin | Phase::Snapshot | Phase::Live | Phase::Resync, Body::Error(error)) => {
                phase_after(error)
            }
            (Phase::Begin | Phase::Snapshot | Phase::Live | Phase::Resync | Phase::Ended, _) => {
                Err(FrameGrammarError::OutOfOrder {
                    event_type,
                    after: self.phase.in_words(),
                })
            }
        }
    }

    fn upsert(
        &mut self,
        event_type: EventType,
        uid: Arc<str>,
        object: &str,
    ) -> Result<Phase, FrameGrammarError> {
        let version = json::last_member(object.as_bytes(), "metadata")
            .and_then(|metadata| json::last_member(metadata, "resourceVersion"))
            .and_then(json::string)
            .map(|version| ResourceVersion::from(&*version));
        if let Some(sent) = self.present.get(&uid) {
            if self.phase == Phase::Live && event_type == EventType::Added {
                return Err(FrameGrammarError::AddedTwice);
            }
            if let (Some(sent), Some(version), Ordering::Strict) = (sent, &version, self.ordering)
                && sent.is_after(version)
            {
                return Err(FrameGrammarError::WentBack);
            }
        }
        self.present.insert(uid, version);
        Ok(self.phase)
    }
}

fn phase_after(error: &ReportedError) -> Result<Phase, FrameGrammarError> {
    match error.code() {
        Some(ErrorCode::ResyncRequired) if !error.is_terminal() => Ok(Phase::Resync),
        Some(ErrorCode::Internal) => Ok(Phase::Ended),
        Some(code) if code.is_terminal() == error.is_terminal() => Ok(Phase::Ended),
        Some(_) | None => Err(FrameGrammarError::Terminality),
    }
}

const fn event_type(body: &Body<'_>) -> Option<EventType> {
    match body {
        Body::Reset { .. } => Some(EventType::Reset),
        Body::Upsert(upsert) => Some(upsert.event_type),
        Body::Deleted { .. } => Some(EventType::Deleted),
        Body::Synced => Some(EventType::Synced),
        Body::Error(_) => Some(EventType::Error),
        Body::Unknown => None,
    }
}

/// Whether the event has the fields of its type in their order; a `?` marks one that may be left out.
fn has_fields_in_order(data: &str, event_type: EventType) -> bool {
    let fields: &[&str] = match event_type {
        EventType::Reset => &["seq", "type", "target?", "scope", "projection"],
        EventType::Added | EventType::Modified => &["seq", "type", "object", "redacted"],
        EventType::Deleted => &["seq", "type", "identity"],
        EventType::Synced => &["seq", "type"],
        EventType::Error => &["seq", "type", "code", "message", "terminal", "retryAfterMs?"],
    };
    let inner: &[(&str, &[&str])] = &[
        (
            "scope",
            &[
                "target",
                "group?",
                "version",
                "resource",
                "namespace?",
                "name?",
                "labelSelector?",
            ],
        ),
        ("identity", &["uid", "apiVersion", "kind", "namespace?", "name"]),
    ];
    has_keys(data.as_bytes(), fields)
        && inner.iter().all(|(name, keys)| {
            json::last_member(data.as_bytes(), name).is_none_or(|value| has_keys(value, keys))
        })
}

fn has_keys(object: &[u8], keys: &[&str]) -> bool {
    let mut members = json::members(object).peekable();
    for key in keys {
        let name = key.trim_end_matches('?');
        if members.next_if(|member| member.key == name.as_bytes()).is_none() && name == *key {
            return false;
        }
    }
    members.next().is_none()
}

#[cfg(test)]
mod tests;
