//! Two replicas that keep the same declared streams: one publishes, and when it is gone the other does.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::api_server::ApiServer;
use crate::declared::{Declared, condition, install, stream_of};
use crate::gateway::Gateway;
use crate::wait::until;

/// The Lease of a test.
struct Lease<'a> {
    api: &'a ApiServer,
    path: String,
}

/// How long a Lease lasts that is not renewed.
const LASTS: Duration = Duration::from_secs(15);
/// How often a candidate looks at it, at the most seldom.
const LOOKS: Duration = Duration::from_millis(4500);
/// What a busy machine may add to a time.
const TOLERANCE: Duration = Duration::from_secs(5);

impl Lease<'_> {
    async fn holder(&self) -> String {
        let (_, body) = self.api.get(&self.path).await;
        let lease: Value = serde_json::from_slice(&body).unwrap_or_default();
        lease["spec"]["holderIdentity"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// Waits until it is held by somebody else than this one, and returns by whom.
    async fn until_held_by_another(&self, than: &str) -> String {
        until("another replica holds the lease", async || {
            let holder = self.holder().await;
            (!holder.is_empty() && holder != than).then_some(holder)
        })
        .await
    }
}

/// Whether the last that a replica has told of it is that it publishes.
fn publishes(gateway: &Gateway) -> bool {
    let output = gateway.output();
    let mut changes = output.lines().filter(|line| line.contains("changed hands"));
    changes
        .next_back()
        .is_some_and(|line| line.contains("publishes=true"))
}

pub(crate) async fn the_holder_of_the_lease_alone_publishes(api: &ApiServer) {
    install(api).await;
    let namespace = api.create_namespace().await;
    let flags = [
        "--declared-streams",
        "--lease-namespace",
        &namespace,
        "--lease-name",
        "declared",
        "--allow",
        "limitranges,podtemplates",
    ];
    let lease = Lease {
        api,
        path: format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/declared"),
    };
    let mut first = Gateway::start(api, &flags).await;
    let one = lease.until_held_by_another("").await;
    let mut second = Gateway::start(api, &flags).await;
    let declared = Declared::create(api, &[stream_of("limitranges", &namespace)]).await;
    declared.until_ready().await;
    told_by(&declared, &one).await;
    until("the first replica knows that it publishes", async || {
        publishes(&first).then_some(())
    })
    .await;
    assert!(!publishes(&second));
    // The other one keeps the feed warm all the same.
    for gateway in [&first, &second] {
        until("each replica keeps the feed", async || {
            (gateway.metric("krm_stream_feeds_open", &[]).await >= 1).then_some(())
        })
        .await;
    }

    // Killed: nothing is given up, so the Lease has to run out.
    let before = declared.object().await;
    let begin = Instant::now();
    first.signal("KILL");
    first.until_ended().await;
    let other = lease.until_held_by_another(&one).await;
    let taken_over = begin.elapsed();
    // The other one counts from the look that showed it the last renewal, and takes it at the look that follows the end.
    assert!(taken_over <= LASTS + LOOKS * 2 + TOLERANCE, "{taken_over:?}");
    until("the other replica knows that it publishes", async || {
        publishes(&second).then_some(())
    })
    .await;
    assert_eq!(
        declared.object().await,
        before,
        "nothing changed, so nothing is written"
    );
    let count = declared.events().await.len();
    is_published_by(&declared, &namespace, "podtemplates", &other).await;
    let told = declared.events().await;
    assert!(
        told[count..].iter().all(|event| event.instance == other),
        "{told:?}"
    );

    // Told to end: given up at once. Whoever takes over may still be reading its first snapshot, and says nothing either way.
    let (before, told) = (declared.object().await, declared.events().await.len());
    let third = Gateway::start(api, &flags).await;
    until("the third replica keeps the feed", async || {
        (third.metric("krm_stream_feeds_open", &[]).await >= 1).then_some(())
    })
    .await;
    assert!(!publishes(&third));
    let begin = Instant::now();
    second.signal("TERM");
    assert!(second.until_ended().await.success());
    let ended = begin.elapsed();
    assert_ne!(lease.holder().await, other, "given up at the end");
    let last = lease.until_held_by_another(&other).await;
    let handed_over = begin.elapsed();
    // One look may fail, or meet the write that gives it up.
    assert!(handed_over <= ended + LOOKS * 2 + TOLERANCE, "{handed_over:?}");
    until("the third replica knows that it publishes", async || {
        publishes(&third).then_some(())
    })
    .await;
    until("the third replica has its snapshot", async || {
        (third
            .metric("krm_stream_declared_streams", &[("state", "ready")])
            .await
            == 1)
            .then_some(())
    })
    .await;
    assert_eq!(declared.object().await, before, "Ready has never changed");
    assert_eq!(declared.events().await.len(), told);
    is_published_by(&declared, &namespace, "limitranges", &last).await;
    eprintln!(
        "taken over {taken_over:.1?} after a kill, {handed_over:.1?} after SIGTERM (its process took {ended:.1?}); {:?}",
        declared.events().await
    );
    declared.delete().await;
}

/// An edit is published, and told of, by this replica.
async fn is_published_by(declared: &Declared<'_>, namespace: &str, kind: &str, instance: &str) {
    declared.declare(&[stream_of("secrets", namespace)]).await;
    declared.until_stalled("WatchNotPermitted").await;
    declared.declare(&[stream_of(kind, namespace)]).await;
    let ready = declared.until_ready().await;
    assert_eq!(condition(&ready, "Stalled").0, "False");
    assert_eq!(ready["status"]["streams"]["summary"], json!("1/1"));
    let told = declared.until_told("AllStreamsReady").await;
    assert!(told.iter().any(|event| event.instance == instance), "{told:?}");
}

async fn told_by(declared: &Declared<'_>, instance: &str) {
    let told = declared.until_told("AllStreamsReady").await;
    assert!(told.iter().all(|event| event.instance == instance), "{told:?}");
    let mut reasons: Vec<_> = told.iter().map(|event| &*event.reason).collect();
    reasons.dedup();
    assert_eq!(reasons.len(), told.len(), "each change is told once: {told:?}");
}
