//! Revocation with the reviews of an API server, over real connections to it.

use std::sync::Arc;
use std::time::Duration;

use krm_stream_http::Gateway;
use krm_stream_protocol::{BoxFuture, Client, ClientFor, Partition, Principal, StreamError, Target};
use krm_stream_simulator::{Fault, RequestMatch, Rule, Simulator, Verb};
use krm_stream_upstream_kube::{KubeUpstream, SubjectAccessReviewAuthorizer, kube};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::support::{QUERY, ScriptedUpstream, builder, get_as, type_of};

const USERS: usize = 10;
const TABS: usize = 20;
/// How long the API server takes for each review. One after the other they would take twenty times that.
const REVIEW: Duration = Duration::from_secs(1);

/// One service identity reads for everyone: the reviews alone decide.
struct ByService(KubeUpstream);

impl ClientFor for ByService {
    fn client_for<'a>(
        &'a self,
        _: &'a Target,
        _: &'a Principal,
    ) -> BoxFuture<'a, Result<Client, StreamError>> {
        let client = Client {
            upstream: Arc::new(self.0.clone()),
            partition: Partition::shared("gateway"),
        };
        Box::pin(std::future::ready(Ok(client)))
    }
}

fn readers(but: &str) -> Vec<Rule> {
    let everyone = (0..USERS).map(|user| format!("user-{user}"));
    let allowed = everyone.filter(|user| user != but);
    allowed
        .map(|user| {
            Rule::allow()
                .user(user)
                .verbs(["list", "watch"])
                .resource("", "configmaps")
                .namespace("app")
        })
        .chain([Rule::allow().user("system:anonymous")])
        .collect()
}

/// What each stream received: its user, and the type of the event.
type Received = mpsc::UnboundedReceiver<(usize, String)>;

fn open_all(gateway: &Gateway) -> (Received, Vec<JoinHandle<()>>) {
    let (sender, received) = mpsc::unbounded_channel();
    let tasks = (0..USERS * TABS).map(|stream| {
        let (user, sender) = (stream % USERS, sender.clone());
        let mut connection = get_as(gateway, &format!("user-{user}"), QUERY);
        tokio::spawn(async move {
            while let Some(event) = connection.next().await {
                let _ = sender.send((user, type_of(&event)));
            }
        })
    });
    let tasks = tasks.collect();
    (received, tasks)
}

async fn receive(received: &mut Received, count: usize) -> Vec<(usize, String)> {
    let mut events = Vec::new();
    while events.len() < count {
        let event = tokio::time::timeout(Duration::from_secs(20), received.recv()).await;
        events.push(event.expect("all events should have come").unwrap());
    }
    events
}

fn reviews(simulator: &Simulator) -> usize {
    let requests = simulator.requests();
    requests
        .iter()
        .filter(|request| request.verb() == Verb::Create)
        .count()
}

#[tokio::test]
async fn a_recheck_asks_once_for_each_caller_and_ends_those_without_the_right() {
    let simulator = Simulator::start().await.unwrap();
    simulator.access().set_rules(readers(""));
    simulator
        .create(
            "configmaps",
            json!({"metadata": {"name": "a", "namespace": "app"}}),
        )
        .unwrap();
    simulator.faults().add(
        RequestMatch::any().verb(Verb::Create).always(),
        Fault::Delay(REVIEW),
    );
    let config = kube::Config::new(simulator.url().parse().unwrap());
    let upstream = KubeUpstream::from_config(config).unwrap();
    let (unused, _script) = ScriptedUpstream::new();
    let gateway = builder(&unused)
        .client_for(ByService(upstream.clone()))
        .authorizer(SubjectAccessReviewAuthorizer::new(Target::default(), upstream))
        .build()
        .unwrap();

    let (mut received, tasks) = open_all(&gateway);
    receive(&mut received, USERS * TABS * 3).await;
    assert_eq!(
        reviews(&simulator),
        USERS * 2,
        "equal checks in flight are asked once"
    );

    simulator.clear_requests();
    simulator.access().set_rules(readers("user-3"));
    let removed = Instant::now();
    assert_eq!(gateway.recheck(|_, _| true), USERS * TABS);
    // Changed after the recheck: for those alone who may still see it.
    let changed = simulator.patch("configmaps", "app", "a", &json!({"data": {"canary": "1"}}));
    changed.unwrap();
    for (user, event) in receive(&mut received, USERS * TABS).await {
        let expected = if user == 3 { "FORBIDDEN" } else { "modified" };
        assert_eq!(event, expected, "user-{user}");
    }
    assert!(removed.elapsed() < REVIEW * 2 + Duration::from_secs(10));
    // Two verbs each; the first is enough for a denial.
    assert_eq!(reviews(&simulator), (USERS - 1) * 2 + 1);

    gateway.drain(Duration::from_secs(1));
    for (user, event) in receive(&mut received, (USERS - 1) * TABS).await {
        assert_eq!(event, "UPSTREAM_UNAVAILABLE", "user-{user}");
    }
    tokio::time::timeout(Duration::from_secs(10), gateway.drained())
        .await
        .unwrap();
    for task in tasks {
        task.await.unwrap();
    }
}
