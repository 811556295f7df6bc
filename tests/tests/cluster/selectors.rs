//! Scopes that a label selector narrows.

use serde_json::json;

use crate::api_server::ApiServer;
use crate::expectation::Versions;
use crate::gateway::Gateway;
use crate::objects::{config_maps, config_maps_labelled, has_value, labelled, path, set_value};

pub(crate) async fn an_object_leaves_and_enters_a_selector(api: &ApiServer) {
    let namespace = api.create_namespace().await;
    let all = config_maps(&namespace);
    let blue = config_maps_labelled(&namespace, "colour in (blue,azure),!hidden");
    for (name, labels) in [
        ("mover", json!({"colour": "blue"})),
        ("azure", json!({"colour": "azure"})),
        ("red", json!({"colour": "red"})),
        ("hidden", json!({"colour": "blue", "hidden": ""})),
    ] {
        api.create(&all.api_path(), &labelled(name, &labels)).await;
    }
    let gateway = Gateway::start(api, &["--allow", "configmaps", "--allow-label-selector"]).await;
    let mut viewer = gateway.open(&blue).await;
    viewer.until_synced().await;
    assert_eq!(viewer.count_held(), 2);

    let colour = |colour: &str| json!({"metadata": {"labels": {"colour": colour}}});
    api.merge_patch(&path(&all, "mover"), &colour("red")).await;
    viewer.until_gone("mover").await;
    api.merge_patch(&path(&all, "mover"), &set_value("changed outside"))
        .await;
    api.merge_patch(&path(&all, "mover"), &colour("azure")).await;
    viewer.until_shows("mover", has_value("changed outside")).await;
    api.merge_patch(
        &path(&all, "hidden"),
        &json!({"metadata": {"labels": {"hidden": null}}}),
    )
    .await;
    viewer.until_shows("hidden", has_value("same")).await;

    assert_eq!(viewer.story("mover"), ["added", "deleted", "added"]);
    assert_eq!(viewer.story("hidden"), ["added"]);
    assert!(viewer.story("red").is_empty());
    viewer.agrees_with_kubectl(api, Versions::Equal).await;
}
