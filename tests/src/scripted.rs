//! An upstream that does what a test says, step by step.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use krm_stream_protocol::{
    BoxFuture, Object, OpenError, ResourceVersion, Scope, Session, SessionEnd, SessionItem, Start, Upstream,
    UpstreamError, UpstreamErrorKind, WatchEvent,
};
use tokio::sync::{mpsc, oneshot};

/// The `timeoutSeconds` that scripted sessions say they asked for.
const ASKED_TIMEOUT: Duration = Duration::from_secs(400);

/// An upstream whose every session a test answers through its [`Script`].
#[derive(Clone, Debug)]
pub struct ScriptedUpstream {
    opens: mpsc::UnboundedSender<OpenRequest>,
    open_sessions: Arc<AtomicUsize>,
    unread: Arc<AtomicUsize>,
}

/// The test's side of a [`ScriptedUpstream`].
#[derive(Debug)]
pub struct Script {
    opens: mpsc::UnboundedReceiver<OpenRequest>,
    open_sessions: Arc<AtomicUsize>,
    unread: Arc<AtomicUsize>,
}

/// A session that the gateway wants to open.
pub struct OpenRequest {
    /// The scope it asks for.
    pub scope: Scope,
    /// Where it starts.
    pub start: Start,
    /// The task of the feed that asks.
    pub feed: Option<tokio::task::Id>,
    answer: oneshot::Sender<Result<Box<dyn Session>, OpenError>>,
    open_sessions: Arc<AtomicUsize>,
    unread: Arc<AtomicUsize>,
}

/// An open session, as the API server sees it.
#[derive(Debug)]
pub struct ScriptedSession {
    items: mpsc::UnboundedSender<SessionItem>,
    unread: Arc<AtomicUsize>,
}

impl ScriptedUpstream {
    /// An upstream and its script.
    pub fn new() -> (Self, Script) {
        let (opens, requests) = mpsc::unbounded_channel();
        let (open_sessions, unread) = (Arc::default(), Arc::default());
        let script = Script {
            opens: requests,
            open_sessions: Arc::clone(&open_sessions),
            unread: Arc::clone(&unread),
        };
        let upstream = Self {
            opens,
            open_sessions,
            unread,
        };
        (upstream, script)
    }
}

impl Upstream for ScriptedUpstream {
    fn open<'a>(
        &'a self,
        scope: &'a Scope,
        start: Start,
    ) -> BoxFuture<'a, Result<Box<dyn Session>, OpenError>> {
        let (answer, answered) = oneshot::channel();
        // A script that is gone answers nothing.
        let _ = self.opens.send(OpenRequest {
            scope: scope.clone(),
            start,
            feed: tokio::task::try_id(),
            answer,
            open_sessions: Arc::clone(&self.open_sessions),
            unread: Arc::clone(&self.unread),
        });
        Box::pin(async move {
            answered
                .await
                .unwrap_or_else(|_| Err(UpstreamError::new(UpstreamErrorKind::Unavailable).into()))
        })
    }
}

impl Script {
    /// The next session that the gateway wants to open.
    ///
    /// # Panics
    /// If the upstream is gone, or nothing was asked for within ten minutes of the test's time.
    #[expect(clippy::expect_used, reason = "a test that waits in vain fails")]
    pub async fn next_open(&mut self) -> OpenRequest {
        tokio::time::timeout(Duration::from_mins(10), self.opens.recv())
            .await
            .expect("a session should have been asked for")
            .expect("the upstream lives as long as its gateway")
    }

    /// A session that was asked for and not answered yet, if there is one.
    pub fn try_next_open(&mut self) -> Option<OpenRequest> {
        self.opens.try_recv().ok()
    }

    /// How many sessions are open.
    pub fn open_sessions(&self) -> usize {
        self.open_sessions.load(Ordering::SeqCst)
    }

    /// How much was sent that the gateway has not read yet.
    pub fn unread(&self) -> usize {
        self.unread.load(Ordering::SeqCst)
    }
}

impl fmt::Debug for OpenRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenRequest")
            .field("scope", &self.scope)
            .field("start", &self.start)
            .finish_non_exhaustive()
    }
}

impl OpenRequest {
    /// Opens it.
    pub fn accept(self) -> ScriptedSession {
        let (items, session) = mpsc::unbounded_channel();
        self.open_sessions.fetch_add(1, Ordering::SeqCst);
        let session = Running {
            items: session,
            open_sessions: Arc::clone(&self.open_sessions),
            unread: Arc::clone(&self.unread),
        };
        // Whoever asked may have left.
        let _ = self.answer.send(Ok(Box::new(session)));
        ScriptedSession {
            items,
            unread: self.unread,
        }
    }

    /// Refuses it.
    pub fn refuse(self, error: impl Into<OpenError>) {
        let _ = self.answer.send(Err(error.into()));
    }

    /// Whether nobody waits for the answer any more.
    pub fn is_cancelled(&self) -> bool {
        self.answer.is_closed()
    }
}

impl ScriptedSession {
    /// Sends an event. One that nobody reads any more is lost, as on a real connection.
    pub fn send(&mut self, event: WatchEvent) {
        self.put(SessionItem::Event(event));
    }

    /// Sends an added object.
    pub fn added(&mut self, object: Object) {
        self.send(WatchEvent::Added(object));
    }

    /// Sends a modified object.
    pub fn modified(&mut self, object: Object) {
        self.send(WatchEvent::Modified(object));
    }

    /// Sends a deleted object.
    pub fn deleted(&mut self, object: Object) {
        self.send(WatchEvent::Deleted(object));
    }

    /// Sends the bookmark that ends the snapshot.
    pub fn boundary(&mut self, version: &str) {
        self.bookmark(version, true);
    }

    /// Sends a bookmark.
    pub fn bookmark(&mut self, version: &str, initial_events_end: bool) {
        self.send(WatchEvent::Bookmark {
            resource_version: Some(ResourceVersion::from(version)),
            initial_events_end,
        });
    }

    /// Ends the session.
    pub fn end(self, end: SessionEnd) {
        self.put(SessionItem::End(end));
    }

    fn put(&self, item: SessionItem) {
        if self.items.send(item).is_ok() {
            self.unread.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Whether the gateway has dropped the session.
    pub fn is_dropped(&self) -> bool {
        self.items.is_closed()
    }

    /// Resolves when the gateway drops the session.
    pub async fn dropped(&self) {
        self.items.closed().await;
    }
}

struct Running {
    items: mpsc::UnboundedReceiver<SessionItem>,
    open_sessions: Arc<AtomicUsize>,
    unread: Arc<AtomicUsize>,
}

impl Session for Running {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<SessionItem> {
        self.items.poll_recv(cx).map(|item| {
            item.map_or(SessionItem::End(SessionEnd::Closed), |item| {
                self.unread.fetch_sub(1, Ordering::SeqCst);
                item
            })
        })
    }

    fn asked_timeout(&self) -> Option<Duration> {
        Some(ASKED_TIMEOUT)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.open_sessions.fetch_sub(1, Ordering::SeqCst);
        self.items.close();
        while self.items.try_recv().is_ok() {
            self.unread.fetch_sub(1, Ordering::SeqCst);
        }
    }
}
