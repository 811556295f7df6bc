//! The reconciler by schedules. The API server's part is a store in memory.

mod attempts;
mod cases;
mod counts;
mod deletion;
mod history;
mod properties;
mod taking_over;

use std::time::Duration;

use krm_stream_protocol::{
    FeedEnd, OpenError, ResourceRule, ResourceVersion, ScopePolicy, SessionEnd, Start, StreamError, Target,
    UpstreamError, UpstreamErrorKind,
};
use krm_stream_status::{
    ConditionStatus, Conditions, EventPlan, EventSeverity, RECONCILING, STALLED, WriteOutcome,
};
use serde_json::{Value, json};

use super::*;
use crate::{DeclaredStreamSpec, DeclaredStreamStatus};

/// A resource as an API server stores it, and everything that happened to it.
#[derive(Debug)]
struct Cluster {
    reconciler: Reconciler,
    stored: Value,
    version: u64,
    writes: usize,
    events: Vec<EventPlan>,
    /// The feeds that are kept, by the name of their namespace.
    kept: BTreeMap<FeedId, String>,
    /// Writes that were asked for and have no answer yet.
    out: VecDeque<(Identity, WritePlan)>,
    reads: usize,
    now: Moment,
    wall: i64,
}

impl Cluster {
    fn new(streams: &[&str]) -> Self {
        let policy = DeclaredPolicy::new(
            ScopePolicy::deny_all()
                .allow_target(Target::default())
                .allow(ResourceRule::namespaced("", "configmaps")),
        );
        let mut cluster = Self {
            reconciler: Reconciler::new(Arc::new(policy), 7),
            stored: json!({
                "apiVersion": "krm-stream.github.io/v1alpha1", "kind": "DeclaredStream",
                "metadata": {"name": "shop", "uid": "u-1", "generation": 0, "resourceVersion": "1"},
            }),
            version: 1,
            writes: 0,
            events: Vec::new(),
            kept: BTreeMap::new(),
            out: VecDeque::new(),
            reads: 0,
            now: Moment::after_origin(Duration::from_secs(1000)),
            wall: 1_000,
        };
        let now = cluster.now();
        cluster.reconciler.publishes(now, true);
        cluster.declare(streams);
        cluster
    }

    fn now(&self) -> Now {
        Now {
            moment: self.now,
            time: Timestamp::from_unix_seconds(self.wall),
        }
    }

    /// The operator declares these namespaces.
    fn declare(&mut self, streams: &[&str]) {
        let streams: Vec<Value> = streams
            .iter()
            .map(|name| json!({"name": name, "scope": {"version": "v1", "resource": "configmaps", "namespace": name}}))
            .collect();
        self.edit(json!({"streams": streams}));
        self.watch();
    }

    fn edit(&mut self, spec: Value) {
        let generation = self.stored["metadata"]["generation"].as_i64().unwrap();
        self.stored["metadata"]["generation"] = (generation + 1).into();
        self.stored["spec"] = spec;
        self.next_version();
    }

    fn next_version(&mut self) {
        self.version += 1;
        self.stored["metadata"]["resourceVersion"] = self.version.to_string().into();
    }

    fn as_read(&self) -> ReadResource {
        ReadResource::parse(self.stored.to_string().as_bytes()).unwrap()
    }

    /// The watch delivers the resource as it is.
    fn watch(&mut self) {
        let (now, read) = (self.now(), self.as_read());
        self.reconciler.read(now, read);
        self.act();
    }

    fn act(&mut self) {
        let actions: Vec<Action> = self.reconciler.actions().collect();
        for action in actions {
            match action {
                Action::Keep { feed, scope } => {
                    let namespace = scope.scope().namespace().unwrap().to_owned();
                    assert!(self.kept.insert(feed, namespace).is_none());
                }
                Action::Release { feed } => assert!(self.kept.remove(&feed).is_some()),
                Action::Write { object, plan } => {
                    assert!(self.out.is_empty(), "one write of a resource is out at a time");
                    self.out.push_back((object, plan));
                }
                Action::Tell { event, .. } => self.events.push(event),
                Action::Read { object } => {
                    self.reads += 1;
                    let (now, read) = (self.now(), self.as_read());
                    self.reconciler
                        .read_again(now, &object.uid, ReadAgain::Found(Box::new(read)));
                    self.act();
                }
            }
        }
    }

    /// The API server answers the write that is out. Returns whether there was one.
    fn answer(&mut self) -> bool {
        let Some((object, plan)) = self.out.pop_front() else {
            return false;
        };
        let body = plan.patch().body().clone();
        let outcome = if body["metadata"]["resourceVersion"] == self.stored["metadata"]["resourceVersion"] {
            merge(&mut self.stored["status"], &body["status"]);
            self.writes += 1;
            self.next_version();
            WriteOutcome::Persisted(ResourceVersion::from(self.version.to_string().as_str()))
        } else {
            WriteOutcome::Conflict
        };
        let after = plan.settle(outcome);
        if let AfterWrite::Tell { event, .. } = &after {
            self.events.extend(event.clone());
        }
        let now = self.now();
        self.reconciler
            .written(now, &object.uid, Written::Answered(after));
        self.act();
        true
    }

    /// The API server stores the write that is out, and its answer is lost.
    fn store_unanswered(&mut self) -> bool {
        let Some((_, plan)) = self.out.pop_front() else {
            return false;
        };
        let body = plan.patch().body();
        if body["metadata"]["resourceVersion"] == self.stored["metadata"]["resourceVersion"] {
            merge(&mut self.stored["status"], &body["status"]);
            self.writes += 1;
            self.next_version();
        }
        true
    }

    /// The write that was out has no answer.
    fn fail(&mut self) {
        let now = self.now();
        self.reconciler.written(now, "u-1", Written::Failed);
        self.act();
    }

    /// The process ends, and another one takes its place; what was out is lost.
    fn restart(&mut self) {
        let policy = Arc::clone(&self.reconciler.policy);
        self.reconciler = Reconciler::new(policy, 8);
        self.kept.clear();
        self.out.clear();
    }

    /// Lets all writes out, and all backoffs and pauses pass.
    fn settle(&mut self) {
        for _ in 0..1000 {
            if self.answer() {
                continue;
            }
            let Some(due) = self.reconciler.next_due() else {
                return;
            };
            self.now = self.now.max(due);
            let now = self.now();
            self.reconciler.passed(now);
            self.act();
        }
        panic!("it never settles");
    }

    fn feed(&self, namespace: &str) -> FeedId {
        let found = self.kept.iter().find(|(_, kept)| *kept == namespace);
        *found.unwrap().0
    }

    fn report_to(&mut self, feed: FeedId, report: FeedReport) {
        let now = self.now();
        self.reconciler.reported(now, feed, report);
        self.act();
    }

    fn report(&mut self, namespace: &str, report: FeedReport) {
        self.report_to(self.feed(namespace), report);
    }

    fn open(&mut self, namespace: &str) {
        self.report(namespace, FeedReport::Opened(Start::Fresh));
        self.report(namespace, FeedReport::Synced);
    }

    /// A session that works.
    fn live(&mut self, namespace: &str) {
        self.open(namespace);
        self.report(namespace, FeedReport::Lived);
    }

    fn status(&self) -> Option<DeclaredStreamStatus> {
        self.as_read().status
    }

    fn ready(&self) -> (ConditionStatus, String, String) {
        let status = self.status().unwrap();
        let ready = status.conditions.get("Ready").unwrap();
        (ready.status, ready.reason.to_string(), ready.message.clone())
    }

    fn reasons(&self) -> Vec<(EventSeverity, &str)> {
        self.events
            .iter()
            .map(|event| (event.severity(), event.reason()))
            .collect()
    }

    /// What kstatus makes of the object, with its conditions in both orders.
    fn kstatus(&self) -> &'static str {
        let mut conditions = self.status().unwrap().conditions.as_slice().to_vec();
        let read = |conditions: &[krm_stream_status::Condition]| {
            for held in conditions {
                match (&*held.type_, held.status) {
                    (RECONCILING, ConditionStatus::True) => return "InProgress",
                    (STALLED, ConditionStatus::True) => return "Failed",
                    _ => {}
                }
            }
            let is_ready = |held: &krm_stream_status::Condition| {
                &*held.type_ != "Ready" || held.status == ConditionStatus::True
            };
            if conditions.iter().all(is_ready) {
                "Current"
            } else {
                "InProgress"
            }
        };
        let reading = read(&conditions);
        conditions.reverse();
        assert_eq!(read(&conditions), reading);
        reading
    }
}

/// RFC 7386, section 2.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut target[key], value);
        }
    }
}

fn unavailable() -> UpstreamError {
    UpstreamError::new(UpstreamErrorKind::Unavailable)
}

/// Two streams that are ready, and all of it published.
fn ready() -> Cluster {
    let mut cluster = Cluster::new(&["a", "b"]);
    cluster.live("a");
    cluster.live("b");
    cluster.settle();
    assert_eq!(cluster.ready().0, ConditionStatus::True);
    cluster
}

#[test]
fn a_resource_that_becomes_ready_says_so_and_its_feeds_are_kept() {
    let mut cluster = Cluster::new(&["a", "b"]);
    cluster.settle();
    assert_eq!(cluster.ready().1, "Replaying");
    assert_eq!(cluster.kstatus(), "InProgress");
    cluster.open("a");
    cluster.open("b");
    cluster.settle();
    assert_eq!(cluster.kstatus(), "Current");
    let status = cluster.status().unwrap();
    assert_eq!(status.observed_generation, Some(1));
    assert_eq!(status.streams.unwrap().summary, "2/2");
    let normal = EventSeverity::Normal;
    assert_eq!(
        cluster.reasons(),
        [(normal, "Replaying"), (normal, "AllStreamsReady")]
    );
}

#[test]
fn routine_ends_write_nothing_and_tell_nothing() {
    let mut cluster = ready();
    let (writes, events, version) = (cluster.writes, cluster.events.len(), cluster.version);
    for round in 0..20_u32 {
        for namespace in ["a", "b"] {
            cluster.report(namespace, FeedReport::SessionEnded(SessionEnd::Closed));
            let failed = FeedReport::OpenFailed {
                error: unavailable().into(),
                retries_left: true,
            };
            cluster.report(namespace, failed);
            let start = Start::After(round.to_string().as_str().into());
            cluster.report(namespace, FeedReport::Opened(start));
        }
        cluster.wall += 300;
        cluster.settle();
    }
    assert_eq!(
        (cluster.writes, cluster.events.len(), cluster.version),
        (writes, events, version)
    );
}

#[test]
fn an_expired_version_is_two_writes_and_two_normal_events_even_if_it_is_over_at_once() {
    let mut cluster = ready();
    let (writes, events) = (cluster.writes, cluster.events.len());
    // All of it comes before the first write is answered.
    cluster.report("a", FeedReport::SessionEnded(SessionEnd::Expired));
    cluster.open("a");
    cluster.settle();
    assert_eq!(cluster.writes - writes, 2);
    let normal = EventSeverity::Normal;
    assert_eq!(
        cluster.reasons()[events..],
        [(normal, "Replaying"), (normal, "AllStreamsReady")]
    );
}

#[test]
fn ten_expired_versions_are_told_in_the_same_words() {
    let mut cluster = ready();
    let mut messages = BTreeSet::new();
    for round in 0..10 {
        let text = format!("too old resource version: {round} ({round}00)");
        let error = unavailable().with_cause(text.clone());
        cluster.report("a", FeedReport::SessionEnded(SessionEnd::Expired));
        cluster.settle();
        messages.insert(cluster.ready().2);
        cluster.live("a");
        cluster.settle();
        cluster.report(
            "a",
            FeedReport::OpenFailed {
                error: error.into(),
                retries_left: false,
            },
        );
        cluster.settle();
        messages.insert(cluster.ready().2);
        assert!(!cluster.stored.to_string().contains(&text));
        cluster.live("a");
        cluster.settle();
    }
    assert_eq!(messages.len(), 2, "{messages:?}");
}

#[test]
fn removed_rights_are_one_warning_and_their_return_clears_it() {
    let mut cluster = ready();
    let events = cluster.events.len();
    cluster.report("a", FeedReport::SessionEnded(SessionEnd::Closed));
    let refused = UpstreamError::forbidden(Some("canary-text of the api server"));
    cluster.report("a", FeedReport::Over(FeedEnd::Refused(refused.clone())));
    cluster.settle();
    assert_eq!(cluster.kstatus(), "Failed");
    assert_eq!(cluster.ready().1, "WatchNotPermitted");
    for _ in 0..5 {
        cluster.wall += 30;
        cluster.report("a", FeedReport::Over(FeedEnd::NotOpened(refused.clone())));
        cluster.settle();
    }
    assert_eq!(
        cluster.reasons()[events..],
        [(EventSeverity::Warning, "WatchNotPermitted")]
    );

    // An old reason is not kept: the right is granted, but now the API server is away.
    cluster.report("a", FeedReport::Over(FeedEnd::NotOpened(unavailable())));
    cluster.settle();
    let (_, reason, message) = cluster.ready();
    assert_eq!(reason, "WatchError");
    assert!(
        message.contains("cannot be reached") && !message.contains("allow"),
        "{message}"
    );

    cluster.open("a");
    cluster.settle();
    assert_eq!(cluster.kstatus(), "Current");
    let stored = cluster.stored.to_string();
    for old in [
        "canary-text",
        "WatchNotPermitted",
        "WatchError",
        "cannot be reached",
    ] {
        assert!(!stored.contains(old), "{old} in {stored}");
    }
}

#[test]
fn a_refused_watch_after_a_list_is_one_warning_however_often_it_is_tried() {
    let mut cluster = Cluster::new(&["a"]);
    cluster.settle();
    let (writes, events) = (cluster.writes, cluster.events.len());
    for _ in 0..10 {
        cluster.wall += 30;
        cluster.report("a", FeedReport::Opened(Start::Fresh));
        cluster.settle();
        let refused = UpstreamError::forbidden(None);
        cluster.report("a", FeedReport::Over(FeedEnd::NotOpened(refused)));
        cluster.settle();
        assert_eq!(cluster.writes, writes + 1);
        assert_eq!(
            cluster.reasons()[events..],
            [(EventSeverity::Warning, "WatchNotPermitted")]
        );
    }
    cluster.open("a");
    cluster.settle();
    assert_eq!(
        cluster.ready().1,
        "AllStreamsReady",
        "granted: ready at the boundary"
    );
}

#[test]
fn an_edit_keeps_a_blocked_stream_blocked_and_begins_another_one_with_its_first_snapshot() {
    let mut cluster = ready();
    cluster.report("a", FeedReport::Over(FeedEnd::Unavailable(None)));
    cluster.settle();
    let events = cluster.events.len();

    // Under the new generation it is the same trouble: one write, and no news.
    cluster.declare(&["a"]);
    cluster.settle();
    assert_eq!(cluster.status().unwrap().observed_generation, Some(2));
    assert_eq!(
        (cluster.ready().1.as_str(), cluster.events.len()),
        ("WatchError", events)
    );
    cluster.open("a");
    cluster.settle();
    assert_eq!(cluster.ready().1, "WatchError");

    // Another scope is another stream, of which nothing is known yet.
    cluster.declare(&["c"]);
    cluster.settle();
    assert_eq!(cluster.ready().1, "Replaying");
    cluster.open("c");
    cluster.settle();
    assert_eq!(cluster.ready().1, "AllStreamsReady");
}

#[test]
fn one_that_takes_over_believes_as_little_as_the_one_before_it() {
    let mut cluster = ready();
    let now = cluster.now();
    cluster.reconciler.publishes(now, false);
    cluster.report("a", FeedReport::Over(FeedEnd::Unavailable(None)));
    cluster.open("a");
    let events = cluster.events.len();
    cluster.reconciler.publishes(now, true);
    cluster.act();
    cluster.settle();
    assert_eq!(
        cluster.reasons()[events..],
        [(EventSeverity::Warning, "WatchError")]
    );
    cluster.report("a", FeedReport::Lived);
    cluster.settle();
    assert_eq!(cluster.ready().1, "AllStreamsReady");
}

#[test]
fn what_cannot_be_watched_is_told_in_words_and_holds_up_nothing_else() {
    let mut cluster = Cluster::new(&["a"]);
    let all = json!({"version": "v1", "resource": "configmaps"});
    let bad =
        json!({"version": "v1", "resource": "configmaps", "namespace": "a", "labelSelector": "a in (b"});
    let unlisted = json!({"version": "v1", "resource": "secrets", "namespace": "a"});
    for (scope, words) in [
        (all, "all-namespaces"),
        (bad, "labelSelector"),
        (unlisted, "resource"),
    ] {
        cluster.edit(json!({"streams": [
            {"name": "a", "scope": {"version": "v1", "resource": "configmaps", "namespace": "a"}},
            {"name": "odd", "scope": scope},
        ]}));
        cluster.watch();
        cluster.live("a");
        cluster.settle();
        assert_eq!(cluster.kstatus(), "Failed");
        let (_, _, message) = cluster.ready();
        let message = message.replace("all namespaces", "all-namespaces");
        assert!(
            message.starts_with("odd: ") && message.contains(words),
            "{message}"
        );
        assert_eq!(cluster.status().unwrap().streams.unwrap().summary, "1/2");
        assert_eq!(cluster.kept.len(), 1);
    }
    // A kind that the API server does not serve is known only when it is opened.
    cluster.declare(&["a"]);
    let not_found = UpstreamError::new(UpstreamErrorKind::NotFound);
    cluster.report("a", FeedReport::Over(FeedEnd::NotOpened(not_found)));
    cluster.settle();
    assert!(
        cluster
            .ready()
            .2
            .contains("does not serve this group, version and resource")
    );
}

#[test]
fn nothing_to_stream_is_ready_and_a_specification_that_cannot_be_read_is_not() {
    let mut cluster = Cluster::new(&[]);
    cluster.settle();
    assert_eq!(cluster.kstatus(), "Current");
    assert_eq!(cluster.ready().1, "NoResolvedTypes");
    assert_eq!(cluster.status().unwrap().streams.unwrap().summary, "0/0");

    cluster.edit(json!({"streams": {"not": "a list"}}));
    cluster.watch();
    cluster.settle();
    assert_eq!(cluster.kstatus(), "Failed");
    assert_eq!(cluster.ready().1, "InvalidSpecification");
}

#[test]
fn an_edit_while_the_old_session_ends_reports_the_new_generation_and_keeps_what_stays() {
    let mut cluster = ready();
    let (old, kept) = (cluster.feed("b"), cluster.feed("a"));
    cluster.declare(&["a", "c"]);
    // The end of the feed that was let go of comes after the edit: it is nobody's news.
    cluster.report_to(
        old,
        FeedReport::Over(FeedEnd::Refused(UpstreamError::forbidden(None))),
    );
    cluster.settle();
    assert_eq!(cluster.feed("a"), kept, "an unchanged stream keeps its feed");
    let status = cluster.status().unwrap();
    assert_eq!(status.observed_generation, Some(2));
    let generations = status
        .conditions
        .as_slice()
        .iter()
        .map(|held| held.observed_generation);
    assert!(generations.into_iter().all(|generation| generation == Some(2)));
    let figures = status.streams.unwrap();
    assert_eq!((figures.summary.as_str(), figures.blocked), ("1/2", 0));
    assert_eq!(figures.pending_sample, ["c"]);
    cluster.open("c");
    cluster.settle();
    assert_eq!(cluster.status().unwrap().streams.unwrap().summary, "2/2");
}

#[test]
fn a_status_of_the_old_generation_never_lands_on_an_edited_specification() {
    let mut cluster = ready();
    // The write for the old generation is out when the operator edits.
    cluster.report("a", FeedReport::SessionEnded(SessionEnd::Expired));
    assert_eq!(cluster.out.len(), 1);
    cluster.edit(json!({"streams": []}));
    let writes = cluster.writes;
    assert!(cluster.answer());
    assert_eq!(cluster.writes, writes, "the API server refused it");
    cluster.settle();
    assert_eq!(cluster.reads, 1, "it was read again");
    let status = cluster.status().unwrap();
    assert_eq!(status.observed_generation, Some(2));
    assert_eq!(cluster.ready().1, "NoResolvedTypes");
    assert!(cluster.kept.is_empty());
}

#[test]
fn conflicts_in_a_row_are_spaced_and_end_as_one_write() {
    let mut cluster = ready();
    let writes = cluster.writes;
    cluster.report("a", FeedReport::SessionEnded(SessionEnd::Expired));
    let mut waits = Vec::new();
    for _ in 0..8 {
        cluster.next_version();
        assert!(cluster.answer());
        assert!(cluster.out.is_empty(), "nothing is repeated blindly");
        let due = cluster.reconciler.next_due().unwrap();
        waits.push(due.since(cluster.now));
        cluster.now = due;
        let now = cluster.now();
        cluster.reconciler.passed(now);
        cluster.act();
    }
    assert!(
        waits[0] >= Duration::from_millis(250) && waits[0] < Duration::from_millis(320),
        "{waits:?}"
    );
    assert!(
        waits.is_sorted() && waits[7] >= Duration::from_secs(30),
        "{waits:?}"
    );
    cluster.settle();
    assert_eq!(cluster.writes, writes + 1);
}

#[test]
fn a_write_that_failed_is_read_again_and_one_whose_object_is_gone_is_not() {
    let mut cluster = ready();
    cluster.report("a", FeedReport::SessionEnded(SessionEnd::Expired));
    cluster.out.clear();
    let now = cluster.now();
    cluster.reconciler.written(now, "u-1", Written::Failed);
    cluster.settle();
    assert_eq!(cluster.reads, 1);
    assert_eq!(cluster.ready().1, "Replaying");

    cluster.open("a");
    cluster.out.clear();
    let now = cluster.now();
    cluster
        .reconciler
        .written(now, "u-1", Written::Answered(AfterWrite::Gone));
    cluster.settle();
    assert_eq!((cluster.reads, cluster.out.len()), (1, 0));
    assert_eq!(cluster.ready().1, "Replaying");

    // It was not gone after all.
    cluster.watch();
    cluster.settle();
    assert_eq!(cluster.ready().1, "AllStreamsReady");
}

#[test]
fn a_write_that_was_stored_without_an_answer_is_told_of_once_when_that_is_seen() {
    let mut cluster = ready();
    let told = cluster.events.len();
    // Seen by reading again; by the watch, after the failure and before it; and once more while it is read.
    for (watches_first, watches_then) in [(false, false), (false, true), (true, false), (true, true)] {
        for reason in ["Replaying", "AllStreamsReady"] {
            match reason {
                "Replaying" => cluster.report("a", FeedReport::SessionEnded(SessionEnd::Expired)),
                _ => cluster.live("a"),
            }
            let events = cluster.events.len();
            assert!(cluster.store_unanswered());
            if watches_first {
                cluster.watch();
            }
            assert_eq!(cluster.events.len(), events, "nobody knows yet");
            cluster.fail();
            if watches_then {
                cluster.watch();
            }
            cluster.settle();
            assert_eq!(cluster.events.len(), events + 1);
            assert_eq!(cluster.ready().1, reason);
            assert_eq!(cluster.events.last().unwrap().reason(), reason);
        }
    }
    assert_eq!(cluster.events.len(), told + 8);
}

#[test]
fn a_write_that_arrives_after_it_was_given_up_is_told_of_once() {
    let mut cluster = ready();
    let told = cluster.events.len();
    cluster.report("a", FeedReport::SessionEnded(SessionEnd::Expired));
    let late = cluster.out.pop_front().unwrap();
    cluster.fail();
    let due = cluster.reconciler.next_due().unwrap();
    cluster.now = due;
    let now = cluster.now();
    cluster.reconciler.passed(now);
    cluster.act();
    // It was not stored when the resource was read, so the same is written again; and now both arrive.
    cluster.out.push_front(late);
    assert_eq!(cluster.out.len(), 2);
    assert!(cluster.store_unanswered());
    cluster.settle();
    assert_eq!(cluster.ready().1, "Replaying");
    assert_eq!(cluster.events.len(), told + 1);

    // One that somebody else's write kept out was never stored.
    cluster.open("a");
    cluster.next_version();
    cluster.store_unanswered();
    cluster.fail();
    cluster.settle();
    assert_eq!(cluster.events.len(), told + 2);
}

#[test]
fn deleting_the_resource_ends_its_feeds_however_it_is_seen() {
    type Happens = fn(&mut Cluster);
    let ways: [(&str, Happens); 4] = [
        ("a deletion", |cluster| cluster.reconciler.deleted("u-1")),
        ("a snapshot without it", |cluster| {
            cluster.reconciler.snapshot_began();
            cluster.reconciler.snapshot_complete();
        }),
        ("the definition is gone", |cluster| {
            cluster.reconciler.not_served();
        }),
        ("it waits for a finalizer", |cluster| {
            cluster.stored["metadata"]["deletionTimestamp"] = "2026-08-01T09:30:00Z".into();
            cluster.next_version();
            cluster.watch();
        }),
    ];
    for (way, happens) in ways {
        let mut cluster = ready();
        let writes = cluster.writes;
        happens(&mut cluster);
        cluster.act();
        assert!(cluster.kept.is_empty(), "{way}");
        assert_eq!(cluster.reconciler.feeds(), 0);
        cluster.settle();
        assert_eq!(cluster.writes, writes, "{way}");
    }
}

#[test]
fn one_that_was_recreated_is_another_one() {
    let mut cluster = ready();
    let old = cluster.feed("a");
    cluster.stored["metadata"]["uid"] = "u-2".into();
    cluster.stored["status"].take();
    cluster.next_version();
    cluster.watch();
    assert_ne!(cluster.feed("a"), old);
    assert_eq!(cluster.kept.len(), 2);
    // The deletion of the former one comes late, if at all.
    cluster.reconciler.deleted("u-1");
    cluster.act();
    cluster.settle();
    assert_eq!(cluster.ready().1, "Replaying");
}

#[test]
fn a_snapshot_that_has_it_changes_nothing_and_an_old_state_is_not_believed() {
    let mut cluster = ready();
    let (writes, old) = (cluster.writes, cluster.as_read());
    cluster.reconciler.snapshot_began();
    cluster.watch();
    cluster.reconciler.snapshot_complete();
    cluster.act();
    cluster.declare(&["c"]);
    let now = cluster.now();
    cluster.reconciler.read(now, old);
    cluster.act();
    assert_eq!(cluster.kept.values().collect::<Vec<_>>(), ["c"]);
    cluster.settle();
    assert_eq!(cluster.writes, writes + 1);
}

#[test]
fn only_the_one_that_publishes_writes_and_the_next_one_goes_on_without_a_gap() {
    let mut cluster = ready();
    let (writes, events) = (cluster.writes, cluster.events.len());
    let now = cluster.now();
    cluster.reconciler.publishes(now, false);
    cluster.report("a", FeedReport::SessionEnded(SessionEnd::Expired));
    cluster.open("a");
    cluster.report("b", FeedReport::Over(FeedEnd::Unavailable(None)));
    cluster.settle();
    assert_eq!(
        (cluster.writes, cluster.events.len(), cluster.kept.len()),
        (writes, events, 2)
    );

    cluster.reconciler.publishes(now, true);
    cluster.act();
    cluster.settle();
    assert_eq!(cluster.writes, writes + 1, "what is, and not what was");
    assert_eq!(cluster.ready().1, "WatchError");
    // Another replica that has the same is of the same opinion: there is nothing to write.
    cluster.reconciler.publishes(now, false);
    cluster.reconciler.publishes(now, true);
    cluster.act();
    assert!(cluster.out.is_empty());
}

#[test]
fn many_streams_that_begin_are_summed_up_in_few_writes() {
    let names: Vec<String> = (0..100).map(|number| format!("n{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut cluster = Cluster::new(&names);
    for (number, name) in names.iter().enumerate() {
        cluster.open(name);
        // Each write takes as long as ten streams to open; all of it passes within a second.
        if number % 10 == 0 {
            cluster.answer();
        }
    }
    cluster.settle();
    assert_eq!(cluster.ready().1, "AllStreamsReady");
    assert!(cluster.writes <= 3, "{} writes", cluster.writes);
    assert_eq!(cluster.events.len(), 2);
}
