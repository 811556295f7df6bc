//! Watches that are open: their registry and the commands that reach them.

mod lines;
mod script;

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::mpsc;

use crate::{
    faults::{RequestMatch, StreamAction},
    request::ReceivedRequest,
};

pub(crate) use lines::{BrokenOff, WatchLines, WatchStart};

/// What the host tells an open watch.
#[derive(Debug, Clone)]
pub(crate) struct WatchCommand {
    /// All changes up to here are sent first.
    pub(crate) after: u64,
    pub(crate) what: WatchOrder,
}

#[derive(Debug, Clone)]
pub(crate) enum WatchOrder {
    Do(StreamAction),
    Bookmark,
}

/// The watches that are open.
#[derive(Debug, Default)]
pub(crate) struct OpenWatches {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    opened: u64,
    open: BTreeMap<u64, OpenWatch>,
}

#[derive(Debug)]
struct OpenWatch {
    request: ReceivedRequest,
    commands: mpsc::UnboundedSender<WatchCommand>,
}

impl OpenWatches {
    pub(crate) fn open(&self, request: &ReceivedRequest) -> (u64, mpsc::UnboundedReceiver<WatchCommand>) {
        let (commands, receiver) = mpsc::unbounded_channel();
        let mut state = self.state();
        state.opened += 1;
        let id = state.opened;
        state.open.insert(
            id,
            OpenWatch {
                request: request.clone(),
                commands,
            },
        );
        (id, receiver)
    }

    pub(crate) fn close(&self, id: u64) {
        self.state().open.remove(&id);
    }

    /// Tells the watches whose request matches. Returns how many.
    pub(crate) fn command(&self, wanted: &RequestMatch, command: &WatchCommand) -> usize {
        self.state()
            .open
            .values()
            .filter(|watch| wanted.matches(&watch.request) && watch.commands.send(command.clone()).is_ok())
            .count()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
