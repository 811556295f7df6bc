//! A resource as it was read from the API server.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use krm_stream_protocol::{Identity, ResourceVersion};
use serde::Deserialize;
use serde_json::Value;

use crate::{DeclaredStreamSpec, DeclaredStreamStatus};

/// One `DeclaredStream` as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadResource {
    pub(crate) identity: Identity,
    pub(crate) version: ResourceVersion,
    pub(crate) generation: i64,
    /// It is being deleted, and waits for somebody's finalizer.
    pub(crate) is_terminating: bool,
    pub(crate) spec: Result<DeclaredStreamSpec, UnreadableSpec>,
    pub(crate) status: Option<DeclaredStreamStatus>,
}

/// The specification is none: the definition that is installed is not that of this gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the specification cannot be read: install the definition of the resource that belongs to this version of the gateway"
)]
pub struct UnreadableSpec;

/// What was read is no such resource.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is not JSON, or not of this form.
    #[error("the api server sent a resource that cannot be read")]
    Unreadable(#[from] serde_json::Error),
    /// It lacks what an API server gives to every object.
    #[error("the api server sent a resource without {0}")]
    Lacks(&'static str),
}

#[derive(Deserialize)]
struct Raw {
    #[serde(default, rename = "apiVersion")]
    api_version: String,
    #[serde(default)]
    kind: String,
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    status: Value,
}

impl ReadResource {
    /// Reads an object as WATCH and GET send it.
    ///
    /// # Errors
    /// [`ReadError`] if it is no object of an API server. A specification that cannot be read is not an error: it is for the
    /// status.
    pub fn parse(json: &[u8]) -> Result<Self, ReadError> {
        let raw: Raw = serde_json::from_slice(json)?;
        let text = |value: Option<String>, what| {
            value
                .filter(|text| !text.is_empty())
                .ok_or(ReadError::Lacks(what))
        };
        Ok(Self {
            identity: Identity {
                uid: text(raw.metadata.uid, "a uid")?.into(),
                api_version: raw.api_version.into(),
                kind: raw.kind.into(),
                namespace: None,
                name: text(raw.metadata.name, "a name")?.into(),
            },
            version: text(raw.metadata.resource_version, "a resource version")?
                .as_str()
                .into(),
            generation: raw.metadata.generation.unwrap_or_default(),
            is_terminating: raw.metadata.deletion_timestamp.is_some(),
            spec: serde_json::from_value(raw.spec).map_err(|_| UnreadableSpec),
            // One that cannot be read is as good as none: the whole of it is written anew.
            status: serde_json::from_value(raw.status).ok().flatten(),
        })
    }

    /// Who it is.
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }
}
