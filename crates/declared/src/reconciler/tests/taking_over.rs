//! One that begins, or takes over as it begins, under a status that another one wrote: it knows nothing yet.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

impl Cluster {
    /// Another process takes over, and begins with its first snapshots.
    fn take_over_cold(&mut self) {
        self.restart();
        let now = self.now();
        // It reads what is declared, and then gets the Lease.
        self.watch();
        self.reconciler.publishes(now, true);
        self.act();
    }

    fn answer_all(&mut self) {
        while self.answer() {}
    }

    /// Time passes, and all that is due in it happens.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.reconciler.next_due().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            let now = self.now();
            self.reconciler.passed(now);
            self.act();
            self.answer_all();
        }
        self.now = end;
    }

    /// Everything that somebody could see of it.
    fn seen(&self) -> (String, usize, usize) {
        (self.stored.to_string(), self.writes, self.events.len())
    }
}

#[test]
fn a_status_that_says_ready_stays_while_the_first_snapshots_are_read_and_when_they_are_there() {
    for publishes_first in [true, false] {
        let mut cluster = ready();
        let before = cluster.seen();
        cluster.restart();
        let now = cluster.now();
        if publishes_first {
            cluster.reconciler.publishes(now, true);
        }
        cluster.watch();
        cluster.reconciler.publishes(now, true);
        cluster.act();
        for namespace in ["a", "b"] {
            cluster.report(namespace, FeedReport::Opened(Start::Fresh));
        }
        cluster.pass(100 * SECOND);
        // One early end is tolerated, and another attempt is no news.
        cluster.report("b", FeedReport::SessionEnded(SessionEnd::Closed));
        cluster.report("b", FeedReport::Opened(Start::Fresh));
        cluster.report("a", FeedReport::Synced);
        cluster.pass(100 * SECOND);
        assert_eq!(cluster.seen(), before);
        cluster.report("b", FeedReport::Synced);
        assert_eq!(cluster.reconciler.next_due(), None);
        cluster.pass(1000 * SECOND);
        assert_eq!(cluster.seen(), before);

        // From then on it is told as ever.
        cluster.report("b", FeedReport::SessionEnded(SessionEnd::Expired));
        cluster.answer_all();
        assert_eq!(cluster.ready().1, "Replaying");
    }
}

#[test]
fn what_the_api_server_filled_in_is_no_status_and_the_first_one_is_published_at_once() {
    for filled in [
        json!({"observedGeneration": -1, "conditions": []}),
        json!({"observedGeneration": -1}),
    ] {
        let mut cluster = Cluster::new(&["a", "b"]);
        cluster.out.clear();
        cluster.stored["status"] = filled;
        cluster.next_version();
        let before = cluster.now;
        cluster.take_over_cold();
        assert!(cluster.answer(), "nothing has to be waited for");
        assert_eq!(cluster.now, before);
        assert_eq!(cluster.status().unwrap().observed_generation, Some(1));
        assert_eq!(cluster.ready().1, "Replaying");
        assert_eq!(cluster.reasons(), [(EventSeverity::Normal, "Replaying")]);
        assert_eq!(cluster.kstatus(), "InProgress");
    }
}

#[test]
fn whatever_else_is_known_is_published_at_once() {
    let not_found = UpstreamError::new(UpstreamErrorKind::NotFound);
    for (report, reason) in [
        (
            FeedReport::OpenFailed {
                error: unavailable().into(),
                retries_left: false,
            },
            "WatchError",
        ),
        (FeedReport::Over(FeedEnd::NotOpened(not_found)), "WatchError"),
        (
            FeedReport::Over(FeedEnd::NotOpened(UpstreamError::forbidden(None))),
            "WatchNotPermitted",
        ),
        (FeedReport::Over(FeedEnd::Unavailable(None)), "WatchError"),
        (
            FeedReport::SessionEnded(SessionEnd::Failed(unavailable())),
            "WatchError",
        ),
        (FeedReport::SessionEnded(SessionEnd::Expired), "Replaying"),
        (FeedReport::UnusableEvent, "Replaying"),
    ] {
        for other_is_there in [true, false] {
            let mut cluster = ready();
            cluster.take_over_cold();
            if other_is_there {
                cluster.open("b");
            }
            let (writes, events) = (cluster.writes, cluster.events.len());
            cluster.report("a", FeedReport::Opened(Start::Fresh));
            assert!(cluster.out.is_empty(), "{report:?}");
            cluster.report("a", report.clone());
            cluster.answer_all();
            assert_eq!(cluster.ready().1, reason, "{report:?}");
            assert_eq!(
                (cluster.writes, cluster.events.len()),
                (writes + 1, events + 1),
                "{report:?}"
            );
        }
    }
}

#[test]
fn what_the_gateway_itself_does_not_allow_any_more_is_known_at_once() {
    let mut cluster = ready();
    cluster.restart();
    let none = DeclaredPolicy::new(ScopePolicy::deny_all().allow_target(Target::default()));
    cluster.reconciler = Reconciler::new(Arc::new(none), 9);
    let now = cluster.now();
    cluster.reconciler.publishes(now, true);
    cluster.watch();
    cluster.answer_all();
    assert_eq!(cluster.ready().1, "WatchNotPermitted");
}

#[test]
fn a_status_of_another_specification_is_replaced_at_once() {
    // The specification was edited while nobody ran.
    let mut cluster = ready();
    let spec = cluster.stored["spec"].clone();
    cluster.edit(spec.clone());
    cluster.take_over_cold();
    cluster.answer_all();
    assert_eq!(cluster.ready().1, "Replaying");
    assert_eq!(cluster.status().unwrap().observed_generation, Some(2));

    // It is edited while the first snapshots are read.
    let mut cluster = ready();
    cluster.take_over_cold();
    cluster.declare(&["a", "c"]);
    cluster.answer_all();
    assert_eq!(cluster.ready().1, "Replaying");
    assert_eq!(cluster.status().unwrap().observed_generation, Some(2));

    // There was none, or it told of no specification.
    let mut cluster = ready();
    cluster.stored["status"].take();
    cluster.next_version();
    cluster.take_over_cold();
    cluster.answer_all();
    assert_eq!(cluster.ready().1, "Replaying");
}

/// Two streams, one of which is blocked for early ends, and the process that takes over.
fn taken_over_while_blocked() -> Cluster {
    let mut cluster = ready();
    cluster.report("a", FeedReport::Over(FeedEnd::Unavailable(None)));
    cluster.settle();
    assert_eq!(cluster.ready().1, "WatchError");
    cluster.take_over_cold();
    cluster
}

#[test]
fn a_status_that_says_that_something_is_wrong_stays_until_the_first_snapshots_are_there() {
    let mut cluster = taken_over_while_blocked();
    let before = cluster.seen();
    assert!(cluster.out.is_empty());
    for namespace in ["a", "b"] {
        cluster.report(namespace, FeedReport::Opened(Start::Fresh));
    }
    cluster.pass(100 * SECOND);
    cluster.report("b", FeedReport::Synced);
    cluster.pass(100 * SECOND);
    assert_eq!(cluster.seen(), before);
    // The first sign of recovery counts, whatever the one before it had seen.
    cluster.report("a", FeedReport::Synced);
    cluster.answer_all();
    assert_eq!(cluster.ready().1, "AllStreamsReady");
    assert_eq!(
        (cluster.writes, cluster.events.len()),
        (before.1 + 1, before.2 + 1)
    );

    // It takes no longer than for one that says ready.
    let mut cluster = taken_over_while_blocked();
    let before = cluster.seen();
    cluster.pass(299 * SECOND);
    assert_eq!(cluster.seen(), before);
    cluster.pass(SECOND);
    assert_eq!(cluster.ready().1, "Replaying");
    // Its own status it keeps up to date.
    cluster.open("b");
    cluster.settle();
    assert_eq!(cluster.status().unwrap().streams.unwrap().summary, "1/2");
}

#[test]
fn restarts_under_an_api_server_that_ends_each_watch_tell_no_more_than_what_they_see() {
    // Before its boundary: the same trouble is no news.
    let mut cluster = taken_over_while_blocked();
    cluster.open("b");
    let before = cluster.seen();
    for _ in 0..3 {
        cluster.report("a", FeedReport::Opened(Start::Fresh));
        cluster.report("a", FeedReport::SessionEnded(SessionEnd::Closed));
        cluster.report("a", FeedReport::Opened(Start::Fresh));
        cluster.report("a", FeedReport::Over(FeedEnd::Unavailable(None)));
        cluster.pass(SECOND);
        assert_eq!(cluster.seen(), before);
        cluster.take_over_cold();
        cluster.open("b");
    }

    // After it: one recovery that does not last, each time.
    for round in 1..=3 {
        for _ in 0..4 {
            cluster.report("a", FeedReport::Opened(Start::Fresh));
            cluster.report("a", FeedReport::Synced);
            cluster.report("a", FeedReport::SessionEnded(SessionEnd::Closed));
            cluster.report("a", FeedReport::Opened(Start::After("7".into())));
            cluster.report("a", FeedReport::Over(FeedEnd::Unavailable(None)));
            cluster.settle();
        }
        assert_eq!(cluster.ready().1, "WatchError");
        assert_eq!(
            (cluster.writes, cluster.events.len()),
            (before.1 + 2 * round, before.2 + 2 * round)
        );
        cluster.take_over_cold();
        cluster.open("b");
    }
}

#[test]
fn a_snapshot_that_takes_longer_than_one_may_take_is_told_of() {
    let mut cluster = ready();
    let before = cluster.seen();
    cluster.take_over_cold();
    cluster.pass(10 * SECOND);
    // Another one becomes ready meanwhile: that makes the wait no longer.
    cluster.open("b");
    cluster.pass(289 * SECOND);
    assert_eq!(cluster.seen(), before);
    cluster.pass(SECOND);
    assert_eq!(cluster.ready().1, "Replaying");
    assert_eq!(
        (cluster.writes, cluster.events.len()),
        (before.1 + 1, before.2 + 1)
    );
    cluster.open("a");
    cluster.settle();
    assert_eq!(cluster.ready().1, "AllStreamsReady");
    assert_eq!(
        (cluster.writes, cluster.events.len()),
        (before.1 + 2, before.2 + 2)
    );
}

#[test]
fn one_that_waited_for_the_lease_for_long_waits_no_longer_for_a_snapshot() {
    let mut cluster = ready();
    cluster.restart();
    cluster.watch();
    cluster.now = cluster.now + 400 * SECOND;
    let now = cluster.now();
    cluster.reconciler.publishes(now, true);
    cluster.act();
    cluster.answer_all();
    assert_eq!(cluster.ready().1, "Replaying");
}

#[test]
fn what_somebody_else_writes_meanwhile_is_left_alone_too() {
    let mut cluster = ready();
    cluster.take_over_cold();
    cluster.stored["metadata"]["labels"] = json!({"touched": "yes"});
    cluster.next_version();
    cluster.watch();
    let before = cluster.seen();
    cluster.open("a");
    cluster.open("b");
    cluster.pass(1000 * SECOND);
    assert_eq!(cluster.seen(), before);
}
