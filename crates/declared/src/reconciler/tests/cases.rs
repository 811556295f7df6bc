//! Faults that people met in the status of controllers, on the whole of this one.

use super::*;

#[test]
fn every_end_and_every_failed_open_is_read_by_kstatus_as_what_it_is() {
    let failed = |retries_left| FeedReport::OpenFailed {
        error: unavailable().into(),
        retries_left,
    };
    let slow = StreamError::new(krm_stream_protocol::ErrorCode::SlowConsumer, "slow");
    let expired = FeedReport::OpenFailed {
        error: OpenError::Expired,
        retries_left: true,
    };
    let ended = FeedReport::SessionEnded;
    let over = FeedReport::Over;
    for (report, ready, reason) in [
        (ended(SessionEnd::Closed), "Current", "AllStreamsReady"),
        (ended(SessionEnd::Teardown), "Current", "AllStreamsReady"),
        (failed(true), "Current", "AllStreamsReady"),
        (
            FeedReport::Opened(Start::After("9".into())),
            "Current",
            "AllStreamsReady",
        ),
        (FeedReport::Lived, "Current", "AllStreamsReady"),
        (over(FeedEnd::Teardown), "Current", "AllStreamsReady"),
        (over(FeedEnd::Fatal(slow)), "Current", "AllStreamsReady"),
        (ended(SessionEnd::Expired), "InProgress", "Replaying"),
        (expired, "InProgress", "Replaying"),
        (FeedReport::UnusableEvent, "InProgress", "Replaying"),
        (FeedReport::Opened(Start::Fresh), "InProgress", "Replaying"),
        (ended(SessionEnd::Failed(unavailable())), "Failed", "WatchError"),
        (failed(false), "Failed", "WatchError"),
        (FeedReport::ReopenedInVain, "Failed", "WatchError"),
        (over(FeedEnd::Unavailable(None)), "Failed", "WatchError"),
        (over(FeedEnd::NotOpened(unavailable())), "Failed", "WatchError"),
        (
            over(FeedEnd::Fatal(StreamError::internal("too large"))),
            "Failed",
            "WatchError",
        ),
        (
            over(FeedEnd::Refused(UpstreamError::forbidden(None))),
            "Failed",
            "WatchNotPermitted",
        ),
    ] {
        let mut cluster = super::ready();
        let writes = cluster.writes;
        cluster.report("a", report.clone());
        cluster.settle();
        assert_eq!(cluster.kstatus(), ready, "{report:?}");
        assert_eq!(cluster.ready().1, reason, "{report:?}");
        assert_eq!(
            cluster.ready().0 == ConditionStatus::True,
            ready == "Current",
            "{report:?}"
        );
        assert_eq!(
            cluster.writes - writes,
            usize::from(ready != "Current"),
            "{report:?}"
        );

        // Whatever it was, a session that opens and completes its snapshot ends it; but for early ends in a row, which had
        // that too: after them it has to live.
        let is_row = matches!(
            report,
            FeedReport::ReopenedInVain | FeedReport::Over(FeedEnd::Unavailable(_))
        );
        cluster.open("a");
        cluster.settle();
        let expected = if is_row { "Failed" } else { "Current" };
        assert_eq!(cluster.kstatus(), expected, "{report:?}");
        cluster.report("a", FeedReport::Lived);
        cluster.settle();
        assert_eq!(cluster.kstatus(), "Current", "{report:?}");
    }
}

#[test]
fn a_blocked_stream_outranks_a_replaying_one() {
    let mut cluster = super::ready();
    cluster.report("a", FeedReport::SessionEnded(SessionEnd::Expired));
    cluster.report("b", FeedReport::Over(FeedEnd::Unavailable(None)));
    cluster.settle();
    assert_eq!(cluster.kstatus(), "Failed");
    assert_eq!(
        cluster.status().unwrap().streams.unwrap().pending_sample,
        ["b", "a"]
    );
}

#[test]
fn the_same_outcome_is_written_once_and_a_time_moves_with_its_status_alone() {
    let mut cluster = super::ready();
    let ready_since = |cluster: &Cluster| {
        let conditions = cluster.status().unwrap().conditions;
        conditions
            .get("Ready")
            .unwrap()
            .last_transition_time
            .unix_seconds()
    };
    let (stored, writes, first) = (cluster.stored.to_string(), cluster.writes, ready_since(&cluster));
    for _ in 0..5 {
        cluster.wall += 2;
        cluster.watch();
        cluster.settle();
    }
    assert_eq!((cluster.stored.to_string(), cluster.writes), (stored, writes));

    // Not ready: the time moves. Not ready for another reason: it stays.
    cluster.report("a", FeedReport::SessionEnded(SessionEnd::Expired));
    cluster.settle();
    let unready = ready_since(&cluster);
    assert!(unready > first);
    cluster.wall += 2;
    cluster.report("a", FeedReport::Over(FeedEnd::Unavailable(None)));
    cluster.settle();
    assert_eq!(ready_since(&cluster), unready);
    assert_eq!(cluster.writes, writes + 2);

    // Ready again, by a clock that went back: the time does not.
    cluster.wall = 3;
    cluster.open("a");
    cluster.settle();
    assert_eq!(cluster.ready().0, ConditionStatus::True);
    assert_eq!(ready_since(&cluster), unready);
    let conditions = cluster.status().unwrap().conditions;
    let order: Vec<&str> = conditions.as_slice().iter().map(|held| &*held.type_).collect();
    assert_eq!(order, ["Ready", "Reconciling", "Stalled"]);
}

#[test]
fn conditions_of_others_are_left_alone() {
    let mut cluster = super::ready();
    let paid = json!({"type": "Paid", "status": "Unknown", "reason": "Z", "message": "", "lastTransitionTime": "2026-08-01T09:30:00Z"});
    cluster.stored["status"]["conditions"]
        .as_array_mut()
        .unwrap()
        .insert(0, paid.clone());
    cluster.next_version();
    cluster.watch();
    cluster.report("a", FeedReport::SessionEnded(SessionEnd::Expired));
    cluster.settle();
    let conditions = &cluster.stored["status"]["conditions"];
    assert_eq!(conditions[0], paid);
    assert_eq!(conditions[1]["reason"], "Replaying");
}
