//! States of a collection, now or at an earlier version, in pages.

use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use super::{Collection, event::Filter, event::Stored};

/// Which part of a state is wanted.
#[derive(Debug)]
pub(crate) struct PageRequest<'a> {
    pub(crate) filter: &'a Filter,
    /// The version of the state; `None` for the newest.
    pub(crate) at: Option<u64>,
    /// Objects from this key on; empty for all.
    pub(crate) from: &'a str,
    /// The most objects; 0 for all.
    pub(crate) limit: usize,
}

/// A part of a state.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) items: Vec<Arc<Stored>>,
    /// The key of the last item, where more follow.
    pub(crate) more_after: Option<String>,
    /// How many follow.
    pub(crate) remaining: usize,
}

impl Collection {
    /// A page of the state at the wanted version, which must be within the log.
    pub(crate) fn page(&self, request: &PageRequest<'_>) -> Page {
        let at_version = request.at.map(|version| self.state_at(version));
        let objects = at_version.as_ref().unwrap_or(&self.objects);
        let mut page = Page {
            items: Vec::new(),
            more_after: None,
            remaining: 0,
        };
        let from = (Bound::Included(request.from.to_owned()), Bound::Unbounded);
        for object in objects
            .range(from)
            .map(|(_, object)| object)
            .filter(|object| request.filter.matches(object))
        {
            if request.limit > 0 && page.items.len() == request.limit {
                page.more_after = page.items.last().map(|last| last.key());
                page.remaining += 1;
            } else {
                page.items.push(Arc::clone(object));
            }
        }
        page
    }

    /// The objects as they were, by undoing what came later.
    fn state_at(&self, version: u64) -> BTreeMap<String, Arc<Stored>> {
        let mut objects = self.objects.clone();
        for event in self.undo(version) {
            match &event.previous {
                Some(previous) => {
                    objects.insert(previous.key(), Arc::clone(previous));
                }
                None => {
                    objects.remove(&event.object.key());
                }
            }
        }
        objects
    }
}
