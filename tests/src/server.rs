//! A model of an API server behind a scripted upstream: a history with versions, sessions that read it, and trouble.

use std::collections::BTreeMap;
use std::time::Duration;

use krm_stream_protocol::{
    Object, OpenError, SessionEnd, Start, UpstreamError, UpstreamErrorKind, WatchEvent,
};

use crate::objects::{config_map_with, object};
use crate::scripted::{OpenRequest, Script, ScriptedSession};

/// One collection of config maps in namespace `app`, with its history.
#[derive(Debug)]
pub struct ModelServer {
    script: Script,
    version: u64,
    /// Uid to version and value.
    objects: BTreeMap<String, (u64, String)>,
    history: Vec<(u64, WatchEvent)>,
    /// Versions up to this one are too old to resume from.
    compacted: u64,
    sessions: Vec<ScriptedSession>,
    /// What happens to the next sessions that are asked for.
    trouble: Vec<Trouble>,
    opens: usize,
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
    /// A snapshot is read twice, and what is deleted in between is in the first reading only.
    RestartedSnapshot,
}

impl ModelServer {
    /// An empty collection at version 100.
    pub const fn new(script: Script) -> Self {
        Self {
            script,
            version: 100,
            objects: BTreeMap::new(),
            history: Vec::new(),
            compacted: 0,
            sessions: Vec::new(),
            trouble: Vec::new(),
            opens: 0,
        }
    }

    /// The uids that are there, each with its value.
    pub fn truth(&self) -> BTreeMap<String, String> {
        self.objects
            .iter()
            .map(|(uid, (_, value))| (uid.clone(), value.clone()))
            .collect()
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

    /// Forgets all trouble that has not happened yet.
    pub fn forget_trouble(&mut self) {
        self.trouble.clear();
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
            session.send(event.clone());
        }
        self.history.push((self.version, event));
    }

    /// Sends every session a bookmark.
    pub fn bookmark(&mut self) {
        let version = self.version.to_string();
        for session in &mut self.sessions {
            session.bookmark(&version, false);
        }
    }

    /// Forgets the history so far: sessions can only be resumed from now on.
    pub fn compact(&mut self) {
        self.compacted = self.version;
        self.history.clear();
    }

    /// Ends every session.
    pub fn end_sessions(&mut self, end: &SessionEnd) {
        for session in self.sessions.drain(..) {
            session.end(end.clone());
        }
    }

    /// Sends every session an object without identity; the gateway cannot go on from there.
    pub fn send_partial(&mut self) {
        for mut session in self.sessions.drain(..) {
            session.send(WatchEvent::Modified(object(r#"{"metadata":{"name":"partial"}}"#)));
        }
    }

    /// Answers the sessions that were asked for.
    pub fn serve(&mut self) {
        self.sessions.retain(|session| !session.is_dropped());
        while let Some(request) = self.script.try_next_open() {
            self.opens += 1;
            let trouble = (!self.trouble.is_empty()).then(|| self.trouble.remove(0));
            self.answer(request, trouble);
        }
    }

    fn answer(&mut self, request: OpenRequest, trouble: Option<Trouble>) {
        match trouble {
            Some(Trouble::Unavailable(hint)) => request.refuse(
                UpstreamError::new(UpstreamErrorKind::Unavailable)
                    .with_retry_after(hint.map(Duration::from_secs)),
            ),
            Some(Trouble::Forbidden) => {
                request.refuse(UpstreamError::forbidden(Some("configmaps is forbidden")));
            }
            trouble => match request.start.clone() {
                Start::Fresh => self.list(request, trouble.as_ref()),
                Start::After(version) => {
                    let version = version.as_str().parse().unwrap_or_default();
                    self.resume(request, version, trouble.as_ref());
                }
            },
        }
    }

    fn list(&mut self, request: OpenRequest, trouble: Option<&Trouble>) {
        let mut session = request.accept();
        let listed: Vec<_> = self
            .objects
            .iter()
            .map(|(uid, (version, value))| config_map_with(uid, &version.to_string(), value))
            .collect();
        match trouble {
            Some(Trouble::CutInSnapshot) => {
                send_all(&mut session, &listed[..listed.len().min(1)]);
                return session.end(SessionEnd::Closed);
            }
            Some(Trouble::CutAtOnce) => return session.end(SessionEnd::Closed),
            Some(Trouble::RestartedSnapshot) => {
                send_all(&mut session, &listed);
                session.added(config_map_with("ghost", &self.version.to_string(), "ghost"));
                session.send(WatchEvent::SnapshotRestarted);
            }
            Some(Trouble::Replay | Trouble::Unavailable(_) | Trouble::Forbidden) | None => {}
        }
        send_all(&mut session, &listed);
        session.boundary(&self.version.to_string());
        self.sessions.push(session);
    }

    fn resume(&mut self, request: OpenRequest, version: u64, trouble: Option<&Trouble>) {
        if version < self.compacted {
            return request.refuse(OpenError::Expired);
        }
        let mut session = request.accept();
        if trouble == Some(&Trouble::CutAtOnce) {
            return session.end(SessionEnd::Closed);
        }
        let replays = trouble == Some(&Trouble::Replay);
        for (_, event) in self.history.iter().filter(|(at, _)| replays || *at > version) {
            session.send(event.clone());
        }
        self.sessions.push(session);
    }
}

fn send_all(session: &mut ScriptedSession, objects: &[Object]) {
    for object in objects {
        session.added(object.clone());
    }
}
