//! What a conforming consumer does with a stream: the reducer, and the order in which events may come.

mod error;
mod grammar;
mod held;
mod step;
mod wire_event;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

pub use error::ConsumerError;
pub use grammar::{FrameGrammar, FrameGrammarError};
pub use held::{HeldObject, Redaction};
pub use step::{Decision, ReportedError, Step};

use crate::{ErrorCode, EventType, Target, json};
use wire_event::{Body, Upsert, WireEvent};

/// The reducer: what a consumer holds after the events that it was given.
///
/// It keeps each object's JSON text as it was sent, keyed by target and uid. A `reset` marks all of it as unseen, an
/// upsert replaces the object and marks it as seen, `synced` prunes what is still unseen: so a cycle that breaks off
/// prunes nothing.
///
/// # How to use it
/// Give every event's data to [`apply`](Self::apply) in order and do what the [`Step`] says. When the connection is to be
/// opened again (it ended, or an error or a [`Decision`] says so), call [`reconnected`](Self::reconnected) and go on with
/// the same consumer: what it holds stays until the new connection's `synced`.
///
/// ```
/// use krm_stream_protocol::{Consumer, Step};
///
/// let mut consumer = Consumer::new();
/// for data in [
///     r#"{"seq":1,"type":"reset","scope":{"target":"","version":"v1","resource":"pods"},"projection":"krm-full/v1"}"#,
///     r#"{"seq":2,"type":"added","object":{"kind":"Pod","metadata":{"uid":"u-1"}},"redacted":[]}"#,
///     r#"{"seq":3,"type":"synced"}"#,
/// ] {
///     consumer.apply(data)?;
/// }
/// assert!(consumer.is_synced());
/// assert_eq!(consumer.get("u-1").unwrap().json(), r#"{"kind":"Pod","metadata":{"uid":"u-1"}}"#);
/// # Ok::<(), krm_stream_protocol::ConsumerError>(())
/// ```
#[derive(Default)]
pub struct Consumer {
    objects: BTreeMap<Target, BTreeMap<Arc<str>, HeldObject>>,
    phase: Phase,
    /// That of the latest `reset`.
    target: Option<Target>,
    /// The events of this connection so far.
    applied: u64,
}

/// Where the connection stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// A `reset` must come, or an error.
    #[default]
    AwaitingReset,
    /// Between `reset` and `synced`.
    Snapshot,
    /// After `synced`.
    Live,
    /// An error closed the connection.
    Ended,
}

impl Consumer {
    /// A consumer that holds nothing, at the beginning of a connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies one event's data.
    ///
    /// # Errors
    /// [`ConsumerError`] if the event cannot stand where it stands. What is held does not change. The connection is then
    /// of no more use: open another and call [`reconnected`](Self::reconnected).
    pub fn apply(&mut self, data: &str) -> Result<Step, ConsumerError> {
        let event = WireEvent::read(data)?;
        let expected = self.applied + 1;
        if self.phase == Phase::Ended {
            return Err(ConsumerError::AfterEnd);
        }
        if event.seq != expected {
            return Err(ConsumerError::SequenceGap {
                expected,
                found: event.seq,
            });
        }
        let step = match event.body {
            Body::Reset { target } => self.reset(target),
            Body::Upsert(upsert) => self.upsert(upsert)?,
            Body::Deleted { uid } => self.delete(&uid)?,
            Body::Synced => self.synced()?,
            Body::Error(error) => self.error(error),
            Body::Unknown => Step::Ignored,
        };
        self.applied = expected;
        Ok(step)
    }

    /// A new connection begins: `seq` counts from 1 again. What is held stays.
    pub fn reconnected(&mut self) {
        self.phase = Phase::AwaitingReset;
        self.applied = 0;
    }

    /// Takes in an object that the consumer itself created, from the answer to its own request, so that it shows before
    /// the stream tells of it. Returns whether it was taken: where the stream already told of this uid its word stands,
    /// since nothing here can tell which of two versions is newer.
    ///
    /// The object belongs to the target of the latest cycle and counts as unseen until the stream tells of it: one that
    /// was deleted again before the stream saw it goes with the next `synced`.
    ///
    /// # Errors
    /// [`ConsumerError::NotJson`] or [`ConsumerError::Malformed`] if it is no JSON object with a uid,
    /// [`ConsumerError::OutsideCycle`] before the first `reset`.
    pub fn adopt(&mut self, object_json: &str) -> Result<bool, ConsumerError> {
        json::validate(object_json.as_bytes())?;
        let uid = wire_event::object_uid(object_json)?;
        let target = self.target.clone().ok_or(ConsumerError::OutsideCycle {
            event_type: EventType::Added,
        })?;
        let objects = self.objects.entry(target.clone()).or_default();
        if objects.contains_key(&*uid) {
            return Ok(false);
        }
        let uid: Arc<str> = uid.into();
        let object = HeldObject::adopted(target, Arc::clone(&uid), object_json.trim_ascii().into());
        objects.insert(uid, object);
        Ok(true)
    }

    /// All objects held, in order of target and uid.
    pub fn objects(&self) -> impl Iterator<Item = &HeldObject> {
        self.objects.values().flat_map(BTreeMap::values)
    }

    /// The objects that the current cycle has not told of yet.
    pub fn unseen(&self) -> impl Iterator<Item = &HeldObject> {
        self.objects().filter(|object| !object.is_seen())
    }

    /// The object of this uid on the target of the latest cycle.
    pub fn get(&self, uid: &str) -> Option<&HeldObject> {
        self.objects.get(self.target.as_ref()?)?.get(uid)
    }

    /// How many objects are held.
    pub fn len(&self) -> usize {
        self.objects.values().map(BTreeMap::len).sum()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the snapshot of this connection is complete and changes are being followed.
    pub fn is_synced(&self) -> bool {
        self.phase == Phase::Live
    }

    fn reset(&mut self, target: Target) -> Step {
        for object in self.objects.values_mut().flat_map(BTreeMap::values_mut) {
            object.mark_unseen();
        }
        self.target = Some(target);
        self.phase = Phase::Snapshot;
        Step::Reset
    }

    fn upsert(&mut self, upsert: Upsert<'_>) -> Result<Step, ConsumerError> {
        let target = self.target_in_cycle(upsert.event_type)?;
        let uid: Arc<str> = upsert.uid.into();
        let object = HeldObject::sent(
            target.clone(),
            Arc::clone(&uid),
            upsert.object.into(),
            upsert.redacted,
        );
        self.objects
            .entry(target)
            .or_default()
            .insert(Arc::clone(&uid), object);
        Ok(Step::Upserted { uid })
    }

    fn delete(&mut self, uid: &str) -> Result<Step, ConsumerError> {
        let target = self.target_in_cycle(EventType::Deleted)?;
        let removed = self
            .objects
            .get_mut(&target)
            .and_then(|objects| objects.remove(uid));
        Ok(Step::Deleted {
            uid: uid.into(),
            was_held: removed.is_some(),
        })
    }

    fn synced(&mut self) -> Result<Step, ConsumerError> {
        if self.phase != Phase::Snapshot {
            return Err(ConsumerError::OutsideCycle {
                event_type: EventType::Synced,
            });
        }
        let mut pruned = Vec::new();
        for objects in self.objects.values_mut() {
            objects.retain(|uid, object| {
                if !object.is_seen() {
                    pruned.push(Arc::clone(uid));
                }
                object.is_seen()
            });
        }
        self.objects.retain(|_, objects| !objects.is_empty());
        self.phase = Phase::Live;
        Ok(Step::Synced { pruned })
    }

    fn error(&mut self, error: ReportedError) -> Step {
        let decision = if error.is_terminal() {
            Decision::Close
        } else if error.code() == Some(ErrorCode::ResyncRequired) {
            Decision::Continue
        } else {
            Decision::Reopen {
                after: error.retry_after(),
            }
        };
        self.phase = match decision {
            Decision::Continue => Phase::AwaitingReset,
            Decision::Reopen { .. } | Decision::Close => Phase::Ended,
        };
        Step::Error { error, decision }
    }

    fn target_in_cycle(&self, event_type: EventType) -> Result<Target, ConsumerError> {
        match (self.phase, &self.target) {
            (Phase::Snapshot | Phase::Live, Some(target)) => Ok(target.clone()),
            (Phase::Snapshot | Phase::Live | Phase::AwaitingReset | Phase::Ended, _) => {
                Err(ConsumerError::OutsideCycle { event_type })
            }
        }
    }
}

impl fmt::Debug for Consumer {
    /// Shows no object: one may hold what must not be logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("objects", &self.len())
            .field("phase", &self.phase)
            .field("applied", &self.applied)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
