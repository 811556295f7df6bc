//! An upstream that a test answers, and a stream that reads feeds as a gateway's does.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use krm_stream_projection::{DigestKey, Projection};
use krm_stream_protocol::{
    BoxFuture, Client, Diagnosing, Moment, Object, Observer, Observing, OpenError, Partition, Principal,
    ResourceVersion, Scope, Session, SessionEnd, SessionItem, Start, StreamError, Subject, Upstream,
    WatchEvent,
};
use krm_stream_shared::{FeedSettings, Feeds, Join, NextCycle, Outbox, Reader, Step};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::timeout;

type Answer = Result<Box<dyn Session>, OpenError>;

/// Longer than anything here may take.
const LONG: Duration = Duration::from_mins(10);

/// Asks the test for each session.
#[derive(Debug)]
pub(crate) struct ScriptedUpstream(mpsc::UnboundedSender<oneshot::Sender<Answer>>);

/// The test's side.
pub(crate) struct Script(mpsc::UnboundedReceiver<oneshot::Sender<Answer>>);

/// An open session.
pub(crate) struct ScriptedSession(mpsc::UnboundedSender<SessionItem>);

struct Running(mpsc::UnboundedReceiver<SessionItem>);

impl ScriptedUpstream {
    pub(crate) fn new() -> (Arc<Self>, Script) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Arc::new(Self(sender)), Script(receiver))
    }
}

impl Upstream for ScriptedUpstream {
    fn open<'a>(&'a self, _: &'a Scope, _: Start) -> BoxFuture<'a, Answer> {
        let (answer, answered) = oneshot::channel();
        self.0.send(answer).unwrap();
        Box::pin(async move { answered.await.unwrap() })
    }
}

impl Script {
    pub(crate) async fn next_open(&mut self) -> oneshot::Sender<Answer> {
        timeout(LONG, self.0.recv()).await.unwrap().unwrap()
    }

    /// Opens the next session that is asked for, with nothing in it yet.
    pub(crate) async fn answer(&mut self) -> ScriptedSession {
        let answer = self.next_open().await;
        let (items, session) = mpsc::unbounded_channel();
        // A feed that was left does not want it any more.
        let _ = answer.send(Ok(Box::new(Running(session))));
        ScriptedSession(items)
    }

    /// The same while something else goes on that waits for it.
    pub(crate) async fn next_open_when<T>(
        &mut self,
        opening: impl Future<Output = T>,
    ) -> (T, ScriptedSession) {
        tokio::join!(opening, self.answer())
    }

    /// Ends a session's history, and opens the next one.
    pub(crate) async fn expire(&mut self, session: ScriptedSession) -> ScriptedSession {
        session.end(SessionEnd::Expired);
        self.answer().await
    }

    /// Opens the next session that is asked for, with a snapshot of one object.
    pub(crate) async fn open_with(&mut self, object: Object) -> ScriptedSession {
        let session = self.answer().await;
        session.send(WatchEvent::Added(object));
        session.send(WatchEvent::Bookmark {
            resource_version: Some(ResourceVersion::from("1")),
            initial_events_end: true,
        });
        session
    }
}

impl ScriptedSession {
    pub(crate) fn send(&self, event: WatchEvent) {
        let _ = self.0.send(SessionItem::Event(event));
    }

    pub(crate) fn end(self, end: SessionEnd) {
        let _ = self.0.send(SessionItem::End(end));
    }
}

impl Session for Running {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<SessionItem> {
        self.0
            .poll_recv(cx)
            .map(|item| item.unwrap_or(SessionItem::End(SessionEnd::Closed)))
    }

    fn asked_timeout(&self) -> Option<Duration> {
        Some(Duration::from_secs(400))
    }
}

pub(crate) fn object(uid: &str) -> Object {
    let text = format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{uid}","namespace":"app","uid":"{uid}","resourceVersion":"1"}}}}"#
    );
    Object::parse(Bytes::from(text)).unwrap()
}

pub(crate) fn feeds(linger: Duration) -> Feeds {
    feeds_with(FeedSettings {
        linger,
        ..FeedSettings::default()
    })
}

pub(crate) fn feeds_with(settings: FeedSettings) -> Feeds {
    Feeds::new(
        settings,
        DigestKey::new([7; 32]),
        Observing::default(),
        Diagnosing::default(),
    )
}

/// A stream of the caller `ada` on the config maps of one namespace.
pub(crate) struct Stream {
    feeds: Feeds,
    upstream: Arc<dyn Upstream>,
    partition: Partition,
    number: u64,
    reader: Reader,
    pub(crate) outbox: Outbox,
    pub(crate) now: Moment,
}

impl Stream {
    pub(crate) fn new(feeds: &Feeds, upstream: Arc<dyn Upstream>, partition: Partition) -> Self {
        Self {
            feeds: feeds.clone(),
            upstream,
            partition,
            number: feeds.next_stream(),
            reader: Reader::new(Observing::default()),
            outbox: Outbox::new(64 * 1024),
            now: Moment::ORIGIN,
        }
    }

    /// The same with what it does told to an observer.
    pub(crate) fn observed(mut self, observer: Arc<dyn Observer>) -> Self {
        self.reader = Reader::new(Observing::with(observer));
        self
    }

    /// Polls the reader once.
    pub(crate) fn poll(&mut self) -> Poll<Step> {
        let mut cx = Context::from_waker(Waker::noop());
        self.reader.poll(&mut cx, self.now, &mut self.outbox)
    }

    /// Joins and begins a cycle.
    pub(crate) async fn begin(&mut self) -> Result<(), StreamError> {
        let principal = Principal::new(Subject::new("ada").unwrap());
        let scope = Scope::builder("v1", "configmaps")
            .namespace("app")
            .build()
            .unwrap();
        let join = Join {
            principal: &principal,
            scope: &scope,
            projection: &Projection::full(),
            client: Client {
                upstream: Arc::clone(&self.upstream),
                partition: self.partition.clone(),
            },
            stream: self.number,
        };
        let subscription = timeout(LONG, self.feeds.join(join))
            .await
            .expect("a join that never ends")?;
        self.reader
            .begin_cycle(subscription, None, self.now, &mut self.outbox);
        Ok(())
    }

    /// Waits for the reader's next step.
    pub(crate) async fn step(&mut self) -> Step {
        std::future::poll_fn(|cx| self.reader.poll(cx, self.now, &mut self.outbox)).await
    }

    /// The same of a stream that rests as soon as it has all there is, for ever if nobody rouses it.
    pub(crate) async fn step_between_rests(&mut self) -> Step {
        let mut rests = false;
        std::future::poll_fn(|cx| {
            loop {
                if rests && self.reader.rest(cx.waker()) {
                    return Poll::Pending;
                }
                let step = self.reader.poll(cx, self.now, &mut self.outbox);
                rests = step.is_pending() && self.reader.is_at_head();
                if !rests {
                    return step;
                }
            }
        })
        .await
    }

    /// The next step of a stream that, once woken, is polled when its turn on the one `processor` comes; each turn takes so long.
    pub(crate) async fn step_in_turn(&mut self, processor: &Mutex<()>, turn: Duration) -> Step {
        loop {
            let mut polled = false;
            let step = std::future::poll_fn(|cx| {
                if std::mem::replace(&mut polled, true) {
                    return Poll::Ready(None);
                }
                self.reader.poll(cx, self.now, &mut self.outbox).map(Some)
            });
            if let Some(step) = step.await {
                return step;
            }
            let _turn = processor.lock().await;
            tokio::time::advance(turn).await;
        }
    }

    /// Reads until the cycle is over, or the stream.
    pub(crate) async fn read(&mut self) -> Result<NextCycle, StreamError> {
        loop {
            while self.outbox.take().is_some() {}
            let step = std::future::poll_fn(|cx| self.reader.poll(cx, self.now, &mut self.outbox));
            match timeout(LONG, step).await.expect("a stream that hangs") {
                Step::Wrote => {}
                Step::NextCycle(next) => return Ok(next),
                Step::End(error) => return Err(error),
            }
        }
    }

    /// Reads and begins cycles for ever, with a pause before each as for a check of access.
    pub(crate) async fn follow(mut self, pause: Duration) -> StreamError {
        loop {
            let next = match self.begin().await {
                Ok(()) => self.read().await,
                Err(error) => return error,
            };
            match next {
                Ok(next) if next.needs_new_feed => self.number = self.feeds.next_stream(),
                Ok(_) => {}
                Err(error) => return error,
            }
            tokio::time::sleep(pause).await;
        }
    }
}
