//! The lines of one watch: initial events, their end, changes, bookmarks, and whatever it is told to do wrong.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};

use crate::{
    connection::ConnectionControl,
    encode::string,
    faults::{Bookmarks, Ending, Plan, StreamAction},
    resource::{Resource, ResourceKey, Style},
    shared::Shared,
    store::{Backlog, Filter},
};

use super::{
    WatchCommand, WatchOrder,
    script::{Progress, Script},
};

/// How many changes are taken from the log at once.
const BATCH: usize = 128;

/// A real API server sends a last bookmark so long before the watch's timeout
/// (`bookmarkFrequency` and `timeBucketWatchers` of `k8s.io/apiserver`'s cacher).
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// How a watch begins.
pub(crate) struct WatchStart {
    pub(crate) key: ResourceKey,
    pub(crate) resource: Resource,
    pub(crate) filter: Filter,
    /// Changes after this one are sent.
    pub(crate) position: u64,
    /// What is sent first.
    pub(crate) initial: Vec<Bytes>,
    /// Whether the end of the initial events is marked.
    pub(crate) boundary: bool,
    pub(crate) bookmarks: bool,
    pub(crate) timeout: Duration,
    pub(crate) changes: watch::Receiver<u64>,
}

/// The source of a watch's body.
pub(crate) struct WatchLines {
    shared: Arc<Shared>,
    control: Arc<ConnectionControl>,
    key: ResourceKey,
    resource: Resource,
    filter: Filter,
    position: u64,
    queue: VecDeque<Item>,
    changes: watch::Receiver<u64>,
    commands: mpsc::UnboundedReceiver<WatchCommand>,
    waiting_commands: VecDeque<WatchCommand>,
    script: Script,
    progress: Progress,
    next_line: NextLine,
    pace: Option<Duration>,
    state: State,
    opened: Instant,
    deadline: Instant,
    next_bookmark: Option<Instant>,
    id: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// It sends nothing until then.
    Waiting(Instant),
    /// It stays open and sends nothing.
    Silent,
    Ending(Ending),
    Ended,
}

/// What is to be sent.
#[derive(Debug)]
enum Item {
    Event(Bytes),
    Boundary(u64),
    Bookmark(u64),
}

/// What was ordered for the next line.
#[derive(Debug)]
enum NextLine {
    AsItIs,
    Cut(usize, Ending),
    CutWithinCharacter(Ending),
    Replace(Bytes),
    Skip,
}

/// The body broke off, as ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer was broken off on command")]
pub(crate) struct BrokenOff;

impl WatchLines {
    pub(crate) fn open(
        shared: Arc<Shared>,
        control: Arc<ConnectionControl>,
        (id, commands): (u64, mpsc::UnboundedReceiver<WatchCommand>),
        start: WatchStart,
        plan: &Plan,
    ) -> Self {
        shared.record.watch_opened();
        let opened = Instant::now();
        let deadline = opened + start.timeout;
        let mut queue: VecDeque<Item> = start.initial.into_iter().map(Item::Event).collect();
        if start.boundary && plan.bookmarks == Bookmarks::All {
            queue.push_back(Item::Boundary(start.position));
        }
        let mut lines = Self {
            shared,
            control,
            key: start.key,
            resource: start.resource,
            filter: start.filter,
            position: start.position,
            queue,
            changes: start.changes,
            commands,
            waiting_commands: VecDeque::new(),
            script: Script::new(plan.stream.clone()),
            progress: Progress::default(),
            next_line: NextLine::AsItIs,
            pace: None,
            state: State::Open,
            opened,
            deadline,
            next_bookmark: None,
            id,
        };
        if start.bookmarks && plan.bookmarks != Bookmarks::None {
            lines.next_bookmark = Some(lines.bookmark_after(opened));
        }
        lines
    }

    /// The next bytes; `None` at the end.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped: what was taken from the log waits in the queue.
    pub(crate) async fn next(&mut self) -> Option<Result<Bytes, BrokenOff>> {
        loop {
            match self.state {
                State::Open => {}
                State::Waiting(until) => {
                    sleep_until(until).await;
                    self.state = State::Open;
                    continue;
                }
                State::Silent => {
                    self.wait_in_silence().await;
                    continue;
                }
                State::Ending(ending) => return self.end(ending).await,
                State::Ended => return None,
            }
            self.progress.boundary_is_next = matches!(self.queue.front(), Some(Item::Boundary(_)));
            if let Some(action) = self.script.due(&self.progress, self.opened.elapsed()) {
                if let Some(bytes) = self.perform(action) {
                    return Some(Ok(bytes));
                }
                continue;
            }
            if let Some(item) = self.queue.pop_front() {
                if let Some(bytes) = self.line(&item) {
                    return Some(Ok(bytes));
                }
                continue;
            }
            self.refill();
            if !self.queue.is_empty() || self.state != State::Open {
                continue;
            }
            if let Some(command) = self
                .waiting_commands
                .pop_front_if(|command| command.after <= self.position)
            {
                match command.what {
                    WatchOrder::Bookmark => self.queue.push_back(Item::Bookmark(self.position)),
                    WatchOrder::Do(action) => {
                        if let Some(bytes) = self.perform(action) {
                            return Some(Ok(bytes));
                        }
                    }
                }
                continue;
            }
            self.wait().await;
        }
    }

    /// Waits for a change, a command, a bookmark's time, a step's time or the timeout.
    async fn wait(&mut self) {
        let far = self.deadline + Duration::from_secs(1);
        let step = self.script.wake_after().map_or(far, |after| self.opened + after);
        let bookmark = self.next_bookmark.unwrap_or(far);
        tokio::select! {
            biased;
            command = self.commands.recv() => self.waiting_commands.extend(command),
            changed = self.changes.changed() => {
                if changed.is_err() {
                    self.state = State::Ending(Ending::Close);
                }
            }
            () = sleep_until(self.deadline) => self.state = State::Ending(Ending::Close),
            () = sleep_until(step) => {}
            () = sleep_until(bookmark) => {
                self.next_bookmark = Some(self.bookmark_after(bookmark));
                self.refill();
                self.queue.push_back(Item::Bookmark(self.position));
            }
        }
    }

    /// Waits for the command that ends the silence.
    async fn wait_in_silence(&mut self) {
        while let Some(command) = self.commands.recv().await {
            match command.what {
                WatchOrder::Do(StreamAction::End(ending)) => {
                    self.state = State::Ending(ending);
                    return;
                }
                WatchOrder::Do(_) | WatchOrder::Bookmark => {}
            }
        }
        std::future::pending::<()>().await;
    }

    async fn end(&mut self, ending: Ending) -> Option<Result<Bytes, BrokenOff>> {
        match ending {
            Ending::Close => {
                self.state = State::Ended;
                None
            }
            Ending::Abort => {
                // What was handed over before is still in the connection's buffer: let it go out first.
                tokio::task::yield_now().await;
                self.state = State::Ended;
                Some(Err(BrokenOff))
            }
            Ending::Reset => {
                tokio::task::yield_now().await;
                self.control.reset();
                std::future::pending().await
            }
            Ending::Vanish => {
                tokio::task::yield_now().await;
                self.control.vanish();
                std::future::pending().await
            }
        }
    }

    /// Takes changes from the log into the queue.
    fn refill(&mut self) {
        self.changes.mark_unchanged();
        let store = self.shared.store();
        let Some(collection) = store.collection(&self.key) else {
            self.state = State::Ending(Ending::Close);
            return;
        };
        match collection.backlog(self.position, store.versions.current(), &self.filter, BATCH) {
            Backlog::Lines(lines, position) => {
                self.position = position;
                self.queue.extend(lines.into_iter().map(Item::Event));
            }
            // A real API server ends the watch of a reader that cannot keep up.
            Backlog::Lost => self.state = State::Ending(Ending::Close),
        }
    }

    /// Does what was ordered. Bytes to be sent at once are returned.
    fn perform(&mut self, action: StreamAction) -> Option<Bytes> {
        match action {
            StreamAction::End(ending) => self.state = State::Ending(ending),
            StreamAction::Silence => self.state = State::Silent,
            StreamAction::CutLine { bytes, ending } => self.next_line = NextLine::Cut(bytes, ending),
            StreamAction::CutWithinCharacter { ending } => {
                self.next_line = NextLine::CutWithinCharacter(ending);
            }
            StreamAction::Send(bytes) => return Some(bytes).filter(|bytes| !bytes.is_empty()),
            StreamAction::Replace(bytes) => self.next_line = NextLine::Replace(bytes),
            StreamAction::Skip => self.next_line = NextLine::Skip,
            StreamAction::Bookmark => self.queue.push_front(Item::Bookmark(self.position)),
            StreamAction::BookmarkAt(version) => return Some(bookmark(&self.resource, &version, false)),
            StreamAction::Replay { after } => self.position = self.position.min(after),
            StreamAction::Wait(time) => self.state = State::Waiting(Instant::now() + time),
            StreamAction::Pace(time) => self.pace = Some(time),
        }
        None
    }

    /// The text of an item, with what was ordered for it; counts it.
    fn line(&mut self, item: &Item) -> Option<Bytes> {
        let line = match item {
            Item::Event(line) => {
                self.progress.events += 1;
                line.clone()
            }
            Item::Boundary(version) => {
                self.progress.boundary_sent = true;
                bookmark(&self.resource, &self.version_text(*version), true)
            }
            Item::Bookmark(version) => bookmark(&self.resource, &self.version_text(*version), false),
        };
        self.progress.lines += 1;
        if let Some(pace) = self.pace {
            self.state = State::Waiting(Instant::now() + pace);
        }
        let line = match std::mem::replace(&mut self.next_line, NextLine::AsItIs) {
            NextLine::AsItIs => line,
            NextLine::Cut(bytes, ending) => {
                self.state = State::Ending(ending);
                line.slice(..bytes.min(line.len()))
            }
            NextLine::CutWithinCharacter(ending) => {
                self.state = State::Ending(ending);
                line.slice(..middle_of_character(&line))
            }
            NextLine::Replace(bytes) => bytes,
            NextLine::Skip => return None,
        };
        Some(line).filter(|line| !line.is_empty())
    }

    fn version_text(&self, version: u64) -> String {
        self.shared.store().versions.text(version)
    }

    /// When the next bookmark is due after one at `last`.
    fn bookmark_after(&self, last: Instant) -> Instant {
        let next = last + self.shared.settings.bookmark_interval;
        match self.deadline.checked_sub(LAST_BOOKMARK) {
            Some(final_one) if last < final_one && final_one < next => final_one,
            Some(_) | None => next,
        }
    }
}

/// Where to cut a line so that a character is cut in two.
fn middle_of_character(line: &[u8]) -> usize {
    let first = line.iter().position(|byte| !byte.is_ascii());
    first.map_or(line.len() / 2, |at| at + 1)
}

impl Drop for WatchLines {
    fn drop(&mut self) {
        self.shared.watches.close(self.id);
        self.shared.record.watch_closed();
    }
}

/// The line of a bookmark: an object of the kind with nothing but a version
/// (<https://kubernetes.io/docs/reference/using-api/api-concepts/#watch-bookmarks>); a typed one carries its kind's
/// zero value too.
fn bookmark(resource: &Resource, version: &str, boundary: bool) -> Bytes {
    let version = string(version);
    let (kind, api_version) = (string(resource.kind()), string(&resource.api_version()));
    let end = r#""annotations":{"k8s.io/initial-events-end":"true"}"#;
    let object = match &resource.style {
        Style::Custom => {
            let end = if boundary {
                format!("{end},")
            } else {
                String::new()
            };
            format!(
                r#"{{"apiVersion":{api_version},"kind":{kind},"metadata":{{{end}"resourceVersion":{version}}}}}"#
            )
        }
        Style::Typed { zero, .. } => {
            let end = if boundary {
                format!(",{end}")
            } else {
                String::new()
            };
            let zero = if zero.is_empty() {
                String::new()
            } else {
                format!(",{zero}")
            };
            format!(
                r#"{{"kind":{kind},"apiVersion":{api_version},"metadata":{{"resourceVersion":{version}{end}}}{zero}}}"#
            )
        }
    };
    format!("{{\"type\":\"BOOKMARK\",\"object\":{object}}}\n").into()
}
