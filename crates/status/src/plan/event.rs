//! The Event that goes with a change of Ready.

use crate::{Condition, ConditionStatus, Conditions, READY};

/// The longest `note` of an Event, in bytes: `events.k8s.io/v1` allows 1 KiB.
const NOTE_BYTES: usize = 1024;
/// The longest `reason` of an Event, in bytes: `events.k8s.io/v1` allows 128.
const REASON_BYTES: usize = 128;

/// The `type` of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventSeverity {
    /// Nothing to do.
    Normal,
    /// Worth a look.
    Warning,
}

impl EventSeverity {
    /// The type as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }

    /// Normal if Ready is True. Otherwise what Stalled says: False means that it goes on by itself; True, Unknown and
    /// absent do not.
    fn of(conditions: &Conditions) -> Self {
        if conditions.is_ready() {
            return Self::Normal;
        }
        match conditions.stalled() {
            Some(ConditionStatus::False) => Self::Normal,
            Some(ConditionStatus::True | ConditionStatus::Unknown) | None => Self::Warning,
        }
    }
}

/// One Event about a change of Ready, to be recorded once that change has persisted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPlan {
    severity: EventSeverity,
    reason: String,
    note: String,
}

impl EventPlan {
    /// The `action` of these Events, which `events.k8s.io/v1` requires.
    pub const ACTION: &'static str = "Reconcile";

    /// The Event about what became of Ready: none if its status and reason are what they were.
    pub(super) fn between(before: Option<&Conditions>, after: &Conditions) -> Option<Self> {
        let said = |ready: &Condition| (ready.status, ready.reason.clone());
        let ready = after.get(READY)?;
        let before = before.and_then(|conditions| conditions.get(READY));
        if before.map(said) == Some(said(ready)) {
            return None;
        }
        Some(Self {
            severity: EventSeverity::of(after),
            reason: cut(&ready.reason, REASON_BYTES),
            note: cut(&ready.message, NOTE_BYTES),
        })
    }

    /// `type`.
    pub const fn severity(&self) -> EventSeverity {
        self.severity
    }

    /// `reason`: that of Ready.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// `note`: the message of Ready, as much of it as an Event takes.
    pub fn note(&self) -> &str {
        &self.note
    }
}

fn cut(text: &str, bytes: usize) -> String {
    text[..text.floor_char_boundary(bytes)].to_owned()
}
