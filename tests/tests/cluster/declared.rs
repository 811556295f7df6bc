//! A declared stream on the API server: the resource, what is published of it, and how tools read that.

use std::path::Path;
use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::api_server::{ApiServer, text};
use crate::kstatus::{self, Reading};
use crate::metrics;
use crate::wait::{WITHIN, until};

const COLLECTION: &str = "/apis/krm-stream.github.io/v1alpha1/declaredstreams";

/// How often it is looked.
const PACE: Duration = Duration::from_millis(50);
/// What the API server is asked for at most, in seconds, by a watch that is read until something has come.
const WATCHED_FOR: u32 = 600;
/// For how long it is looked whether something is written that should not be.
const AFTERMATH: Duration = Duration::from_secs(3);
/// The annotation of the last version that a test is about.
const LAST: &str = "krm-stream.github.io/e2e-last";

/// A resource of a test's own.
pub(crate) struct Declared<'a> {
    api: &'a ApiServer,
    name: String,
    uid: String,
}

/// An Event about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) kind: String,
    pub(crate) reason: String,
    /// Which replica says so.
    pub(crate) instance: String,
}

/// Installs the resource's definition.
pub(crate) async fn install(api: &ApiServer) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../crates/declared/crd/declaredstreams.krm-stream.github.io.json");
    let definition = std::fs::read(&file).expect("the definition is there");
    let mut definition: Value = serde_json::from_slice(&definition).expect("the definition is JSON");
    definition["metadata"]["labels"] = json!({"app.kubernetes.io/part-of": "krm-stream-e2e"});
    api.kubectl(
        &["apply", "--server-side", "--filename=-"],
        &definition.to_string(),
    )
    .await;
    until_served(api).await;
}

/// Waits until the API server serves the resource.
pub(crate) async fn until_served(api: &ApiServer) {
    api.kubectl(
        &[
            "wait",
            "--for=condition=Established",
            "--timeout=30s",
            "customresourcedefinition/declaredstreams.krm-stream.github.io",
        ],
        "",
    )
    .await;
    until("the resource is served", async || {
        (api.get(COLLECTION).await.0 == StatusCode::OK).then_some(())
    })
    .await;
}

/// The newest version of the collection.
pub(crate) async fn newest_version(api: &ApiServer) -> String {
    let (status, body) = api.get(COLLECTION).await;
    assert_eq!(status, StatusCode::OK);
    let list: Value = serde_json::from_slice(&body).expect("a list is JSON");
    text(&list["metadata"]["resourceVersion"])
}

/// A stream of a kind of the core group in a namespace, by the kind's name.
pub(crate) fn stream_of(resource: &str, namespace: &str) -> Value {
    json!({"name": resource, "scope": {"version": "v1", "resource": resource, "namespace": namespace}})
}

impl<'a> Declared<'a> {
    pub(crate) async fn create(api: &'a ApiServer, streams: &[Value]) -> Self {
        let object = json!({
            "apiVersion": "krm-stream.github.io/v1alpha1", "kind": "DeclaredStream",
            "metadata": {"generateName": "krm-e2e-"},
            "spec": {"streams": streams},
        });
        let created = api.create(COLLECTION, &object).await;
        Self {
            api,
            name: text(&created["metadata"]["name"]),
            uid: text(&created["metadata"]["uid"]),
        }
    }

    /// The same resource by another connection.
    pub(crate) fn seen_through<'b>(&self, api: &'b ApiServer) -> Declared<'b> {
        Declared {
            api,
            name: self.name.clone(),
            uid: self.uid.clone(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn path(&self) -> String {
        format!("{COLLECTION}/{}", self.name)
    }

    /// The object, if it is there.
    pub(crate) async fn object(&self) -> Option<Value> {
        let (status, body) = self.api.get(&self.path()).await;
        (status == StatusCode::OK).then(|| serde_json::from_slice(&body).expect("an object is JSON"))
    }

    /// Waits until it is as wanted.
    pub(crate) async fn until(&self, what: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + WITHIN;
        loop {
            let object = self.object().await;
            if let Some(object) = object.as_ref().filter(|object| is_wanted(object)) {
                return object.clone();
            }
            assert!(
                Instant::now() < deadline,
                "not within {WITHIN:?}: {what}; it is {object:?}; told: {:?}",
                self.events().await
            );
            sleep(PACE).await;
        }
    }

    /// Waits until Ready is True for the specification as it is now.
    pub(crate) async fn until_ready(&self) -> Value {
        self.until("it is ready", |object| {
            is_observed(object) && condition(object, "Ready").0 == "True"
        })
        .await
    }

    /// Waits until Stalled is True for this reason.
    pub(crate) async fn until_stalled(&self, reason: &str) -> Value {
        self.until(&format!("it is stalled: {reason}"), |object| {
            is_observed(object) && condition(object, "Stalled") == ("True".to_owned(), reason.to_owned())
        })
        .await
    }

    /// Replaces what is declared.
    pub(crate) async fn declare(&self, streams: &[Value]) -> Value {
        self.patch(&json!({"spec": {"streams": streams}})).await
    }

    pub(crate) async fn patch(&self, change: &Value) -> Value {
        self.api.merge_patch(&self.path(), change).await
    }

    pub(crate) async fn delete(&self) {
        self.api.delete(&self.path()).await;
    }

    /// All Events about it, the oldest first.
    pub(crate) async fn events(&self) -> Vec<Told> {
        let path = format!(
            "/api/v1/namespaces/default/events?fieldSelector=involvedObject.uid%3D{}",
            self.uid
        );
        let (status, body) = self.api.get(&path).await;
        assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&body));
        let list: Value = serde_json::from_slice(&body).expect("a list is JSON");
        let mut events = list["items"].as_array().expect("a list has items").clone();
        events.sort_by_key(|event| text(&event["eventTime"]));
        let told = |event: &Value| Told {
            kind: text(&event["type"]),
            reason: text(&event["reason"]),
            instance: text(&event["reportingInstance"]),
        };
        events.iter().map(told).collect()
    }

    /// Waits until so many Events are there; an Event is recorded just after the status that it tells of.
    pub(crate) async fn until_told(&self, reason: &str) -> Vec<Told> {
        until(&format!("the last event is {reason}"), async || {
            let events = self.events().await;
            let is_last = events.last().is_some_and(|event| event.reason == reason);
            is_last.then_some(events)
        })
        .await
    }

    /// Each version of the object after this one, up to that which [`Self::mark_the_last_version`] makes.
    pub(crate) async fn versions_to_the_last(&self, since: &str) -> Vec<Value> {
        let path = format!(
            "{COLLECTION}?watch=true&fieldSelector=metadata.name%3D{}&resourceVersion={since}&timeoutSeconds={WATCHED_FOR}",
            self.name
        );
        let version_of = |line: &str| -> Value {
            let mut event: Value = serde_json::from_str(line).expect("a line of a watch is JSON");
            event["object"].take()
        };
        let is_last = |line: &str| version_of(line)["metadata"]["annotations"][LAST] == "yes";
        let lines = self.api.lines_until(&path, is_last).await;
        lines.iter().map(|line| version_of(line)).collect()
    }

    /// Gives what must not follow the time to, and then makes the version at which those who follow all of them stop.
    pub(crate) async fn mark_the_last_version(&self) {
        sleep(AFTERMATH).await;
        self.patch(&json!({"metadata": {"annotations": {LAST: "yes"}}}))
            .await;
    }
}

/// Status and reason of a condition.
pub(crate) fn condition(object: &Value, of_type: &str) -> (String, String) {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.and_then(|all| all.iter().find(|condition| condition["type"] == of_type));
    let field = |field: &str| {
        let value = found.and_then(|condition| condition[field].as_str());
        value.unwrap_or_default().to_owned()
    };
    (field("status"), field("reason"))
}

/// The message of a condition.
pub(crate) fn message(object: &Value, of_type: &str) -> String {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.and_then(|all| all.iter().find(|condition| condition["type"] == of_type));
    found
        .map(|condition| text(&condition["message"]))
        .unwrap_or_default()
}

/// Whether the status is about the specification as it is.
pub(crate) fn is_observed(object: &Value) -> bool {
    object["status"]["observedGeneration"] == object["metadata"]["generation"]
}

/// What tools make of it.
pub(crate) fn reading(object: &Value) -> Reading {
    kstatus::read(object)
}

/// How many watches of a kind in one namespace are open at the API server.
pub(crate) async fn open_watches(api: &ApiServer, resource: &str) -> u64 {
    api.metric("apiserver_longrunning_requests", &of_kind(resource))
        .await
}

/// How many have ended.
pub(crate) async fn ended_watches(api: &ApiServer, resource: &str) -> u64 {
    let [ended] = ended_watches_of(api, [resource]).await;
    ended
}

/// The same of several kinds, at one time.
pub(crate) async fn ended_watches_of<const KINDS: usize>(
    api: &ApiServer,
    kinds: [&str; KINDS],
) -> [u64; KINDS] {
    let metrics = api.metrics().await;
    kinds.map(|kind| metrics::sum(&metrics, "apiserver_request_total", &of_kind(kind)))
}

fn of_kind(resource: &str) -> [(&str, &str); 3] {
    [("resource", resource), ("scope", "namespace"), ("verb", "WATCH")]
}
