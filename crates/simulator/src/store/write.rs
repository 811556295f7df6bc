//! Create, update, patch and delete, as the generic registry of an API server does them.

mod error;
mod fields;

use std::{sync::Arc, time::SystemTime};

use serde_json::{Value, json};

use crate::{
    merge_patch::merge,
    object::{encode, labels, metadata_mut, metadata_text},
    resource::{Resource, ResourceKey},
    time::rfc3339,
};

use super::{
    Store,
    event::{Change, Event, Stored, object_key},
};

pub use error::WriteError;

use fields::{
    Object, bump_generation, complete, desired_state_differs, has_finalizers, into_object,
    keep_server_fields, settle_namespace,
};

/// Who writes. A request gets what the API server would make of it; the host of the simulator may also set `status`,
/// `uid` and time stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Request,
    Host,
}

/// The circumstances of a write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writing {
    pub(crate) now: SystemTime,
    pub(crate) origin: Origin,
}

/// The object that is written, and through which subresource.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) key: &'a ResourceKey,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    /// Whether it is the `status` subresource.
    pub(crate) status: bool,
}

/// What must hold of an object that is to be deleted; empty for no condition.
#[derive(Debug, Clone, Default)]
pub(crate) struct Preconditions {
    pub(crate) uid: String,
    pub(crate) resource_version: String,
}

impl Store {
    /// Creates an object in `namespace`, which is empty for one that names its own.
    pub(crate) fn create(
        &mut self,
        key: &ResourceKey,
        namespace: &str,
        value: Value,
        writing: Writing,
    ) -> Result<Arc<Stored>, WriteError> {
        let resource = self.resource(key)?;
        let mut object = into_object(&resource, value)?;
        let namespace = settle_namespace(&resource, &mut object, namespace)?;
        let name = self.settle_name(&resource, &mut object)?;
        let collection = self
            .collection(key)
            .ok_or_else(|| WriteError::UnknownResource(key.plural.clone()))?;
        if collection.object(&object_key(&namespace, &name)).is_some() {
            return Err(WriteError::AlreadyExists {
                qualified_resource: resource.qualified_name(),
                name,
            });
        }
        if writing.origin == Origin::Request && resource.status {
            object.retain(|key, _| key != "status");
        }
        complete(&resource, &mut object, writing.now);
        let uid = self.uids.uid();
        let metadata = metadata_mut(&mut object);
        let by_host = |key: &str| {
            writing.origin == Origin::Host && metadata.get(key).is_some_and(|value| !value.is_null())
        };
        let (keep_uid, keep_time, keep_generation) = (
            by_host("uid"),
            by_host("creationTimestamp"),
            by_host("generation"),
        );
        if !keep_uid {
            metadata.insert("uid".to_owned(), Value::String(uid));
        }
        if !keep_time {
            metadata.insert(
                "creationTimestamp".to_owned(),
                Value::String(rfc3339(writing.now)),
            );
        }
        if resource.generation && !keep_generation {
            metadata.insert("generation".to_owned(), json!(1));
        }
        metadata.retain(|key, _| {
            key != "deletionTimestamp" && key != "deletionGracePeriodSeconds" && key != "selfLink"
        });
        Ok(self.commit_object(&resource, key, object, None))
    }

    /// Replaces an object.
    pub(crate) fn update(
        &mut self,
        target: Target<'_>,
        value: Value,
        writing: Writing,
    ) -> Result<Arc<Stored>, WriteError> {
        let resource = self.resource(target.key)?;
        let existing = self.existing(&resource, target)?;
        let mut object = into_object(&resource, value)?;
        settle_namespace(&resource, &mut object, target.namespace)?;
        let name = metadata_text(&object, "name");
        if !name.is_empty() && name != target.name {
            let problem = format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                target.name
            );
            return Err(WriteError::BadRequest(problem));
        }
        self.replace(&resource, target, &existing, object, writing)
    }

    /// Merges a patch into an object (RFC 7386).
    pub(crate) fn patch(
        &mut self,
        target: Target<'_>,
        patch: &Value,
        writing: Writing,
    ) -> Result<Arc<Stored>, WriteError> {
        let resource = self.resource(target.key)?;
        if !patch.is_object() {
            return Err(WriteError::BadRequest(
                "a merge patch must be an object".to_owned(),
            ));
        }
        let existing = self.existing(&resource, target)?;
        let mut value = Value::Object(read(&existing)?);
        merge(&mut value, patch);
        let object = into_object(&resource, value)?;
        if metadata_text(&object, "name") != target.name {
            return Err(WriteError::Invalid(
                "metadata.name: Invalid value: field is immutable".to_owned(),
            ));
        }
        self.replace(&resource, target, &existing, object, writing)
    }

    /// Creates an object, or makes the existing one like it.
    pub(crate) fn apply(
        &mut self,
        key: &ResourceKey,
        value: Value,
        writing: Writing,
    ) -> Result<Arc<Stored>, WriteError> {
        let resource = self.resource(key)?;
        let mut object = into_object(&resource, value)?;
        let namespace = settle_namespace(&resource, &mut object, "")?;
        let name = metadata_text(&object, "name").to_owned();
        let target = Target {
            key,
            namespace: &namespace,
            name: &name,
            status: false,
        };
        match self.existing(&resource, target) {
            Ok(existing) => self.replace(&resource, target, &existing, object, writing),
            Err(_) => self.create(key, &namespace, Value::Object(object), writing),
        }
    }

    /// Deletes an object; with finalizers it is only marked.
    pub(crate) fn delete(
        &mut self,
        target: Target<'_>,
        preconditions: &Preconditions,
        writing: Writing,
    ) -> Result<Deleted, WriteError> {
        let resource = self.resource(target.key)?;
        let existing = self.existing(&resource, target)?;
        let version = self.versions.text(existing.sequence);
        for (field, wanted, found) in [
            ("UID", &preconditions.uid, &existing.uid),
            ("ResourceVersion", &preconditions.resource_version, &version),
        ] {
            if !wanted.is_empty() && wanted != found {
                let problem = format!(
                    "Precondition failed: {field} in precondition: {wanted}, {field} in object meta: {found}"
                );
                return Err(WriteError::conflict(&resource, target.name, problem));
            }
        }
        if let Ok(mut object) = read(&existing)
            && has_finalizers(&object)
        {
            if metadata_text(&object, "deletionTimestamp").is_empty() {
                let metadata = metadata_mut(&mut object);
                metadata.insert(
                    "deletionTimestamp".to_owned(),
                    Value::String(rfc3339(writing.now)),
                );
                metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(0));
                bump_generation(&resource, metadata);
                return Ok(Deleted::Marked(self.commit_object(
                    &resource,
                    target.key,
                    object,
                    Some(existing),
                )));
            }
            return Ok(Deleted::Marked(existing));
        }
        self.delete_raw(target.key, (target.namespace, target.name), None)?;
        Ok(Deleted::Gone(existing))
    }

    fn resource(&self, key: &ResourceKey) -> Result<Resource, WriteError> {
        self.collection(key)
            .map(|collection| collection.resource.clone())
            .ok_or_else(|| WriteError::UnknownResource(key.plural.clone()))
    }

    fn existing(&self, resource: &Resource, target: Target<'_>) -> Result<Arc<Stored>, WriteError> {
        self.collection(target.key)
            .and_then(|collection| collection.object(&object_key(target.namespace, target.name)))
            .cloned()
            .ok_or_else(|| WriteError::not_found(resource, target.name))
    }

    fn settle_name(&mut self, resource: &Resource, object: &mut Object) -> Result<String, WriteError> {
        let name = metadata_text(object, "name").to_owned();
        let prefix = metadata_text(object, "generateName").to_owned();
        let name = if name.is_empty() && !prefix.is_empty() {
            let name = prefix + &self.uids.suffix();
            metadata_mut(object).insert("name".to_owned(), Value::String(name.clone()));
            name
        } else {
            name
        };
        let invalid = |problem: &str| {
            let kind = if resource.group().is_empty() {
                resource.kind().to_owned()
            } else {
                format!("{}.{}", resource.kind(), resource.group())
            };
            Err(WriteError::Invalid(format!(
                "{kind} {name:?} is invalid: metadata.name: {problem}"
            )))
        };
        if name.is_empty() {
            return invalid("Required value: name or generateName is required");
        }
        // `k8s.io/apimachinery/pkg/api/validation/path`: what cannot be a path segment cannot be a name.
        if name == "." || name == ".." || name.contains(['/', '%']) {
            return invalid("Invalid value: may not be '.' or '..', or contain '/' or '%'");
        }
        Ok(name)
    }

    /// Puts `object` in the place of `existing`, where it may.
    fn replace(
        &mut self,
        resource: &Resource,
        target: Target<'_>,
        existing: &Arc<Stored>,
        mut object: Object,
        writing: Writing,
    ) -> Result<Arc<Stored>, WriteError> {
        let version = metadata_text(&object, "resourceVersion");
        if !version.is_empty()
            && version != self.versions.text(existing.sequence)
            && writing.origin == Origin::Request
        {
            let problem =
                "the object has been modified; please apply your changes to the latest version and try again";
            return Err(WriteError::conflict(resource, target.name, problem));
        }
        let uid = metadata_text(&object, "uid");
        if !uid.is_empty() && uid != existing.uid {
            let problem = format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                existing.uid
            );
            return Err(WriteError::conflict(resource, target.name, problem));
        }
        let before = read(existing)?;
        if target.status {
            let status = object.get("status").cloned();
            object.clone_from(&before);
            match status {
                Some(status) => object.insert("status".to_owned(), status),
                None => object.insert("status".to_owned(), json!({})),
            };
        } else {
            // Asked before the object is completed, which puts an empty status where there is none.
            let kept_by_host = writing.origin == Origin::Host && object.contains_key("status");
            complete(resource, &mut object, writing.now);
            if resource.status && !kept_by_host {
                object.retain(|key, _| key != "status");
                if let Some(status) = before.get("status") {
                    object.insert("status".to_owned(), status.clone());
                }
            }
        }
        keep_server_fields(&before, &mut object, existing);
        if object == before {
            return Ok(Arc::clone(existing));
        }
        if !target.status && desired_state_differs(resource, &before, &object) {
            bump_generation(resource, metadata_mut(&mut object));
        }
        let finished = !metadata_text(&object, "deletionTimestamp").is_empty() && !has_finalizers(&object);
        let stored = self.commit_object(resource, target.key, object, Some(Arc::clone(existing)));
        if finished {
            self.delete_raw(target.key, (target.namespace, target.name), None)?;
        }
        Ok(stored)
    }

    /// Stamps, writes and commits an object.
    fn commit_object(
        &mut self,
        resource: &Resource,
        key: &ResourceKey,
        mut object: Object,
        previous: Option<Arc<Stored>>,
    ) -> Arc<Stored> {
        let sequence = self.versions.next();
        let version = self.versions.text(sequence);
        metadata_mut(&mut object).insert("resourceVersion".to_owned(), Value::String(version.clone()));
        let place = (
            metadata_text(&object, "namespace").to_owned(),
            metadata_text(&object, "name").to_owned(),
        );
        let (uid, labels) = (metadata_text(&object, "uid").to_owned(), labels(&object));
        let encoded = encode(resource, object);
        let text = (encoded.object, encoded.item_from);
        let stored = Arc::new(Stored::new(place, uid, labels, sequence, text));
        let change = if previous.is_some() {
            Change::Modified
        } else {
            Change::Added
        };
        self.commit(
            key,
            Event::new(sequence, version, change, Arc::clone(&stored), previous),
        );
        stored
    }
}

/// What a deletion did.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// The object is gone.
    Gone(Arc<Stored>),
    /// It waits for its finalizers.
    Marked(Arc<Stored>),
}

/// The members of a stored object.
fn read(stored: &Stored) -> Result<Object, WriteError> {
    serde_json::from_slice(&stored.object).map_err(|_| WriteError::Opaque(stored.name.clone()))
}
