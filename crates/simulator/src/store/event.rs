//! One stored object, one change of it, and who gets to see it. Text is made once and shared.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;

use crate::{
    raw::with_resource_version,
    selector::{FieldSelector, LabelSelector},
};

/// An object at one version.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) labels: BTreeMap<String, String>,
    /// The change that made it.
    pub(crate) sequence: u64,
    /// As WATCH sends it.
    pub(crate) object: Bytes,
    /// Where the part begins that follows `{` in a list; 0 where the item is the object itself.
    pub(crate) item_from: usize,
    added: OnceLock<Bytes>,
}

impl Stored {
    pub(crate) fn new(
        (namespace, name): (String, String),
        uid: String,
        labels: BTreeMap<String, String>,
        sequence: u64,
        (object, item_from): (Bytes, usize),
    ) -> Self {
        Self {
            namespace,
            name,
            uid,
            labels,
            sequence,
            object,
            item_from,
            added: OnceLock::new(),
        }
    }

    /// `namespace/name`, or the name alone: etcd's order of keys is the order of a list.
    pub(crate) fn key(&self) -> String {
        object_key(&self.namespace, &self.name)
    }

    /// The line of an `ADDED` event.
    pub(crate) fn added_line(&self) -> Bytes {
        self.added.get_or_init(|| line("ADDED", &self.object)).clone()
    }

    /// Appends the object as an item of a list.
    pub(crate) fn write_item(&self, out: &mut Vec<u8>) {
        if self.item_from == 0 {
            out.extend_from_slice(&self.object);
        } else {
            out.push(b'{');
            out.extend_from_slice(self.object.get(self.item_from..).unwrap_or_default());
        }
    }
}

/// The key of an object within its collection.
pub(crate) fn object_key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}/{name}")
    }
}

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Added,
    Modified,
    Deleted,
}

/// One change, with the state before it.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) sequence: u64,
    pub(crate) change: Change,
    /// The new state; for a deletion the last one, at the deletion's version.
    pub(crate) object: Arc<Stored>,
    pub(crate) previous: Option<Arc<Stored>>,
    /// How the change's version is written.
    version: String,
    line: Bytes,
    left: OnceLock<Bytes>,
}

impl Event {
    pub(crate) fn new(
        sequence: u64,
        version: String,
        change: Change,
        object: Arc<Stored>,
        previous: Option<Arc<Stored>>,
    ) -> Self {
        let line = match change {
            Change::Added => object.added_line(),
            Change::Modified => line("MODIFIED", &object.object),
            Change::Deleted => line("DELETED", &object.object),
        };
        Self {
            sequence,
            change,
            object,
            previous,
            version,
            line,
            left: OnceLock::new(),
        }
    }

    /// The line for a watch with this filter, if it gets one. An object that begins to match is `ADDED`, and one that
    /// ceases to is `DELETED` as it was before, at the version of the change
    /// (<https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes>).
    pub(crate) fn line_for(&self, filter: &Filter) -> Option<Bytes> {
        let now = self.change != Change::Deleted && filter.matches(&self.object);
        let before = self
            .previous
            .as_deref()
            .filter(|previous| filter.matches(previous));
        match (before, now) {
            (None, false) => None,
            (None, true) => Some(self.object.added_line()),
            (Some(_), true) => Some(self.line.clone()),
            (Some(previous), false) => match self.change {
                Change::Deleted => Some(self.line.clone()),
                Change::Added | Change::Modified => Some(
                    self.left
                        .get_or_init(|| {
                            line("DELETED", &with_resource_version(&previous.object, &self.version))
                        })
                        .clone(),
                ),
            },
        }
    }
}

fn line(kind: &str, object: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(object.len() + 32);
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    out.extend_from_slice(object);
    out.extend_from_slice(b"}\n");
    out.into()
}

/// What a request asks for within a collection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Filter {
    /// The namespace, or all of them.
    pub(crate) namespace: Option<String>,
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
}

impl Filter {
    pub(crate) fn matches(&self, object: &Stored) -> bool {
        self.namespace
            .as_ref()
            .is_none_or(|namespace| *namespace == object.namespace)
            && self.fields.matches(&object.namespace, &object.name)
            && self.labels.matches(&object.labels)
    }
}
