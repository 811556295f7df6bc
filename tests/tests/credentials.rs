//! Credentials towards the API server, through a whole gateway on the simulator: rotated, revoked, impersonated, and never
//! sent anywhere else.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on says why and fails"
)]

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Request;
use krm_stream_protocol::{
    AllowAll, Authorizer, BoxFuture, Client, ClientFor, Partition, Principal, Scope, StreamError, Subject,
    Target,
};
use krm_stream_simulator::{Fault, ReceivedRequest, RequestMatch, Rule, Simulator, Status, User};
use krm_stream_tests::{Connection, GatewayUnderTest};
use krm_stream_upstream_kube::{KubeUpstream, kube};
use serde_json::json;
use tokio::time::timeout;

const SHOP: &str = "version=v1&resource=configmaps&namespace=shop";
const WITHIN: Duration = Duration::from_secs(30);

/// A simulator with one ConfigMap, `a`, in `shop`.
async fn simulator() -> Simulator {
    let simulator = Simulator::start().await.unwrap();
    create(&simulator, "a");
    simulator
}

fn create(simulator: &Simulator, name: &str) {
    let object = json!({"metadata": {"name": name, "namespace": "shop"}});
    simulator.create("configmaps", object).unwrap();
}

fn with_token(simulator: &Simulator, token: &str) -> KubeUpstream {
    let mut config = kube::Config::new(simulator.url().parse().unwrap());
    config.auth_info.token = Some(token.to_owned().into());
    KubeUpstream::from_config(config).unwrap()
}

fn with_token_file(simulator: &Simulator, file: &Path) -> KubeUpstream {
    let mut config = kube::Config::new(simulator.url().parse().unwrap());
    config.auth_info.token_file = Some(file.to_str().unwrap().to_owned());
    KubeUpstream::from_config(config).unwrap()
}

/// A client for each principal, and how often one was asked for.
struct Choosing<F> {
    choose: F,
    asked: Arc<AtomicUsize>,
}

impl<F> ClientFor for Choosing<F>
where
    F: Fn(&Principal) -> Result<(KubeUpstream, Partition), StreamError> + Send + Sync,
{
    fn client_for<'a>(
        &'a self,
        _: &'a Target,
        principal: &'a Principal,
    ) -> BoxFuture<'a, Result<Client, StreamError>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let client = (self.choose)(principal).map(|(upstream, partition)| Client {
            upstream: Arc::new(upstream),
            partition,
        });
        Box::pin(std::future::ready(client))
    }
}

/// Allows everyone, and counts.
struct Counting(Arc<AtomicUsize>);

impl Authorizer for Counting {
    fn authorize<'a>(&'a self, _: &'a Principal, _: &'a Scope) -> BoxFuture<'a, Result<(), StreamError>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready(Ok(())))
    }
}

struct Counted {
    gateway: GatewayUnderTest,
    authorized: Arc<AtomicUsize>,
    clients: Arc<AtomicUsize>,
}

fn gateway<F>(choose: F) -> Counted
where
    F: Fn(&Principal) -> Result<(KubeUpstream, Partition), StreamError> + Send + Sync + 'static,
{
    let (authorized, clients) = (Arc::default(), Arc::default());
    let (unused, _) = krm_stream_tests::ScriptedUpstream::new();
    let builder = GatewayUnderTest::builder(unused, Partition::per_caller())
        .authorizer(Counting(Arc::clone(&authorized)))
        .client_for(Choosing {
            choose,
            asked: Arc::clone(&clients),
        });
    Counted {
        gateway: GatewayUnderTest::build(builder),
        authorized,
        clients,
    }
}

/// A gateway whose upstream acts as each caller, on the connections of `upstream`.
fn impersonating(upstream: KubeUpstream) -> Counted {
    gateway(move |principal| {
        let upstream = upstream
            .acting_as(principal.subject())
            .map_err(|_| StreamError::unauthenticated("you cannot be acted as"))?;
        Ok((upstream, Partition::per_caller()))
    })
}

async fn synced(connection: &mut Connection) {
    assert_eq!(connection.types(3).await, ["reset", "added", "synced"]);
}

/// The only event of a stream that is refused.
async fn refusal(mut connection: Connection) -> serde_json::Value {
    let events = connection.events(1).await;
    assert!(connection.is_over().await);
    serde_json::from_str(&events[0]).unwrap()
}

/// The simulator's log keeps of a credential how long it is: `Bearer `, and the token.
fn authorization(request: &ReceivedRequest) -> &str {
    let header = request.headers().get("authorization");
    header.map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn a_token_that_was_rotated_is_read_again_when_it_is_rejected_and_no_reader_notices() {
    let simulator = simulator().await;
    simulator.access().add_token("old", User::new("gateway"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "old").unwrap();
    let upstream = with_token_file(&simulator, &file);
    let it = gateway(move |_| Ok((upstream.clone(), Partition::shared("tests"))));
    let mut connections = [it.gateway.connect(SHOP), it.gateway.connect(SHOP)];
    for connection in &mut connections {
        synced(connection).await;
    }
    assert_eq!(simulator.counts().watch, 1);

    std::fs::write(&file, "rotated\n").unwrap();
    simulator.access().add_token("rotated", User::new("gateway"));
    simulator.access().remove_token("old");
    simulator.close_watches();
    timeout(
        WITHIN,
        simulator.wait_for(|counts| counts.open_watches == 1 && counts.watch == 3),
    )
    .await
    .unwrap();
    create(&simulator, "b");
    for connection in &mut connections {
        assert_eq!(connection.types(1).await, ["added"]);
        assert_eq!(connection.consumer().objects().count(), 2);
    }
    let sent: Vec<_> = simulator
        .requests()
        .iter()
        .map(|it| authorization(it).to_owned())
        .collect();
    assert_eq!(
        sent,
        ["(10 bytes)", "(10 bytes)", "(14 bytes)"],
        "old, old, rotated"
    );
    assert_eq!(
        it.clients.load(Ordering::SeqCst),
        2,
        "no stream began another cycle"
    );
}

#[tokio::test]
async fn a_token_that_stays_rejected_is_tried_once_more_and_then_unauthenticated() {
    let simulator = simulator().await;
    simulator.access().add_token("known", User::new("gateway"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "unknown").unwrap();
    for partition in [Partition::per_caller(), Partition::shared("tests")] {
        simulator.clear_requests();
        let upstream = with_token_file(&simulator, &file);
        let it = gateway(move |_| Ok((upstream.clone(), partition.clone())));
        let error = refusal(it.gateway.connect(SHOP)).await;
        assert_eq!(error["code"], "UNAUTHENTICATED", "{error}");
        assert_eq!(error["terminal"], true);
        assert_eq!(simulator.requests().len(), 2);
    }
}

#[tokio::test]
async fn a_credential_rejected_on_a_reopen_ends_the_feed_and_each_stream_asks_for_a_client_again() {
    let simulator = simulator().await;
    for token in ["first", "second"] {
        simulator.access().add_token(token, User::new("ada"));
    }
    let token = Arc::new(Mutex::new("first".to_owned()));
    let current = Arc::clone(&token);
    let of_simulator = with_token(&simulator, "second");
    let first = with_token(&simulator, "first");
    let it = gateway(move |_| {
        let upstream = if *current.lock().unwrap() == "first" {
            first.clone()
        } else {
            of_simulator.clone()
        };
        Ok((upstream, Partition::per_caller()))
    });
    let mut connections: Vec<_> = (0..3).map(|_| it.gateway.connect_as("ada", SHOP)).collect();
    for connection in &mut connections {
        synced(connection).await;
    }
    assert_eq!(simulator.counts().watch, 1, "one feed for all tabs of a caller");
    assert_eq!(it.clients.load(Ordering::SeqCst), 3);

    // The host has a newer credential by now.
    "second".clone_into(&mut token.lock().unwrap());
    simulator.access().remove_token("first");
    simulator.close_watches();
    for connection in &mut connections {
        assert_eq!(
            connection.types(4).await,
            ["RESYNC_REQUIRED", "reset", "added", "synced"]
        );
    }
    assert_eq!(it.clients.load(Ordering::SeqCst), 6);
    assert_eq!(it.authorized.load(Ordering::SeqCst), 6);
    create(&simulator, "b");
    for connection in &mut connections {
        assert_eq!(connection.types(1).await, ["added"]);
    }
    assert_eq!(
        simulator.counts().open_watches,
        1,
        "and again there is one feed for all"
    );
}

#[tokio::test]
async fn a_revoked_credential_refuses_its_own_caller_and_nobody_else() {
    let simulator = simulator().await;
    for user in ["ada", "bob"] {
        simulator
            .access()
            .add_token(format!("token-of-{user}"), User::new(user));
    }
    let upstreams = ["ada", "bob"].map(|user| (user, with_token(&simulator, &format!("token-of-{user}"))));
    let it = gateway(move |principal| {
        let found = upstreams
            .iter()
            .find(|(user, _)| *user == principal.subject().user_name());
        let (_, upstream) = found.ok_or_else(|| StreamError::unauthenticated("who are you?"))?;
        Ok((upstream.clone(), Partition::per_caller()))
    });
    let mut ada = it.gateway.connect_as("ada", SHOP);
    let mut bob = it.gateway.connect_as("bob", SHOP);
    synced(&mut ada).await;
    synced(&mut bob).await;
    simulator.access().remove_token("token-of-ada");
    simulator.close_watches();
    let error = refusal_after_cycle(ada).await;
    assert_eq!(error["code"], "UNAUTHENTICATED");
    assert_eq!(error["terminal"], true);
    create(&simulator, "b");
    assert_eq!(bob.types(1).await, ["added"]);
    let error = refusal(it.gateway.connect_as("eve", SHOP)).await;
    assert_eq!(error["code"], "UNAUTHENTICATED");
}

/// The last event of a stream that may be told first that a new cycle follows.
async fn refusal_after_cycle(mut connection: Connection) -> serde_json::Value {
    let mut last = None;
    while let Some(event) = timeout(WITHIN, connection.next()).await.unwrap() {
        let event: serde_json::Value = serde_json::from_str(&event).unwrap();
        assert_eq!(event["type"], "error", "{event}");
        last = Some(event);
    }
    last.unwrap()
}

fn impersonated(request: &ReceivedRequest) -> Vec<(String, String)> {
    let headers = request.headers().iter();
    let mut found: Vec<_> = headers
        .filter(|(name, _)| name.as_str().starts_with("impersonate-"))
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    found.sort();
    found
}

#[tokio::test]
async fn callers_are_impersonated_on_one_pool_of_connections() {
    let simulator = Simulator::builder().streaming_lists(false).start().await.unwrap();
    create(&simulator, "a");
    simulator.access().add_token("gateway", User::new("gateway"));
    let it = impersonating(with_token(&simulator, "gateway"));
    let mut connections = Vec::new();
    for number in 0..10 {
        let mut connection = it.gateway.connect_as(&format!("user-{number}"), SHOP);
        synced(&mut connection).await;
        connections.push(connection);
    }
    // HTTP/1.1 gives each open watch a connection; the lists before them need no other.
    let all = simulator.wait_for(|counts| counts.open_watches == 10);
    let counts = timeout(WITHIN, all).await.unwrap();
    assert_eq!((counts.list, counts.connections), (10, 10));
    simulator.close_watches();
    timeout(
        WITHIN,
        simulator.wait_for(|counts| counts.open_watches == 10 && counts.watch >= 20),
    )
    .await
    .unwrap();
    assert_eq!(simulator.counts().connections, 10, "each was used again");

    // Callers who are refused, one after another, take one connection in all.
    simulator
        .access()
        .set_rules([Rule::allow().user("gateway").verbs(["impersonate"])]);
    simulator.clear_requests();
    let before = simulator.counts().connections;
    for number in 0..10 {
        let error = refusal(it.gateway.connect_as(&format!("other-{number}"), SHOP)).await;
        assert_eq!(error["code"], "FORBIDDEN");
        assert!(
            error["message"]
                .as_str()
                .unwrap()
                .contains(&format!("other-{number}"))
        );
    }
    assert!(simulator.counts().connections <= before + 1);
    for (number, request) in simulator.requests().iter().enumerate() {
        assert_eq!(authorization(request), "(14 bytes)");
        let user = ("impersonate-user".to_owned(), format!("other-{number}"));
        assert_eq!(impersonated(request), [user]);
    }
}

#[tokio::test]
async fn a_complete_subject_arrives_and_the_api_server_decides_for_it() {
    let simulator = simulator().await;
    simulator.access().add_token("gateway", User::new("gateway"));
    simulator.access().set_rules([
        Rule::allow().user("gateway").verbs(["impersonate"]),
        Rule::allow().group("dev").verbs(["list", "watch"]),
    ]);
    let it = impersonating(with_token(&simulator, "gateway"));
    let scope = Scope::builder("v1", "configmaps")
        .namespace("shop")
        .build()
        .unwrap();
    let subject = |group: &str| {
        Subject::new("ada@example.org")
            .unwrap()
            .uid("7")
            .group(group)
            .group("ops team")
            .extra("example.org/Login scope%", "read only")
            .extra("plain", "1")
            .extra("plain", "2")
    };
    let mut frames = it
        .gateway
        .gateway()
        .stream(Principal::new(subject("dev")), scope.clone(), None);
    let mut seen = String::new();
    while !seen.contains("synced") {
        seen += &first_of(&mut frames).await;
    }
    let pairs: Vec<_> = [
        ("impersonate-extra-example.org%2f%4cogin%20scope%25", "read only"),
        ("impersonate-extra-plain", "1"),
        ("impersonate-extra-plain", "2"),
        ("impersonate-group", "dev"),
        ("impersonate-group", "ops team"),
        ("impersonate-uid", "7"),
        ("impersonate-user", "ada@example.org"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    assert_eq!(impersonated(&simulator.requests()[0]), pairs);

    let mut refused = it
        .gateway
        .gateway()
        .stream(Principal::new(subject("qa")), scope, None);
    assert!(first_of(&mut refused).await.contains("FORBIDDEN"));
}

async fn first_of(frames: &mut krm_stream_http::Frames) -> String {
    use futures_util::StreamExt as _;
    let frame = timeout(WITHIN, frames.next()).await.unwrap();
    let frame = frame.unwrap_or_else(|| panic!("the stream ended"));
    String::from_utf8(frame.json().to_vec()).unwrap()
}

#[tokio::test]
async fn a_caller_whom_no_header_can_carry_is_refused_and_asks_nothing() {
    let simulator = simulator().await;
    simulator.access().add_token("gateway", User::new("gateway"));
    let it = impersonating(with_token(&simulator, "gateway"));
    let scope = Scope::builder("v1", "configmaps")
        .namespace("shop")
        .build()
        .unwrap();
    let ada = || Subject::new("ada").unwrap();
    for subject in [
        Subject::new("ada\r\nImpersonate-Group: system:masters").unwrap(),
        Subject::new(" ada").unwrap(),
        ada().uid("7\n"),
        ada().group("system:masters\0"),
        ada().extra("k", "v\r\n"),
        ada().extra("", "v"),
    ] {
        let shown = format!("{subject:?}");
        let mut frames = it
            .gateway
            .gateway()
            .stream(Principal::new(subject), scope.clone(), None);
        assert!(first_of(&mut frames).await.contains("UNAUTHENTICATED"), "{shown}");
    }
    assert_eq!(simulator.requests().len(), 0);
}

#[tokio::test]
async fn no_header_of_a_browser_s_request_goes_upstream() {
    let simulator = simulator().await;
    simulator.access().add_token("gateway", User::new("gateway"));
    let it = impersonating(with_token(&simulator, "gateway"));
    let request = Request::get(format!("/resource-stream/v1?{SHOP}"))
        .header("x-user", "ada")
        .header("authorization", "Bearer of-the-browser")
        .header("cookie", "session=of-the-browser")
        .header("impersonate-user", "of-the-browser")
        .header("impersonate-group", "of-the-browser")
        .header("x-forwarded-for", "of-the-browser")
        .header("user-agent", "of-the-browser")
        .body(());
    let body = it.gateway.answer(request).into_body();
    let mut watching = Box::pin(async move {
        use http_body_util::BodyExt as _;
        let mut body = body;
        while body.frame().await.is_some() {}
    });
    let asked = simulator.wait_for(|counts| counts.open_watches == 1);
    tokio::select! {
        () = &mut watching => panic!("the stream ended"),
        asked = timeout(WITHIN, asked) => drop(asked.unwrap()),
    }
    for request in simulator.requests() {
        assert!(
            !format!("{:?}", request.headers()).contains("of-the-browser"),
            "{request:?}"
        );
        assert_eq!(
            impersonated(&request),
            [("impersonate-user".to_owned(), "ada".to_owned())]
        );
    }
}

#[tokio::test]
async fn a_redirect_takes_no_credential_to_another_server_at_an_open_or_a_reopen() {
    let simulator = simulator().await;
    simulator.access().add_token("gateway", User::new("gateway"));
    let elsewhere = Simulator::start().await.unwrap();
    let it = impersonating(with_token(&simulator, "gateway"));
    for code in [301, 302, 303, 307, 308] {
        let location = format!("{}/api/v1/namespaces/shop/configmaps?watch=1", elsewhere.url());
        let caller = format!("open-{code}");
        let of_caller = ("impersonate-user".to_owned(), caller.clone());
        simulator.faults().add(
            RequestMatch::watch().filter(move |request| impersonated(request).contains(&of_caller)),
            Fault::redirect(code, &location),
        );
        let error = refusal(it.gateway.connect_as(&caller, SHOP)).await;
        assert_eq!(error["terminal"], true, "{error}");

        let mut connection = it.gateway.connect_as(&format!("reopen-{code}"), SHOP);
        synced(&mut connection).await;
        simulator.faults().add(
            RequestMatch::resumed_watch().always(),
            Fault::redirect(code, &location),
        );
        simulator.close_watches();
        // The feed ends; the stream's own cycle begins with a snapshot, which no redirect is in the way of.
        assert_eq!(
            connection.types(4).await,
            ["RESYNC_REQUIRED", "reset", "added", "synced"]
        );
        simulator.faults().clear();
    }
    assert_eq!(elsewhere.counts().connections, 0);
}

#[tokio::test]
async fn an_open_that_is_answered_with_503_is_asked_once() {
    let simulator = simulator().await;
    for (code, retry_after) in [(503, None), (504, None), (429, Some(1)), (500, None)] {
        let mut status = Status::new(code, "later");
        if let Some(seconds) = retry_after {
            status = status.retry_after_seconds(seconds);
        }
        simulator
            .faults()
            .add(RequestMatch::any().always(), Fault::status(&status));
        let upstream =
            KubeUpstream::from_config(kube::Config::new(simulator.url().parse().unwrap())).unwrap();
        let it = gateway(move |_| Ok((upstream.clone(), Partition::per_caller())));
        let before = simulator.counts();
        let error = refusal(it.gateway.connect(SHOP)).await;
        assert_eq!(error["code"], "UPSTREAM_UNAVAILABLE", "{error}");
        let after = simulator.counts();
        assert_eq!(after.watch, before.watch + 1, "{code}");
        // A 500 may be a streaming list's refusal, so it is asked once more as a list.
        assert_eq!(after.list - before.list, u64::from(code == 500));
        simulator.faults().clear();
    }
}

#[tokio::test]
async fn who_may_see_what_is_decided_per_caller_also_while_the_scope_is_warm() {
    let simulator = simulator().await;
    let secret = json!({"metadata": {"name": "s", "namespace": "shop"}, "data": {"k": "Y2FuYXJ5"}});
    simulator.create("secrets", secret).unwrap();
    simulator.access().add_token("gateway", User::new("gateway"));
    simulator.access().set_rules([
        Rule::allow().user("gateway").verbs(["impersonate"]),
        Rule::allow().user("admin").verbs(["list", "watch"]),
        Rule::allow()
            .user("viewer")
            .verbs(["list", "watch"])
            .resource("", "configmaps"),
    ]);
    let it = impersonating(with_token(&simulator, "gateway"));
    let secrets = "version=v1&resource=secrets&namespace=shop";
    let mut admin = it.gateway.connect_as("admin", secrets);
    synced(&mut admin).await;
    let error = refusal(it.gateway.connect_as("viewer", secrets)).await;
    assert_eq!(error["code"], "FORBIDDEN");
    synced(&mut it.gateway.connect_as("viewer", SHOP)).await;
    let raw = String::from_utf8_lossy(admin.raw()).into_owned();
    assert!(raw.contains("/data/k") && !raw.contains("Y2FuYXJ5"));
    // An authorizer that allows everyone is no boundary for a shared feed, and the gateway says so.
    let upstream = with_token(&simulator, "gateway");
    let (unused, _) = krm_stream_tests::ScriptedUpstream::new();
    let shared = GatewayUnderTest::build(
        GatewayUnderTest::builder(unused, Partition::per_caller())
            .authorizer(AllowAll::where_upstream_acts_as_caller())
            .client_for(Choosing {
                choose: move |_: &Principal| Ok((upstream.clone(), Partition::shared("tests"))),
                asked: Arc::default(),
            }),
    );
    let error = refusal(shared.connect_as("viewer", secrets)).await;
    assert_eq!(error["terminal"], true, "{error}");
}
