//! What the host tells watches that are open.

use bytes::Bytes;

use crate::{
    faults::{Ending, RequestMatch, StreamAction},
    watch::{WatchCommand, WatchOrder},
};

use super::Simulator;

impl Simulator {
    /// Sends a bookmark at the current version to all open watches, whether or not they asked for bookmarks. Returns to
    /// how many.
    pub fn send_bookmark_now(&self) -> usize {
        self.command(&RequestMatch::any(), WatchOrder::Bookmark)
    }

    /// Sends bytes into the open watches whose request matches, after all changes so far; whatever they are, and with
    /// nothing added: a line needs its line end. Returns into how many.
    pub fn inject(&self, watches: &RequestMatch, bytes: impl Into<Bytes>) -> usize {
        self.command(watches, WatchOrder::Do(StreamAction::Send(bytes.into())))
    }

    /// Ends the open watches whose request matches, after all changes so far. Returns how many.
    pub fn end_watches(&self, watches: &RequestMatch, ending: Ending) -> usize {
        self.command(watches, WatchOrder::Do(StreamAction::End(ending)))
    }

    /// Makes the open watches whose request matches do something, after all changes so far. Returns how many.
    pub fn order(&self, watches: &RequestMatch, action: StreamAction) -> usize {
        self.command(watches, WatchOrder::Do(action))
    }

    /// Ends all open watches as their timeout would.
    pub fn close_watches(&self) -> usize {
        self.end_watches(&RequestMatch::any(), Ending::Close)
    }

    fn command(&self, watches: &RequestMatch, what: WatchOrder) -> usize {
        let after = self.shared.store().versions.current();
        self.shared
            .watches
            .command(watches, &WatchCommand { after, what })
    }
}
