//! What holds a declared stream up, as its status tells it.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use crate::api_server::{ApiServer, text};
use crate::control_plane::{ControlPlane, Fault};
use crate::declared::{
    Declared, condition, install, is_observed, message, newest_version, reading, stream_of, until_served,
};
use crate::expectation::Versions;
use crate::gateway::Gateway;
use crate::identity::Kubeconfig;
use crate::kstatus::Reading;
use crate::link::{Condition, Link};
use crate::operating::Site;
use crate::reach::let_read;

/// A gateway that has the rights of the operating kit, but for those to read anything: two kinds of one namespace only.
struct Limited {
    namespace: String,
    site: Site,
    gateway: Gateway,
    _kubeconfig: Kubeconfig,
}

const KINDS: [&str; 2] = ["limitranges", "podtemplates"];

impl Limited {
    async fn start(api: &ApiServer) -> Self {
        let namespace = api.create_namespace().await;
        let site = Site::new(&namespace, "shared", &["declared-streams"]);
        site.apply_without(api, &["  name: krm-stream-reader"]).await;
        until_served(api).await;
        for kind in KINDS {
            let_read(api, &namespace, kind, &site.subject()).await;
            site.until_may(api, "watch", kind).await;
        }
        site.until_may(api, "watch", "declaredstreams.krm-stream.github.io")
            .await;
        let kubeconfig = site.kubeconfig(api).await;
        let flags = [
            "--declared-streams",
            "--allow",
            "limitranges,podtemplates,widgets",
            "--allow-all-namespaces",
            "--allow-label-selector",
            "--watch-timeout",
            "1",
        ];
        let gateway = Gateway::start_with(&kubeconfig.path(), &flags).await;
        Self {
            namespace,
            site,
            gateway,
            _kubeconfig: kubeconfig,
        }
    }

    async fn take_away(&self, api: &ApiServer, kind: &str) {
        let namespace = &self.namespace;
        let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
        api.delete(&format!("{rbac}/rolebindings/read-{kind}")).await;
        api.delete(&format!("{rbac}/roles/read-{kind}")).await;
    }

    async fn give(&self, api: &ApiServer, kind: &str) {
        let_read(api, &self.namespace, kind, &self.site.subject()).await;
    }
}

pub(crate) async fn what_holds_a_stream_up_is_told_in_words(api: &ApiServer) {
    let limited = Limited::start(api).await;
    let namespace = &limited.namespace;
    // Rights come first: a kind that nobody serves is a refusal to those who may not read it.
    limited.give(api, "widgets").await;
    limited.site.until_may(api, "watch", "widgets").await;
    let mut malformed = stream_of(KINDS[0], namespace);
    malformed["scope"]["labelSelector"] = json!("tier in web");
    let mut everywhere = stream_of(KINDS[0], namespace);
    everywhere["scope"] = json!({"version": "v1", "resource": KINDS[0]});
    let cases = [
        (stream_of("widgets", namespace), "WatchError", "does not serve"),
        (malformed, "WatchError", "labelSelector"),
        (everywhere, "WatchNotPermitted", "grant"),
        (stream_of("secrets", namespace), "WatchNotPermitted", "allow-list"),
    ];
    let mut resources = Vec::new();
    for (stream, _, _) in &cases {
        resources.push(Declared::create(api, std::slice::from_ref(stream)).await);
    }
    for (declared, (stream, reason, word)) in resources.iter().zip(&cases) {
        let object = declared.until_stalled(reason).await;
        let streams = &object["status"]["streams"];
        assert_eq!(streams["summary"], "0/1", "not 0/0: {object}");
        assert_eq!(streams["blocked"], 1, "{object}");
        assert_eq!(streams["pendingSample"], json!([stream["name"]]));
        assert_eq!(reading(&object), Reading::Failed);
        let message = message(&object, "Ready");
        eprintln!("{}: {reason}: {message}", stream["scope"]);
        assert!(message.contains(word), "{message}");
        let told = declared.until_told(reason).await;
        let warnings = told.iter().filter(|event| event.kind == "Warning").count();
        assert_eq!(warnings, 1, "{told:?}");
        declared.delete().await;
    }
    a_right_that_is_taken_away_is_told_once_and_comes_back(api, &limited).await;
    an_edit_while_the_old_session_ends_is_not_reported_under_the_old_generation(api, &limited).await;
    drop(limited.gateway);
}

async fn a_right_that_is_taken_away_is_told_once_and_comes_back(api: &ApiServer, limited: &Limited) {
    let declared = Declared::create(api, &[stream_of(KINDS[0], &limited.namespace)]).await;
    declared.until_ready().await;
    let before = declared.until_told("AllStreamsReady").await;
    limited.take_away(api, KINDS[0]).await;
    let stalled = declared.until_stalled("WatchNotPermitted").await;
    assert_eq!(reading(&stalled), Reading::Failed);
    assert_eq!(condition(&stalled, "Ready").0, "False");
    declared.until_told("WatchNotPermitted").await;
    // It is tried again meanwhile, and refused: nothing more is said of that.
    sleep(Duration::from_secs(3)).await;
    assert_eq!(declared.object().await, Some(stalled));
    limited.give(api, KINDS[0]).await;
    let begin = tokio::time::Instant::now();
    let ready = declared.until_ready().await;
    let recovered = begin.elapsed();
    assert_eq!(reading(&ready), Reading::Current);
    let told = declared.until_told("AllStreamsReady").await;
    let since: Vec<_> = told[before.len()..].iter().map(|event| &*event.kind).collect();
    eprintln!("ready {recovered:.1?} after the right was given back; told: {told:?}");
    assert_eq!(
        since.iter().filter(|kind| **kind == "Warning").count(),
        1,
        "{told:?}"
    );
    declared.delete().await;
}

/// Where streaming lists are not served, each attempt of one who may list and not watch lists first.
pub(crate) async fn a_right_to_list_alone_is_warned_of_once(api: &ApiServer) {
    let limited = Limited::start(api).await;
    let declared = Declared::create(api, &[stream_of(KINDS[0], &limited.namespace)]).await;
    declared.until_ready().await;
    let before = declared.until_told("AllStreamsReady").await;
    let role = format!(
        "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles/read-{}",
        limited.namespace, KINDS[0]
    );
    let verbs =
        |verbs: &[&str]| json!({"rules": [{"apiGroups": [""], "resources": [KINDS[0]], "verbs": verbs}]});
    api.merge_patch(&role, &verbs(&["list"])).await;
    let stalled = declared.until_stalled("WatchNotPermitted").await;
    declared.until_told("WatchNotPermitted").await;
    let listed = async || {
        let labels = [
            ("resource", KINDS[0]),
            ("scope", "namespace"),
            ("verb", "LIST"),
            ("code", "200"),
        ];
        api.metric("apiserver_request_total", &labels).await
    };
    let lists = listed().await;
    crate::wait::until("it is tried a few times more", async || {
        (listed().await >= lists + 3).then_some(())
    })
    .await;
    assert_eq!(declared.object().await, Some(stalled), "nothing was written");
    api.merge_patch(&role, &verbs(&["list", "watch"])).await;
    declared.until_ready().await;
    let told = declared.until_told("AllStreamsReady").await;
    let since: Vec<_> = told[before.len()..].iter().map(|event| &*event.reason).collect();
    assert_eq!(since, ["WatchNotPermitted", "AllStreamsReady"], "{told:?}");
    declared.delete().await;
    drop(limited.gateway);
}

/// How long what is allowed is declared, at the least, and how long what is not, in milliseconds.
const STANDS: Duration = Duration::from_millis(300);
const PAUSES: [u64; 8] = [0, 2, 4, 7, 11, 16, 30, 60];

async fn an_edit_while_the_old_session_ends_is_not_reported_under_the_old_generation(
    api: &ApiServer,
    limited: &Limited,
) {
    let [old, new] = KINDS.map(|kind| stream_of(kind, &limited.namespace));
    let declared = Declared::create(api, std::slice::from_ref(&old)).await;
    let ready = declared.until_ready().await;
    let since = text(&ready["metadata"]["resourceVersion"]);
    // What was allowed is refused from now on, and each refusal comes about when it is no longer declared.
    let editing = async {
        limited.take_away(api, KINDS[0]).await;
        for pause in PAUSES {
            declared.declare(std::slice::from_ref(&new)).await;
            // It also stands for a while, so that a refusal that comes late could be taken for its own.
            tokio::join!(
                declared.until("what is allowed is observed", is_observed),
                sleep(STANDS)
            );
            declared.declare(std::slice::from_ref(&old)).await;
            sleep(Duration::from_millis(pause)).await;
        }
        declared.declare(std::slice::from_ref(&new)).await;
        declared.until_ready().await;
        declared.mark_the_last_version().await;
    };
    let (versions, ()) = tokio::join!(declared.versions_to_the_last(&since), editing);
    let mut observed_before = 1;
    let mut observed_all = 0;
    for version in &versions {
        let Some(observed) = version["status"]["observedGeneration"].as_i64() else {
            continue;
        };
        let generation = version["metadata"]["generation"].as_i64().unwrap_or_default();
        assert!(observed <= generation && observed >= observed_before, "{version}");
        observed_all += usize::from(observed > observed_before);
        observed_before = observed;
        let streams = &version["status"]["streams"];
        assert_eq!(streams["total"], 1, "{version}");
        // Even generations declare what is allowed.
        if observed % 2 == 0 {
            assert_eq!(streams["blocked"], 0, "{version}");
            assert_eq!(condition(version, "Stalled").0, "False", "{version}");
        }
    }
    let last = versions.last().expect("the edits were seen");
    assert!(is_observed(last), "{last}");
    eprintln!(
        "{} versions, {observed_all} generations observed in order",
        versions.len()
    );
    // All that declare what is allowed were waited for.
    assert!(observed_all > PAUSES.len(), "{observed_all}");
    declared.delete().await;
}

pub(crate) async fn an_expired_version_is_replayed_without_a_warning() {
    let Some(control_plane) = ControlPlane::start().await else {
        return;
    };
    let api = ApiServer::reached_with(control_plane.kubeconfig()).await;
    let namespace = api.create_namespace().await;
    without_the_definition_the_gateway_serves_all_the_same(&api, &namespace).await;
    install(&api).await;
    let declared = Declared::create(&api, &[stream_of("limitranges", &namespace)]).await;
    // No gateway runs: tools wait for one.
    let untaken = declared.object().await.expect("it is there");
    assert_eq!(untaken["status"]["observedGeneration"], -1, "{untaken}");
    assert_eq!(reading(&untaken), Reading::InProgress, "{untaken}");
    let link = Link::to(&api).await;
    let flags = ["--declared-streams", "--allow", "limitranges"];
    let gateway = Gateway::start_with(&link.kubeconfig(), &flags).await;
    declared.until_ready().await;
    let told = declared.until_told("AllStreamsReady").await;

    // What the gateway would go on from is gone, and it learns of that only when the network is back.
    link.set(Condition::Stalled);
    control_plane.compact().await;
    control_plane.api_server(Fault::Kill).await;
    control_plane.api_server(Fault::Start).await;
    let api = ApiServer::reached_with(control_plane.kubeconfig()).await;
    let limits = format!("/api/v1/namespaces/{namespace}/limitranges");
    api.create(&limits, &crate::objects::limit_range("later")).await;
    control_plane.compact().await;
    let declared = declared.seen_through(&api);
    let before = declared.object().await.expect("it is there");
    // That of the object is compacted away.
    let newest = newest_version(&api).await;
    let recording = declared.versions_to_the_last(&newest);
    let healing = async {
        link.set(Condition::Up);
        declared
            .until("it is replayed and ready again", |object| {
                object["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
                    && condition(object, "Ready").0 == "True"
            })
            .await;
        until_expired(&gateway).await;
        crate::wait::until("each change is told", async || {
            (declared.events().await.len() >= told.len() + 2).then_some(())
        })
        .await;
        declared.mark_the_last_version().await;
    };
    let (versions, ()) = tokio::join!(recording, healing);
    let story: Vec<_> = versions
        .iter()
        .map(|version| (condition(version, "Ready"), condition(version, "Stalled").0))
        .collect();
    let all = declared.events().await;
    eprintln!("{story:?}; told: {all:?}");
    assert!(
        story
            .iter()
            .any(|((ready, reason), _)| ready == "False" && reason == "Replaying"),
        "{story:?}"
    );
    assert!(story.iter().all(|(_, stalled)| stalled == "False"), "{story:?}");
    assert_eq!(story.last().map(|((ready, _), _)| &**ready), Some("True"));
    assert!(all.iter().all(|event| event.kind == "Normal"), "{all:?}");
}

async fn without_the_definition_the_gateway_serves_all_the_same(api: &ApiServer, namespace: &str) {
    let gateway = Gateway::start(api, &["--declared-streams", "--allow", "configmaps"]).await;
    let mut viewer = gateway.open(&crate::objects::config_maps(namespace)).await;
    viewer.until_synced().await;
    crate::wait::until("it tells of the definition that is not there", async || {
        let says = gateway.output().contains("does not serve DeclaredStream");
        says.then_some(())
    })
    .await;
    viewer.agrees_with_kubectl(api, Versions::Equal).await;
}

async fn until_expired(gateway: &Gateway) {
    let expired = [("reason", "expired")];
    crate::wait::until("the session ended as expired", async || {
        (gateway.metric("watch_sessions_ended_total", &expired).await >= 1).then_some(())
    })
    .await;
}
