//! What a host is told in figures.

use krm_stream_declared::StreamCounts;
use serde_json::json;

use crate::world::{World, configmaps};

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
