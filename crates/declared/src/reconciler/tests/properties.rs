//! The reconciler by random schedules: whatever happens, what is published is sound.

use proptest::prelude::*;

use super::*;

/// What may happen.
#[derive(Clone, Debug)]
enum Step {
    Report(usize, Happening),
    Declare(usize),
    InBetween,
    Answer,
    Fail,
    Unanswered,
    Settle,
    Clock(i64),
    Lease(bool),
    Restart,
    Snapshot,
}

#[derive(Clone, Copy, Debug)]
enum Happening {
    Fresh,
    Resumed,
    Synced,
    Lived,
    Closed,
    Expired,
    Failed,
    Unusable,
    Retry,
    UsedUp,
    Forbidden,
    InVain,
    Over,
    Slow,
}

impl Happening {
    fn report(self) -> FeedReport {
        let failed = |retries_left| FeedReport::OpenFailed {
            error: OpenError::Failed(unavailable()),
            retries_left,
        };
        match self {
            Self::Fresh => FeedReport::Opened(Start::Fresh),
            Self::Resumed => FeedReport::Opened(Start::After("5".into())),
            Self::Synced => FeedReport::Synced,
            Self::Lived => FeedReport::Lived,
            Self::Closed => FeedReport::SessionEnded(SessionEnd::Closed),
            Self::Expired => FeedReport::SessionEnded(SessionEnd::Expired),
            Self::Failed => FeedReport::SessionEnded(SessionEnd::Failed(unavailable())),
            Self::Unusable => FeedReport::UnusableEvent,
            Self::Retry => failed(true),
            Self::UsedUp => failed(false),
            Self::Forbidden => FeedReport::Over(FeedEnd::Refused(UpstreamError::forbidden(None))),
            Self::InVain => FeedReport::ReopenedInVain,
            Self::Over => FeedReport::Over(FeedEnd::Unavailable(Some(unavailable()))),
            Self::Slow => FeedReport::Over(FeedEnd::Fatal(StreamError::internal("the scope is too large"))),
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let happening = prop::sample::select(vec![
        Happening::Fresh,
        Happening::Resumed,
        Happening::Synced,
        Happening::Lived,
        Happening::Closed,
        Happening::Expired,
        Happening::Failed,
        Happening::Unusable,
        Happening::Retry,
        Happening::UsedUp,
        Happening::Forbidden,
        Happening::InVain,
        Happening::Over,
        Happening::Slow,
    ]);
    prop_oneof![
        12 => (0..4_usize, happening).prop_map(|(feed, happening)| Step::Report(feed, happening)),
        2 => (0..4_usize).prop_map(Step::Declare),
        1 => Just(Step::InBetween),
        6 => Just(Step::Answer),
        1 => Just(Step::Fail),
        1 => Just(Step::Unanswered),
        3 => Just(Step::Settle),
        2 => (-5..100_i64).prop_map(Step::Clock),
        2 => any::<bool>().prop_map(Step::Lease),
        1 => Just(Step::Restart),
        1 => Just(Step::Snapshot),
    ]
}

/// What Ready says.
fn said(status: Option<&DeclaredStreamStatus>) -> Option<(ConditionStatus, String)> {
    let ready = status?.conditions.get("Ready")?;
    Some((ready.status, ready.reason.to_string()))
}

fn status_of(conditions: &Conditions, type_: &str) -> Option<ConditionStatus> {
    conditions.get(type_).map(|held| held.status)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_status_is_sound_and_each_change_of_ready_is_one_event(
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let names = ["a", "b", "c", "d"];
        let mut cluster = Cluster::new(&names[..2]);
        // Changes that were stored without an answer, and of which nothing was told yet.
        let mut untold = 0;
        for step in steps {
            let (before, writes, events) = (cluster.status(), cluster.writes, cluster.events.len());
            let may_owe = untold > 0 || matches!(step, Step::Unanswered);
            match step {
                Step::Report(feed, happening) => {
                    let feed = cluster.kept.keys().nth(feed).copied();
                    if let Some(feed) = feed {
                        cluster.report_to(feed, happening.report());
                    }
                }
                Step::Declare(count) => cluster.declare(&names[..count]),
                Step::InBetween => cluster.next_version(),
                Step::Answer => {
                    cluster.answer();
                }
                Step::Fail => {
                    if cluster.out.pop_front().is_some() {
                        cluster.fail();
                    }
                }
                // What is stored here and not told at once is told later.
                Step::Unanswered => {
                    if cluster.store_unanswered() {
                        cluster.fail();
                    }
                }
                // Checked write by write below.
                Step::Settle => {
                    if let Some(due) = cluster.reconciler.next_due() {
                        cluster.now = cluster.now.max(due);
                        let now = cluster.now();
                        cluster.reconciler.passed(now);
                        cluster.act();
                    }
                }
                Step::Clock(seconds) => cluster.wall += seconds,
                Step::Lease(publishes) => {
                    let now = cluster.now();
                    cluster.reconciler.publishes(now, publishes);
                    cluster.act();
                }
                Step::Restart => {
                    // What it had not told is never told.
                    untold = 0;
                    cluster.restart();
                    let now = cluster.now();
                    cluster.reconciler.publishes(now, true);
                    cluster.watch();
                    prop_assert!(
                        cluster.out.is_empty() || cluster.kept.is_empty() || !before.as_ref().is_some_and(|before| {
                            before.observed_generation == cluster.stored["metadata"]["generation"].as_i64()
                        }),
                        "nothing is known yet that speaks against it"
                    );
                }
                Step::Snapshot => {
                    cluster.reconciler.snapshot_began();
                    cluster.watch();
                    cluster.reconciler.snapshot_complete();
                    cluster.act();
                }
            }
            let after = cluster.status();

            // A write where the status changed, and nowhere else.
            prop_assert_eq!(cluster.writes - writes, usize::from(before != after));
            // One Event for each persisted change of what Ready says.
            let is_news = said(before.as_ref()) != said(after.as_ref());
            let told = cluster.events.len() - events;
            let owed = usize::from(is_news) + untold;
            prop_assert!(told <= owed, "{told} told, {owed} to tell");
            untold = owed - told;
            prop_assert!(untold == 0 || may_owe, "{untold} not told");
            let Some(after) = after else { continue };
            let stalled = status_of(&after.conditions, STALLED);
            let reconciling = status_of(&after.conditions, RECONCILING);
            prop_assert!(stalled.is_some() && reconciling.is_some());
            prop_assert!((stalled, reconciling) != (Some(ConditionStatus::True), Some(ConditionStatus::True)));
            prop_assert_eq!(after.conditions.is_ready(), cluster.kstatus() == "Current");
            if is_news && untold == 0 {
                let warns = cluster.events.last().unwrap().severity() == EventSeverity::Warning;
                prop_assert_eq!(warns, stalled == Some(ConditionStatus::True));
            }
            let Some(before) = before else { continue };
            for held in before.conditions.as_slice() {
                let now = after.conditions.get(&held.type_).unwrap();
                prop_assert!(
                    now.status != held.status || now.last_transition_time == held.last_transition_time,
                    "the time of {} moved without its status", held.type_
                );
                prop_assert!(now.last_transition_time >= held.last_transition_time);
            }
        }

        // In the end what is published is what is, for the specification that is, and nothing is left to tell.
        let events = cluster.events.len();
        let now = cluster.now();
        cluster.reconciler.publishes(now, true);
        cluster.act();
        cluster.watch();
        cluster.settle();
        prop_assert!(cluster.events.len() >= events + untold);
        let generation = cluster.stored["metadata"]["generation"].as_i64();
        let status = cluster.status().unwrap();
        prop_assert_eq!(status.observed_generation, generation);
        let declared = serde_json::from_value::<DeclaredStreamSpec>(cluster.stored["spec"].clone()).unwrap();
        prop_assert_eq!(cluster.kept.len(), declared.streams.len());
        for name in cluster.kept.values().cloned().collect::<Vec<_>>() {
            cluster.live(&name);
            cluster.report(&name, FeedReport::Opened(Start::After("9".into())));
        }
        cluster.settle();
        prop_assert!(cluster.status().unwrap().conditions.is_ready());
        let (writes, version) = (cluster.writes, cluster.version);
        cluster.watch();
        cluster.settle();
        prop_assert_eq!((cluster.writes, cluster.version), (writes, version), "settled is settled");
    }
}
