//! Who an object is.

use serde::Serialize;

/// What names one object for ever: its uid, and what people call it. The `identity` of a `deleted` event.
///
/// The uid is the key; a name can be taken again by another object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// `metadata.uid`, not empty.
    pub uid: Box<str>,
    /// `apiVersion`; empty if the API server sent none.
    pub api_version: Box<str>,
    /// `kind`; empty if the API server sent none.
    pub kind: Box<str>,
    /// `metadata.namespace` of a namespaced object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Box<str>>,
    /// `metadata.name`, not empty.
    pub name: Box<str>,
}
