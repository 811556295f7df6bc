//! One object as the API server sent it.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::json::{self, JsonError};
use crate::{Identity, ResourceVersion};

/// One object: its JSON text, byte for byte, and the few parts that had to be read.
///
/// An object without a usable identity (no uid, no name, or metadata only) is *partial*: it is never forwarded, and a
/// new cycle begins in its place.
#[derive(Clone)]
pub struct Object {
    json: Bytes,
    identity: Option<Arc<Identity>>,
    resource_version: Option<ResourceVersion>,
}

/// Why a text cannot be taken as an object.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// It is not JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// It is JSON, but no object.
    #[error("expected a json object")]
    NotAnObject,
}

impl Object {
    /// Reads the identity and version of the object that `json` is.
    ///
    /// # Errors
    /// [`ObjectError`] if the text is not one JSON object.
    pub fn parse(json: Bytes) -> Result<Self, ObjectError> {
        json::validate(&json)?;
        Self::parse_validated(json)
    }

    /// The same for a text that is known to be valid JSON, for example a part of a validated line.
    ///
    /// # Errors
    /// [`ObjectError::NotAnObject`] if it is another JSON value.
    pub fn parse_validated(json: Bytes) -> Result<Self, ObjectError> {
        if !json.trim_ascii_start().starts_with(b"{") {
            return Err(ObjectError::NotAnObject);
        }
        let (identity, resource_version) = read_metadata(&json);
        Ok(Self {
            json,
            identity,
            resource_version,
        })
    }

    /// The text as it was sent.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// Who it is; `None` for a partial object.
    pub fn identity(&self) -> Option<&Arc<Identity>> {
        self.identity.as_ref()
    }

    /// `metadata.resourceVersion`, if it is a string.
    pub fn resource_version(&self) -> Option<&ResourceVersion> {
        self.resource_version.as_ref()
    }
}

impl fmt::Debug for Object {
    /// Shows the length of the text only: it may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("bytes", &self.json.len())
            .field("resource_version", &self.resource_version)
            .finish_non_exhaustive()
    }
}

/// Reads what identifies the object. Of duplicate keys the last counts, as it does for a browser.
fn read_metadata(text: &[u8]) -> (Option<Arc<Identity>>, Option<ResourceVersion>) {
    let (mut api_version, mut kind, mut metadata) = (None, None, None);
    for member in json::members(text) {
        if member.key_is("apiVersion") {
            api_version = Some(member.value);
        } else if member.key_is("kind") {
            kind = Some(member.value);
        } else if member.key_is("metadata") {
            metadata = Some(member.value);
        }
    }
    let (mut uid, mut name, mut namespace, mut version) = (None, None, None, None);
    for member in json::members(metadata.unwrap_or_default()) {
        if member.key_is("uid") {
            uid = Some(member.value);
        } else if member.key_is("name") {
            name = Some(member.value);
        } else if member.key_is("namespace") {
            namespace = Some(member.value);
        } else if member.key_is("resourceVersion") {
            version = Some(member.value);
        }
    }
    let text_of = |value: Option<&[u8]>| value.and_then(json::string).map(|text| Box::<str>::from(&*text));
    let filled = |value: Option<&[u8]>| text_of(value).filter(|text| !text.is_empty());
    let kind = text_of(kind).unwrap_or_default();
    let version = text_of(version).map(ResourceVersion::new);
    let is_metadata_only = &*kind == "PartialObjectMetadata";
    let identity = match (filled(uid), filled(name)) {
        (Some(uid), Some(name)) if !is_metadata_only => Some(Arc::new(Identity {
            uid,
            api_version: text_of(api_version).unwrap_or_default(),
            kind,
            namespace: filled(namespace),
            name,
        })),
        _ => None,
    };
    (identity, version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Object {
        Object::parse(Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    #[test]
    fn identity_and_version_are_read_wherever_they_stand() {
        let object = parse(
            r#"{"metadata":{"labels":"x","uid":"u","resourceVersion":"7","name":"n","namespace":"ns"},"spec":1e400,"kind":"K","apiVersion":"g/v1"}"#,
        );
        let identity = object.identity().unwrap();
        assert_eq!(
            (&*identity.uid, &*identity.name, identity.namespace.as_deref()),
            ("u", "n", Some("ns"))
        );
        assert_eq!((&*identity.kind, &*identity.api_version), ("K", "g/v1"));
        assert_eq!(object.resource_version().unwrap().as_str(), "7");
    }

    #[test]
    fn an_object_without_uid_or_name_or_with_metadata_only_is_partial() {
        for text in [
            "{}",
            r#"{"metadata":null}"#,
            r#"{"metadata":{"name":"n"}}"#,
            r#"{"metadata":{"uid":"u"}}"#,
            r#"{"metadata":{"uid":"","name":"n"}}"#,
            r#"{"metadata":{"uid":"u","name":5}}"#,
            r#"{"metadata":{"uid":"\ud800","name":"n"}}"#,
            r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"uid":"u","name":"n"}}"#,
        ] {
            assert!(parse(text).identity().is_none(), "{text}");
        }
    }

    #[test]
    fn what_is_no_object_is_refused_and_debug_shows_no_content() {
        assert!(matches!(
            Object::parse(Bytes::from_static(b"[]")),
            Err(ObjectError::NotAnObject)
        ));
        assert!(matches!(
            Object::parse(Bytes::from_static(b"{")),
            Err(ObjectError::Json(_))
        ));
        assert!(!format!("{:?}", parse(r#"{"data":{"p":"canary"}}"#)).contains("canary"));
    }
}
