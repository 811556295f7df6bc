//! The seam to whatever stores a status and records Events.

use std::error::Error;
use std::fmt;

use krm_stream_protocol::{BoxFuture, Identity};

use crate::{AfterWrite, EventPlan, StatusPatch, WriteOutcome, WritePlan};

/// Writes statuses and Events. An operator has one over its client; tests have one over memory.
pub trait StatusWriter: Send + Sync + fmt::Debug {
    /// Sends `patch` to the `status` subresource of `object`.
    ///
    /// # Errors
    /// [`WriteError`] for whatever is neither a conflict nor an object that is gone; these are [outcomes](WriteOutcome).
    ///
    /// # Cancel safety
    /// Dropping the future leaves open whether the patch was stored: read the object again.
    fn write<'a>(
        &'a self,
        object: &'a Identity,
        patch: &'a StatusPatch,
    ) -> BoxFuture<'a, Result<WriteOutcome, WriteError>>;

    /// Records `event` about `object`.
    ///
    /// # Errors
    /// [`WriteError`] if it was not recorded.
    ///
    /// # Cancel safety
    /// Dropping the future leaves open whether the Event was recorded.
    fn record<'a>(
        &'a self,
        object: &'a Identity,
        event: &'a EventPlan,
    ) -> BoxFuture<'a, Result<(), WriteError>>;
}

/// A status or an Event was not stored.
#[derive(Debug, thiserror::Error)]
#[error("the api server did not store it")]
pub struct WriteError(#[source] Box<dyn Error + Send + Sync>);

impl WriteError {
    /// An error with this cause.
    pub fn new(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(cause.into())
    }
}

/// A plan was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The status was not stored. Read the object and evaluate again, with backoff.
    #[error("the status was not written")]
    Status(#[source] WriteError),
    /// The status is stored, its Event is lost: the next evaluation finds nothing to write.
    #[error("the status was written, but not its event")]
    Event(#[source] WriteError),
}

/// Carries out a plan: the write, and the Event only if the write has persisted.
///
/// # Errors
/// [`PublishError`] says which of the two was not stored.
///
/// # Cancel safety
/// Dropping the future may lose the Event of a write that has persisted; status itself is never left half written.
pub async fn publish(
    writer: &dyn StatusWriter,
    object: &Identity,
    plan: WritePlan,
) -> Result<AfterWrite, PublishError> {
    let outcome = writer
        .write(object, plan.patch())
        .await
        .map_err(PublishError::Status)?;
    let after = plan.settle(outcome);
    if let AfterWrite::Tell {
        event: Some(event), ..
    } = &after
    {
        writer.record(object, event).await.map_err(PublishError::Event)?;
    }
    Ok(after)
}
