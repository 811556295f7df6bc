//! Watches the resource itself, through the same seam and the same continuity machine as every feed.

use std::sync::Arc;
use std::time::Duration;

use krm_stream_protocol::{
    Continuity, Diagnosing, FeedEnd, Next, OpenError, Ordering, Scope, Session, SessionItem, Start, Upstream,
    UpstreamError, UpstreamErrorKind, Verdict, WatchEvent,
};
use tokio::sync::mpsc;
use tokio::time::{sleep, sleep_until};

use crate::ReadResource;
use crate::clock::Clock;

/// The pause after a watch that is over, doubled up to the longest while none reads a whole snapshot.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What is seen of the resources.
#[derive(Debug)]
pub(crate) enum Seen {
    SnapshotBegan,
    SnapshotComplete,
    Read(Box<ReadResource>),
    Deleted {
        uid: Box<str>,
    },
    /// The API server does not serve the resource.
    NotServed,
}

/// What the task needs.
#[derive(Debug)]
pub(crate) struct Watching {
    pub(crate) upstream: Arc<dyn Upstream>,
    pub(crate) scope: Scope,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    pub(crate) diagnosing: Diagnosing,
    /// How often it is asked whether the definition has been installed.
    pub(crate) absent_pace: Duration,
    pub(crate) seen: mpsc::Sender<Seen>,
}

/// Whoever listened is gone.
struct NobodyListens;

impl Watching {
    /// Watches until nobody listens.
    pub(crate) async fn run(self) {
        let mut pause = FIRST_PAUSE;
        let mut is_absent = false;
        loop {
            let mut was_complete = false;
            let Ok(end) = self.watch(&mut was_complete).await else {
                return;
            };
            if was_complete {
                (pause, is_absent) = (FIRST_PAUSE, false);
            }
            match &end {
                FeedEnd::NotOpened(error) | FeedEnd::Refused(error)
                    if *error.kind() == UpstreamErrorKind::NotFound =>
                {
                    if !std::mem::replace(&mut is_absent, true) {
                        tracing::info!(
                            "the API server does not serve DeclaredStream: streams can be declared once its definition is \
                             installed"
                        );
                    }
                    if self.tell(Seen::NotServed).await.is_err() {
                        return;
                    }
                    sleep(self.absent_pace).await;
                    continue;
                }
                FeedEnd::NotOpened(error) | FeedEnd::Refused(error) | FeedEnd::Unavailable(Some(error)) => {
                    self.report(error);
                }
                FeedEnd::Fatal(error) => {
                    self.diagnosing
                        .report("watching declared streams", Some(&self.scope), error);
                }
                FeedEnd::Unavailable(None) | FeedEnd::Teardown => {}
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Watches for as long as that goes on by itself.
    async fn watch(&self, was_complete: &mut bool) -> Result<FeedEnd, NobodyListens> {
        // A resource is compared by its version wherever that orders, so nothing here depends on it.
        let mut continuity = Continuity::new(Ordering::Lenient, self.clock.moment(), self.seed);
        while let Some((at, start)) = continuity.next_open() {
            sleep_until(self.clock.instant(at)).await;
            continuity.request_sent(self.clock.moment());
            let is_fresh = start == Start::Fresh;
            let next = match self.upstream.open(&self.scope, start).await {
                Ok(session) => {
                    continuity.opened(self.clock.moment(), session.asked_timeout());
                    if is_fresh {
                        self.tell(Seen::SnapshotBegan).await?;
                    }
                    self.session(&mut continuity, session, was_complete).await?
                }
                Err(error) => {
                    let failed = match &error {
                        OpenError::Failed(error) => Some(error.clone()),
                        OpenError::Expired => None,
                    };
                    let next = continuity.open_failed(self.clock.moment(), error);
                    // What ends the watch is told by whoever learns of the end.
                    if let (Next::Open, Some(error)) = (&next, &failed) {
                        self.report(error);
                    }
                    next
                }
            };
            match next {
                Next::Open => {}
                Next::End(end) => return Ok(end),
            }
        }
        Ok(FeedEnd::Teardown)
    }

    async fn session(
        &self,
        continuity: &mut Continuity,
        mut session: Box<dyn Session>,
        was_complete: &mut bool,
    ) -> Result<Next, NobodyListens> {
        loop {
            let item = std::future::poll_fn(|cx| session.poll_next(cx)).await;
            let now = self.clock.moment();
            let event = match item {
                SessionItem::Event(event) => event,
                SessionItem::End(end) => return Ok(continuity.ended(now, end)),
            };
            match continuity.event(now, &event) {
                Verdict::Ignore => {}
                Verdict::Boundary => {
                    *was_complete = true;
                    self.tell(Seen::SnapshotComplete).await?;
                }
                Verdict::RestartSnapshot => self.tell(Seen::SnapshotBegan).await?,
                Verdict::Leave(next) => return Ok(next),
                Verdict::Deliver => self.deliver(event).await?,
            }
        }
    }

    async fn deliver(&self, event: WatchEvent) -> Result<(), NobodyListens> {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                match ReadResource::parse(object.json()) {
                    Ok(read) => self.tell(Seen::Read(Box::new(read))).await?,
                    Err(error) => {
                        self.diagnosing
                            .report("reading a declared stream", Some(&self.scope), &error);
                    }
                }
            }
            WatchEvent::Deleted(object) => {
                if let Some(identity) = object.identity() {
                    let uid = identity.uid.clone();
                    self.tell(Seen::Deleted { uid }).await?;
                }
            }
            WatchEvent::Bookmark { .. } | WatchEvent::SnapshotRestarted | WatchEvent::Unknown => {}
        }
        Ok(())
    }

    async fn tell(&self, seen: Seen) -> Result<(), NobodyListens> {
        self.seen.send(seen).await.map_err(|_| NobodyListens)
    }

    fn report(&self, error: &UpstreamError) {
        self.diagnosing
            .report("watching declared streams", Some(&self.scope), error);
    }
}
