//! The task that does what the reconciler says.

mod builder;
mod telling;

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use krm_stream_projection::Projections;
use krm_stream_protocol::{Diagnosing, FeedEnd, Identity, Scope, StreamError, Target, Upstream};
use krm_stream_shared::{FeedReport, Feeds, Keep};
use krm_stream_status::{AfterWrite, EventPlan, StatusWriter as _, WritePlan};
use kube::{Client, Resource as _};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

pub use self::builder::{DeclaredStreamsBuilder, DeclaredStreamsError};
use self::telling::Telling;
use crate::api::Api;
use crate::clock::Clock;
use crate::counts::{Counted, Counting};
use crate::holding::Holding;
use crate::watching::{Seen, Watching};
use crate::{
    Action, DeclaredCounts, DeclaredPolicy, DeclaredStream, FeedId, KubeStatusWriter, LeaseSettings,
    ReadAgain, Reconciler, WarmScope, Written,
};

/// How much may wait for the reconciler from each side.
const CHANNEL: usize = 256;
/// How long writes that are out may go on at shutdown, and how long giving up the Lease may take.
const LAST_WRITES: Duration = Duration::from_secs(5);

/// Keeps the declared streams of one API server warm and publishes how they are.
///
/// ```no_run
/// use krm_stream_declared::{DeclaredPolicy, DeclaredStreams, LeaseSettings};
/// use krm_stream_protocol::{Target, Upstream};
/// # use std::sync::Arc;
/// # async fn run(
/// #     feeds: krm_stream_shared::Feeds, scopes: krm_stream_protocol::ScopePolicy, mut config: kube::Config,
/// #     upstream: Arc<dyn Upstream>, pod: String, shutdown: impl Future<Output = ()>,
/// # ) -> Result<(), Box<dyn std::error::Error>> {
/// // kube's own retries are turned off: what failed is tried again by the controller, at its own pace.
/// config.default_retry = false;
/// let client = kube::Client::try_from(config)?;
/// DeclaredStreams::builder(feeds, DeclaredPolicy::new(scopes), client, upstream.clone())
///     .target(Target::default(), upstream)
///     .partition("declared")
///     .lease(LeaseSettings::new("krm-stream", "krm-stream-declared", pod))
///     .build()?
///     .run(shutdown)
///     .await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct DeclaredStreams {
    feeds: Feeds,
    policy: Arc<DeclaredPolicy>,
    api: Api,
    writer: KubeStatusWriter,
    resources: Arc<dyn Upstream>,
    scope: Scope,
    targets: BTreeMap<Target, Arc<dyn Upstream>>,
    projections: Projections,
    partition: Arc<str>,
    lease: Option<LeaseSettings>,
    diagnosing: Diagnosing,
    absent_pace: Duration,
    counts: Counting,
}

impl DeclaredStreams {
    /// Settings of a controller: the gateway's `feeds`, what may be declared, a `client` for the API server on which streams
    /// are declared, and the upstream that watches them there.
    pub fn builder(
        feeds: Feeds,
        policy: DeclaredPolicy,
        client: Client,
        resources: Arc<dyn Upstream>,
    ) -> DeclaredStreamsBuilder {
        DeclaredStreamsBuilder::new(feeds, policy, client, resources)
    }

    /// How many streams are in each state while it runs, for a host's figures. All are zero before it runs.
    pub fn counts(&self) -> DeclaredCounts {
        self.counts.reader()
    }

    /// Runs until `shutdown` resolves. Then it lets writes that are out end, gives up the Lease if it holds it, and lets go
    /// of its feeds. It never fails: what goes wrong is in the status of a resource, or told to the diagnostics, and tried
    /// again.
    ///
    /// # Cancel safety
    /// Dropping the future ends everything at once. The Lease is then not given up, and others wait until it has run out.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let clock = Clock::new();
        let seeds = RandomState::new();
        let (seen_by_watch, mut seen) = mpsc::channel(CHANNEL);
        let watching = OwnTask(tokio::spawn(
            Watching {
                upstream: Arc::clone(&self.resources),
                scope: self.scope.clone(),
                clock,
                seed: seeds.hash_one("watch"),
                diagnosing: self.diagnosing.clone(),
                absent_pace: self.absent_pace,
                seen: seen_by_watch,
            }
            .run(),
        ));
        let (held, mut is_held) = watch::channel(self.lease.is_none());
        let (stop_holding, stopped) = oneshot::channel();
        let holding = OwnTask(tokio::spawn(self.hold(
            clock,
            seeds.hash_one("lease"),
            held,
            stopped,
        )));

        let (told, mut reports) = mpsc::channel(CHANNEL);
        let mut running = Running {
            reconciler: Reconciler::new(Arc::clone(&self.policy), seeds.hash_one("reconciler")),
            controller: self,
            clock,
            told,
            kept: HashMap::new(),
            requests: JoinSet::new(),
            telling: Telling::default(),
        };
        let publishes = *is_held.borrow_and_update();
        running.reconciler.publishes(clock.now(), publishes);
        tokio::pin!(shutdown);
        loop {
            running.act();
            running.count();
            let due = running.reconciler.next_due().map(|due| clock.instant(due));
            tokio::select! {
                () = &mut shutdown => break,
                Ok(()) = is_held.changed() => {
                    let publishes = *is_held.borrow_and_update();
                    tracing::info!(publishes, "the lease on declared streams changed hands");
                    running.reconciler.publishes(clock.now(), publishes);
                }
                Some(done) = running.requests.join_next(), if !running.requests.is_empty() => {
                    if let Ok(done) = done {
                        running.take(done);
                    }
                }
                Some(seen) = seen.recv() => running.see(seen),
                Some((feed, report)) = reports.recv() => {
                    running.reconciler.reported(clock.now(), feed, report);
                }
                () = until(due) => running.reconciler.passed(clock.now()),
            }
        }
        drop(watching);
        running.kept.clear();
        let _ = timeout(LAST_WRITES, async {
            // What was written is still told; nothing more is written.
            while let Some(done) = running.requests.join_next().await {
                if let Ok(done) = done {
                    running.take(done);
                }
            }
        })
        .await;
        let _ = stop_holding.send(());
        let mut holding = holding;
        let _ = timeout(LAST_WRITES, &mut holding.0).await;
    }

    /// The task that holds the Lease. Without one, this replica publishes for as long as it runs.
    fn hold(
        &self,
        clock: Clock,
        seed: u64,
        held: watch::Sender<bool>,
        stopped: oneshot::Receiver<()>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let holding = self.lease.clone().map(|settings| Holding {
            api: self.api.clone(),
            settings,
            clock,
            seed,
            diagnosing: self.diagnosing.clone(),
        });
        async move {
            if let Some(holding) = holding {
                holding.run(held, stopped).await;
            } else {
                let _ = stopped.await;
                drop(held);
            }
        }
    }
}

/// Never, if nothing is due.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// A task that ends with whoever started it.
#[derive(Debug)]
struct OwnTask(JoinHandle<()>);

impl Drop for OwnTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What came of a request.
#[derive(Debug)]
enum Done {
    Written { object: Identity, written: Written },
    ReadAgain { uid: Box<str>, read: ReadAgain },
    Told { uid: Box<str> },
}

#[derive(Debug)]
struct Running {
    controller: DeclaredStreams,
    reconciler: Reconciler,
    clock: Clock,
    told: mpsc::Sender<(FeedId, FeedReport)>,
    kept: HashMap<FeedId, OwnTask>,
    requests: JoinSet<Done>,
    telling: Telling,
}

impl Running {
    fn count(&self) {
        self.controller.counts.set(Counted {
            streams: self.reconciler.counts(),
            publishing: self.reconciler.publishing(),
        });
    }

    /// Does what the reconciler says.
    fn act(&mut self) {
        loop {
            let actions: Vec<Action> = self.reconciler.actions().collect();
            if actions.is_empty() {
                return;
            }
            for action in actions {
                match action {
                    Action::Keep { feed, scope } => self.keep(feed, &scope),
                    Action::Release { feed } => {
                        self.kept.remove(&feed);
                    }
                    Action::Write { object, plan } => {
                        let (writer, diagnosing) =
                            (self.controller.writer.clone(), self.controller.diagnosing.clone());
                        self.requests
                            .spawn(async move { write(&writer, &diagnosing, object, plan).await });
                    }
                    Action::Tell { object, event } => self.tell(object, event),
                    Action::Read { object } => {
                        let (writer, diagnosing) =
                            (self.controller.writer.clone(), self.controller.diagnosing.clone());
                        self.requests
                            .spawn(async move { read(&writer, &diagnosing, object).await });
                    }
                }
            }
        }
    }

    fn keep(&mut self, feed: FeedId, warm: &WarmScope) {
        let controller = &self.controller;
        let upstream = controller.targets.get(warm.scope().target());
        let projection = controller.projections.get(warm.projection());
        let (Some(upstream), Some(projection)) = (upstream, projection) else {
            let error = StreamError::scope_invalid(if upstream.is_none() {
                "the gateway has no API server of this name: correct the target"
            } else {
                "the gateway has no projection of this name: correct it"
            });
            let report = FeedReport::Over(FeedEnd::Fatal(error));
            self.reconciler.reported(self.clock.now(), feed, report);
            return;
        };
        let mut keeper = controller.feeds.keep(Keep {
            scope: warm.scope(),
            projection,
            upstream: Arc::clone(upstream),
            partition: Arc::clone(&controller.partition),
        });
        let told = self.told.clone();
        let task = tokio::spawn(async move {
            loop {
                let report = keeper.reports().next().await;
                if told.send((feed, report)).await.is_err() {
                    return;
                }
            }
        });
        self.kept.insert(feed, OwnTask(task));
    }

    fn see(&mut self, seen: Seen) {
        match seen {
            Seen::SnapshotBegan => self.reconciler.snapshot_began(),
            Seen::SnapshotComplete => self.reconciler.snapshot_complete(),
            Seen::Read(read) => self.reconciler.read(self.clock.now(), *read),
            Seen::Deleted { uid } => self.reconciler.deleted(&uid),
            Seen::NotServed => self.reconciler.not_served(),
        }
    }

    fn take(&mut self, done: Done) {
        let now = self.clock.now();
        match done {
            Done::Written { object, written } => {
                let uid = object.uid.clone();
                if let Written::Answered(AfterWrite::Tell {
                    event: Some(event), ..
                }) = &written
                {
                    self.tell(object, event.clone());
                }
                self.reconciler.written(now, &uid, written);
            }
            Done::ReadAgain { uid, read } => self.reconciler.read_again(now, &uid, read),
            Done::Told { uid } => {
                if let Some((object, event)) = self.telling.told(&uid) {
                    self.record(object, event);
                }
            }
        }
    }

    /// Records an Event, after those of the same object that are to be recorded yet.
    fn tell(&mut self, object: Identity, event: EventPlan) {
        if let Some((object, event)) = self.telling.tell(object, event) {
            self.record(object, event);
        }
    }

    fn record(&mut self, object: Identity, event: EventPlan) {
        let (writer, diagnosing) = (self.controller.writer.clone(), self.controller.diagnosing.clone());
        self.requests.spawn(async move {
            if let Err(error) = writer.record(&object, &event).await {
                diagnosing.report("recording an event", None, &error);
            }
            Done::Told { uid: object.uid }
        });
    }
}

async fn write(
    writer: &KubeStatusWriter,
    diagnosing: &Diagnosing,
    object: Identity,
    plan: WritePlan,
) -> Done {
    let written = match writer.write(&object, plan.patch()).await {
        Ok(outcome) => Written::Answered(plan.settle(outcome)),
        Err(cause) => {
            diagnosing.report("writing a status", None, &cause);
            Written::Failed
        }
    };
    Done::Written { object, written }
}

async fn read(writer: &KubeStatusWriter, diagnosing: &Diagnosing, object: Identity) -> Done {
    let read = writer.read(&object).await.unwrap_or_else(|error| {
        diagnosing.report("reading a declared stream", None, &error);
        ReadAgain::Failed
    });
    Done::ReadAgain {
        uid: object.uid,
        read,
    }
}

/// The scope of all resources.
fn declared_streams() -> Result<Scope, krm_stream_protocol::ScopeError> {
    Scope::builder(&*DeclaredStream::version(&()), &*DeclaredStream::plural(&()))
        .group(&*DeclaredStream::group(&()))
        .build()
}
