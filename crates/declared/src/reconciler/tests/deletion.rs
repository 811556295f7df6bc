//! Deletions of a resource that is being read again: an answer that comes late brings nothing back.

use super::*;

/// A resource that is being read again after a conflict, and what was read of it before it was deleted.
fn being_read() -> (Cluster, ReadAgain) {
    let mut cluster = ready();
    cluster.report("a", FeedReport::SessionEnded(SessionEnd::Expired));
    cluster.next_version();
    assert!(cluster.answer(), "a conflict");
    cluster.now = cluster.reconciler.next_due().unwrap();
    let now = cluster.now();
    cluster.reconciler.passed(now);
    let asked: Vec<Action> = cluster.reconciler.actions().collect();
    assert!(matches!(asked[..], [Action::Read { .. }]), "{asked:?}");
    let answer = ReadAgain::Found(Box::new(cluster.as_read()));
    (cluster, answer)
}

impl Cluster {
    fn late(&mut self, answer: ReadAgain) {
        let now = self.now();
        self.reconciler.read_again(now, "u-1", answer);
        self.act();
    }

    /// The API server answers to a write that there is no such resource.
    fn not_found(&mut self) {
        assert!(self.out.pop_front().is_some());
        let now = self.now();
        self.reconciler
            .written(now, "u-1", Written::Answered(AfterWrite::Gone));
        self.act();
    }
}

#[test]
fn a_late_answer_within_a_snapshot_is_no_part_of_it() {
    let (mut cluster, answer) = being_read();
    cluster.reconciler.snapshot_began();
    cluster.late(answer);
    cluster.not_found();
    cluster.reconciler.snapshot_complete();
    cluster.act();
    assert!(cluster.kept.is_empty(), "{:?}", cluster.kept);
    assert_eq!(cluster.reconciler.feeds(), 0);
}

#[test]
fn one_that_is_in_the_snapshot_stays_however_late_the_answer_comes() {
    let (mut cluster, answer) = being_read();
    cluster.reconciler.snapshot_began();
    cluster.watch();
    cluster.late(answer);
    cluster.reconciler.snapshot_complete();
    cluster.act();
    assert_eq!(cluster.kept.len(), 2);
    cluster.settle();
    assert_eq!(cluster.ready().1, "Replaying");
}

#[test]
fn an_answer_that_comes_after_the_deletion_was_seen_brings_nothing_back() {
    type Happens = fn(&mut Cluster);
    let ways: [(&str, Happens); 4] = [
        ("a deletion", |cluster| cluster.reconciler.deleted("u-1")),
        ("a deletion within a snapshot that had it", |cluster| {
            cluster.reconciler.snapshot_began();
            cluster.watch();
            cluster.reconciler.deleted("u-1");
        }),
        ("a snapshot without it", |cluster| {
            cluster.reconciler.snapshot_began();
            cluster.reconciler.snapshot_complete();
        }),
        ("the definition is gone", |cluster| {
            cluster.reconciler.not_served();
        }),
    ];
    for (way, happens) in ways {
        for found in [true, false] {
            let (mut cluster, answer) = being_read();
            happens(&mut cluster);
            cluster.act();
            // A write that the watch let out before the deletion is answered, if at all, by nobody.
            cluster.out.clear();
            cluster.late(if found { answer } else { ReadAgain::Gone });
            cluster.reconciler.snapshot_complete();
            cluster.act();
            assert!(cluster.kept.is_empty(), "{way}");
            cluster.settle();
            assert_eq!(cluster.reconciler.feeds(), 0, "{way}");
            assert_eq!(cluster.reconciler.next_due(), None, "{way}");
        }
    }
}

#[test]
fn an_answer_about_the_one_before_it_changes_nothing_of_one_that_was_recreated() {
    let (mut cluster, answer) = being_read();
    cluster.stored["metadata"]["uid"] = "u-2".into();
    cluster.stored["status"].take();
    cluster.next_version();
    cluster.watch();
    let kept: Vec<FeedId> = cluster.kept.keys().copied().collect();
    assert_eq!(kept.len(), 2);
    cluster.late(answer);
    assert_eq!(cluster.kept.keys().copied().collect::<Vec<_>>(), kept);
    cluster.settle();
    assert_eq!(cluster.ready().1, "Replaying");
}
