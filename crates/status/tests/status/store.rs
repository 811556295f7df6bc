//! An API server's part in memory: one object, its versions, and what was written and told.

use std::sync::{Mutex, PoisonError};

use krm_stream_protocol::{BoxFuture, Identity};
use krm_stream_status::{EventPlan, StatusPatch, StatusWriter, WriteError, WriteOutcome};
use serde_json::{Value, json};

/// Stores one object.
#[derive(Debug)]
pub(crate) struct Store(Mutex<Stored>);

/// What is stored, and what happened to it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stored {
    pub(crate) object: Value,
    pub(crate) writes: usize,
    pub(crate) events: Vec<EventPlan>,
    version: u64,
    is_gone: bool,
}

impl Store {
    /// An object without a status.
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Stored {
            object: json!({"metadata": {"generation": 1, "resourceVersion": "1"}}),
            writes: 0,
            events: Vec::new(),
            version: 1,
            is_gone: false,
        }))
    }

    /// What is stored now.
    pub(crate) fn read(&self) -> Stored {
        self.with(|stored| stored.clone())
    }

    /// Somebody else writes.
    pub(crate) fn write_in_between(&self) {
        self.with(Stored::next_version);
    }

    /// Somebody else deletes.
    pub(crate) fn delete(&self) {
        self.with(|stored| stored.is_gone = true);
    }

    fn with<T>(&self, act: impl FnOnce(&mut Stored) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Stored {
    fn next_version(&mut self) {
        self.version += 1;
        self.object["metadata"]["resourceVersion"] = self.version.to_string().into();
    }

    fn apply(&mut self, body: &Value) -> WriteOutcome {
        if self.is_gone {
            return WriteOutcome::NotFound;
        }
        if body["metadata"]["resourceVersion"] != self.object["metadata"]["resourceVersion"] {
            return WriteOutcome::Conflict;
        }
        merge(&mut self.object["status"], &body["status"]);
        self.writes += 1;
        self.next_version();
        WriteOutcome::Persisted(self.version.to_string().as_str().into())
    }
}

impl StatusWriter for Store {
    fn write<'a>(
        &'a self,
        _: &'a Identity,
        patch: &'a StatusPatch,
    ) -> BoxFuture<'a, Result<WriteOutcome, WriteError>> {
        let outcome = self.with(|stored| stored.apply(patch.body()));
        Box::pin(std::future::ready(Ok(outcome)))
    }

    fn record<'a>(&'a self, _: &'a Identity, event: &'a EventPlan) -> BoxFuture<'a, Result<(), WriteError>> {
        self.with(|stored| stored.events.push(event.clone()));
        Box::pin(std::future::ready(Ok(())))
    }
}

/// RFC 7386, section 2.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            if let Some(target) = target.as_object_mut() {
                target.remove(key);
            }
        } else {
            merge(&mut target[key], value);
        }
    }
}
