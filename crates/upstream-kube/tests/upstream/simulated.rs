//! Sessions on the simulator: the whole way over real HTTP, with objects that change.

use krm_stream_protocol::{
    Authorizer as _, ErrorCode, Principal, ResourceVersion, Scope, Session, SessionItem, Start, Subject,
    Target, Upstream as _,
};
use krm_stream_simulator::{Fault, RequestMatch, Rule, Simulator, Status, User};
use krm_stream_upstream_kube::{KubeUpstream, SubjectAccessReviewAuthorizer, kube};
use serde_json::{Value, json};

use crate::support::SECOND;
use crate::support::socket::until;
use crate::support::transcript::{line, next, read};

fn config(simulator: &Simulator) -> kube::Config {
    kube::Config::new(simulator.url().parse().unwrap())
}

fn upstream(simulator: &Simulator) -> KubeUpstream {
    KubeUpstream::from_config(config(simulator)).unwrap()
}

fn config_map(name: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "shop", "labels": {"app": name}}, "data": {"a": "1"}})
}

fn shop() -> Scope {
    Scope::builder("v1", "configmaps")
        .namespace("shop")
        .build()
        .unwrap()
}

/// The next item, without its version.
async fn next_word(session: &mut dyn Session) -> String {
    let text = line(&tokio::time::timeout(SECOND * 10, next(session)).await.unwrap());
    text.split('@').next().unwrap().to_owned()
}

async fn words_until_boundary(session: &mut dyn Session) -> Vec<String> {
    let mut words = Vec::new();
    loop {
        let word = next_word(session).await;
        if word.starts_with("boundary") {
            return words;
        }
        words.push(word);
    }
}

async fn live_changes_arrive(simulator: &Simulator, session: &mut dyn Session) {
    simulator
        .patch("configmaps", "shop", "a", &json!({"data": {"a": "2"}}))
        .unwrap();
    assert_eq!(next_word(session).await, "modified a");
    simulator.delete("configmaps", "shop", "b").unwrap();
    assert_eq!(next_word(session).await, "deleted b");
    simulator.create("configmaps", config_map("c")).unwrap();
    assert_eq!(next_word(session).await, "added c");
}

#[tokio::test]
async fn a_streaming_list_gives_the_snapshot_and_then_every_change() {
    let simulator = Simulator::start().await.unwrap();
    simulator.create("configmaps", config_map("a")).unwrap();
    simulator.create("configmaps", config_map("b")).unwrap();
    let upstream = upstream(&simulator);
    let mut session = upstream.open(&shop(), Start::Fresh).await.unwrap();
    assert_eq!(words_until_boundary(&mut *session).await, ["added a", "added b"]);
    live_changes_arrive(&simulator, &mut *session).await;
    assert_eq!((simulator.counts().list, simulator.counts().watch), (0, 1));
    drop(session);
    until(|| simulator.counts().open_watches == 0 && simulator.counts().open_connections == 0).await;
}

#[tokio::test]
async fn without_streaming_lists_the_same_comes_from_pages_and_a_watch() {
    let simulator = Simulator::builder().streaming_lists(false).start().await.unwrap();
    for name in ["a", "b", "x", "y", "z"] {
        simulator.create("configmaps", config_map(name)).unwrap();
    }
    let upstream = KubeUpstream::builder(config(&simulator))
        .page_limit(2)
        .build()
        .unwrap();
    let mut session = upstream.open(&shop(), Start::Fresh).await.unwrap();
    assert_eq!(
        words_until_boundary(&mut *session).await,
        ["added a", "added b", "added x", "added y", "added z"]
    );
    live_changes_arrive(&simulator, &mut *session).await;
    assert_eq!((simulator.counts().list, simulator.counts().watch), (3, 2));
    let mut again = upstream.open(&shop(), Start::Fresh).await.unwrap();
    words_until_boundary(&mut *again).await;
    assert_eq!(
        simulator
            .requests()
            .iter()
            .filter(|request| request.is_streaming_list())
            .count(),
        1
    );
}

#[tokio::test]
async fn a_list_is_kept_while_its_watch_is_put_off_or_reset() {
    let simulator = Simulator::builder().streaming_lists(false).start().await.unwrap();
    simulator.create("configmaps", config_map("a")).unwrap();
    let upstream = upstream(&simulator);
    let busy = Status::new(429, "too many requests")
        .reason("TooManyRequests")
        .retry_after_seconds(1);
    let put_off = RequestMatch::resumed_watch().times(2);
    simulator.faults().add(put_off, Fault::status(&busy));
    let before = tokio::time::Instant::now();
    let mut session = upstream.open(&shop(), Start::Fresh).await.unwrap();
    assert_eq!(next_word(&mut *session).await, "added a");
    // What changes while the watch is put off is told by it, after the boundary.
    simulator.create("configmaps", config_map("b")).unwrap();
    assert!(words_until_boundary(&mut *session).await.is_empty());
    assert!(before.elapsed() >= SECOND * 2);
    assert_eq!(next_word(&mut *session).await, "added b");
    live_changes_arrive(&simulator, &mut *session).await;
    // A streaming list, and the watch three times.
    assert_eq!((simulator.counts().list, simulator.counts().watch), (1, 4));

    let reset = RequestMatch::resumed_watch();
    simulator.faults().add(reset, Fault::ResetConnection);
    let mut session = upstream.open(&shop(), Start::Fresh).await.unwrap();
    assert_eq!(words_until_boundary(&mut *session).await, ["added a", "added c"]);
    assert_eq!((simulator.counts().list, simulator.counts().watch), (2, 6));
}

#[tokio::test]
async fn both_ways_of_a_snapshot_give_the_same_bytes() {
    let mut texts = Vec::new();
    for streaming in [true, false] {
        let simulator = Simulator::builder()
            .seed(7)
            .streaming_lists(streaming)
            .start()
            .await
            .unwrap();
        simulator
            .create(
                "secrets",
                json!({"metadata": {"name": "s", "namespace": "shop"}, "data": {"p": "QUFB"}}),
            )
            .unwrap();
        let scope = Scope::builder("v1", "secrets").namespace("shop").build().unwrap();
        let mut session = upstream(&simulator).open(&scope, Start::Fresh).await.unwrap();
        let SessionItem::Event(krm_stream_protocol::WatchEvent::Added(object)) = next(&mut *session).await
        else {
            panic!("the secret");
        };
        // The time of creation may differ.
        let mut value: Value = serde_json::from_slice(object.json()).unwrap();
        value["metadata"]["creationTimestamp"].take();
        if let Some(fields) = value["metadata"].get_mut("managedFields") {
            fields.take();
        }
        texts.push((
            object
                .json()
                .starts_with(br#"{"kind":"Secret","apiVersion":"v1","#),
            value,
        ));
    }
    assert_eq!(texts[0], texts[1]);
    assert!(texts[0].0);
}

#[tokio::test]
async fn a_session_resumes_after_the_version_of_an_earlier_one() {
    let simulator = Simulator::start().await.unwrap();
    simulator.create("configmaps", config_map("a")).unwrap();
    let version = ResourceVersion::new(simulator.resource_version());
    simulator.create("configmaps", config_map("b")).unwrap();
    let upstream = upstream(&simulator);
    let mut session = upstream.open(&shop(), Start::After(version)).await.unwrap();
    assert_eq!(next_word(&mut *session).await, "added b");
    simulator.send_bookmark_now();
    assert!(next_word(&mut *session).await.starts_with("bookmark"));
}

#[tokio::test]
async fn names_and_selectors_narrow_the_scope() {
    let simulator = Simulator::start().await.unwrap();
    for name in ["a", "b"] {
        simulator.create("configmaps", config_map(name)).unwrap();
    }
    let upstream = upstream(&simulator);
    let named = Scope::builder("v1", "configmaps")
        .namespace("shop")
        .name("b")
        .build()
        .unwrap();
    let labelled = Scope::builder("v1", "configmaps")
        .label_selector("app=b")
        .build()
        .unwrap();
    let absent = Scope::builder("v1", "configmaps")
        .namespace("shop")
        .name("b,metadata.name=a")
        .build()
        .unwrap();
    for (scope, expected) in [
        (named, vec!["added b"]),
        (labelled, vec!["added b"]),
        (absent, vec![]),
    ] {
        let mut session = upstream.open(&scope, Start::Fresh).await.unwrap();
        assert_eq!(words_until_boundary(&mut *session).await, expected);
    }
}

#[tokio::test]
async fn an_old_version_is_expired_and_a_resource_that_is_not_served_is_not_found() {
    let simulator = Simulator::start().await.unwrap();
    for name in ["a", "b", "c"] {
        simulator.create("configmaps", config_map(name)).unwrap();
    }
    simulator.compact();
    let upstream = upstream(&simulator);
    let old = Start::After(ResourceVersion::from("2"));
    assert_eq!(read(&upstream, &shop(), old).await.last().unwrap(), "expired");
    let unknown = Scope::builder("v1", "widgets")
        .group("example.org")
        .build()
        .unwrap();
    assert_eq!(
        read(&upstream, &unknown, Start::Fresh).await,
        ["not opened: not found"]
    );
}

#[tokio::test]
async fn the_timeout_that_was_asked_for_ends_a_session_as_closed() {
    let simulator = Simulator::start().await.unwrap();
    let upstream = KubeUpstream::builder(config(&simulator))
        .watch_timeout(SECOND)
        .build()
        .unwrap();
    let before = tokio::time::Instant::now();
    let mut session = upstream.open(&shop(), Start::Fresh).await.unwrap();
    assert_eq!(session.asked_timeout(), Some(SECOND));
    assert!(words_until_boundary(&mut *session).await.is_empty());
    assert_eq!(next_word(&mut *session).await, "closed");
    assert!(before.elapsed() >= SECOND * 9 / 10);
}

#[tokio::test]
async fn a_caller_that_is_acted_as_sees_what_its_own_rights_allow() {
    let simulator = Simulator::start().await.unwrap();
    simulator
        .access()
        .add_token("gateway-token", User::new("gateway"));
    simulator.access().set_rules([
        Rule::allow().user("gateway").verbs(["impersonate"]),
        Rule::allow()
            .user("ada")
            .verbs(["list", "watch"])
            .resource("", "configmaps")
            .namespace("shop"),
    ]);
    let mut config = config(&simulator);
    config.auth_info.token = Some(String::from("gateway-token").into());
    let gateway = KubeUpstream::from_config(config).unwrap();
    let acting_as = |user: &str| gateway.acting_as(&Subject::new(user).unwrap()).unwrap();
    acting_as("ada").open(&shop(), Start::Fresh).await.unwrap();
    for refused in [acting_as("bob"), gateway.clone()] {
        let lines = read(&refused, &shop(), Start::Fresh).await;
        assert!(
            lines[0].starts_with("not opened: forbidden configmaps is forbidden: User"),
            "{lines:?}"
        );
    }
    simulator.access().add_token("other-token", User::new("other"));
    simulator.access().remove_token("gateway-token");
    assert_eq!(
        read(&gateway, &shop(), Start::Fresh).await,
        ["not opened: unauthenticated"]
    );
}

#[tokio::test]
async fn who_may_list_and_not_watch_sees_no_boundary_and_one_refusal_each_time() {
    for (streaming, expected) in [(true, "not opened: forbidden"), (false, "failed forbidden")] {
        let simulator = Simulator::builder()
            .streaming_lists(streaming)
            .start()
            .await
            .unwrap();
        simulator.create("configmaps", config_map("a")).unwrap();
        let upstream = upstream(&simulator);
        // Whether streaming lists are served is known from here on: rights come first, or a refusal would hide it.
        let mut session = upstream.open(&shop(), Start::Fresh).await.unwrap();
        assert_eq!(words_until_boundary(&mut *session).await, ["added a"]);
        simulator
            .access()
            .set_rules([Rule::allow(), Rule::deny().verbs(["watch"])]);
        for _ in 0..2 {
            let (lists, watches) = (simulator.counts().list, simulator.counts().watch);
            let lines = read(&upstream, &shop(), Start::Fresh).await;
            let (last, objects) = lines.split_last().unwrap();
            assert!(last.starts_with(expected), "{lines:?}");
            assert!(
                objects.iter().all(|line| line.starts_with("added a")),
                "{lines:?}"
            );
            assert_eq!(simulator.counts().watch, watches + 1);
            assert_eq!(simulator.counts().list, lists + u64::from(!streaming));
        }
    }
}

#[tokio::test]
async fn the_api_server_s_own_authorizer_decides_about_callers() {
    let simulator = Simulator::start().await.unwrap();
    simulator
        .access()
        .add_token("gateway-token", User::new("gateway"));
    simulator.access().set_rules([
        Rule::allow().user("gateway").verbs(["create"]),
        Rule::allow()
            .user("ada")
            .verbs(["list", "watch"])
            .resource("", "configmaps")
            .namespace("shop"),
        Rule::allow()
            .user("bob")
            .verbs(["list"])
            .resource("", "configmaps")
            .namespace("shop"),
    ]);
    let mut config = config(&simulator);
    config.auth_info.token = Some(String::from("gateway-token").into());
    let gateway = KubeUpstream::from_config(config).unwrap();
    let authorizer = SubjectAccessReviewAuthorizer::new(Target::default(), gateway);
    let check = async |user: &str, scope: &Scope| {
        let principal = Principal::new(Subject::new(user).unwrap());
        authorizer
            .authorize(&principal, scope)
            .await
            .map_err(|error| error.code())
    };
    assert_eq!(check("ada", &shop()).await, Ok(()));
    let everywhere = Scope::builder("v1", "configmaps").build().unwrap();
    assert_eq!(check("ada", &everywhere).await, Err(ErrorCode::Forbidden));
    assert_eq!(check("bob", &shop()).await, Err(ErrorCode::Forbidden));
    simulator.shutdown().await;
    assert_eq!(check("ada", &shop()).await, Err(ErrorCode::UpstreamUnavailable));
}

#[tokio::test]
async fn a_restart_of_the_server_ends_a_session_as_closed_and_the_next_one_opens() {
    let simulator = Simulator::start().await.unwrap();
    let upstream = upstream(&simulator);
    let mut session = upstream.open(&shop(), Start::Fresh).await.unwrap();
    words_until_boundary(&mut *session).await;
    simulator.reset_connections();
    assert_eq!(next_word(&mut *session).await, "closed");
    upstream.open(&shop(), Start::Fresh).await.unwrap();
}
