//! The task that holds the Lease, in virtual time, on an API server that goes by what is told to it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::*;

const SECOND: Duration = Duration::from_secs(1);
/// How often the replicas are looked at.
const LOOK: Duration = Duration::from_millis(10);

/// What becomes of the requests of a replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Way {
    #[default]
    Works,
    /// They are answered after this time.
    Late(Duration),
    /// They are refused.
    Fails,
    /// They are never answered.
    Hangs,
}

/// An API server that stores one Lease.
#[derive(Debug, Default)]
struct Store {
    lease: Option<Value>,
    version: u64,
    ways: BTreeMap<&'static str, Way>,
    /// When the last write of this replica that was stored had been sent.
    stored: BTreeMap<&'static str, Instant>,
    /// The methods that were asked for.
    asked: Vec<(&'static str, Method)>,
}

type Shared = Arc<Mutex<Store>>;

impl Store {
    fn answer(
        &mut self,
        replica: &'static str,
        sent: Instant,
        method: &Method,
        body: &Value,
    ) -> (u16, Value) {
        if *method == Method::GET {
            let found = self.lease.clone();
            return found.map_or((404, json!({})), |lease| (200, lease));
        }
        let replaces = body["metadata"]["resourceVersion"].as_str().map(str::to_owned);
        let held = self
            .lease
            .as_ref()
            .map(|lease| &lease["metadata"]["resourceVersion"]);
        if held.and_then(Value::as_str) != replaces.as_deref() {
            return (409, json!({"reason": "Conflict"}));
        }
        self.version += 1;
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "declared", "resourceVersion": self.version.to_string()},
            "spec": body["spec"],
        });
        self.stored.insert(replica, sent);
        self.lease = Some(lease.clone());
        (200, lease)
    }
}

async fn serve(
    store: Shared,
    replica: &'static str,
    request: Request<Body>,
) -> Result<Response<Body>, Infallible> {
    let sent = Instant::now();
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let way = {
        let mut store = store.lock().unwrap();
        store.asked.push((replica, parts.method.clone()));
        store.ways.get(replica).copied().unwrap_or_default()
    };
    match way {
        Way::Works | Way::Fails => {}
        Way::Late(time) => sleep(time).await,
        Way::Hangs => std::future::pending().await,
    }
    let (code, answer) = if way == Way::Fails {
        (500, json!({"reason": "InternalError"}))
    } else {
        store.lock().unwrap().answer(replica, sent, &parts.method, &body)
    };
    let answer = Body::from(answer.to_string().into_bytes());
    Ok(Response::builder().status(code).body(answer).unwrap())
}

/// A replica that takes part.
struct Replica {
    held: watch::Receiver<bool>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Replica {
    fn holds(&self) -> bool {
        *self.held.borrow()
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap();
    }
}

/// The API server, and two that want the Lease.
struct Scene {
    store: Shared,
    one: Replica,
    two: Replica,
}

impl Scene {
    /// The first one holds it.
    async fn new() -> Self {
        let store = Shared::default();
        let one = start(&store, "pod-1");
        while !*one.held.borrow() {
            sleep(LOOK).await;
        }
        let two = start(&store, "pod-2");
        Self { store, one, two }
    }

    fn set(&self, replica: &'static str, way: Way) {
        self.store.lock().unwrap().ways.insert(replica, way);
    }

    fn stored(&self, replica: &str) -> Instant {
        self.store.lock().unwrap().stored[replica]
    }

    fn spec(&self) -> Value {
        self.store.lock().unwrap().lease.clone().unwrap()["spec"].take()
    }

    /// Lets time pass, and returns when this was so for the first time. At no time do both hold it.
    async fn until(&self, time: Duration, is_so: impl Fn(&Self) -> bool) -> Option<Instant> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            assert!(!(self.one.holds() && self.two.holds()), "both hold it");
            if is_so(self) {
                return Some(Instant::now());
            }
            sleep(LOOK).await;
        }
        None
    }
}

fn start(store: &Shared, replica: &'static str) -> Replica {
    let store = Arc::clone(store);
    let service = tower::service_fn(move |request| serve(Arc::clone(&store), replica, request));
    let holding = Holding {
        api: Api::new(kube::Client::new(service, "default")),
        settings: LeaseSettings::new("gateway", "declared", replica),
        clock: Clock::new(),
        seed: 7,
        diagnosing: Diagnosing::default(),
    };
    let (told, held) = watch::channel(false);
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(holding.run(told, stopped));
    Replica { held, stop, task }
}

/// The Lease lasts 15 s, is given up after 10 s, and is renewed every 2 s.
#[tokio::test(start_paused = true)]
async fn a_holder_that_cannot_renew_it_stops_at_its_deadline_and_before_another_begins() {
    for way in [Way::Fails, Way::Hangs] {
        // At any time between two renewals, and also while one is out.
        for millis in (0..2300).step_by(230) {
            let scene = Scene::new().await;
            // So that no attempt falls on the deadline.
            scene.set("pod-1", Way::Late(Duration::from_millis(300)));
            let before = Duration::from_millis(20_000 + millis);
            let lost = scene.until(before, |scene| !scene.one.holds()).await;
            assert_eq!(lost, None, "it holds it for as long as it can renew it");
            scene.set("pod-1", way);

            let lost = scene
                .until(20 * SECOND, |scene| !scene.one.holds())
                .await
                .unwrap();
            // One that was out may have been stored since.
            let renewed = scene.stored("pod-1");
            let after = lost - renewed;
            assert!(
                after >= 10 * SECOND && after <= 10 * SECOND + 2 * LOOK,
                "{way:?} {millis}: {after:?}"
            );
            assert!(!scene.two.holds());
            let taken = scene.until(20 * SECOND, |scene| scene.two.holds()).await.unwrap();
            let after = taken - renewed;
            assert!(
                after >= 15 * SECOND && after <= 22 * SECOND,
                "{way:?} {millis}: {after:?}"
            );

            // It comes back as one that waits: it looks, and takes nothing.
            scene.set("pod-1", Way::Works);
            scene.until(6 * SECOND, |_| false).await;
            scene.store.lock().unwrap().asked.clear();
            let again = scene.until(100 * SECOND, |scene| scene.one.holds()).await;
            assert_eq!(again, None);
            assert!(scene.two.holds());
            assert_eq!(scene.spec()["holderIdentity"], "pod-2");
            assert_eq!(scene.spec()["leaseTransitions"], 1);
            let asked = scene.store.lock().unwrap().asked.clone();
            let own: Vec<&Method> = asked
                .iter()
                .filter_map(|(replica, method)| (*replica == "pod-1").then_some(method))
                .collect();
            assert!(
                own.len() > 20 && own.iter().all(|method| **method == Method::GET),
                "{own:?}"
            );

            // And holds it when the other one gives it up.
            let Scene { store, one, two } = scene;
            two.stop().await;
            assert_eq!(
                store.lock().unwrap().lease.clone().unwrap()["spec"]["holderIdentity"],
                Value::Null
            );
            let began = Instant::now();
            let mut held = one.held.clone();
            held.wait_for(|held| *held).await.unwrap();
            assert!(began.elapsed() <= 5 * SECOND, "{:?}", began.elapsed());
            one.stop().await;
        }
    }
}

/// A request may take 5 s, half of the deadline.
#[tokio::test(start_paused = true)]
async fn a_holder_whose_renewals_are_slow_goes_on_and_one_whose_renewals_are_too_slow_does_not() {
    let scene = Scene::new().await;
    scene.set("pod-1", Way::Late(4 * SECOND));
    let lost = scene.until(300 * SECOND, |scene| !scene.one.holds()).await;
    assert_eq!(lost, None);
    scene.set("pod-1", Way::Late(6 * SECOND));
    let lost = scene.until(16 * SECOND, |scene| !scene.one.holds()).await;
    assert!(lost.is_some());
    // What it wants late is not stored any more, or stored and not believed: it holds nothing that it was not told of.
    scene.until(100 * SECOND, |_| false).await;
    assert!(!scene.one.holds());
}

#[tokio::test(start_paused = true)]
async fn one_that_is_told_to_stop_while_it_cannot_ask_ends_and_holds_nothing() {
    let scene = Scene::new().await;
    scene.set("pod-1", Way::Hangs);
    scene.until(3 * SECOND, |_| false).await;
    let Scene { one, two, .. } = scene;
    let held = one.held.clone();
    let began = Instant::now();
    one.stop().await;
    assert!(!*held.borrow());
    // The request that is out, and the one that gives it up, each within its bound.
    assert!(began.elapsed() <= 16 * SECOND, "{:?}", began.elapsed());
    let mut held = two.held.clone();
    held.wait_for(|held| *held).await.unwrap();
    two.stop().await;
}
