//! What is published where a write is out for seconds, and much happens meanwhile.

use super::*;

/// A write is out, that of a right that was taken away; the right is given back, and taken away once more. Then the write
/// fails, so long after. Returns the reasons that are told.
fn told_after(wait: Duration) -> Vec<(EventSeverity, String)> {
    let mut cluster = Cluster::new(&["a"]);
    cluster.live("a");
    cluster.settle();
    let before = cluster.events.len();
    let refused = || FeedReport::Over(FeedEnd::Refused(UpstreamError::forbidden(None)));
    cluster.report("a", refused());
    cluster.live("a");
    cluster.report("a", refused());
    assert!(cluster.out.pop_front().is_some());
    cluster.now = cluster.now + wait;
    cluster.fail();
    cluster.settle();
    assert_eq!(cluster.ready().1, "WatchNotPermitted");
    let told = cluster.events[before..].iter();
    told.map(|event| (event.severity(), event.reason().to_owned()))
        .collect()
}

#[test]
fn a_change_that_is_over_by_the_time_that_it_can_be_written_is_published_all_the_same() {
    let reasons = told_after(Duration::ZERO);
    let reasons: Vec<&str> = reasons.iter().map(|(_, reason)| &**reason).collect();
    assert_eq!(
        reasons,
        ["WatchNotPermitted", "AllStreamsReady", "WatchNotPermitted"]
    );
}

#[test]
fn a_state_of_long_ago_is_never_published_as_the_present_one() {
    let told = told_after(Duration::from_secs(6));
    assert_eq!(told, [(EventSeverity::Warning, "WatchNotPermitted".to_owned())]);
}
