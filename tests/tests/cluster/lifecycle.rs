//! Objects that come, change and go.

use krm_stream_protocol::EventType;
use serde_json::json;

use crate::api_server::{ApiServer, text};
use crate::expectation::Versions;
use crate::gateway::Gateway;
use crate::objects::{config_map, config_map_named, config_maps, has_value, path, set_value};

/// More than a stream may owe in deletions by default.
const MANY: usize = 300;

pub(crate) async fn a_snapshot_holds_what_is_there(api: &ApiServer) {
    let scope = config_maps(&api.create_namespace().await);
    let elsewhere = config_maps(&api.create_namespace().await);
    for name in ["one", "two", "three"] {
        api.create(&scope.api_path(), &config_map(name, name)).await;
    }
    api.create(&elsewhere.api_path(), &config_map("foreign", "x"))
        .await;

    let gateway = Gateway::start(api, &["--allow", "configmaps"]).await;
    let mut viewer = gateway.open(&scope).await;
    viewer.until_synced().await;
    for name in ["one", "two", "three"] {
        assert_eq!(viewer.story(name), ["added"]);
        assert!(viewer.object(name).is_some_and(|object| has_value(name)(&object)));
    }
    assert!(viewer.story("foreign").is_empty());
    assert_eq!(viewer.types().first(), Some(&"reset"));
    assert_eq!(viewer.types().last(), Some(&"synced"));
    viewer.agrees_with_kubectl(api, Versions::Equal).await;
}

pub(crate) async fn what_is_added_modified_and_deleted_is_told_as_such(api: &ApiServer) {
    let scope = config_maps(&api.create_namespace().await);
    api.create(&scope.api_path(), &config_map("old", "1")).await;
    let gateway = Gateway::start(api, &["--allow", "configmaps"]).await;
    let mut viewer = gateway.open(&scope).await;
    viewer.until_synced().await;

    api.create(&scope.api_path(), &config_map("new", "1")).await;
    viewer.until_shows("new", has_value("1")).await;
    api.merge_patch(&path(&scope, "new"), &set_value("2")).await;
    viewer.until_shows("new", has_value("2")).await;
    api.merge_patch(&path(&scope, "old"), &set_value("2")).await;
    viewer.until_shows("old", has_value("2")).await;
    api.merge_patch(
        &path(&scope, "old"),
        &json!({"data": null, "metadata": {"labels": {"a": "b"}}}),
    )
    .await;
    viewer
        .until_shows("old", |object| {
            object.get("data").is_none() && object["metadata"]["labels"]["a"] == "b"
        })
        .await;
    api.delete(&path(&scope, "new")).await;
    viewer.until_gone("new").await;

    assert_eq!(viewer.story("new"), ["added", "modified", "deleted"]);
    assert_eq!(viewer.story("old"), ["added", "modified", "modified"]);
    viewer.agrees_with_kubectl(api, Versions::Equal).await;
}

pub(crate) async fn a_recreated_name_is_another_object(api: &ApiServer) {
    let scope = config_maps(&api.create_namespace().await);
    let first = api.create(&scope.api_path(), &config_map("again", "1")).await;
    let gateway = Gateway::start(api, &["--allow", "configmaps"]).await;
    let mut viewer = gateway.open(&scope).await;
    viewer.until_synced().await;

    api.delete(&path(&scope, "again")).await;
    let second = api.create(&scope.api_path(), &config_map("again", "2")).await;
    viewer.until_shows("again", has_value("2")).await;

    let (first, second) = (text(&first["metadata"]["uid"]), text(&second["metadata"]["uid"]));
    assert_ne!(first, second);
    let told: Vec<_> = viewer
        .events()
        .iter()
        .filter(|event| event.name() == Some("again"))
        .map(|event| (event.event_type(), event.uid().unwrap_or_default()))
        .collect();
    assert_eq!(
        told,
        [
            (EventType::Added, &*first),
            (EventType::Deleted, &*first),
            (EventType::Added, &*second)
        ]
    );
    viewer.agrees_with_kubectl(api, Versions::Equal).await;
}

pub(crate) async fn one_named_object_is_a_scope_present_or_absent(api: &ApiServer) {
    let namespace = api.create_namespace().await;
    let (all, wanted) = (config_maps(&namespace), config_map_named(&namespace, "wanted"));
    api.create(&all.api_path(), &config_map("other", "1")).await;
    let gateway = Gateway::start(api, &["--allow", "configmaps"]).await;
    let mut from_absent = gateway.open(&wanted).await;
    from_absent.until_synced().await;
    assert_eq!(from_absent.types(), ["reset", "synced"], "absent");

    api.create(&all.api_path(), &config_map("wanted", "1")).await;
    from_absent.until_shows("wanted", has_value("1")).await;
    let mut from_present = gateway.open(&wanted).await;
    from_present.until_synced().await;
    assert_eq!(from_present.types(), ["reset", "added", "synced"], "present");

    api.merge_patch(&path(&all, "other"), &set_value("2")).await;
    api.merge_patch(&path(&all, "wanted"), &set_value("2")).await;
    for viewer in [&mut from_absent, &mut from_present] {
        viewer.until_shows("wanted", has_value("2")).await;
        assert!(viewer.story("other").is_empty(), "another object is out of scope");
        viewer.agrees_with_kubectl(api, Versions::Equal).await;
    }

    api.delete(&path(&all, "wanted")).await;
    from_absent.until_gone("wanted").await;
    assert_eq!(
        from_absent.types(),
        ["reset", "synced", "added", "modified", "deleted"]
    );
    from_absent.agrees_with_kubectl(api, Versions::Equal).await;
}

pub(crate) async fn an_emptied_namespace_is_told_object_by_object(api: &ApiServer) {
    let scope = config_maps(&api.create_namespace().await);
    crate::sizes::create_many(api, &scope, MANY).await;
    let gateway = Gateway::start(api, &["--allow", "configmaps"]).await;
    let mut viewer = gateway.open(&scope).await;
    viewer.until_synced().await;
    assert!(viewer.count_held() >= MANY);

    api.delete(&scope.api_path()).await;
    viewer
        .until("all objects have gone", |viewer| {
            viewer.count(EventType::Deleted) >= MANY
        })
        .await;
    viewer.agrees_with_kubectl(api, Versions::Equal).await;
}
