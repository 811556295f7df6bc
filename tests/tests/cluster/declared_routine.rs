//! A declared stream with the rights that the operating kit grants: ready, and quiet about what is routine.

use serde_json::json;

use crate::access::user;
use crate::api_server::{ApiServer, text};
use crate::declared::{
    Declared, condition, ended_watches, ended_watches_of, is_observed, open_watches, reading, stream_of,
    until_served,
};
use crate::expectation::Versions;
use crate::gateway::{Gateway, USER};
use crate::identity::Kubeconfig;
use crate::kstatus::Reading;
use crate::metrics::sum;
use crate::objects::built;
use crate::operating::Site;
use crate::reach::let_read;
use crate::wait::until;

/// A watch that has reached its timeout, so many times for each stream.
const RECYCLES: u64 = 20;
/// Kinds that the overlay lets the gateway read, and that nobody else watches by namespace.
const KINDS: [&str; 2] = ["persistentvolumeclaims", "replicasets"];

pub(crate) async fn ready_holds_while_watches_end_and_begin_again(api: &ApiServer) {
    let namespace = api.create_namespace().await;
    let mut before = Vec::new();
    for kind in KINDS {
        before.push((ended_watches(api, kind).await, open_watches(api, kind).await));
    }
    let (gateway, _kubeconfig) = start_with_the_rights_of_the_kit(api, &namespace).await;
    let mut replica_sets = stream_of("replicasets", &namespace);
    replica_sets["scope"]["group"] = json!("apps");
    let declared = Declared::create(
        api,
        &[stream_of("persistentvolumeclaims", &namespace), replica_sets],
    )
    .await;
    let resource = format!("declaredstreams/{}", declared.name());
    let wait = ["wait", "--for=condition=Ready", "--timeout=50s", &resource];
    api.kubectl(&wait, "").await;
    let ready = declared.until_ready().await;
    let told = declared.until_told("AllStreamsReady").await;
    assert!(told.iter().all(|event| event.kind == "Normal"), "{told:?}");
    assert_eq!(reading(&ready), Reading::Current);

    // A reader joins what is warm: there is no second watch.
    let claims = built(krm_stream_protocol::Scope::builder("v1", KINDS[0]).namespace(&*namespace));
    let_read(api, &namespace, KINDS[0], &user("ada")).await;
    let mut ada = gateway.open_admitted(&claims, &[(USER, "ada")]).await;
    ada.until_synced().await;
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    api.create(&claims.api_path(), &claim).await;
    ada.until_shows("data", |_| true).await;
    let refusal = gateway.open_as(&claims, "bob").await.until_refused().await;
    assert_eq!(refusal.code(), Some(krm_stream_protocol::ErrorCode::Forbidden));

    let closed = both_sides_count_the_same_ends(api, &gateway, &before).await;
    let object = declared.object().await.expect("it is there");
    assert_eq!(object, ready, "nothing was written");
    assert_eq!(declared.events().await, told, "nothing was told");
    api.kubectl(&wait, "").await;
    ada.agrees_with_kubectl(api, Versions::Equal).await;

    let table = api
        .kubectl(&["get", "declaredstreams", declared.name()], "")
        .await;
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0], ["NAME", "READY", "STREAMS", "AGE"]);
    assert_eq!(rows[1][..3], [declared.name(), "True", "2/2"]);
    eprintln!(
        "{closed} sessions closed as both sides count; version {} all the time; {} events; {table}",
        text(&object["metadata"]["resourceVersion"]),
        told.len()
    );

    drop(ada);
    is_edited_and_deleted(api, &namespace, &declared, &before).await;
    the_lease_is_held_by_it_and_given_up(api, &namespace, gateway).await;
    // Another gateway, which would publish of the same resources: so only now.
    readers_who_are_asked_as_themselves_join_nothing(api).await;
}

/// Waits until watches have ended often enough, and until both sides count them alike; returns how many.
async fn both_sides_count_the_same_ends(api: &ApiServer, gateway: &Gateway, before: &[(u64, u64)]) -> u64 {
    let ended_since = async || {
        let ended = ended_watches_of(api, KINDS).await;
        [ended[0] - before[0].0, ended[1] - before[1].0]
    };
    until("watches have ended often enough", async || {
        for (kind, (_, open)) in KINDS.iter().zip(before) {
            assert!(open_watches(api, kind).await <= open + 1, "one watch of {kind}");
        }
        let is_enough = ended_since().await.iter().all(|ended| *ended >= RECYCLES);
        is_enough.then_some(())
    })
    .await;
    // They go on ending: the gateway's count is compared where the API server's stood still around it.
    until("both sides count the same ends", async || {
        let ended = ended_since().await;
        let metrics = gateway.metrics().await;
        let ended_for = |reason| sum(&metrics, "watch_sessions_ended_total", &[("reason", reason)]);
        for reason in ["expired", "error"] {
            assert_eq!(ended_for(reason), 0, "{reason}");
        }
        let closed = ended_for("closed");
        let is_consistent = ended_since().await == ended && ended.iter().sum::<u64>() == closed;
        is_consistent.then_some(closed)
    })
    .await
}

/// A declared feed is read as the gateway, so a reader whose own rights count is none of its readers.
async fn readers_who_are_asked_as_themselves_join_nothing(api: &ApiServer) {
    const KIND: &str = "resourcequotas";
    let namespace = api.create_namespace().await;
    let before = open_watches(api, KIND).await;
    let identity = format!("header:{USER}");
    let flags = [
        "--declared-streams",
        "--sharing",
        "per-caller",
        "--identity",
        &identity,
        "--allow",
        KIND,
        "--linger",
        "0",
    ];
    let gateway = Gateway::start(api, &flags).await;
    let declared = Declared::create(api, &[stream_of(KIND, &namespace)]).await;
    declared.until_ready().await;
    assert_eq!(open_watches(api, KIND).await, before + 1);
    let scope = built(krm_stream_protocol::Scope::builder("v1", KIND).namespace(&*namespace));
    let refusal = gateway.open_as(&scope, "ada").await.until_refused().await;
    assert_eq!(refusal.code(), Some(krm_stream_protocol::ErrorCode::Forbidden));
    let_read(api, &namespace, KIND, &user("ada")).await;
    let mut ada = gateway.open_admitted(&scope, &[(USER, "ada")]).await;
    ada.until_synced().await;
    assert_eq!(open_watches(api, KIND).await, before + 2, "a watch of their own");
    declared.delete().await;
    drop(ada);
    until("the watches end", async || {
        (open_watches(api, KIND).await == before).then_some(())
    })
    .await;
}

/// The gateway as the account of the manifests, with the flags of the component.
async fn start_with_the_rights_of_the_kit(api: &ApiServer, namespace: &str) -> (Gateway, Kubeconfig) {
    let site = Site::new(namespace, "shared", &["declared-streams"]);
    site.apply_without(api, &[]).await;
    until_served(api).await;
    for (verb, resource) in [
        ("watch", "persistentvolumeclaims"),
        ("watch", "replicasets.apps"),
        ("create", "subjectaccessreviews.authorization.k8s.io"),
        ("watch", "declaredstreams.krm-stream.github.io"),
        ("create", "leases.coordination.k8s.io"),
    ] {
        site.until_may(api, verb, resource).await;
    }
    let kubeconfig = site.kubeconfig(api).await;
    let identity = format!("header:{USER}");
    let flags = [
        "--declared-streams",
        "--lease-namespace",
        namespace,
        "--lease-name",
        "krm-stream-declared",
        "--authorize",
        "subject-access-review",
        "--identity",
        &identity,
        "--allow",
        "persistentvolumeclaims,apps/replicasets",
        "--watch-timeout",
        "1",
    ];
    (Gateway::start_with(&kubeconfig.path(), &flags).await, kubeconfig)
}

/// A finalizer keeps the resource for a while: it is read as going, nothing more is published, and its feeds end.
async fn is_edited_and_deleted(
    api: &ApiServer,
    namespace: &str,
    declared: &Declared<'_>,
    before: &[(u64, u64)],
) {
    let nothing = declared.declare(&[]).await;
    let nothing = declared
        .until("nothing to stream is converged", |object| {
            object["metadata"]["generation"] == nothing["metadata"]["generation"] && is_observed(object)
        })
        .await;
    assert_eq!(
        condition(&nothing, "Ready"),
        ("True".to_owned(), "NoResolvedTypes".to_owned())
    );
    assert_eq!(nothing["status"]["streams"]["summary"], "0/0");
    no_watch_is_open(api, before).await;

    declared.declare(&[stream_of(KINDS[0], namespace)]).await;
    declared.until_ready().await;
    declared
        .patch(&json!({"metadata": {"finalizers": ["krm-stream.github.io/e2e"]}}))
        .await;
    declared.delete().await;
    no_watch_is_open(api, before).await;
    let going = declared.object().await.expect("a finalizer keeps it");
    assert_eq!(reading(&going), Reading::Terminating);
    declared.patch(&json!({"metadata": {"finalizers": null}})).await;
    until("it is gone", async || {
        declared.object().await.is_none().then_some(())
    })
    .await;
}

async fn no_watch_is_open(api: &ApiServer, before: &[(u64, u64)]) {
    // Far longer than from one watch to the next, or it may be between two.
    let mut quiet = 0;
    until("no watch is open", async || {
        let mut is_quiet = true;
        for (kind, (_, open)) in KINDS.iter().zip(before) {
            is_quiet &= open_watches(api, kind).await == *open;
        }
        quiet = if is_quiet { quiet + 1 } else { 0 };
        (quiet >= 4).then_some(())
    })
    .await;
}

async fn the_lease_is_held_by_it_and_given_up(api: &ApiServer, namespace: &str, mut gateway: Gateway) {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/krm-stream-declared");
    let holder = async || {
        let (_, lease) = api.get(&path).await;
        let lease: serde_json::Value = serde_json::from_slice(&lease).expect("a Lease is JSON");
        lease["spec"]["holderIdentity"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert!(!holder().await.is_empty());
    gateway.signal("TERM");
    assert!(gateway.until_ended().await.success());
    assert_eq!(holder().await, "", "given up at the end");
}
