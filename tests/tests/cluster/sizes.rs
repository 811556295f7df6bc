//! One large object, and many objects.

use futures_util::{StreamExt, stream};
use krm_stream_protocol::{EventType, Scope};

use crate::api_server::ApiServer;
use crate::expectation::Versions;
use crate::gateway::Gateway;
use crate::objects::{config_map, config_maps, has_value, path, set_value};

/// The API server takes at most 1 MiB of data in a `ConfigMap`.
const LARGE: usize = 1_000_000;
const MANY: usize = 2_000;
const CHANGED: usize = 200;
const DELETED: usize = 300;

/// Requests in flight while many objects are made or changed.
const AT_ONCE: usize = 16;

pub(crate) async fn an_object_of_a_megabyte_is_carried(api: &ApiServer) {
    let scope = config_maps(&api.create_namespace().await);
    // The markup takes six bytes a character on the wire, the rest one, two or four.
    let text = |seed: &str| -> String {
        let line = format!("{seed} <&> é \u{1f9ed} \"quoted\"\r\n").repeat(200);
        let plain = format!("{seed} plain text without anything to escape ").repeat(200);
        let mut value = String::new();
        while value.len() + line.len() + plain.len() * 4 < LARGE {
            value.push_str(&line);
            for _ in 0..4 {
                value.push_str(&plain);
            }
        }
        value.extend(std::iter::repeat_n('x', LARGE - value.len()));
        value
    };
    let (first, second, third) = (text("first"), text("second"), text("third"));
    api.create(&scope.api_path(), &config_map("large", &first)).await;
    api.create(&scope.api_path(), &config_map("small", "1")).await;
    let gateway = Gateway::start(api, &["--allow", "configmaps"]).await;
    let mut viewer = gateway.open(&scope).await;
    viewer.until_synced().await;
    viewer.until_shows("large", has_value(&first)).await;
    for value in [&second, &third] {
        api.merge_patch(&path(&scope, "large"), &set_value(value)).await;
        viewer.until_shows("large", has_value(value)).await;
        api.merge_patch(&path(&scope, "small"), &set_value(&value[..8]))
            .await;
        viewer.until_shows("small", has_value(&value[..8])).await;
    }
    assert_eq!(viewer.story("large"), ["added", "modified", "modified"]);
    viewer.agrees_with_kubectl(api, Versions::Equal).await;
}

pub(crate) async fn two_thousand_objects_are_followed_in_one_scope(api: &ApiServer) {
    let scope = config_maps(&api.create_namespace().await);
    let gateway = Gateway::start(api, &["--allow", "configmaps"]).await;
    let mut early = gateway.open(&scope).await;
    early.until_synced().await;
    let already_there = early.count_held();

    create_many(api, &scope, MANY).await;
    early
        .until("all objects are held", |viewer| {
            viewer.count_held() >= already_there + MANY
        })
        .await;
    let mut late = gateway.open(&scope).await;
    late.until_synced().await;
    assert_eq!(late.count_held(), early.count_held());
    assert_eq!(late.count(EventType::Added), early.count_held());

    stream::iter(0..CHANGED)
        .for_each_concurrent(AT_ONCE, async |index| {
            api.merge_patch(&path(&scope, &name(index * 5)), &set_value("changed"))
                .await;
        })
        .await;
    stream::iter(MANY - DELETED..MANY)
        .for_each_concurrent(AT_ONCE, async |index| {
            api.delete(&path(&scope, &name(index))).await;
        })
        .await;
    for viewer in [&mut early, &mut late] {
        viewer
            .until("the deleted objects have gone", |viewer| {
                viewer.count(EventType::Deleted) >= DELETED
            })
            .await;
        viewer.agrees_with_kubectl(api, Versions::Equal).await;
        assert!(viewer.count_held() >= MANY - DELETED);
        assert!(
            viewer
                .object(&name(5))
                .is_some_and(|object| has_value("changed")(&object))
        );
    }
}

/// Fills a scope with `ConfigMaps`.
pub(crate) async fn create_many(api: &ApiServer, scope: &Scope, objects: usize) {
    stream::iter(0..objects)
        .for_each_concurrent(AT_ONCE, async |index| {
            api.create(&scope.api_path(), &config_map(&name(index), "first"))
                .await;
        })
        .await;
}

fn name(index: usize) -> String {
    format!("object-{index:05}")
}
