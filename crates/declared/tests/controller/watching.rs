//! The watch of the resources themselves.

use krm_stream_simulator::{Ending, Fault, RequestMatch, StreamAction, StreamPoint};
use serde_json::json;

use super::world::{World, configmaps};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_of_the_resources_that_keep_ending_are_told_to_the_operator_once_in_a_while() {
    let world = World::installed().await;
    let resources = "declaredstreams.krm-stream.github.io";
    let faults = world.simulator.faults();
    for (watches, point) in [
        (RequestMatch::streaming_list(), StreamPoint::AfterBoundary),
        (RequestMatch::resumed_watch(), StreamPoint::Start),
    ] {
        let cut = Fault::stream(point, StreamAction::End(Ending::Close));
        faults.add(watches.resource(resources).always(), cut);
    }
    let _replica = world.start(None);
    world
        .until(|| world.reports("watching declared streams") > 0)
        .await;
    let watches = world.watches("declaredstreams");
    world
        .until(|| world.watches("declaredstreams") >= watches + 2)
        .await;
    assert_eq!(world.reports("watching declared streams"), 1);

    // What is declared is taken up all the same.
    world.declare("shop", &json!([configmaps("settings", "shop")]));
    world.until_ready("shop").await;
}
