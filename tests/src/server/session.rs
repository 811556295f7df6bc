//! One session of the model server: what is still to be sent on it.

use std::collections::VecDeque;

use krm_stream_protocol::{Object, SessionEnd, WatchEvent};

use super::FeedView;
use crate::scripted::{OpenRequest, ScriptedSession};

/// A session and its queue.
#[derive(Debug)]
pub(super) struct ServedSession {
    feed: Option<tokio::task::Id>,
    state: State,
    queue: VecDeque<Item>,
    /// How many more items are sent before it is cut.
    left: Option<usize>,
}

#[derive(Debug)]
enum State {
    Open(ScriptedSession),
    /// The request is never answered.
    Hanging(OpenRequest),
    /// It was cut.
    Over,
}

/// One thing to send.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// An object of the snapshot, or a change that the feed has not seen.
    New(WatchEvent),
    /// A change that it has seen.
    Old(WatchEvent),
    Bookmark(u64),
    RestartSnapshot,
    Boundary(u64),
}

impl ServedSession {
    pub(super) fn fresh(request: OpenRequest, listed: Vec<Object>, version: u64) -> Self {
        let mut session = Self::resumed(request);
        session.queue_list(listed, version);
        session
    }

    pub(super) fn resumed(request: OpenRequest) -> Self {
        Self {
            feed: request.feed,
            state: State::Open(request.accept()),
            queue: VecDeque::new(),
            left: None,
        }
    }

    pub(super) fn hanging(request: OpenRequest) -> Self {
        Self {
            feed: request.feed,
            state: State::Hanging(request),
            queue: VecDeque::new(),
            left: None,
        }
    }

    pub(super) fn feed(&self) -> Option<tokio::task::Id> {
        self.feed
    }

    fn queue_list(&mut self, listed: Vec<Object>, version: u64) {
        self.queue.extend(
            listed
                .into_iter()
                .map(|object| Item::New(WatchEvent::Added(object))),
        );
        self.queue.push_back(Item::Boundary(version));
    }

    /// The session ends once so many items were sent.
    pub(super) fn cut_after(&mut self, items: usize) {
        self.left = Some(items);
    }

    /// The list is read twice; `ghost` is in the first reading only.
    pub(super) fn read_twice(&mut self, ghost: Object, listed: Vec<Object>, version: u64) {
        self.queue.pop_back();
        self.queue.push_back(Item::New(WatchEvent::Added(ghost)));
        self.queue.push_back(Item::RestartSnapshot);
        self.queue_list(listed, version);
    }

    /// The list that is under way begins again, as of this version; the changes up to it are in it.
    pub(super) fn list_again(&mut self, listed: Vec<Object>, version: u64) {
        self.queue.clear();
        self.queue.push_back(Item::RestartSnapshot);
        self.queue_list(listed, version);
    }

    pub(super) fn is_in_snapshot(&self) -> bool {
        self.queue.iter().any(|item| matches!(item, Item::Boundary(_)))
    }

    pub(super) fn is_hanging(&self) -> bool {
        matches!(self.state, State::Hanging(_))
    }

    pub(super) fn queue(&mut self, item: Item) {
        self.queue.push_back(item);
    }

    /// Sends up to `items` of what is queued, and notes it.
    pub(super) fn send(&mut self, items: usize, mut view: Option<&mut FeedView>) {
        for _ in 0..items {
            if self.left == Some(0) {
                return self.cut();
            }
            let State::Open(session) = &mut self.state else {
                return;
            };
            let Some(item) = self.queue.pop_front() else {
                return;
            };
            if let Some(view) = &mut view {
                note(view, &item);
            }
            match item {
                Item::New(event) | Item::Old(event) => session.send(event),
                Item::Bookmark(version) => session.bookmark(&version.to_string(), false),
                Item::Boundary(version) => session.boundary(&version.to_string()),
                Item::RestartSnapshot => session.send(WatchEvent::SnapshotRestarted),
            }
            self.left = self.left.map(|left| left - 1);
        }
    }

    fn cut(&mut self) {
        if let State::Open(session) = std::mem::replace(&mut self.state, State::Over) {
            session.end(SessionEnd::Closed);
        }
    }

    /// Ends the session; a request that hangs goes on hanging until it is given up.
    pub(super) fn end(self, end: SessionEnd) {
        match self.state {
            State::Open(session) => session.end(end),
            State::Hanging(request) => request.refuse(unanswered()),
            State::Over => {}
        }
    }

    /// Sends a last event.
    pub(super) fn end_with(self, event: WatchEvent) {
        match self.state {
            State::Open(mut session) => session.send(event),
            State::Hanging(request) => request.refuse(unanswered()),
            State::Over => {}
        }
    }

    /// Whether the gateway has given it up, or it is over.
    pub(super) fn is_dropped(&self) -> bool {
        match &self.state {
            State::Open(session) => session.is_dropped(),
            State::Hanging(request) => request.is_cancelled(),
            State::Over => true,
        }
    }
}

fn unanswered() -> krm_stream_protocol::UpstreamError {
    krm_stream_protocol::UpstreamError::new(krm_stream_protocol::UpstreamErrorKind::Unavailable)
}

fn note(view: &mut FeedView, item: &Item) {
    match item {
        Item::New(event) => view.take(event),
        Item::Boundary(_) => view.reach_boundary(),
        Item::RestartSnapshot => view.restart_snapshot(),
        Item::Old(_) | Item::Bookmark(_) => {}
    }
}
