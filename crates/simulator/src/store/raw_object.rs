//! Objects that are sent exactly as they were put in.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use serde_json::Value;

use crate::{
    raw::{metadata_member, metadata_string, with_resource_version},
    resource::ResourceKey,
};

use super::{
    Store, WriteError,
    event::{Change, Event, Stored, object_key},
};

/// A greater version is known by its text instead, so that there is always a next one.
const LARGEST_OWN_VERSION: u64 = u64::MAX / 2;

/// JSON text that LIST and WATCH send byte for byte: odd numbers, lone surrogates, duplicate keys, any depth, objects
/// without a uid or a version.
///
/// Where the object lives is read from its `metadata` unless it is given. Its labels are read from it as far as they can be,
/// for selectors. Its own `metadata.resourceVersion` becomes the version of the change if it is greater than the current one
/// (or is too large for a counter, or is no number); otherwise the change gets the next version, which the text then does not tell.
///
/// ```
/// use krm_stream_simulator::RawObject;
///
/// let object = RawObject::new(r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{},"data":{"a":"\ud800"}}"#)
///     .at("shop", "odd");
/// ```
#[derive(Debug, Clone)]
pub struct RawObject {
    pub(super) object: Bytes,
    pub(super) item_from: usize,
    pub(super) place: Option<(String, String)>,
}

impl RawObject {
    /// An object with this text.
    pub fn new(object: impl Into<Bytes>) -> Self {
        Self {
            object: object.into(),
            item_from: 0,
            place: None,
        }
    }

    /// Says where the object lives, whatever its text says; the namespace of a cluster-scoped object is empty.
    #[must_use]
    pub fn at(mut self, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        self.place = Some((namespace.into(), name.into()));
        self
    }

    fn place(&self) -> Result<(String, String), WriteError> {
        if let Some(place) = &self.place {
            return Ok(place.clone());
        }
        let name = metadata_string(&self.object, "name").ok_or(WriteError::NamelessRawObject)?;
        Ok((
            metadata_string(&self.object, "namespace").unwrap_or_default(),
            name,
        ))
    }

    fn labels(&self) -> BTreeMap<String, String> {
        let labels = metadata_member(&self.object, "labels").and_then(|span| self.object.get(span));
        match labels.map(serde_json::from_slice::<Value>) {
            Some(Ok(Value::Object(map))) => map
                .into_iter()
                .filter_map(|(key, value)| Some((key, value.as_str()?.to_owned())))
                .collect(),
            Some(Ok(_) | Err(_)) | None => BTreeMap::new(),
        }
    }
}

impl Store {
    /// Puts an object in, or in the place of the one that lives there. Returns the change's version.
    pub(crate) fn put_raw(&mut self, key: &ResourceKey, raw: RawObject) -> Result<u64, WriteError> {
        let (namespace, name) = raw.place()?;
        let collection = self
            .collection(key)
            .ok_or_else(|| WriteError::UnknownResource(key.plural.clone()))?;
        let previous = collection.object(&object_key(&namespace, &name)).cloned();
        let sequence = self.sequence_of(&raw.object);
        let uid = metadata_string(&raw.object, "uid").unwrap_or_default();
        let labels = raw.labels();
        let stored = Arc::new(Stored::new(
            (namespace, name),
            uid,
            labels,
            sequence,
            (raw.object, raw.item_from),
        ));
        let change = if previous.is_some() {
            Change::Modified
        } else {
            Change::Added
        };
        let version = self.versions.text(sequence);
        self.commit(key, Event::new(sequence, version, change, stored, previous));
        Ok(sequence)
    }

    /// Deletes an object; the watch line carries `tombstone` as it is, or the object with the version of the deletion.
    pub(crate) fn delete_raw(
        &mut self,
        key: &ResourceKey,
        (namespace, name): (&str, &str),
        tombstone: Option<Bytes>,
    ) -> Result<u64, WriteError> {
        let collection = self
            .collection(key)
            .ok_or_else(|| WriteError::UnknownResource(key.plural.clone()))?;
        let previous = collection
            .object(&object_key(namespace, name))
            .cloned()
            .ok_or_else(|| WriteError::not_found(&collection.resource, name))?;
        let sequence = match &tombstone {
            Some(tombstone) => self.sequence_of(tombstone),
            None => self.versions.next(),
        };
        let version = self.versions.text(sequence);
        let object = tombstone.unwrap_or_else(|| with_resource_version(&previous.object, &version));
        let last = Stored::new(
            (namespace.to_owned(), name.to_owned()),
            previous.uid.clone(),
            previous.labels.clone(),
            sequence,
            (object, previous.item_from),
        );
        self.commit(
            key,
            Event::new(sequence, version, Change::Deleted, Arc::new(last), Some(previous)),
        );
        Ok(sequence)
    }

    /// The number of the change that brings this text, which may have a version of its own.
    fn sequence_of(&mut self, object: &[u8]) -> u64 {
        let next = self.versions.next();
        let Some(text) = metadata_string(object, "resourceVersion").filter(|text| !text.is_empty()) else {
            return next;
        };
        if let Ok(own) = self.versions.parse(&text)
            && own <= LARGEST_OWN_VERSION
        {
            return own.max(next);
        }
        self.versions.alias(next, &text);
        next
    }
}
