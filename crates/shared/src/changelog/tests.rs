//! What a changelog keeps and answers, beside what the schedules of the model check.

use std::sync::Arc;

use super::*;
use crate::sweep::{Frame, Progress, ResyncReason, Sink, Sweep};

#[derive(Debug, PartialEq, Eq)]
struct Name(String);

impl Identified for Name {
    fn uid(&self) -> &str {
        &self.0
    }
}

type Numbers = Changelog<Arc<Name>, u64, u64>;

fn name(uid: &str) -> Arc<Name> {
    Arc::new(Name(uid.to_owned()))
}

/// Room for everything.
#[derive(Default)]
struct Lines(Vec<String>);

impl Sink<Arc<Name>, u64> for Lines {
    fn has_room(&self) -> bool {
        true
    }

    fn push(&mut self, frame: Frame<'_, Arc<Name>, u64>) {
        self.0.push(match frame {
            Frame::Reset => "reset".to_owned(),
            Frame::Upsert {
                spelling,
                identity,
                payload,
                ..
            } => format!("{spelling:?} {} {payload}", identity.uid()),
            Frame::Deleted { identity } => format!("deleted {}", identity.uid()),
            Frame::Synced => "synced".to_owned(),
            Frame::Resync(reason) => format!("{reason:?}"),
            Frame::SlowConsumer => "slow".to_owned(),
        });
    }
}

fn poll(sweep: &mut Sweep<Arc<Name>>, changelog: &Numbers) -> (Progress, Vec<String>) {
    let mut lines = Lines::default();
    let progress = sweep.poll(changelog, &mut lines);
    (progress, lines.0)
}

fn joined(changelog: &Numbers) -> Sweep<Arc<Name>> {
    let mut sweep = Sweep::new();
    sweep.begin_cycle(changelog, &mut Lines::default());
    sweep
}

#[test]
fn a_version_is_known_of_an_object_and_of_a_kept_tombstone() {
    let mut changelog = Numbers::new(8);
    let mut sweep = joined(&changelog);
    changelog.upsert(name("a"), 5, 50);
    assert_eq!(
        (changelog.version_of("a"), changelog.payload_of("a")),
        (Some(&5), Some(&50))
    );
    changelog.upsert_suppressed(name("a"), 6, 60);
    assert_eq!(
        (changelog.version_of("a"), changelog.payload_of("a")),
        (Some(&6), Some(&60))
    );
    assert!(changelog.delete("a", 7));
    assert_eq!(
        (changelog.version_of("a"), changelog.payload_of("a")),
        (Some(&7), None)
    );
    assert!(!changelog.delete("a", 9), "it is dead already");
    assert_eq!(
        changelog.version_of("a"),
        Some(&9),
        "yet a later version was seen of it"
    );
    assert!(!changelog.delete("b", 9), "nothing is known of it");
    assert_eq!(changelog.version_of("b"), None);

    let _ = poll(&mut sweep, &changelog);
    changelog.trim();
    assert_eq!(
        changelog.version_of("a"),
        None,
        "all streams have taken the deletion in"
    );
}

#[test]
fn a_snapshot_in_which_objects_came_and_went_replaces_the_state_at_once() {
    let mut changelog = Numbers::new(8);
    for (uid, n) in [("old", 1), ("kept", 2)] {
        changelog.upsert(name(uid), n, n);
    }
    changelog.reach_boundary();
    let mut sweep = joined(&changelog);
    assert_eq!(
        poll(&mut sweep, &changelog).1,
        ["Added old 1", "Added kept 2", "synced"]
    );
    let head = changelog.head();

    changelog.lose_continuity();
    let mut snapshot = Snapshot::new();
    for n in 0..100 {
        snapshot.upsert(name(&format!("passing{n}")), n, n);
    }
    snapshot.upsert(name("kept"), 10, 10);
    for n in 0..100 {
        assert!(snapshot.delete(&format!("passing{n}"), n));
    }
    snapshot.upsert(name("kept"), 11, 11);
    snapshot.upsert(name("new"), 12, 12);
    assert!(!snapshot.delete("old", 13), "the snapshot never had it");
    assert_eq!((snapshot.len(), snapshot.is_empty()), (2, false));
    assert_eq!(
        (snapshot.version_of("kept"), snapshot.payload_of("kept")),
        (Some(&11), Some(&11))
    );
    assert_eq!(snapshot.version_of("passing1"), None);

    changelog.upsert(name("old"), 3, 3);
    assert_eq!(
        poll(&mut sweep, &changelog).1,
        ["Modified old 3"],
        "the old state is served meanwhile"
    );
    let mut late = joined(&changelog);
    assert!(late.is_waiting());
    assert_eq!(
        poll(&mut late, &changelog),
        (Progress::Idle, vec![]),
        "a new cycle waits"
    );
    assert!(!late.has_work(&changelog));

    drop(changelog.swap(snapshot));
    assert!(changelog.head() > head && changelog.boundary() == Some(changelog.head()));
    assert!(late.has_work(&changelog));
    let (_, mut lines) = poll(&mut late, &changelog);
    assert_eq!(lines.pop().as_deref(), Some("synced"));
    lines.sort_unstable();
    assert_eq!(lines, ["Added kept 11", "Added new 12"]);

    assert_eq!(
        poll(&mut sweep, &changelog),
        (
            Progress::BetweenCycles,
            vec![format!("{:?}", ResyncReason::NewEpoch)]
        )
    );
    assert_eq!(
        poll(&mut sweep, &changelog),
        (Progress::BetweenCycles, vec![]),
        "it waits to be begun"
    );
    sweep.begin_cycle(&changelog, &mut Lines::default());
    assert_eq!(poll(&mut sweep, &changelog).1.len(), 3);
    changelog.upsert(name("kept"), 20, 20);
    changelog.delete("new", 21);
    assert_eq!(
        poll(&mut sweep, &changelog).1,
        ["deleted new", "Modified kept 20"]
    );

    let size = changelog.size();
    assert_eq!(
        (size.live, size.uids, size.index_nodes, size.readers),
        (1, 2, 2, 2),
        "`late` holds the tombstone"
    );
    assert!(size.slots <= size.most_live + changelog.tombstones_kept());
}

#[test]
fn cycles_can_go_on_at_another_changelog() {
    let (mut first, mut second) = (Numbers::new(8), Numbers::new(8));
    first.upsert(name("a"), 1, 1);
    second.upsert(name("b"), 2, 2);
    first.reach_boundary();
    second.reach_boundary();
    let mut sweep = joined(&first);
    assert_eq!(poll(&mut sweep, &first).1, ["Added a 1", "synced"]);
    sweep.leave(&first);
    assert_eq!(first.size().readers, 0);
    sweep.begin_cycle(&second, &mut Lines::default());
    assert_eq!(poll(&mut sweep, &second).1, ["Added b 2", "synced"]);
    assert_eq!((sweep.cycles(), second.size().readers), (2, 1));
}

#[test]
fn an_empty_collection_is_reset_and_synced() {
    let mut changelog = Numbers::new(8);
    let mut sweep = joined(&changelog);
    assert_eq!(
        poll(&mut sweep, &changelog),
        (Progress::Idle, vec![]),
        "the boundary is not reached"
    );
    assert!(!sweep.has_work(&changelog));
    changelog.reach_boundary();
    assert!(sweep.has_work(&changelog));
    assert_eq!(
        poll(&mut sweep, &changelog),
        (Progress::Idle, vec!["synced".to_owned()])
    );
}

#[test]
fn many_streams_read_at_once_and_leave_nothing_behind() {
    let mut changelog = Numbers::new(8);
    for n in 0..50 {
        changelog.upsert(name(&format!("u{n}")), n, n);
    }
    changelog.reach_boundary();
    let shared = &changelog;
    std::thread::scope(|threads| {
        for _ in 0..8 {
            threads.spawn(|| {
                for _ in 0..200 {
                    let mut sweep = joined(shared);
                    assert_eq!(poll(&mut sweep, shared).1.len(), 51);
                    sweep.leave(shared);
                }
            });
        }
    });
    assert_eq!(changelog.size().readers, 0);
}

#[test]
fn a_sweep_is_small_and_says_nothing_of_what_it_sends() {
    assert!(
        size_of::<Sweep<Arc<Name>>>() <= 128,
        "{} bytes",
        size_of::<Sweep<Arc<Name>>>()
    );
    let mut changelog = Numbers::new(8);
    changelog.upsert(name("a"), 1, 123_456_789);
    assert!(!format!("{changelog:?}").contains("123456789"));
}
