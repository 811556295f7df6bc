//! The merge patch that turns the status that was read into the one that is wanted.

use krm_stream_protocol::ResourceVersion;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::PlanError;

/// A merge patch ([RFC 7386]) for the `status` subresource of one object, which an API server refuses with 409 if the
/// object has another version by now ([optimistic concurrency]).
///
/// It names the whole status, and with `null` what the read one had and the wanted one lacks: a merge patch would
/// otherwise leave that behind.
///
/// [RFC 7386]: https://www.rfc-editor.org/rfc/rfc7386
/// [optimistic concurrency]: https://kubernetes.io/docs/reference/using-api/api-concepts/#patch-and-update
#[derive(Clone, Debug, PartialEq)]
pub struct StatusPatch {
    body: Value,
}

impl StatusPatch {
    /// The media type to send it as.
    pub const CONTENT_TYPE: &'static str = "application/merge-patch+json";

    pub(super) fn between<S: Serialize>(
        resource_version: &ResourceVersion,
        read: Option<&S>,
        desired: &S,
    ) -> Result<Option<Self>, PlanError> {
        let read = read.map(object).transpose()?;
        let mut status = object(desired)?;
        if read.as_ref() == Some(&status) {
            return Ok(None);
        }
        remove_what_is_gone(&read.unwrap_or_default(), &mut status);
        let body = json!({
            "metadata": {"resourceVersion": resource_version.as_str()},
            "status": status,
        });
        Ok(Some(Self { body }))
    }

    /// The body to send.
    pub const fn body(&self) -> &Value {
        &self.body
    }
}

fn object<S: Serialize>(status: &S) -> Result<Map<String, Value>, PlanError> {
    match serde_json::to_value(status)? {
        Value::Object(map) => Ok(map),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(PlanError::NotAnObject)
        }
    }
}

fn remove_what_is_gone(read: &Map<String, Value>, desired: &mut Map<String, Value>) {
    for (key, value) in read {
        match (value, desired.get_mut(key)) {
            (_, None) => {
                desired.insert(key.clone(), Value::Null);
            }
            (Value::Object(read), Some(Value::Object(desired))) => remove_what_is_gone(read, desired),
            (_, Some(_)) => {}
        }
    }
}
