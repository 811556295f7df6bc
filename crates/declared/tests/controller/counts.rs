//! What a host is told in figures.

use krm_stream_declared::{PublishingCounts, StreamCounts};
use krm_stream_simulator::Rule;
use serde_json::json;

use crate::world::{World, configmaps};

const GROUP: &str = "krm-stream.github.io";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_can_count_streams_by_state_at_any_time() {
    let world = World::installed().await;
    let replica = world.start(None);
    assert_eq!(replica.counts.now(), StreamCounts::default());
    let all = json!({"name": "all", "scope": {"version": "v1", "resource": "configmaps"}});
    world.declare("shop", &json!([configmaps("settings", "shop"), all]));
    let (ready, blocked) = (1, 1);
    let counted = StreamCounts {
        ready,
        blocked,
        ..StreamCounts::default()
    };
    world.until(|| replica.counts.now() == counted).await;
    world.declare("shop", &json!([configmaps("settings", "shop")]));
    let counted = StreamCounts {
        ready,
        ..StreamCounts::default()
    };
    world.until(|| replica.counts.now() == counted).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_can_tell_who_publishes_and_that_a_status_is_refused() {
    let world = World::installed().await;
    let holder = world.start(Some("pod-1"));
    world.until(|| holder.counts.publishing().publishes).await;
    let waiting = world.start(Some("pod-2"));
    world.simulator.access().set_rules([
        Rule::allow(),
        Rule::deny()
            .verbs(["patch"])
            .resource(GROUP, "declaredstreams/status"),
    ]);
    world.declare("shop", &json!([configmaps("settings", "shop")]));
    let publishing = |publishes, unwritten| PublishingCounts { publishes, unwritten };
    world
        .until(|| holder.counts.publishing() == publishing(true, 1))
        .await;
    assert_eq!(waiting.counts.publishing(), publishing(false, 0));
    world.simulator.access().set_rules([]);
    world
        .until(|| holder.counts.publishing() == publishing(true, 0))
        .await;
}
