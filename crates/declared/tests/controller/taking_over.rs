//! Replicas that begin while the status says that all is ready.

use krm_stream_simulator::{Fault, FaultId, RequestMatch};
use serde_json::json;

use super::world::{Replica, World, configmaps, is_lease_write, is_of};

/// Streams are ready, by a first replica. From here on no snapshot of a feed is complete before `complete` says so.
async fn ready(identity: Option<&'static str>) -> (World, Replica, FaultId) {
    let world = World::installed().await;
    let first = world.start(identity);
    world.declare("shop", &json!([configmaps("settings", "shop")]));
    world.until_ready("shop").await;
    world.until_told_ready().await;
    let held_up = world.simulator.faults().add(
        RequestMatch::streaming_list().resource("configmaps").always(),
        Fault::NoInitialEventsEnd,
    );
    (world, first, held_up)
}

impl World {
    /// Sends the end of their snapshots to all open watches.
    fn complete(&self) -> usize {
        let bookmark = json!({"type": "BOOKMARK", "object": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {
            "resourceVersion": self.simulator.resource_version(),
            "annotations": {"k8s.io/initial-events-end": "true"},
        }}});
        let watches = RequestMatch::watch().resource("configmaps");
        self.simulator.inject(&watches, format!("{bookmark}\n"))
    }

    /// Until a replica, which holds the Lease, has renewed it so often: it knows by then that it publishes.
    async fn until_renewed(&self, replica: &'static str, times: usize) {
        let renewals = || {
            let requests = self.simulator.requests();
            let own = requests.iter().filter(|request| is_of(request, replica));
            own.filter(|request| is_lease_write(request)).count()
        };
        let before = renewals();
        self.until(|| renewals() >= before + times).await;
    }

    /// An expired version is told of in two Events, and nothing else was.
    async fn is_told_as_ever(&self, before: &(serde_json::Value, usize, usize)) {
        let (_, writes, events) = before;
        self.expire("configmaps");
        self.until(|| self.published("shop").2 >= events + 2).await;
        self.until_ready("shop").await;
        let (_, then_writes, then_events) = self.published("shop");
        assert_eq!((then_writes, then_events), (writes + 2, events + 2));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_takes_over_before_its_first_snapshot_is_there_writes_and_tells_nothing() {
    let (world, first, held_up) = ready(Some("pod-1")).await;
    let second = world.start_patient(Some("pod-2"));
    world.until(|| second.counts.now().replaying == 1).await;
    world.until(|| world.open_watches("configmaps") == 2).await;
    let before = world.published("shop");
    first.stop().await;
    world.until(|| world.holder().as_deref() == Some("pod-2")).await;
    world.until_renewed("pod-2", 3).await;
    assert_eq!(
        second.counts.now().replaying,
        1,
        "it has taken over, and knows nothing"
    );
    assert_eq!(world.published("shop"), before);

    // That of the first one may still be open.
    assert!(world.complete() >= 1);
    world.until(|| second.counts.now().ready == 1).await;
    world.until_renewed("pod-2", 3).await;
    assert_eq!(world.published("shop"), before);
    assert_eq!(world.ready("shop"), ("True".into(), "AllStreamsReady".into()));

    world.simulator.faults().remove(held_up);
    world.is_told_as_ever(&before).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_started_again_writes_and_tells_nothing() {
    let (world, first, held_up) = ready(None).await;
    let before = world.published("shop");
    first.stop().await;
    world.until(|| world.feeds.count() == 0).await;
    let second = world.start_patient(None);
    world.until(|| second.counts.now().replaying == 1).await;
    world.until(|| world.open_watches("configmaps") == 1).await;
    assert_eq!(world.complete(), 1);
    world.until(|| second.counts.now().ready == 1).await;
    assert_eq!(world.published("shop"), before);

    world.simulator.faults().remove(held_up);
    world.is_told_as_ever(&before).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_takes_over_and_may_not_read_says_so_at_once() {
    let (world, first, _) = ready(Some("pod-1")).await;
    let second = world.start_patient(Some("pod-2"));
    world.until(|| second.counts.now().replaying == 1).await;
    world.until(|| world.open_watches("configmaps") == 2).await;
    let (_, writes, events) = world.published("shop");
    first.stop().await;
    world.until(|| world.holder().as_deref() == Some("pod-2")).await;
    world.forbid(&["list", "watch"]);
    world
        .until(|| world.ready("shop") == ("False".into(), "WatchNotPermitted".into()))
        .await;
    world.until(|| world.published("shop").2 == events + 1).await;
    assert_eq!(world.published("shop").1, writes + 1);
}
