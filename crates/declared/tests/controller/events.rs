//! Events that an API server does not take, or not at once.

use krm_stream_simulator::{Fault, RequestMatch, Status, Verb};
use serde_json::json;

use crate::world::{World, configmaps};

fn creations_of_events() -> RequestMatch {
    RequestMatch::any()
        .verb(Verb::Create)
        .resource("events.events.k8s.io")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_is_not_taken_at_once_is_recorded_once() {
    let world = World::installed().await;
    let away = Fault::status(&Status::new(503, "the server is starting").reason("ServiceUnavailable"));
    let faults = world.simulator.faults();
    let refused = faults.add(creations_of_events().times(2), away);
    let _replica = world.start(None);
    world.declare("shop", &json!([configmaps("settings", "shop")]));
    world.until_told_ready().await;
    assert_eq!(faults.hits(refused), 2);
    assert_eq!(world.reasons(), ["Replaying", "AllStreamsReady"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_tells_the_truth_while_no_event_can_be_recorded_and_the_events_follow_in_order() {
    let world = World::installed().await;
    let faults = world.simulator.faults();
    let silent = faults.add(creations_of_events().always(), Fault::HangBeforeHeaders);
    let _replica = world.start(None);
    world.declare("shop", &json!([configmaps("settings", "shop")]));
    world.until_ready("shop").await;
    world.forbid(&["list", "watch"]);
    world
        .until(|| world.ready("shop") == ("False".into(), "WatchNotPermitted".into()))
        .await;
    assert_eq!(world.events(), []);

    faults.remove(silent);
    world.until(|| world.events().len() == 3).await;
    assert_eq!(
        world.reasons(),
        ["Replaying", "AllStreamsReady", "WatchNotPermitted"]
    );
}
