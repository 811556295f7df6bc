//! Objects, their versions and the history that watches read: what etcd and the watch cache are to an API server.
//!
//! One counter numbers all changes. Each collection keeps its objects, and a bounded log of its changes with the
//! state before each, so that an older state can be told (pages of a list) and a watch can start in the past.

mod collection;
mod definition;
mod event;
mod raw_object;
mod snapshot;
mod version;
mod write;

use std::{collections::BTreeMap, sync::Arc};

pub(crate) use collection::{Backlog, Collection};
pub(crate) use event::{Filter, object_key};
pub use raw_object::RawObject;
pub(crate) use snapshot::{Page, PageRequest};
pub(crate) use version::Versions;
pub use write::WriteError;
pub(crate) use write::{Deleted, Origin, Preconditions, Target, Writing};

use crate::{
    draw::Draw,
    resource::{Resource, ResourceKey},
};

use self::event::Event;

/// Everything that is stored.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) versions: Versions,
    collections: BTreeMap<ResourceKey, Collection>,
    history: usize,
    uids: UidSource,
}

impl Store {
    pub(crate) fn new(resources: Vec<Resource>, first_version: u64, history: usize, seed: u64) -> Self {
        let mut store = Self {
            versions: Versions::new(first_version),
            collections: BTreeMap::new(),
            history,
            uids: UidSource {
                draw: Draw::new(seed),
            },
        };
        for resource in resources {
            store.register(resource);
        }
        store
    }

    /// Serves a resource; one that is served already keeps its objects.
    pub(crate) fn register(&mut self, resource: Resource) {
        let key = resource.key();
        if let Some(collection) = self.collections.get_mut(&key) {
            collection.resource = resource;
        } else {
            self.collections.insert(key, Collection::new(resource));
        }
    }

    /// Stops serving a resource; its objects are gone and its watches end.
    pub(crate) fn unregister(&mut self, key: &ResourceKey) -> bool {
        self.collections.remove(key).is_some()
    }

    /// All that is served.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.collections.values().map(|collection| &collection.resource)
    }

    pub(crate) fn collection(&self, key: &ResourceKey) -> Option<&Collection> {
        self.collections.get(key)
    }

    /// The resource that `plural` or `plural.group` names; the first version of it.
    pub(crate) fn named(&self, name: &str) -> Option<ResourceKey> {
        self.collections
            .iter()
            .find(|(_, collection)| collection.resource.qualified_name() == name)
            .map(|(key, _)| key.clone())
    }

    /// Forgets the history up to now: a watch or a page from before this moment is answered with 410.
    pub(crate) fn compact(&mut self) {
        self.versions.compact();
    }

    /// Numbers the change, and makes it the newest of its collection.
    fn commit(&mut self, key: &ResourceKey, event: Event) {
        let sequence = event.sequence;
        self.versions.advance_to(sequence);
        let capacity = self.history;
        let event = Arc::new(event);
        if let Some(collection) = self.collections.get_mut(key) {
            collection.append(Arc::clone(&event), capacity);
        }
        self.follow_definition(key, &event);
    }
}

/// Draws uids that look like those of Kubernetes, the same ones for the same seed.
#[derive(Debug)]
struct UidSource {
    draw: Draw,
}

impl UidSource {
    /// A version 4 UUID (<https://www.rfc-editor.org/rfc/rfc9562#section-5.4>).
    fn uid(&mut self) -> String {
        let high = (self.draw.number() & !0xf000) | 0x4000;
        let low = (self.draw.number() & !(0b11 << 62)) | (0b10 << 62);
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        )
    }

    /// The five characters that complete a `generateName`
    /// (<https://pkg.go.dev/k8s.io/apimachinery/pkg/util/rand#String>).
    fn suffix(&mut self) -> String {
        self.draw.letters(5)
    }
}

#[cfg(test)]
mod tests;
