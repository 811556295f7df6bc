//! The whole controller against an API server in a process.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod counts;
mod events;
mod lease;
mod taking_over;
mod watching;
mod world;

use krm_stream_simulator::{
    BodyFault, Ending, Fault, ReceivedRequest, RequestMatch, Simulator, Status, StreamAction, StreamPoint,
    Verb,
};
use serde_json::json;

use world::{World, configmaps};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_routine_recycles_are_no_news() {
    let world = World::installed().await;
    let _replica = world.start(None);
    world.declare("shop", &json!([configmaps("settings", "shop")]));
    world.until_ready("shop").await;
    // An Event comes after the write that it tells of.
    world.until(|| world.events().len() == 2).await;
    let (writes, events, version) = (world.status_writes(), world.events().len(), world.version("shop"));
    let recycles = world.closed();
    for round in 1..=20 {
        world.until(|| world.open_watches("configmaps") == 1).await;
        world
            .simulator
            .end_watches(&RequestMatch::watch().resource("configmaps"), Ending::Close);
        world.until(|| world.closed() == recycles + round).await;
    }
    world.until(|| world.open_watches("configmaps") == 1).await;
    assert_eq!(world.ready("shop"), ("True".into(), "AllStreamsReady".into()));
    assert_eq!((world.status_writes(), world.events().len()), (writes, events));
    assert_eq!(world.version("shop"), version);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_version_is_replaying_then_streaming_in_two_writes_and_two_normal_events() {
    let world = World::installed().await;
    let _replica = world.start(None);
    world.declare("shop", &json!([configmaps("settings", "shop")]));
    world.until_ready("shop").await;
    // An Event comes after the write that it tells of.
    world.until(|| world.events().len() == 2).await;
    let (writes, events) = (world.status_writes(), world.events().len());
    world.expire("configmaps");
    world.until(|| world.events().len() == events + 2).await;
    let told: Vec<_> = world.events().split_off(events);
    assert_eq!(
        told,
        [
            ("Normal".to_owned(), "Replaying".to_owned()),
            ("Normal".to_owned(), "AllStreamsReady".to_owned())
        ]
    );
    assert_eq!(world.status_writes(), writes + 2);
    world.until_ready("shop").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removed_rights_are_one_warning_in_words_and_their_return_is_ready_again() {
    let world = World::installed().await;
    let _replica = world.start(None);
    world.declare("shop", &json!([configmaps("settings", "shop")]));
    world.until_ready("shop").await;
    // An Event comes after the write that it tells of.
    world.until(|| world.events().len() == 2).await;
    let events = world.events().len();
    world.forbid(&["list", "watch"]);
    world
        .until(|| world.condition("shop", "Stalled").0 == "True")
        .await;
    assert_eq!(world.ready("shop"), ("False".into(), "WatchNotPermitted".into()));
    let (_, _, message) = world.condition("shop", "Ready");
    assert!(
        message.contains("grant the watching identity list and watch"),
        "{message}"
    );
    // It is tried again, and told once.
    let asked = world.watches("configmaps");
    world.until(|| world.watches("configmaps") > asked).await;
    world.until(|| world.events().len() > events).await;
    let warned = [("Warning".to_owned(), "WatchNotPermitted".to_owned())];
    assert_eq!(world.events().split_off(events), warned);

    world.simulator.access().set_rules([]);
    world.until_ready("shop").await;
    assert_eq!(world.condition("shop", "Stalled").0, "False");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_list_and_not_watch_is_warned_of_once_however_often_it_is_tried() {
    for streaming_lists in [true, false] {
        let simulator = Simulator::builder()
            .streaming_lists(streaming_lists)
            .start()
            .await
            .unwrap();
        let world = World::on(simulator);
        world.install();
        let _replica = world.start(None);
        // From here on it is known whether streaming lists are served. Rights come first: a refusal would hide it.
        world.declare("shop", &json!([configmaps("settings", "shop")]));
        world.until_ready("shop").await;
        world.until(|| world.events().len() == 2).await;
        let (writes, events) = (world.status_writes(), world.events().len());
        world.forbid(&["watch"]);
        world.until(|| world.events().len() > events).await;
        let (watches, lists) = (world.watches("configmaps"), world.lists("configmaps"));
        world.until(|| world.watches("configmaps") >= watches + 3).await;
        assert_eq!(world.ready("shop"), ("False".into(), "WatchNotPermitted".into()));
        assert_eq!(world.lists("configmaps") > lists, !streaming_lists);
        let warned = [("Warning".to_owned(), "WatchNotPermitted".to_owned())];
        assert_eq!(world.events().split_off(events), warned);
        assert_eq!(world.status_writes(), writes + 1);

        world.simulator.access().set_rules([]);
        world.until_ready("shop").await;
        world.until_told_ready().await;
        assert_eq!(world.events().len(), events + 2);
        assert_eq!(world.status_writes(), writes + 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_end_before_their_boundary_for_ever_are_one_warning_until_one_lives() {
    let world = World::installed().await;
    let faults = world.simulator.faults();
    let cut = Fault::stream(StreamPoint::BeforeBoundary, StreamAction::End(Ending::Abort));
    let ends_early = faults.add(
        RequestMatch::streaming_list().resource("configmaps").always(),
        cut,
    );
    let _replica = world.start_patient(None);
    world.declare("shop", &json!([configmaps("settings", "shop")]));
    let told = [
        ("Normal".to_owned(), "Replaying".to_owned()),
        ("Warning".to_owned(), "WatchError".to_owned()),
    ];
    world.until(|| world.events() == told).await;
    let (writes, hits) = (world.status_writes(), faults.hits(ends_early));
    assert_eq!(writes, 2);
    // Three more rows of them.
    world.until(|| faults.hits(ends_early) >= hits + 6).await;
    assert_eq!(world.events(), told);
    assert_eq!(world.status_writes(), writes);
    let (_, reason, message) = world.condition("shop", "Stalled");
    assert_eq!(reason, "WatchError");
    assert!(
        message.contains("watches keep ending before or right after"),
        "{message}"
    );

    faults.remove(ends_early);
    world.until_ready("shop").await;
    world.until_told_ready().await;
    assert_eq!(world.status_writes(), writes + 1);
    assert_eq!(world.events().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_specification_is_edited_and_its_resource_deleted() {
    let world = World::installed().await;
    let _replica = world.start(None);
    world.declare(
        "shop",
        &json!([
            configmaps("settings", "shop"),
            {"name": "typo", "scope": {"group": "apps", "version": "v1", "resource": "deploymentz", "namespace": "shop"}},
            {"name": "all", "scope": {"version": "v1", "resource": "configmaps"}},
        ]),
    );
    world
        .until(|| {
            world
                .simulator
                .get("declaredstreams.krm-stream.github.io", "", "shop")
                .unwrap()["status"]["streams"]["summary"]
                == "1/3"
        })
        .await;
    let (_, _, message) = world.condition("shop", "Ready");
    assert!(message.starts_with("typo: "), "{message}");

    world.declare(
        "shop",
        &json!([configmaps("settings", "shop"), configmaps("team", "team-a")]),
    );
    world.until_ready("shop").await;
    let object = world
        .simulator
        .get("declaredstreams.krm-stream.github.io", "", "shop")
        .unwrap();
    assert_eq!(object["status"]["observedGeneration"], 2);
    assert_eq!(object["metadata"]["generation"], 2);
    assert_eq!(object["status"]["streams"]["summary"], "2/2");
    assert_eq!(object["status"]["streams"].get("pendingSample"), None);
    world.until(|| world.open_watches("configmaps") == 2).await;

    world
        .simulator
        .delete("declaredstreams.krm-stream.github.io", "", "shop")
        .unwrap();
    world.until(|| world.open_watches("configmaps") == 0).await;
    world.until(|| world.feeds.count() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_meets_somebody_elses_is_dropped_and_done_again() {
    let world = World::installed().await;
    let status_writes = RequestMatch::any()
        .verb(Verb::Patch)
        .filter(|request| request.subresource() == "status");
    let conflict = Status::new(409, "the object has been modified").reason("Conflict");
    let conflicts = world
        .simulator
        .faults()
        .add(status_writes.times(3), Fault::status(&conflict));
    let _replica = world.start(None);
    world.declare("shop", &json!([configmaps("settings", "shop")]));
    world.until_ready("shop").await;
    assert_eq!(world.simulator.faults().hits(conflicts), 3);
    assert!(world.gets("declaredstreams") >= 3, "each conflict is read again");
    // What did not persist was not told.
    assert!(world.events().len() <= 2, "{:?}", world.events());

    // A write of somebody else's in between is not lost.
    let label = json!({"metadata": {"labels": {"touched": "yes"}}});
    world
        .simulator
        .patch("declaredstreams.krm-stream.github.io", "", "shop", &label)
        .unwrap();
    world.expire("configmaps");
    world.until(|| world.events().len() >= 3).await;
    world.until_ready("shop").await;
    let object = world
        .simulator
        .get("declaredstreams.krm-stream.github.io", "", "shop")
        .unwrap();
    assert_eq!(object["metadata"]["labels"]["touched"], "yes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_definition_it_waits_and_takes_it_up_when_it_is_installed() {
    let world = World::bare().await;
    let _replica = world.start(None);
    world.until(|| world.watches("declaredstreams") >= 2).await;
    assert_eq!(world.feeds.count(), 0);
    assert_eq!(world.reports("watching declared streams"), 0, "it is no trouble");

    world.install();
    world.declare("shop", &json!([configmaps("settings", "shop")]));
    world.until_ready("shop").await;

    // It is removed again, with all resources: their feeds end.
    world.uninstall();
    world.until(|| world.feeds.count() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changed_while_the_watch_of_the_resources_expired_is_taken_up() {
    let world = World::installed().await;
    let _replica = world.start(None);
    world.declare("shop", &json!([configmaps("settings", "shop")]));
    world.until_ready("shop").await;

    // Two streams of one scope are one feed.
    let streams = json!([
        configmaps("settings", "shop"),
        configmaps("once", "more"),
        configmaps("twice", "more")
    ]);
    world.declare("shop", &streams);
    world.expire("declaredstreams.krm-stream.github.io");
    world.until_ready("shop").await;
    assert_eq!(world.feeds.count(), 2);

    world
        .simulator
        .delete("declaredstreams.krm-stream.github.io", "", "shop")
        .unwrap();
    world.expire("declaredstreams.krm-stream.github.io");
    world.until(|| world.feeds.count() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_replicas_both_keep_feeds_warm_and_one_publishes_until_it_hands_over() {
    let world = World::installed().await;
    let first = world.start(Some("pod-1"));
    world.until(|| world.holder().as_deref() == Some("pod-1")).await;
    let second = world.start(Some("pod-2"));
    world.declare("shop", &json!([configmaps("settings", "shop")]));
    world.until_ready("shop").await;
    world.until(|| world.open_watches("configmaps") == 2).await;
    assert_eq!(world.holder().as_deref(), Some("pod-1"));
    world.until_told_ready().await;
    let events = world.events().len();
    assert!(events <= 2, "told by one of them: {events}");

    // The holder goes, and gives the Lease up: the other one takes over without any news.
    let writes = world.status_writes();
    first.stop().await;
    assert!(world.holder() != Some("pod-1".into()));
    world.until(|| world.holder().as_deref() == Some("pod-2")).await;
    world.until(|| world.open_watches("configmaps") == 1).await;
    assert_eq!((world.status_writes(), world.events().len()), (writes, events));
    world.expire("configmaps");
    world.until(|| world.events().len() == events + 2).await;
    world.until_ready("shop").await;

    // This one dies without a word; the next takes over when the Lease has run out.
    let third = world.start(Some("pod-3"));
    world.until(|| world.open_watches("configmaps") == 2).await;
    drop(second);
    world.until(|| world.holder().as_deref() == Some("pod-3")).await;
    let lease = world
        .simulator
        .get("leases.coordination.k8s.io", "gateway", "declared")
        .unwrap();
    assert_eq!(lease["spec"]["leaseTransitions"], 2);
    world.expire("configmaps");
    world.until(|| world.events().len() == events + 4).await;
    third.stop().await;
    assert_eq!(world.holder(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_whose_namespace_is_not_there_is_asked_for_calmly_and_told_of() {
    let simulator = Simulator::builder()
        .require_namespaces(true)
        .start()
        .await
        .unwrap();
    let world = World::on(simulator);
    world.install();
    let replica = world.start(Some("pod-1"));
    world.until(|| world.reports("holding the lease") >= 2).await;
    // Each failure is told once, and asked for once: a read, and a creation.
    let creations = world.creations("leases");
    assert!(creations <= world.reports("holding the lease") + 1, "{creations}");
    world
        .simulator
        .create("namespaces", json!({"metadata": {"name": "gateway"}}))
        .unwrap();
    world.until(|| world.holder().as_deref() == Some("pod-1")).await;
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_and_status_are_as_an_api_server_takes_them() {
    let world = World::installed().await;
    let _replica = world.start(Some("pod-1"));
    world.declare("shop", &json!([configmaps("settings", "shop")]));
    world.until_told_ready().await;
    let event = world.event(0);
    assert_eq!(
        event["metadata"]["namespace"], "default",
        "the object has no namespace"
    );
    assert!(event["metadata"]["name"].as_str().unwrap().starts_with("shop."));
    assert_eq!(event["regarding"]["kind"], "DeclaredStream");
    assert_eq!(event["regarding"]["apiVersion"], "krm-stream.github.io/v1alpha1");
    let object = world
        .simulator
        .get("declaredstreams.krm-stream.github.io", "", "shop")
        .unwrap();
    assert_eq!(event["regarding"]["uid"], object["metadata"]["uid"]);
    assert_eq!(event["action"], "Reconcile");
    assert_eq!(event["reportingController"], "krm-stream.github.io/declared");
    assert_eq!(event["reportingInstance"], "pod-1");
    // Six digits: Kubernetes parses no others.
    let time = event["eventTime"].as_str().unwrap();
    assert_eq!(time.len(), "2026-08-01T09:30:00.000000Z".len(), "{time}");
    // An API server's log and the fields' managers name it.
    let says_who = |request: &ReceivedRequest| {
        let agent = request.headers().get("user-agent");
        agent.is_some_and(|agent| agent.as_bytes().starts_with(b"krm-stream/"))
    };
    assert!(world.simulator.requests().iter().all(says_who));
    let writes: Vec<String> = world
        .simulator
        .requests()
        .iter()
        .filter(|request| request.verb() == Verb::Patch && request.resource() == "declaredstreams")
        .map(|request| request.path().to_owned())
        .collect();
    assert!(!writes.is_empty());
    assert!(
        writes
            .iter()
            .all(|path| path == "/apis/krm-stream.github.io/v1alpha1/declaredstreams/shop/status")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_is_stored_and_whose_answer_is_lost_is_told_of_once() {
    let world = World::installed().await;
    let writes = RequestMatch::any()
        .verb(Verb::Patch)
        .resource("declaredstreams.krm-stream.github.io");
    let cut = Fault::Body(BodyFault::CutAfter {
        bytes: 0,
        ending: Ending::Close,
    });
    let faults = world.simulator.faults();
    let unanswered = faults.add(writes.times(2), cut);
    let _replica = world.start(None);
    world.declare("shop", &json!([configmaps("settings", "shop")]));
    world.until_told_ready().await;
    assert_eq!(faults.hits(unanswered), 2);
    assert_eq!(world.reasons(), ["Replaying", "AllStreamsReady"]);
}
