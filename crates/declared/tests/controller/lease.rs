//! A holder of the Lease that is alive and cannot renew it.

use std::sync::atomic::{AtomicUsize, Ordering};

use krm_stream_simulator::{Fault, Status, Verb};
use serde_json::{Value, json};

use super::world::{World, configmaps, is_lease_write, is_of, is_status_write, lease_requests_of};

/// Edits the resource at each tenth look, so that whoever publishes always has something to write, and the time for it.
struct Editor<'a> {
    world: &'a World,
    looks: AtomicUsize,
}

impl Editor<'_> {
    fn edit(&self) {
        let looks = self.looks.fetch_add(1, Ordering::Relaxed);
        if !looks.is_multiple_of(10) {
            return;
        }
        let streams = match looks / 10 % 2 {
            0 => {
                json!([configmaps("settings", "shop"), {"name": "all", "scope": {"version": "v1", "resource": "configmaps"}}])
            }
            _ => json!([configmaps("settings", "shop")]),
        };
        self.world.declare("shop", &streams);
    }
}

/// Which generation there is, and which one was looked at by whoever published last.
fn generations(world: &World) -> (u64, u64) {
    let (object, ..) = world.published("shop");
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    (
        number(&object["metadata"]["generation"]),
        number(&object["status"]["observedGeneration"]),
    )
}

async fn is_lost_and_taken_over(fault: Fault) {
    let world = World::installed().await;
    let first = world.start_with_time("pod-1");
    world.until(|| world.holder().as_deref() == Some("pod-1")).await;
    world.declare("shop", &json!([configmaps("settings", "shop")]));
    world.until_ready("shop").await;
    let second = world.start_with_time("pod-2");
    world.until(|| second.counts.now().ready == 1).await;
    let editor = Editor {
        world: &world,
        looks: AtomicUsize::new(0),
    };
    world
        .until(|| {
            editor.edit();
            generations(&world).1 >= 5
        })
        .await;

    // All is well but the Lease, for longer than it lasts.
    world.simulator.clear_requests();
    let cut = world.simulator.faults().add(lease_requests_of("pod-1"), fault);
    let unanswered = AtomicUsize::new(0);
    world
        .until(|| {
            let (generation, observed) = generations(&world);
            let behind = usize::try_from(generation - observed).unwrap();
            unanswered.fetch_max(behind, Ordering::Relaxed);
            editor.edit();
            world.holder().as_deref() == Some("pod-2")
        })
        .await;
    world
        .until(|| {
            editor.edit();
            let requests = world.simulator.requests();
            let own = requests.iter().filter(|request| is_of(request, "pod-2"));
            own.filter(|request| is_status_write(request)).count() >= 3
        })
        .await;

    // It gave up long before the other one took over, and there were edits all along: about fifty.
    let unanswered = unanswered.load(Ordering::Relaxed);
    assert!(unanswered >= 3, "{unanswered} edits");
    let requests = world.simulator.requests();
    let wrote = |replica: &str| {
        let is_own = |index: &usize| is_status_write(&requests[*index]) && is_of(&requests[*index], replica);
        (0..requests.len()).filter(is_own).collect::<Vec<_>>()
    };
    let taken = requests
        .iter()
        .position(|request| is_lease_write(request) && is_of(request, "pod-2"))
        .unwrap();
    let (by_first, by_second) = (wrote("pod-1"), wrote("pod-2"));
    assert!(!by_first.is_empty(), "it published for as long as it held it");
    assert!(
        by_first.iter().all(|index| *index < taken),
        "{by_first:?}, {taken}"
    );
    assert!(
        by_second.iter().all(|index| *index > taken),
        "{by_second:?}, {taken}"
    );

    // It comes back, and waits: it looks at the Lease, and writes neither that nor a status.
    world.simulator.faults().remove(cut);
    world.simulator.clear_requests();
    world
        .until(|| {
            editor.edit();
            let requests = world.simulator.requests();
            let own = requests.iter().filter(|request| is_of(request, "pod-1"));
            let looks = own.filter(|request| request.verb() == Verb::Get && request.resource() == "leases");
            looks.count() >= 10
        })
        .await;
    let requests = world.simulator.requests();
    let written = requests
        .iter()
        .filter(|request| is_of(request, "pod-1") && request.verb() != Verb::Get);
    assert_eq!(written.count(), 0);
    assert_eq!(world.holder().as_deref(), Some("pod-2"));
    assert_eq!(first.counts.now().ready, 1, "it has kept its feed");
    assert!(world.reports("holding the lease") > 0);

    // And publishes again when the other one goes.
    second.stop().await;
    world.until(|| world.holder().as_deref() == Some("pod-1")).await;
    world.declare("shop", &json!([configmaps("settings", "shop")]));
    world.until_ready("shop").await;
    first.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_whose_renewals_fail_stops_writing_before_another_begins() {
    let status = Status::new(500, "etcdserver: request timed out");
    is_lost_and_taken_over(Fault::status(&status)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_whose_renewals_hang_stops_writing_before_another_begins() {
    is_lost_and_taken_over(Fault::HangBeforeHeaders).await;
}
