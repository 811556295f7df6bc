//! What a host is told in figures.

use super::*;

#[test]
fn streams_are_counted_as_they_are_also_where_no_status_can_be_written() {
    let counts = |ready, replaying, blocked| StreamCounts {
        ready,
        replaying,
        blocked,
    };
    let mut cluster = Cluster::new(&["a", "b"]);
    assert_eq!(cluster.reconciler.counts(), counts(0, 2, 0));
    // The first write is never answered, and later ones fail.
    for namespace in ["a", "b"] {
        cluster.live(namespace);
    }
    assert_eq!(cluster.reconciler.counts(), counts(2, 0, 0));
    cluster.out.clear();
    cluster.fail();
    cluster.report("a", FeedReport::SessionEnded(SessionEnd::Expired));
    cluster.report("b", FeedReport::SessionEnded(SessionEnd::Failed(unavailable())));
    assert_eq!(cluster.reconciler.counts(), counts(0, 1, 1));

    // Nor does one that publishes nothing know less.
    let now = cluster.now();
    cluster.reconciler.publishes(now, false);
    assert_eq!(cluster.reconciler.counts(), counts(0, 1, 1));
    cluster.open("b");
    assert_eq!(cluster.reconciler.counts(), counts(1, 1, 0));

    cluster.declare(&[]);
    assert_eq!(cluster.reconciler.counts(), StreamCounts::default());
    cluster.edit(json!({"streams": "none of this"}));
    cluster.watch();
    assert_eq!(cluster.reconciler.counts(), counts(0, 0, 1));
    cluster.reconciler.deleted("u-1");
    assert_eq!(cluster.reconciler.counts(), StreamCounts::default());
}

#[test]
fn a_status_that_cannot_be_written_is_counted_until_it_is_by_the_one_that_publishes() {
    let publishing = |publishes, unwritten| PublishingCounts { publishes, unwritten };
    let mut cluster = Cluster::new(&["a"]);
    assert_eq!(cluster.reconciler.publishing(), publishing(true, 0));
    cluster.out.clear();
    cluster.fail();
    assert_eq!(cluster.reconciler.publishing(), publishing(true, 1));
    let now = cluster.now();
    cluster.reconciler.publishes(now, false);
    assert_eq!(cluster.reconciler.publishing(), publishing(false, 0));
    cluster.reconciler.publishes(now, true);
    assert_eq!(cluster.reconciler.publishing(), publishing(true, 1));
    cluster.settle();
    assert_eq!(cluster.reconciler.publishing(), publishing(true, 0));
}
