//! A model of an API server behind a scripted upstream: a history with versions, sessions that read it bit by bit, and
//! trouble. It also knows what each feed must hold, from what it sent.

mod session;
mod view;

use std::collections::BTreeMap;
use std::time::Duration;

use krm_stream_protocol::{
    Object, OpenError, SessionEnd, Start, UpstreamError, UpstreamErrorKind, WatchEvent,
};

use crate::objects::{config_map_with, object};
use crate::scripted::{OpenRequest, Script};
use session::{Item, ServedSession};
pub use view::FeedView;

/// One collection of config maps in namespace `app`, with its history.
#[derive(Debug)]
pub struct ModelServer {
    script: Script,
    kind: UpstreamKind,
    version: u64,
    /// Uid to version and value.
    objects: BTreeMap<String, (u64, String)>,
    history: Vec<(u64, WatchEvent)>,
    /// Versions up to this one are too old to resume from.
    compacted: u64,
    sessions: Vec<ServedSession>,
    /// What happens to the next sessions that are asked for.
    trouble: Vec<Trouble>,
    opens: usize,
    /// How many feeds have asked.
    feeds: usize,
    /// The feed that asked last, and what it must hold.
    current: Option<(Option<tokio::task::Id>, FeedView)>,
}

/// How a fresh session brings its snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamKind {
    /// All objects in the order of their names, as of one version, then the boundary.
    StreamingList,
    /// Pages as of one version; when that version expires midway, all over again.
    ListThenWatch,
}

/// What goes wrong with a session that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// 503, with or without a hint in seconds.
    Unavailable(Option<u64>),
    /// 403.
    Forbidden,
    /// It ends before its boundary, after one object.
    CutInSnapshot,
    /// It ends as soon as it is open.
    CutAtOnce,
    /// A resumed session replays what was sent before.
    Replay,
    /// A snapshot is read twice, and an object is in the first reading only.
    RestartedSnapshot,
    /// It is never answered.
    Hang,
}

impl ModelServer {
    /// An empty collection at version 100.
    pub const fn new(script: Script, kind: UpstreamKind) -> Self {
        Self {
            script,
            kind,
            version: 100,
            objects: BTreeMap::new(),
            history: Vec::new(),
            compacted: 0,
            sessions: Vec::new(),
            trouble: Vec::new(),
            opens: 0,
            feeds: 0,
            current: None,
        }
    }

    /// The uids that are there, each with its value.
    pub fn truth(&self) -> BTreeMap<String, String> {
        self.objects
            .iter()
            .map(|(uid, (_, value))| (uid.clone(), value.clone()))
            .collect()
    }

    /// What the feed that asked last must hold, from what it was sent.
    pub fn feed(&self) -> Option<&FeedView> {
        self.current.as_ref().map(|(_, view)| view)
    }

    /// Which of the feeds that asked it is, and how much that has taken in.
    pub fn feed_and_tick(&self) -> Option<(usize, u64)> {
        self.feed().map(|view| (self.feeds, view.tick()))
    }

    /// Whether the gateway has read all that was sent.
    pub fn is_read(&self) -> bool {
        self.script.unread() == 0
    }

    /// How many sessions were asked for.
    pub const fn opens(&self) -> usize {
        self.opens
    }

    /// How many sessions are open as the gateway sees it.
    pub fn open_sessions(&self) -> usize {
        self.script.open_sessions()
    }

    /// Has the next session that is asked for meet this trouble, after those that were set before.
    pub fn expect_trouble(&mut self, trouble: Trouble) {
        self.trouble.push(trouble);
    }

    /// Forgets all trouble that has not happened yet, and answers what was left hanging.
    pub fn forget_trouble(&mut self) {
        self.trouble.clear();
        let (hanging, sessions) = self.sessions.drain(..).partition(ServedSession::is_hanging);
        self.sessions = sessions;
        for session in hanging {
            session.end(SessionEnd::Closed);
        }
    }

    /// Creates or changes an object.
    pub fn apply(&mut self, uid: &str, value: &str) {
        self.version += 1;
        let is_new = self
            .objects
            .insert(uid.to_owned(), (self.version, value.to_owned()))
            .is_none();
        let object = config_map_with(uid, &self.version.to_string(), value);
        self.publish(if is_new {
            WatchEvent::Added(object)
        } else {
            WatchEvent::Modified(object)
        });
    }

    /// Deletes an object, if it is there.
    pub fn delete(&mut self, uid: &str) {
        if let Some((_, value)) = self.objects.remove(uid) {
            self.version += 1;
            let object = config_map_with(uid, &self.version.to_string(), &value);
            self.publish(WatchEvent::Deleted(object));
        }
    }

    fn publish(&mut self, event: WatchEvent) {
        for session in &mut self.sessions {
            session.queue(Item::New(event.clone()));
        }
        self.history.push((self.version, event));
    }

    /// Sends every session a bookmark.
    pub fn bookmark(&mut self) {
        for session in &mut self.sessions {
            session.queue(Item::Bookmark(self.version));
        }
    }

    /// Forgets the history so far: sessions can only be resumed from now on. A list that is under way begins again.
    pub fn compact(&mut self) {
        self.compacted = self.version;
        self.history.clear();
        if self.kind == UpstreamKind::ListThenWatch {
            let listed = self.list();
            for session in self
                .sessions
                .iter_mut()
                .filter(|session| session.is_in_snapshot())
            {
                session.list_again(listed.clone(), self.version);
            }
        }
    }

    /// Ends every session; what was not sent yet is lost.
    pub fn end_sessions(&mut self, end: &SessionEnd) {
        for session in self.sessions.drain(..) {
            session.end(end.clone());
        }
    }

    /// Sends every session an object without identity; the gateway cannot go on from there.
    pub fn send_partial(&mut self) {
        for session in self.sessions.drain(..) {
            session.end_with(WatchEvent::Modified(object(r#"{"metadata":{"name":"partial"}}"#)));
        }
    }

    /// Answers the sessions that were asked for, and sends up to `items` on each session.
    pub fn serve(&mut self, items: usize) {
        self.sessions.retain(|session| !session.is_dropped());
        while let Some(request) = self.script.try_next_open() {
            self.opens += 1;
            self.note_request(&request);
            let trouble = (!self.trouble.is_empty()).then(|| self.trouble.remove(0));
            self.answer(request, trouble.as_ref());
        }
        for session in &mut self.sessions {
            let view = self
                .current
                .as_mut()
                .filter(|(feed, _)| *feed == session.feed())
                .map(|(_, view)| view);
            session.send(items, view);
        }
    }

    fn note_request(&mut self, request: &OpenRequest) {
        if self
            .current
            .as_ref()
            .is_none_or(|(feed, _)| *feed != request.feed)
        {
            self.feeds += 1;
            self.current = Some((request.feed, FeedView::default()));
        }
        if let (Some((_, view)), Start::Fresh) = (&mut self.current, &request.start) {
            view.begin_snapshot();
        }
    }

    fn list(&self) -> Vec<Object> {
        self.objects
            .iter()
            .map(|(uid, (version, value))| config_map_with(uid, &version.to_string(), value))
            .collect()
    }

    fn answer(&mut self, request: OpenRequest, trouble: Option<&Trouble>) {
        match trouble {
            Some(Trouble::Unavailable(hint)) => request.refuse(
                UpstreamError::new(UpstreamErrorKind::Unavailable)
                    .with_retry_after(hint.map(Duration::from_secs)),
            ),
            Some(Trouble::Forbidden) => {
                request.refuse(UpstreamError::forbidden(Some("configmaps is forbidden")));
            }
            Some(Trouble::Hang) => self.sessions.push(ServedSession::hanging(request)),
            Some(
                Trouble::CutInSnapshot | Trouble::CutAtOnce | Trouble::Replay | Trouble::RestartedSnapshot,
            )
            | None => match request.start.clone() {
                Start::Fresh => self.open_fresh(request, trouble),
                Start::After(version) => {
                    let version = version.as_str().parse().unwrap_or_default();
                    self.resume(request, version, trouble);
                }
            },
        }
    }

    fn open_fresh(&mut self, request: OpenRequest, trouble: Option<&Trouble>) {
        let listed = self.list();
        let mut session = ServedSession::fresh(request, listed.clone(), self.version);
        match trouble {
            Some(Trouble::CutAtOnce) => return session.end(SessionEnd::Closed),
            Some(Trouble::CutInSnapshot) => session.cut_after(1),
            Some(Trouble::RestartedSnapshot) => {
                let ghost = config_map_with("ghost", &self.version.to_string(), "ghost");
                session.read_twice(ghost, listed, self.version);
            }
            Some(Trouble::Replay | Trouble::Unavailable(_) | Trouble::Forbidden | Trouble::Hang) | None => {}
        }
        self.sessions.push(session);
    }

    fn resume(&mut self, request: OpenRequest, version: u64, trouble: Option<&Trouble>) {
        if version < self.compacted {
            return request.refuse(OpenError::Expired);
        }
        let mut session = ServedSession::resumed(request);
        if trouble == Some(&Trouble::CutAtOnce) {
            return session.end(SessionEnd::Closed);
        }
        let replays = trouble == Some(&Trouble::Replay);
        for (at, event) in &self.history {
            if *at > version {
                session.queue(Item::New(event.clone()));
            } else if replays {
                session.queue(Item::Old(event.clone()));
            }
        }
        self.sessions.push(session);
    }
}
