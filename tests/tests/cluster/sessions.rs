//! The watches behind the streams: how many there are, and that their routine ends are nobody's business.

use krm_stream_protocol::{EventType, Scope};
use serde_json::json;
use tokio::time::Instant;

use crate::api_server::ApiServer;
use crate::expectation::Versions;
use crate::gateway::Gateway;
use crate::objects::{built, limit_range, path, pod_template};
use crate::wait::{WITHIN, until};

/// A watch that has reached its timeout, so many times.
const RECYCLES: u64 = 3;

pub(crate) async fn two_subscribers_of_a_scope_are_one_watch(api: &ApiServer) {
    // A kind that nobody else watches by namespace.
    let pod_templates = |namespace: &str| built(Scope::builder("v1", "podtemplates").namespace(namespace));
    let scope = pod_templates(&api.create_namespace().await);
    let elsewhere = pod_templates(&api.create_namespace().await);
    api.create(&scope.api_path(), &pod_template("first")).await;
    let before = open_watches(api, "podtemplates").await;

    let gateway = Gateway::start(api, &["--allow", "podtemplates"]).await;
    let mut one = gateway.open(&scope).await;
    one.until_synced().await;
    is_open(api, before + 1).await;
    let mut other = gateway.open(&scope).await;
    other.until_synced().await;
    // Whatever opened a second watch would have done so before the snapshot was complete.
    assert_eq!(open_watches(api, "podtemplates").await, before + 1);

    // The measure can tell: another scope is another watch.
    let mut third = gateway.open(&elsewhere).await;
    third.until_synced().await;
    is_open(api, before + 2).await;
    drop(third);

    api.create(&scope.api_path(), &pod_template("second")).await;
    for viewer in [&mut one, &mut other] {
        viewer.until_shows("second", |_| true).await;
        viewer.agrees_with_kubectl(api, Versions::Equal).await;
    }
    drop(one);
    other.agrees_with_kubectl(api, Versions::Equal).await;
    drop(other);
    is_open(api, before).await;
}

async fn open_watches(api: &ApiServer, resource: &str) -> u64 {
    let labels = [("resource", resource), ("scope", "namespace"), ("verb", "WATCH")];
    api.metric("apiserver_longrunning_requests", &labels).await
}

async fn is_open(api: &ApiServer, watches: u64) {
    until("the API server counts so many watches", async || {
        (open_watches(api, "podtemplates").await == watches).then_some(())
    })
    .await;
}

pub(crate) async fn routine_ends_of_watches_are_unseen(api: &ApiServer) {
    let limit_ranges = |namespace: &str| built(Scope::builder("v1", "limitranges").namespace(namespace));
    let scope = limit_ranges(&api.create_namespace().await);
    api.create(&scope.api_path(), &limit_range("steady")).await;
    let gateway = Gateway::start(api, &["--allow", "limitranges", "--watch-timeout", "2"]).await;
    let mut viewer = gateway.open(&scope).await;
    viewer.until_synced().await;

    // One object is changed all the time; another comes and goes in each round.
    let before = ended_watches(api).await;
    let deadline = Instant::now() + WITHIN;
    let mut round = 0_u32;
    while ended_watches(api).await < before + RECYCLES {
        assert!(
            Instant::now() < deadline,
            "the API server ends watches at their timeout"
        );
        round += 1;
        let passing = format!("passing-{round}");
        api.create(&scope.api_path(), &limit_range(&passing)).await;
        let change = json!({"metadata": {"annotations": {"round": round.to_string()}}});
        api.merge_patch(&path(&scope, "steady"), &change).await;
        viewer.until_shows(&passing, |_| true).await;
        api.delete(&path(&scope, &passing)).await;
    }
    let last = round.to_string();
    viewer
        .until_shows("steady", |object| {
            object["metadata"]["annotations"]["round"] == last
        })
        .await;
    viewer
        .until("the last object of a round has gone", |viewer| {
            viewer.held(&format!("passing-{round}")).is_none()
        })
        .await;
    for round in 1..=round {
        assert_eq!(viewer.story(&format!("passing-{round}")), ["added", "deleted"]);
    }
    assert_eq!(viewer.count(EventType::Reset), 1);
    assert_eq!(viewer.count(EventType::Error), 0);
    viewer.agrees_with_kubectl(api, Versions::Equal).await;
}

async fn ended_watches(api: &ApiServer) -> u64 {
    let labels = [
        ("resource", "limitranges"),
        ("scope", "namespace"),
        ("verb", "WATCH"),
    ];
    api.metric("apiserver_request_total", &labels).await
}
