//! The demo's page in a real browser: rows that come, change and go, what is withheld, and errors in words.
//!
//! Needs Debian's `chromium` and `chromium-driver` (or a `chromedriver` that `KRM_CHROMEDRIVER` names) and the demo's
//! binary in `KRM_DEMO_BIN`; `cargo xtask e2e --browser` provides both.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says why and fails"
)]

#[path = "browser/chromium.rs"]
mod chromium;
#[path = "browser/demo.rs"]
mod demo;
#[path = "browser/gate.rs"]
mod gate;
#[path = "browser/kubernetes.rs"]
mod kubernetes;
#[path = "browser/page.rs"]
mod page;
#[path = "browser/stage.rs"]
mod stage;

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::demo::Demo;
use crate::gate::Gate;
use crate::page::Frames;
use crate::stage::Stage;

/// The namespace that the tests fill themselves.
const NAMESPACE: &str = "browser";
const BETWEEN_CHANGES: Duration = Duration::from_millis(200);
/// No part of the page may ever hold this.
const CANARY: &str = "canary-3f9c1d7a52";
/// [`CANARY`] as the API server has it.
const CANARY_BASE64: &str = "Y2FuYXJ5LTNmOWMxZDdhNTI=";

#[tokio::test]
#[ignore = "needs chromium and chromedriver: run cargo xtask e2e --browser"]
async fn rows_appear_change_and_go_with_the_objects() {
    let stage = Stage::start(&[]).await;
    let deployments = stage
        .kubernetes
        .collection("apis/apps/v1", NAMESPACE, "deployments");
    stage.kubernetes.create_namespace(NAMESPACE).await;
    stage.kubernetes.create(&deployments, &deployment("web", 2)).await;

    stage
        .page
        .open("group=apps&version=v1&resource=deployments&namespace=browser")
        .await;
    stage
        .page
        .until("the stream is live", "return state() === 'live'")
        .await;
    stage
        .page
        .until("the first object has a row", "return row('web') !== undefined")
        .await;
    assert_eq!(
        stage
            .page
            .script("return Number(document.querySelector('#count').dataset.count)")
            .await,
        json!(1)
    );

    stage.page.record_flashes().await;
    stage.kubernetes.create(&deployments, &deployment("api", 3)).await;
    stage
        .page
        .until("the added object has a row", "return row('api') !== undefined")
        .await;
    stage
        .page
        .until("the added row was highlighted", "return flashed('api', 'added')")
        .await;

    let status =
        json!({"status": {"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2, "availableReplicas": 2}});
    stage
        .kubernetes
        .merge_patch(&format!("{deployments}/web/status"), &status)
        .await;
    stage
        .page
        .until(
            "the change is in the summary",
            "return summary('web') === '2/2 ready'",
        )
        .await;
    stage
        .page
        .until(
            "the changed row was highlighted",
            "return flashed('web', 'modified')",
        )
        .await;
    assert_eq!(
        stage.page.script("return row('web').dataset.changes").await,
        json!("1")
    );

    stage.kubernetes.delete(&format!("{deployments}/web")).await;
    stage
        .page
        .until(
            "the deleted object's row has gone",
            "return row('web') === undefined",
        )
        .await;
    stage
        .page
        .until(
            "one object is left",
            "return document.querySelector('#count').dataset.count === '1'",
        )
        .await;
    // It is the rate of the last seconds, so something has to happen in them.
    let rate_is_shown = stage.page.until(
        "the rate is shown",
        "return Number(document.querySelector('#rate').dataset.rate) > 0",
    );
    let changes = async {
        for replicas in 4.. {
            let change = json!({"spec": {"replicas": replicas}});
            stage
                .kubernetes
                .merge_patch(&format!("{deployments}/api"), &change)
                .await;
            sleep(BETWEEN_CHANGES).await;
        }
    };
    tokio::select! {
        () = rate_is_shown => {}
        () = changes => {}
    }
    stage.finish().await;
}

#[tokio::test]
#[ignore = "needs chromium and chromedriver: run cargo xtask e2e --browser"]
async fn the_panel_shows_the_object_as_it_came_and_follows_its_changes() {
    let stage = Stage::start(&[]).await;
    let config_maps = stage.kubernetes.collection("api/v1", NAMESPACE, "configmaps");
    stage.kubernetes.create_namespace(NAMESPACE).await;
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"level": "<b>info</b>"}});
    stage.kubernetes.create(&config_maps, &object).await;

    stage
        .page
        .open("version=v1&resource=configmaps&namespace=browser&name=settings")
        .await;
    stage
        .page
        .until("the object has a row", "return row('settings') !== undefined")
        .await;
    stage.page.script("row('settings').click()").await;
    stage
        .page
        .until(
            "the panel is open",
            "return !document.querySelector('#panel').hidden",
        )
        .await;
    let shown = stage
        .page
        .script("return JSON.parse(document.querySelector('#object-json').textContent)")
        .await;
    assert_eq!(
        shown["data"]["level"],
        json!("<b>info</b>"),
        "what looks like markup is text"
    );
    assert_eq!(
        stage
            .page
            .script("return document.querySelectorAll('#object-json b').length")
            .await,
        json!(0)
    );

    stage
        .kubernetes
        .merge_patch(
            &format!("{config_maps}/settings"),
            &json!({"data": {"more": "x"}}),
        )
        .await;
    stage
        .page
        .until(
            "the panel follows",
            "return JSON.parse(document.querySelector('#object-json').textContent).data.more === 'x'",
        )
        .await;
    stage.kubernetes.delete(&format!("{config_maps}/settings")).await;
    stage
        .page
        .until(
            "the panel says that it has gone",
            "return !document.querySelector('#panel-gone').hidden",
        )
        .await;
    stage.finish().await;
}

#[tokio::test]
#[ignore = "needs chromium and chromedriver: run cargo xtask e2e --browser"]
async fn a_withheld_value_is_named_and_is_nowhere_in_the_page() {
    let stage = Stage::start(&[]).await;
    let secrets = stage.kubernetes.collection("api/v1", NAMESPACE, "secrets");
    stage.kubernetes.create_namespace(NAMESPACE).await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "database"},
        "type": "Opaque", "data": {"password": "Zmlyc3Q=", "user": CANARY_BASE64},
    });
    stage.kubernetes.create(&secrets, &secret).await;

    stage
        .page
        .open("version=v1&resource=secrets&namespace=browser")
        .await;
    stage
        .page
        .until("the Secret has a row", "return row('database') !== undefined")
        .await;
    assert_eq!(
        stage.page.script("return summary('database')").await,
        json!("2 keys, withheld")
    );
    stage.page.script("row('database').click()").await;
    stage
        .page
        .until(
            "both keys are shown as withheld",
            "return withheld('/data/password') === '/data/password — withheld, revision 1' \
                 && withheld('/data/user') === '/data/user — withheld, revision 1'",
        )
        .await;

    stage
        .kubernetes
        .merge_patch(
            &format!("{secrets}/database"),
            &json!({"data": {"password": CANARY_BASE64}}),
        )
        .await;
    stage
        .page
        .until(
            "the rotated value is known as such",
            "return withheld('/data/password') === '/data/password — withheld, revision 2'",
        )
        .await;
    let document = stage
        .page
        .script("return document.documentElement.outerHTML")
        .await
        .to_string();
    for value in [CANARY, CANARY_BASE64, "Zmlyc3Q="] {
        assert!(!document.contains(value), "the page holds a withheld value");
        assert!(
            !stage.demo_output().contains(value),
            "the demo printed a withheld value"
        );
    }
    stage.finish().await;
}

#[tokio::test]
#[ignore = "needs chromium and chromedriver: run cargo xtask e2e --browser"]
async fn a_terminal_error_is_told_in_words_and_nothing_reconnects() {
    let stage = Stage::start(&[]).await;
    stage
        .page
        .open("group=nobody-allows.example.com&version=v1&resource=things&namespace=browser")
        .await;
    stage
        .page
        .until("the stream has ended", "return state() === 'ended'")
        .await;
    let error = stage.page.error().await;
    assert_eq!((error.code.as_str(), error.terminal), ("SCOPE_INVALID", true));
    assert!(
        error.text.contains("This scope cannot be watched"),
        "in words: {}",
        error.text
    );
    assert!(
        error.text.contains("not opened again"),
        "with what follows: {}",
        error.text
    );
    assert!(!error.message.is_empty(), "with the gateway's own message");

    // A bare EventSource would be back after some 3 s.
    stage
        .page
        .never_within(
            Duration::from_secs(6),
            "the page connected again",
            "return streamRequests().length > 1 || connections() !== 1 || state() !== 'ended'",
        )
        .await;
    assert_eq!(
        stage.page.script("return streamRequests().length").await,
        json!(1),
        "the browser counts as the page does"
    );

    stage
        .page
        .script("document.querySelector('#reconnect').click()")
        .await;
    stage
        .page
        .until(
            "a person may ask once more",
            "return connections() === 2 && state() === 'ended'",
        )
        .await;
    stage.finish().await;
}

#[tokio::test]
#[ignore = "needs chromium and chromedriver: run cargo xtask e2e --browser"]
async fn an_unavailable_api_server_is_asked_again_after_the_time_it_named() {
    const RETRY_AFTER: Duration = Duration::from_secs(10);
    const CLOCKS_DIFFER_BY: Duration = Duration::from_millis(50);
    let stage = Stage::start(&[]).await;
    stage.kubernetes.create_namespace(NAMESPACE).await;
    let config_maps = stage.kubernetes.collection("api/v1", NAMESPACE, "configmaps");
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {}});
    stage.kubernetes.create(&config_maps, &object).await;

    // A second gateway, which reaches the same API server through a gate that can be shut.
    let gate = Gate::open_to(stage.kubernetes.address()).await;
    let kubeconfig = gate.kubeconfig();
    let path = kubeconfig.path().to_str().expect("a temporary path is UTF-8");
    let behind_gate = Demo::start(&["--kubeconfig", path]).await;
    gate.shut(RETRY_AFTER);

    stage
        .page
        .open_at(
            behind_gate.page_url(),
            "version=v1&resource=configmaps&namespace=browser",
        )
        .await;
    stage
        .page
        .until("the page waits", "return state() === 'waiting'")
        .await;
    let error = stage.page.error().await;
    assert_eq!(
        (error.code.as_str(), error.terminal),
        ("UPSTREAM_UNAVAILABLE", false)
    );
    let hint = error.retry_after.expect("the API server's hint reached the page");
    assert!(
        hint <= RETRY_AFTER && hint > RETRY_AFTER / 2,
        "{hint:?} is what is left of {RETRY_AFTER:?}"
    );

    gate.open();
    stage
        .page
        .until(
            "the stream is live",
            "return state() === 'live' && row('settings') !== undefined",
        )
        .await;
    let connections = stage.page.script("return connections()").await;
    assert_eq!(connections, json!(2), "it came back once, when the time was over");
    let waited = stage.page.script("return cameBackAfterMs()").await;
    let waited = Duration::from_secs_f64(waited.as_f64().expect("the page notes when it connects") / 1000.0);
    assert!(
        waited + CLOCKS_DIFFER_BY >= hint,
        "came back after {waited:?}, before the hint of {hint:?}"
    );
    assert!(
        waited <= hint * 2 + Duration::from_secs(2),
        "came back only after {waited:?}"
    );
    stage
        .page
        .until(
            "the error is past",
            "return document.querySelector('#last-error').dataset.past === 'true'",
        )
        .await;
    stage.finish().await;
}

#[tokio::test]
#[ignore = "needs chromium and chromedriver: run cargo xtask e2e --browser"]
async fn five_thousand_rows_load_and_the_page_stays_responsive() {
    let stage = Stage::start(&["--simulator-objects", "5000"]).await;
    stage
        .page
        .open("version=v1&resource=configmaps&namespace=bulk")
        .await;
    stage
        .page
        .until(
            "all objects are held",
            "return state() === 'live' && document.querySelector('#count').dataset.count === '5000'",
        )
        .await;
    stage
        .page
        .until(
            "the table knows them all",
            "return document.querySelector('#table').getAttribute('aria-rowcount') === '5001'",
        )
        .await;
    let elements = stage
        .page
        .script("return document.querySelectorAll('tr[data-uid]').length")
        .await;
    assert!(
        (1..=200).contains(&elements.as_u64().unwrap_or(0)),
        "only rows near the view have elements: {elements}"
    );

    // Scroll through all of it while objects change, and see that frames keep coming.
    let names = stage.kubernetes.names("api/v1", "bulk", "configmaps").await;
    let bulk = stage.kubernetes.collection("api/v1", "bulk", "configmaps");
    let last = names.last().expect("the scope has objects");
    let mut changes = 0_u32;
    // A page that is too slow is so each time; a machine that stops for a second is not.
    let mut measured = Vec::new();
    while !measured.iter().any(Frames::keep_coming) {
        assert!(measured.len() < 3, "after {changes} changes: {measured:?}");
        stage.page.start_frame_meter().await;
        let busy_until = Instant::now() + Duration::from_secs(4);
        for name in names.iter().cycle().step_by(25) {
            changes += 1;
            let change = json!({"data": {"change": changes.to_string()}});
            stage
                .kubernetes
                .merge_patch(&format!("{bulk}/{name}"), &change)
                .await;
            if Instant::now() >= busy_until {
                break;
            }
        }
        measured.push(stage.page.stop_frame_meter().await);
    }

    let change = json!({"data": {"change": "the last"}});
    stage
        .kubernetes
        .merge_patch(&format!("{bulk}/{last}"), &change)
        .await;
    stage.page.script(&format!("filter({})", json!(last))).await;
    stage
        .page
        .until(
            "the filter finds the row, with its change",
            &format!("return Number(row({})?.dataset.changes) >= 1", json!(last)),
        )
        .await;
    stage
        .page
        .until(
            "and says of how many",
            "return document.querySelector('#shown').textContent.includes('of 5,000')",
        )
        .await;
    stage.finish().await;
}

#[tokio::test]
#[ignore = "needs chromium and chromedriver: run cargo xtask e2e --browser"]
async fn the_picker_s_choice_is_in_the_address_and_survives_a_reload() {
    let stage = Stage::start(&[]).await;
    let config_maps = stage.kubernetes.collection("api/v1", NAMESPACE, "configmaps");
    stage.kubernetes.create_namespace(NAMESPACE).await;
    for (name, tier) in [("inside", "web"), ("outside", "data")] {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"tier": tier}}});
        stage.kubernetes.create(&config_maps, &object).await;
    }

    stage.page.open("").await;
    stage
        .page
        .until("the page is idle", "return state() === 'idle'")
        .await;
    stage
        .page
        .fill(&[
            ("version", "v1"),
            ("resource", "configmaps"),
            ("namespace", NAMESPACE),
            ("projection", "krm-spec/v1"),
        ])
        .await;
    stage
        .page
        .until("the stream is live", "return state() === 'live'")
        .await;
    let hash = stage.page.script("return location.hash").await;
    assert_eq!(
        hash,
        json!("#version=v1&resource=configmaps&namespace=browser&projection=krm-spec%2Fv1")
    );

    stage.page.reload().await;
    stage
        .page
        .until(
            "the same scope is live",
            "return state() === 'live' && row('inside') !== undefined",
        )
        .await;
    let projection = stage
        .page
        .script("return document.querySelector('#scope-projection').value")
        .await;
    assert_eq!(projection, json!("krm-spec/v1"));
    stage.finish().await;
}

fn deployment(name: &str, replicas: u32) -> serde_json::Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": name, "image": "registry.example.com/app:1"}]},
            },
        },
    })
}
