//! An API server, the feeds of a gateway, and replicas of the controller.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::HeaderName;
use krm_stream_declared::{
    DeclaredCounts, DeclaredPolicy, DeclaredStreams, LeaseSettings, custom_resource_definition,
};
use krm_stream_projection::DigestKey;
use krm_stream_protocol::{
    Diagnosing, Diagnostic, Diagnostics, Observation, Observer, Observing, ResourceRule, ScopePolicy,
    SessionEndReason, Target, Upstream,
};
use krm_stream_shared::{FeedSettings, Feeds};
use krm_stream_simulator::{Ending, ReceivedRequest, RequestMatch, Resource, Rule, Simulator, Verb};
use krm_stream_upstream_kube::{KubeUpstream, KubeUpstreamBuilder};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// Longer than anything here may take.
const LONG: Duration = Duration::from_mins(1);
const RESOURCE: &str = "declaredstreams.krm-stream.github.io";
/// The header by which a replica is known in what it asks for the Lease and of statuses.
const REPLICA: &str = "x-replica";

pub(crate) struct World {
    pub(crate) simulator: Simulator,
    pub(crate) feeds: Feeds,
    sessions: Arc<Sessions>,
    log: Arc<Log>,
}

/// How long a Lease lasts, when it is given up, and how often it is renewed.
type LeaseTimes = [Duration; 3];
/// Others take over soon.
const SOON: LeaseTimes = [
    Duration::from_secs(2),
    Duration::from_secs(1),
    Duration::from_millis(100),
];
/// Its holder has time before it gives up, and there is time before another takes over, though either may stand still for a
/// second.
const WITH_TIME: LeaseTimes = [
    Duration::from_secs(6),
    Duration::from_secs(3),
    Duration::from_millis(100),
];

/// A running controller. Dropped, it dies without a word.
pub(crate) struct Replica {
    shutdown: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
    pub(crate) counts: DeclaredCounts,
}

#[derive(Debug, Default)]
struct Sessions {
    closed: AtomicU64,
}

impl Observer for Sessions {
    fn observe(&self, observation: &Observation) {
        if let Observation::UpstreamSessionEnded {
            reason: SessionEndReason::Closed,
        } = observation
        {
            self.closed.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[derive(Debug, Default)]
struct Log(Mutex<Vec<&'static str>>);

impl Diagnostics for Log {
    fn report(&self, diagnostic: &Diagnostic<'_>) {
        self.0.lock().unwrap().push(diagnostic.operation);
    }
}

/// A stream of the config maps of one namespace.
pub(crate) fn configmaps(name: &str, namespace: &str) -> Value {
    json!({"name": name, "scope": {"version": "v1", "resource": "configmaps", "namespace": namespace}})
}

impl World {
    /// An API server without the definition.
    pub(crate) async fn bare() -> Self {
        Self::on(Simulator::start().await.unwrap())
    }

    /// This one.
    pub(crate) fn on(simulator: Simulator) -> Self {
        let sessions = Arc::<Sessions>::default();
        let feeds = Feeds::new(
            FeedSettings {
                linger: Duration::ZERO,
                ..FeedSettings::default()
            },
            DigestKey::new([7; 32]),
            Observing::with(sessions.clone()),
            Diagnosing::default(),
        );
        Self {
            simulator,
            feeds,
            sessions,
            log: Arc::default(),
        }
    }

    /// One with it.
    pub(crate) async fn installed() -> Self {
        let world = Self::bare().await;
        world.install();
        world
    }

    pub(crate) fn install(&self) {
        let definition = serde_json::to_value(custom_resource_definition()).unwrap();
        self.simulator
            .create("customresourcedefinitions.apiextensions.k8s.io", definition)
            .unwrap();
        let group = "krm-stream.github.io";
        self.simulator.register(
            Resource::custom(group, "v1alpha1", "declaredstreams", "DeclaredStream").cluster_scoped(),
        );
    }

    pub(crate) fn uninstall(&self) {
        self.simulator
            .delete("customresourcedefinitions.apiextensions.k8s.io", "", RESOURCE)
            .unwrap();
        self.simulator.unregister(RESOURCE);
    }

    /// Starts a replica, which is its own gateway but for the feeds; with a Lease, under this name.
    pub(crate) fn start(&self, identity: Option<&str>) -> Replica {
        self.start_with(identity, SOON, brief_sessions)
    }

    /// The same with a Lease whose times can be told apart.
    pub(crate) fn start_with_time(&self, identity: &str) -> Replica {
        self.start_with(Some(identity), WITH_TIME, brief_sessions)
    }

    /// The same with sessions that have to last before they have lived.
    pub(crate) fn start_patient(&self, identity: Option<&str>) -> Replica {
        self.start_with(identity, SOON, |upstream| upstream)
    }

    fn start_with(
        &self,
        identity: Option<&str>,
        [lasts, given_up, renewed]: LeaseTimes,
        settings: impl FnOnce(KubeUpstreamBuilder) -> KubeUpstreamBuilder,
    ) -> Replica {
        let config = || {
            let mut config = kube::Config::new(self.simulator.url().parse().unwrap());
            config.default_retry = false;
            config
        };
        let mut named = config();
        let name = identity.unwrap_or_default().parse().unwrap();
        named.headers.push((HeaderName::from_static(REPLICA), name));
        let client = kube::Client::try_from(named).unwrap();
        let resources: Arc<dyn Upstream> = Arc::new(KubeUpstream::from_config(config()).unwrap());
        let target: Arc<dyn Upstream> = Arc::new(settings(KubeUpstream::builder(config())).build().unwrap());
        let policy = DeclaredPolicy::new(
            ScopePolicy::deny_all()
                .allow_target(Target::default())
                .allow(ResourceRule::namespaced("", "configmaps"))
                .allow(ResourceRule::namespaced("apps", "deploymentz")),
        );
        let feeds = if identity.is_none() {
            self.feeds.clone()
        } else {
            own_feeds()
        };
        let mut builder = DeclaredStreams::builder(feeds, policy, client, resources)
            .target(Target::default(), target)
            .absent_pace(Duration::from_secs(1))
            .diagnosing(Diagnosing::with(self.log.clone()));
        if let Some(identity) = identity {
            let settings = LeaseSettings::new("gateway", "declared", identity);
            builder = builder.lease(settings.times(lasts, given_up, renewed));
        }
        let controller = builder.build().unwrap();
        let counts = controller.counts();
        let (shutdown, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(controller.run(async move {
            let _ = stopped.await;
        }));
        Replica {
            shutdown: Some(shutdown),
            task,
            counts,
        }
    }

    /// Declares these streams, whatever was declared before.
    pub(crate) fn declare(&self, name: &str, streams: &Value) {
        let object = json!({"metadata": {"name": name}, "spec": {"streams": streams}});
        self.simulator.apply(RESOURCE, object).unwrap();
    }

    /// Ends the watches of a resource at a version that the API server has forgotten.
    pub(crate) fn expire(&self, resource: &str) {
        let version: u64 = self.simulator.resource_version().parse().unwrap();
        self.simulator.advance_resource_version(version + 100);
        self.simulator.compact();
        self.simulator
            .end_watches(&RequestMatch::watch().resource(resource), Ending::Close);
    }

    /// Takes these rights to config maps away, and ends the watches that were opened by them.
    pub(crate) fn forbid(&self, verbs: &[&str]) {
        let denied = Rule::deny()
            .verbs(verbs.iter().copied())
            .resource("", "configmaps");
        self.simulator.access().set_rules([Rule::allow(), denied]);
        self.simulator
            .end_watches(&RequestMatch::watch().resource("configmaps"), Ending::Close);
    }

    pub(crate) async fn until(&self, condition: impl Fn() -> bool) {
        let deadline = Instant::now() + LONG;
        while !condition() {
            assert!(
                Instant::now() < deadline,
                "it never comes to that; events: {:?}, diagnostics: {:?}, resources: {:?}",
                self.events(),
                self.log.0.lock().unwrap(),
                self.simulator.objects(RESOURCE),
            );
            sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn until_ready(&self, name: &str) {
        self.until(|| {
            let object = self.simulator.get(RESOURCE, "", name).unwrap_or_default();
            object["status"]["observedGeneration"] == object["metadata"]["generation"]
                && self.condition(name, "Ready").0 == "True"
        })
        .await;
    }

    /// Until the newest Event tells that all is ready: it comes after the write that it tells of.
    pub(crate) async fn until_told_ready(&self) {
        let is_told = || {
            let newest = self.events().pop();
            newest.is_some_and(|(_, reason)| reason == "AllStreamsReady")
        };
        self.until(is_told).await;
    }

    /// Status, reason and message of a condition; empty if there is none.
    pub(crate) fn condition(&self, name: &str, type_: &str) -> (String, String, String) {
        let object = self.simulator.get(RESOURCE, "", name).unwrap_or_default();
        let conditions = object["status"]["conditions"].as_array().cloned();
        let found = conditions
            .into_iter()
            .flatten()
            .find(|condition| condition["type"] == type_)
            .unwrap_or_default();
        let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
        (text("status"), text("reason"), text("message"))
    }

    pub(crate) fn ready(&self, name: &str) -> (String, String) {
        let (status, reason, _) = self.condition(name, "Ready");
        (status, reason)
    }

    pub(crate) fn version(&self, name: &str) -> String {
        let object = self.simulator.get(RESOURCE, "", name).unwrap();
        object["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
    }

    /// Type and reason of each Event, in the order in which they were recorded.
    pub(crate) fn events(&self) -> Vec<(String, String)> {
        let mut events = self.stored_events();
        events.sort_by_key(version_of);
        let text = |event: &Value, key: &str| event[key].as_str().unwrap().to_owned();
        events
            .iter()
            .map(|event| (text(event, "type"), text(event, "reason")))
            .collect()
    }

    /// The reason of each Event, in that order.
    pub(crate) fn reasons(&self) -> Vec<String> {
        self.events().into_iter().map(|(_, reason)| reason).collect()
    }

    pub(crate) fn event(&self, number: usize) -> Value {
        let mut events = self.stored_events();
        events.sort_by_key(version_of);
        events[number].clone()
    }

    fn stored_events(&self) -> Vec<Value> {
        let events = self.simulator.objects("events.events.k8s.io");
        events
            .iter()
            .map(|event| serde_json::from_slice(event).unwrap())
            .collect()
    }

    /// Everything that is published of it.
    pub(crate) fn published(&self, name: &str) -> (Value, usize, usize) {
        let object = self.simulator.get(RESOURCE, "", name).unwrap();
        (object, self.status_writes(), self.stored_events().len())
    }

    pub(crate) fn holder(&self) -> Option<String> {
        let lease = self
            .simulator
            .get("leases.coordination.k8s.io", "gateway", "declared")?;
        lease["spec"]["holderIdentity"].as_str().map(str::to_owned)
    }

    /// How many sessions of feeds were closed by the API server.
    pub(crate) fn closed(&self) -> u64 {
        self.sessions.closed.load(Ordering::SeqCst)
    }

    pub(crate) fn reports(&self, operation: &str) -> usize {
        let log = self.log.0.lock().unwrap();
        log.iter().filter(|reported| **reported == operation).count()
    }

    pub(crate) fn status_writes(&self) -> usize {
        let requests = self.simulator.requests();
        requests.iter().filter(|request| is_status_write(request)).count()
    }

    pub(crate) fn creations(&self, resource: &str) -> usize {
        self.count(|verb, asked| verb == Verb::Create && asked == resource)
    }

    pub(crate) fn gets(&self, resource: &str) -> usize {
        self.count(|verb, asked| verb == Verb::Get && asked == resource)
    }

    pub(crate) fn watches(&self, resource: &str) -> usize {
        self.count(|verb, asked| verb == Verb::Watch && asked == resource)
    }

    pub(crate) fn lists(&self, resource: &str) -> usize {
        self.count(|verb, asked| verb == Verb::List && asked == resource)
    }

    fn count(&self, counts: impl Fn(Verb, &str) -> bool) -> usize {
        self.simulator
            .requests()
            .iter()
            .filter(|request| counts(request.verb(), request.resource()))
            .count()
    }

    /// How many watches of a resource are open: a bookmark reaches them.
    pub(crate) fn open_watches(&self, resource: &str) -> usize {
        self.simulator
            .inject(&RequestMatch::watch().resource(resource), "\n")
    }
}

/// Sessions that ask for a second have lived long enough whenever they end.
fn brief_sessions(upstream: KubeUpstreamBuilder) -> KubeUpstreamBuilder {
    upstream.watch_timeout(Duration::from_secs(1))
}

fn own_feeds() -> Feeds {
    Feeds::new(
        FeedSettings::default(),
        DigestKey::new([7; 32]),
        Observing::default(),
        Diagnosing::default(),
    )
}

fn version_of(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap()
}

/// Requests of this replica for the Lease.
pub(crate) fn lease_requests_of(replica: &'static str) -> RequestMatch {
    RequestMatch::any()
        .resource("leases.coordination.k8s.io")
        .filter(move |request| is_of(request, replica))
        .always()
}

/// Whether a replica sent it.
pub(crate) fn is_of(request: &ReceivedRequest, replica: &str) -> bool {
    let name = request.headers().get(REPLICA);
    name.is_some_and(|name| name.as_bytes() == replica.as_bytes())
}

pub(crate) fn is_status_write(request: &ReceivedRequest) -> bool {
    request.verb() == Verb::Patch
        && request.resource() == "declaredstreams"
        && request.subresource() == "status"
}

pub(crate) fn is_lease_write(request: &ReceivedRequest) -> bool {
    request.verb() == Verb::Patch && request.resource() == "leases"
}

impl Replica {
    /// Shuts it down, and waits until it is gone.
    pub(crate) async fn stop(mut self) {
        drop(self.shutdown.take());
        tokio::time::timeout(LONG, &mut self.task).await.unwrap().unwrap();
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.task.abort();
    }
}
