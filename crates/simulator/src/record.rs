//! What was asked of the simulator: a log of requests, and counters.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

use crate::request::{ReceivedRequest, Verb};

/// The most requests that the log keeps; older ones are dropped, the counters go on.
const LOG_CAPACITY: usize = 10_000;

/// How many requests of each kind were received, and what is open now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Requests that list a collection; each page is one.
    pub list: u64,
    /// Requests that watch.
    pub watch: u64,
    /// Watches that are open now: their headers went out and their body has not ended.
    pub open_watches: u64,
    /// Requests that read one object.
    pub get: u64,
    /// Requests that create, reviews included.
    pub create: u64,
    /// Requests that replace.
    pub update: u64,
    /// Requests that patch.
    pub patch: u64,
    /// Requests that delete one object or a collection.
    pub delete: u64,
    /// Other requests.
    pub non_resource: u64,
    /// Connections that are open now.
    pub open_connections: u64,
    /// Connections that were ever accepted.
    pub connections: u64,
    /// Requests by path, without the query.
    pub by_path: BTreeMap<String, u64>,
}

#[derive(Debug)]
pub(crate) struct Record {
    state: Mutex<State>,
    changes: watch::Sender<()>,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            changes: watch::Sender::new(()),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    counts: Counts,
    log: VecDeque<ReceivedRequest>,
}

impl Record {
    pub(crate) fn received(&self, request: &ReceivedRequest) {
        let mut state = self.state();
        let counts = &mut state.counts;
        let counter = match request.verb() {
            Verb::Get => &mut counts.get,
            Verb::List => &mut counts.list,
            Verb::Watch => &mut counts.watch,
            Verb::Create => &mut counts.create,
            Verb::Update => &mut counts.update,
            Verb::Patch => &mut counts.patch,
            Verb::Delete | Verb::DeleteCollection => &mut counts.delete,
            Verb::NonResource => &mut counts.non_resource,
        };
        *counter += 1;
        *counts.by_path.entry(request.path().to_owned()).or_default() += 1;
        if state.log.len() == LOG_CAPACITY {
            state.log.pop_front();
        }
        state.log.push_back(request.clone());
        drop(state);
        self.changes.send_replace(());
    }

    pub(crate) fn connection_opened(&self) {
        let mut state = self.state();
        state.counts.connections += 1;
        state.counts.open_connections += 1;
        drop(state);
        self.changes.send_replace(());
    }

    pub(crate) fn connection_closed(&self) {
        self.state().counts.open_connections -= 1;
        self.changes.send_replace(());
    }

    pub(crate) fn watch_opened(&self) {
        self.state().counts.open_watches += 1;
        self.changes.send_replace(());
    }

    pub(crate) fn watch_closed(&self) {
        self.state().counts.open_watches -= 1;
        self.changes.send_replace(());
    }

    pub(crate) fn counts(&self) -> Counts {
        self.state().counts.clone()
    }

    /// Waits until the counts satisfy a condition.
    pub(crate) async fn until(&self, condition: impl Fn(&Counts) -> bool) -> Counts {
        let mut changes = self.changes.subscribe();
        loop {
            changes.mark_unchanged();
            let counts = self.counts();
            // The sender lives as long as `self`, so there is always another change to wait for.
            if condition(&counts) || changes.changed().await.is_err() {
                return counts;
            }
        }
    }

    pub(crate) fn log(&self) -> Vec<ReceivedRequest> {
        self.state().log.iter().cloned().collect()
    }

    pub(crate) fn clear_log(&self) {
        self.state().log.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
