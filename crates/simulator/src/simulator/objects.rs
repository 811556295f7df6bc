//! The objects of a simulator, as its host reads and changes them.

use bytes::Bytes;
use serde_json::Value;

use crate::{
    resource::{Resource, ResourceKey},
    store::{Collection, Origin, Preconditions, RawObject, Target, WriteError, object_key},
};

use super::Simulator;

impl Simulator {
    /// Serves a resource from now on; one that is served already keeps its objects.
    pub fn register(&self, resource: Resource) {
        self.shared.store().register(resource);
    }

    /// Stops serving a resource: its objects are gone, its watches end, requests for it get 404. Returns whether it was
    /// served.
    pub fn unregister(&self, resource: &str) -> bool {
        let mut store = self.shared.store();
        store.named(resource).is_some_and(|key| store.unregister(&key))
    }

    /// Creates an object of `resource` (`configmaps`, `deployments.apps`) in the namespace that it names, and returns it
    /// as it is stored. `uid`, `creationTimestamp`, `generation` and `status` are kept if they are given.
    ///
    /// # Errors
    ///
    /// If the resource is not served, or the object exists or is not acceptable.
    pub fn create(&self, resource: &str, object: Value) -> Result<Value, WriteError> {
        let key = self.key(resource)?;
        let stored = self
            .shared
            .store()
            .create(&key, "", object, self.shared.writing(Origin::Host))?;
        read(&stored.object)
    }

    /// Creates an object, or makes the existing one like it. One that is like it already is left alone. The `status`
    /// of the existing one stays unless another is given.
    ///
    /// # Errors
    ///
    /// If the resource is not served, or the object is not acceptable.
    pub fn apply(&self, resource: &str, object: Value) -> Result<Value, WriteError> {
        let key = self.key(resource)?;
        let stored = self
            .shared
            .store()
            .apply(&key, object, self.shared.writing(Origin::Host))?;
        read(&stored.object)
    }

    /// Merges a patch into an object, `status` excepted where that is a subresource. `namespace` is empty for a
    /// cluster-scoped object.
    ///
    /// # Errors
    ///
    /// If there is no such resource or object, or the result is not acceptable.
    pub fn patch(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Value, WriteError> {
        self.merge(resource, (namespace, name), patch, false)
    }

    /// Merges a patch into an object's `status`: `{"status":{…}}`.
    ///
    /// # Errors
    ///
    /// If there is no such resource or object.
    pub fn patch_status(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Value, WriteError> {
        self.merge(resource, (namespace, name), patch, true)
    }

    /// Deletes an object; one with finalizers is only marked.
    ///
    /// # Errors
    ///
    /// If there is no such resource or object.
    pub fn delete(&self, resource: &str, namespace: &str, name: &str) -> Result<(), WriteError> {
        let key = self.key(resource)?;
        let target = Target {
            key: &key,
            namespace,
            name,
            status: false,
        };
        let writing = self.shared.writing(Origin::Host);
        self.shared
            .store()
            .delete(target, &Preconditions::default(), writing)?;
        Ok(())
    }

    /// Deletes an object; the watch line carries exactly `tombstone` as its object.
    ///
    /// # Errors
    ///
    /// If there is no such resource or object.
    pub fn delete_raw(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        tombstone: impl Into<Bytes>,
    ) -> Result<(), WriteError> {
        let key = self.key(resource)?;
        self.shared
            .store()
            .delete_raw(&key, (namespace, name), Some(tombstone.into()))?;
        Ok(())
    }

    /// Puts an object in whose text is sent as it is; in the place of the one that lives there.
    ///
    /// # Errors
    ///
    /// If the resource is not served, or the object's place is neither given nor in its text.
    pub fn put_raw(&self, resource: &str, object: RawObject) -> Result<(), WriteError> {
        let key = self.key(resource)?;
        self.shared.store().put_raw(&key, object)?;
        Ok(())
    }

    /// An object as WATCH sends it.
    pub fn get_raw(&self, resource: &str, namespace: &str, name: &str) -> Option<Bytes> {
        let key = self.key(resource).ok()?;
        let place = object_key(namespace, name);
        self.shared
            .store()
            .collection(&key)?
            .object(&place)
            .map(|stored| stored.object.clone())
    }

    /// An object; `None` if there is none, or if its raw text cannot be read.
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        serde_json::from_slice(&self.get_raw(resource, namespace, name)?).ok()
    }

    /// All objects of a resource as WATCH sends them, in the order of a list.
    pub fn objects(&self, resource: &str) -> Vec<Bytes> {
        let Ok(key) = self.key(resource) else {
            return Vec::new();
        };
        let store = self.shared.store();
        let collection = store.collection(&key).into_iter();
        collection
            .flat_map(Collection::objects)
            .map(|stored| stored.object.clone())
            .collect()
    }

    /// The current `resourceVersion`, as a list would tell it.
    pub fn resource_version(&self) -> String {
        let store = self.shared.store();
        store.versions.text(store.versions.current())
    }

    /// Raises the counter of versions to at least this one, as changes of other resources would.
    pub fn advance_resource_version(&self, version: u64) {
        self.shared.store().versions.advance_to(version);
    }

    /// Forgets the history: a watch from a version before now is answered with 410, and so is a page of a list that
    /// began before now. Open watches go on.
    pub fn compact(&self) {
        self.shared.store().compact();
    }

    fn key(&self, resource: &str) -> Result<ResourceKey, WriteError> {
        self.shared
            .store()
            .named(resource)
            .ok_or_else(|| WriteError::UnknownResource(resource.to_owned()))
    }

    fn merge(
        &self,
        resource: &str,
        (namespace, name): (&str, &str),
        patch: &Value,
        status: bool,
    ) -> Result<Value, WriteError> {
        let key = self.key(resource)?;
        let target = Target {
            key: &key,
            namespace,
            name,
            status,
        };
        let stored = self
            .shared
            .store()
            .patch(target, patch, self.shared.writing(Origin::Host))?;
        read(&stored.object)
    }
}

fn read(object: &[u8]) -> Result<Value, WriteError> {
    serde_json::from_slice(object).map_err(|error| WriteError::Opaque(error.to_string()))
}
