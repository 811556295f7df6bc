//! How far a feed has come: the version that a new session would resume after.

use std::cmp;

use crate::{Ordering, ResourceVersion, Start};

/// The greatest version that the API server sent on an event or bookmark, under one rule of ordering.
#[derive(Debug)]
pub(super) struct Cursor {
    ordering: Ordering,
    version: Option<ResourceVersion>,
}

impl Cursor {
    pub(super) const fn new(ordering: Ordering) -> Self {
        Self {
            ordering,
            version: None,
        }
    }

    pub(super) const fn version(&self) -> Option<&ResourceVersion> {
        self.version.as_ref()
    }

    /// Whether a strict feed ends at this version. An object without one is an object with one that does not order.
    pub(super) fn refuses(&self, version: &ResourceVersion) -> bool {
        self.ordering == Ordering::Strict && !version.is_orderable()
    }

    /// Whether a resumed session has sent this before.
    pub(super) fn is_replay(&self, version: &ResourceVersion) -> bool {
        self.ordering == Ordering::Strict
            && self
                .version
                .as_ref()
                .is_some_and(|cursor| !version.is_after(cursor))
    }

    /// After a list the cursor starts at the [list's own version][list], whatever the items' are.
    ///
    /// [list]: https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
    pub(super) fn start_at(&mut self, version: Option<&ResourceVersion>) {
        self.version = version.filter(|version| names_a_state(version)).cloned();
    }

    /// Moves up. Where two versions do not compare the later one to arrive is taken.
    pub(super) fn advance(&mut self, version: &ResourceVersion) {
        let keeps = self.version.as_ref().is_some_and(|cursor| {
            cursor
                .compare(version)
                .is_some_and(|ordering| ordering != cmp::Ordering::Less)
        });
        if !keeps && names_a_state(version) {
            self.version = Some(version.clone());
        }
    }

    pub(super) fn forget(&mut self) {
        self.version = None;
    }

    /// From here if there is a version, else with a snapshot.
    pub(super) fn resume(&self) -> Start {
        self.version.clone().map_or(Start::Fresh, Start::After)
    }
}

/// Whether a watch after this version tells all that follows. The empty version and `0` mean whatever the API server
/// [has at hand][watch]: what was deleted until then would never be told.
///
/// [watch]: https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-watch
fn names_a_state(version: &ResourceVersion) -> bool {
    !matches!(version.as_str(), "" | "0")
}
