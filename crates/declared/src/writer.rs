//! The writer of status and Events, over kube.

use std::time::Duration;

use http::StatusCode;
use krm_stream_protocol::{BoxFuture, Identity};
use krm_stream_status::{EventPlan, StatusPatch, StatusWriter, WriteError, WriteOutcome};
use kube::{Client, Resource as _};
use serde_json::json;

use crate::api::{Api, ApiError, parse, segment, version_of};
use crate::clock::{micro_time, unix_nanos};
use crate::{DeclaredStream, ReadAgain, ReadResource};

/// Where the Events about an object without a namespace belong: `kubectl describe` and `kubectl events` look there.
const EVENTS_PATH: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
/// Who tells of it.
const CONTROLLER: &str = "krm-stream.github.io/declared";
/// How much of an object's name is in that of an Event: with the number it must be a DNS subdomain, of at most 253 bytes.
const EVENT_OBJECT_BYTES: usize = 200;
/// The pauses between attempts to record an Event.
const RECORD_PAUSES: [Duration; 3] = [
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(4),
];
/// The longest `reportingInstance` that an API server takes, in bytes.
const INSTANCE_BYTES: usize = 128;

/// Writes the status of declared streams and records Events about them, through `events.k8s.io/v1`.
///
/// The patch carries the resource version that was read, so that the API server refuses it with 409 if somebody wrote in
/// between.
#[derive(Clone, Debug)]
pub struct KubeStatusWriter {
    api: Api,
    instance: String,
}

impl KubeStatusWriter {
    /// A writer over this client. `instance` is the name of this process in Events, such as that of its pod.
    ///
    /// Of a client with kube's retry layer, which is on by default, a write may be repeated below this writer, which does
    /// no harm but may take long; `kube::Config::default_retry` turns it off.
    pub fn new(client: Client, instance: impl Into<String>) -> Self {
        let mut instance = instance.into();
        instance.truncate(instance.floor_char_boundary(INSTANCE_BYTES));
        if instance.is_empty() {
            "krm-stream".clone_into(&mut instance);
        }
        Self {
            api: Api::new(client),
            instance,
        }
    }

    /// Reads a resource again.
    pub(crate) async fn read(&self, object: &Identity) -> Result<ReadAgain, ApiError> {
        match self.api.get(&path(object)?).await {
            Ok(body) => match ReadResource::parse(&body) {
                // Another object of the same name: this one is gone.
                Ok(read) if read.identity.uid != object.uid => Ok(ReadAgain::Gone),
                Ok(read) => Ok(ReadAgain::Found(Box::new(read))),
                Err(_) => Err(ApiError::Unreadable),
            },
            Err(error) if error.code() == Some(StatusCode::NOT_FOUND) => Ok(ReadAgain::Gone),
            Err(error) => Err(error),
        }
    }

    async fn patch(&self, object: &Identity, patch: &StatusPatch) -> Result<WriteOutcome, ApiError> {
        let status = format!("{}/status", path(object)?);
        match self.api.patch(&status, patch.body()).await {
            Ok(body) => Ok(WriteOutcome::Persisted(version_of(&parse(&body)?)?)),
            Err(error) => match error.code() {
                Some(StatusCode::CONFLICT) => Ok(WriteOutcome::Conflict),
                Some(StatusCode::NOT_FOUND) => Ok(WriteOutcome::NotFound),
                Some(_) | None => Err(error),
            },
        }
    }

    async fn create_event(&self, object: &Identity, event: &EventPlan) -> Result<(), ApiError> {
        let body = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": event_name(&object.name, unix_nanos()), "namespace": "default"},
            "eventTime": micro_time(),
            "type": event.severity().as_str(),
            "reason": event.reason(),
            "note": event.note(),
            "action": EventPlan::ACTION,
            "reportingController": CONTROLLER,
            "reportingInstance": self.instance,
            "regarding": {
                "apiVersion": DeclaredStream::api_version(&()),
                "kind": DeclaredStream::kind(&()),
                "name": &*object.name,
                "uid": &*object.uid,
            },
        });
        // The write that it tells of has persisted, so nothing else would bring it back.
        let mut pauses = RECORD_PAUSES.iter();
        loop {
            let Err(error) = self.api.create(EVENTS_PATH, &body).await else {
                return Ok(());
            };
            match (error.code(), pauses.next()) {
                // An attempt that was not answered was stored all the same: the name is its own.
                (Some(StatusCode::CONFLICT), _) => return Ok(()),
                (code, Some(pause)) if code.is_none_or(may_pass) => tokio::time::sleep(*pause).await,
                (_, _) => return Err(error),
            }
        }
    }
}

impl StatusWriter for KubeStatusWriter {
    fn write<'a>(
        &'a self,
        object: &'a Identity,
        patch: &'a StatusPatch,
    ) -> BoxFuture<'a, Result<WriteOutcome, WriteError>> {
        Box::pin(async move { self.patch(object, patch).await.map_err(WriteError::new) })
    }

    fn record<'a>(
        &'a self,
        object: &'a Identity,
        event: &'a EventPlan,
    ) -> BoxFuture<'a, Result<(), WriteError>> {
        Box::pin(async move { self.create_event(object, event).await.map_err(WriteError::new) })
    }
}

/// Whether a refusal is of the moment.
fn may_pass(code: StatusCode) -> bool {
    code.is_server_error() || code == StatusCode::TOO_MANY_REQUESTS || code == StatusCode::REQUEST_TIMEOUT
}

/// A name as client-go gives it: that of the object, as much as there is room for, and a number.
fn event_name(object: &str, number: u128) -> String {
    let object = &object[..object.floor_char_boundary(EVENT_OBJECT_BYTES)];
    format!("{}.{number:x}", object.trim_end_matches(['-', '.']))
}

fn path(object: &Identity) -> Result<String, ApiError> {
    Ok(format!(
        "{}/{}",
        DeclaredStream::url_path(&(), None),
        segment(&object.name)?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_a_name_that_an_api_server_takes_whatever_its_object_is_called() {
        assert_eq!(event_name("shop", 0x1f), "shop.1f");
        let long = event_name(&format!("{}-.x", "a".repeat(199)), u128::from(u64::MAX));
        assert_eq!(long, format!("{}.ffffffffffffffff", "a".repeat(199)));
        assert!(long.len() <= 253);
    }
}
