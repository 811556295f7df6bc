//! What to write of a status, and what to tell of it: nothing where nothing changed.

mod event;
mod patch;

use krm_stream_protocol::ResourceVersion;
use serde::Serialize;

pub use event::{EventPlan, EventSeverity};
pub use patch::StatusPatch;

use crate::Conditions;

/// A status with conditions: the type of a custom resource's `status`.
///
/// The type should hold all that its controller writes. What others write beside it is left alone, as long as the type
/// does not read it.
pub trait Status: Serialize {
    /// `status.conditions`.
    fn conditions(&self) -> &Conditions;
}

/// A status as it was last read from the API server.
#[derive(Clone, Debug)]
pub struct ReadStatus<'a, S> {
    /// `metadata.resourceVersion` of the object that was read.
    pub resource_version: &'a ResourceVersion,
    /// `status`; none on an object that has none yet.
    pub status: Option<&'a S>,
}

/// Why no plan can be made.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Without a version the patch would overwrite what was written meanwhile.
    #[error("the object that was read has no resource version: read it from the api server")]
    NoResourceVersion,
    /// The status has no JSON.
    #[error("the status cannot be written as json")]
    Serialize(#[from] serde_json::Error),
    /// The status is JSON, but no object.
    #[error("a status must be a json object")]
    NotAnObject,
}

/// One write of a status that differs from what was read. Its Event comes out only once the write is known to have
/// persisted: see [`settle`](Self::settle).
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a plan does nothing until it is carried out"]
pub struct WritePlan {
    patch: StatusPatch,
    event: Option<EventPlan>,
}

/// What came of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// It is stored, as this version.
    Persisted(ResourceVersion),
    /// 409: somebody wrote in between.
    Conflict,
    /// 404: the object is gone.
    NotFound,
}

/// What follows a write.
#[derive(Clone, Debug, PartialEq)]
pub enum AfterWrite {
    /// Tell of it, if there is anything to tell; the object has this version now.
    Tell {
        /// The version after the write.
        resource_version: ResourceVersion,
        /// The Event, if Ready's status or reason changed.
        event: Option<EventPlan>,
    },
    /// The write is dropped: read the object, evaluate again, with backoff.
    ReadAgain,
    /// Nothing is left to do.
    Gone,
}

/// Compares the status that is wanted with the one last read, and plans the write if they differ.
///
/// # Errors
/// [`PlanError`] if the read object has no version, or a status is no JSON object.
pub fn plan_write<S: Status>(read: &ReadStatus<'_, S>, desired: &S) -> Result<Option<WritePlan>, PlanError> {
    if read.resource_version.as_str().is_empty() {
        return Err(PlanError::NoResourceVersion);
    }
    let Some(patch) = StatusPatch::between(read.resource_version, read.status, desired)? else {
        return Ok(None);
    };
    let event = EventPlan::between(read.status.map(Status::conditions), desired.conditions());
    Ok(Some(WritePlan { patch, event }))
}

impl WritePlan {
    /// What to send.
    pub const fn patch(&self) -> &StatusPatch {
        &self.patch
    }

    /// Whether it changes what Ready says: its status or its reason. Such a write has an Event, and should not wait.
    pub const fn changes_ready(&self) -> bool {
        self.event.is_some()
    }

    /// What follows, now that the outcome is known.
    pub fn settle(self, outcome: WriteOutcome) -> AfterWrite {
        match outcome {
            WriteOutcome::Persisted(resource_version) => AfterWrite::Tell {
                resource_version,
                event: self.event,
            },
            WriteOutcome::Conflict => AfterWrite::ReadAgain,
            WriteOutcome::NotFound => AfterWrite::Gone,
        }
    }
}

#[cfg(test)]
mod tests;
