//! An upstream whose every session a test answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use krm_stream_protocol::{
    BoxFuture, Object, OpenError, ResourceVersion, Scope, Session, SessionEnd, SessionItem, Start, Upstream,
    UpstreamError, UpstreamErrorKind, WatchEvent,
};
use tokio::sync::{mpsc, oneshot};

type Answer = Result<Box<dyn Session>, OpenError>;

#[derive(Clone, Debug)]
pub(crate) struct ScriptedUpstream {
    requests: mpsc::UnboundedSender<OpenRequest>,
    counts: Arc<Counts>,
}

/// The test's side.
pub(crate) struct Script {
    requests: mpsc::UnboundedReceiver<OpenRequest>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    asked: AtomicUsize,
    open: AtomicUsize,
}

/// A session that the gateway wants.
pub(crate) struct OpenRequest {
    pub(crate) scope: Scope,
    pub(crate) start: Start,
    answer: oneshot::Sender<Answer>,
    counts: Arc<Counts>,
}

/// A session that it has.
#[derive(Debug)]
pub(crate) struct ScriptedSession(mpsc::UnboundedSender<SessionItem>);

impl ScriptedUpstream {
    pub(crate) fn new() -> (Self, Script) {
        let (sender, requests) = mpsc::unbounded_channel();
        let counts = Arc::new(Counts::default());
        let script = Script {
            requests,
            counts: Arc::clone(&counts),
        };
        let upstream = Self {
            requests: sender,
            counts,
        };
        (upstream, script)
    }
}

impl Upstream for ScriptedUpstream {
    fn open<'a>(&'a self, scope: &'a Scope, start: Start) -> BoxFuture<'a, Answer> {
        let (answer, answered) = oneshot::channel();
        self.counts.asked.fetch_add(1, Ordering::SeqCst);
        let _ = self.requests.send(OpenRequest {
            scope: scope.clone(),
            start,
            answer,
            counts: Arc::clone(&self.counts),
        });
        let unavailable = || Err(UpstreamError::new(UpstreamErrorKind::Unavailable).into());
        Box::pin(async move { answered.await.unwrap_or_else(|_| unavailable()) })
    }
}

impl Script {
    pub(crate) async fn next_open(&mut self) -> OpenRequest {
        tokio::time::timeout(Duration::from_mins(10), self.requests.recv())
            .await
            .expect("a session should have been asked for")
            .unwrap()
    }

    pub(crate) fn try_next_open(&mut self) -> Option<OpenRequest> {
        self.requests.try_recv().ok()
    }

    /// How many sessions were ever asked for.
    pub(crate) fn asked(&self) -> usize {
        self.counts.asked.load(Ordering::SeqCst)
    }

    pub(crate) fn open_sessions(&self) -> usize {
        self.counts.open.load(Ordering::SeqCst)
    }
}

impl OpenRequest {
    pub(crate) fn accept(self) -> ScriptedSession {
        let (items, session) = mpsc::unbounded_channel();
        self.counts.open.fetch_add(1, Ordering::SeqCst);
        let session = Running {
            items: session,
            counts: Arc::clone(&self.counts),
        };
        let _ = self.answer.send(Ok(Box::new(session)));
        ScriptedSession(items)
    }

    /// Accepts it, and completes a snapshot of these objects at this version.
    pub(crate) fn accept_with(
        self,
        objects: impl IntoIterator<Item = Object>,
        version: &str,
    ) -> ScriptedSession {
        let session = self.accept();
        for object in objects {
            session.send(WatchEvent::Added(object));
        }
        session.boundary(version);
        session
    }

    pub(crate) fn refuse(self, error: UpstreamError) {
        let _ = self.answer.send(Err(error.into()));
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }
}

impl ScriptedSession {
    pub(crate) fn send(&self, event: WatchEvent) {
        let _ = self.0.send(SessionItem::Event(event));
    }

    pub(crate) fn boundary(&self, version: &str) {
        self.send(WatchEvent::Bookmark {
            resource_version: Some(ResourceVersion::from(version)),
            initial_events_end: true,
        });
    }

    pub(crate) fn end(self, end: SessionEnd) {
        let _ = self.0.send(SessionItem::End(end));
    }
}

struct Running {
    items: mpsc::UnboundedReceiver<SessionItem>,
    counts: Arc<Counts>,
}

impl Session for Running {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<SessionItem> {
        self.items
            .poll_recv(cx)
            .map(|item| item.unwrap_or(SessionItem::End(SessionEnd::Closed)))
    }

    fn asked_timeout(&self) -> Option<Duration> {
        Some(Duration::from_secs(400))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.counts.open.fetch_sub(1, Ordering::SeqCst);
    }
}
