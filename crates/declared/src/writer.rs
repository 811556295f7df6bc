//! The writer of status and Events, over kube.

use http::StatusCode;
use krm_stream_protocol::{BoxFuture, Identity};
use krm_stream_status::{EventPlan, StatusPatch, StatusWriter, WriteError, WriteOutcome};
use kube::{Client, Resource as _};
use serde_json::json;

use crate::api::{Api, ApiError, parse, segment, version_of};
use crate::clock::micro_time;
use crate::{DeclaredStream, ReadAgain, ReadResource};

/// Where the Events about an object without a namespace belong: `kubectl describe` and `kubectl events` look there.
const EVENTS_PATH: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
/// Who tells of it.
const CONTROLLER: &str = "krm-stream.github.io/declared";
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
            "metadata": {"generateName": format!("{}.", object.name), "namespace": "default"},
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
        self.api.create(EVENTS_PATH, &body).await.map(|_| ())
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

fn path(object: &Identity) -> Result<String, ApiError> {
    Ok(format!(
        "{}/{}",
        DeclaredStream::url_path(&(), None),
        segment(&object.name)?
    ))
}
