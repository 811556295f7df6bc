//! The objects of one resource, and the log of their changes.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use tokio::sync::watch;

use crate::resource::Resource;

use super::event::{Change, Event, Filter, Stored};

/// The objects and the log of one resource.
#[derive(Debug)]
pub(crate) struct Collection {
    pub(crate) resource: Resource,
    pub(super) objects: BTreeMap<String, Arc<Stored>>,
    log: VecDeque<Arc<Event>>,
    /// The newest change that is no longer in the log.
    trimmed: u64,
    head: watch::Sender<u64>,
}

/// What a watch has not been told yet.
#[derive(Debug)]
pub(crate) enum Backlog {
    /// Lines for it, and how far they reach.
    Lines(Vec<Bytes>, u64),
    /// The log no longer reaches back to where the watch is.
    Lost,
}

impl Collection {
    pub(super) fn new(resource: Resource) -> Self {
        Self {
            resource,
            objects: BTreeMap::new(),
            log: VecDeque::new(),
            trimmed: 0,
            head: watch::Sender::new(0),
        }
    }

    /// Tells of each change, and by its end that the resource is no longer served.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.head.subscribe()
    }

    pub(crate) fn object(&self, key: &str) -> Option<&Arc<Stored>> {
        self.objects.get(key)
    }

    pub(crate) fn objects(&self) -> impl Iterator<Item = &Arc<Stored>> {
        self.objects.values()
    }

    /// The newest change that is no longer in the log.
    pub(crate) fn trimmed(&self) -> u64 {
        self.trimmed
    }

    /// At most `limit` changes after `position`, as lines for this filter. `current` is the store's version.
    pub(crate) fn backlog(&self, position: u64, current: u64, filter: &Filter, limit: usize) -> Backlog {
        if position < self.trimmed {
            return Backlog::Lost;
        }
        let start = self.log.partition_point(|event| event.sequence <= position);
        let events = self.log.range(start..self.log.len().min(start + limit));
        let reached = if self.log.len() - start <= limit {
            current.max(position)
        } else {
            self.log
                .get(start + limit - 1)
                .map_or(position, |event| event.sequence)
        };
        Backlog::Lines(
            events.filter_map(|event| event.line_for(filter)).collect(),
            reached,
        )
    }

    /// The changes after `position`, newest first.
    pub(super) fn undo(&self, position: u64) -> impl Iterator<Item = &Arc<Event>> {
        self.log
            .iter()
            .rev()
            .take_while(move |event| event.sequence > position)
    }

    pub(super) fn append(&mut self, event: Arc<Event>, capacity: usize) {
        let key = event.object.key();
        match event.change {
            Change::Added | Change::Modified => {
                self.objects.insert(key, Arc::clone(&event.object));
            }
            Change::Deleted => {
                self.objects.remove(&key);
            }
        }
        let sequence = event.sequence;
        self.log.push_back(event);
        while self.log.len() > capacity {
            if let Some(oldest) = self.log.pop_front() {
                self.trimmed = oldest.sequence;
            }
        }
        self.head.send_replace(sequence);
    }
}
