//! Faults that people met in the status of controllers, each as a test.

use krm_stream_protocol::{
    FeedEnd, OpenError, SessionEnd, Start, StreamError, UpstreamError, UpstreamErrorKind,
};
use krm_stream_status::{
    AfterWrite, ConditionStatus, Ended, EventSeverity, Gate, Level, NotReady, RECONCILING, Retries, STALLED,
    WatchStream,
};

use crate::controller::Controller;
use crate::kstatus::{self, Reading};

fn ready(streams: usize) -> Controller {
    let mut controller = Controller::new(streams);
    for (_, stream) in &mut controller.streams {
        stream.opened(&Start::Fresh);
        stream.synced();
        stream.lived();
    }
    controller.reconcile();
    assert_eq!(controller.reading(), Reading::Current);
    controller
}

fn condition(controller: &Controller, type_: &str) -> (ConditionStatus, String, String) {
    let conditions = controller.status().conditions;
    let held = conditions.get(type_).unwrap();
    (held.status, held.reason.to_string(), held.message.clone())
}

fn away() -> UpstreamError {
    UpstreamError::new(UpstreamErrorKind::Unavailable)
}

/// Reads the object as it is, and with its conditions in the other order.
fn readings(controller: &Controller) -> [Reading; 2] {
    let mut object = controller.store.read().object;
    let reading = kstatus::read(&object);
    object["status"]["conditions"].as_array_mut().unwrap().reverse();
    [reading, kstatus::read(&object)]
}

#[test]
fn every_end_and_every_failed_open_is_read_as_what_it_is() {
    type Happens = fn(&mut WatchStream);
    let table: [(&str, Happens, Reading); 12] = [
        (
            "a closed transport",
            |s| s.ended(Ended::Session(&SessionEnd::Closed)),
            Reading::Current,
        ),
        (
            "our own wish",
            |s| s.ended(Ended::Session(&SessionEnd::Teardown)),
            Reading::Current,
        ),
        (
            "an expired version",
            |s| s.ended(Ended::Session(&SessionEnd::Expired)),
            Reading::InProgress,
        ),
        (
            "an unusable event",
            |s| s.ended(Ended::UnusableEvent),
            Reading::InProgress,
        ),
        (
            "an error in the session",
            |s| s.ended(Ended::Session(&SessionEnd::Failed(away()))),
            Reading::Failed,
        ),
        (
            "a failed open with retries",
            |s| s.open_failed(&away(), Retries::Left),
            Reading::Current,
        ),
        (
            "a failed open without",
            |s| s.open_failed(&away(), Retries::UsedUp),
            Reading::Failed,
        ),
        (
            "a refused open",
            |s| s.open_failed(&OpenError::Failed(UpstreamError::forbidden(None)), Retries::Left),
            Reading::Failed,
        ),
        (
            "an expired open",
            |s| s.open_failed(&OpenError::Expired, Retries::Left),
            Reading::InProgress,
        ),
        ("two early ends", WatchStream::ended_early_again, Reading::Failed),
        (
            "a dead feed",
            |s| s.feed_ended(&FeedEnd::Unavailable(Some(away()))),
            Reading::Failed,
        ),
        (
            "one client's slow reader",
            |s| {
                let code = krm_stream_protocol::ErrorCode::SlowConsumer;
                s.feed_ended(&FeedEnd::Fatal(StreamError::new(code, "slow")));
            },
            Reading::Current,
        ),
    ];
    for (name, happens, expected) in table {
        let mut controller = ready(3);
        happens(&mut controller.streams[1].1);
        controller.reconcile();
        assert_eq!(readings(&controller), [expected; 2], "{name}");
        let (is_ready, _, _) = condition(&controller, "Ready");
        assert_eq!(
            is_ready == ConditionStatus::True,
            expected == Reading::Current,
            "{name}"
        );
        for (type_, reading) in [(RECONCILING, Reading::InProgress), (STALLED, Reading::Failed)] {
            let (status, _, _) = condition(&controller, type_);
            assert_eq!(
                status == ConditionStatus::True,
                expected == reading,
                "{type_} after {name}"
            );
        }
    }
}

#[test]
fn a_blocked_stream_outranks_a_replaying_one_and_nothing_to_stream_is_current() {
    let mut controller = ready(2);
    controller.streams[0]
        .1
        .ended(Ended::Session(&SessionEnd::Expired));
    controller.streams[1].1.open_failed(&away(), Retries::UsedUp);
    controller.reconcile();
    assert_eq!(readings(&controller), [Reading::Failed; 2]);
    assert_eq!(controller.status().summary, "0/2");

    let mut nothing = Controller::new(0);
    nothing.reconcile();
    assert_eq!(readings(&nothing), [Reading::Current; 2]);
    assert_eq!(nothing.status().summary, "0/0");
    assert_eq!(condition(&nothing, "Ready").1, "NoResolvedTypes");
}

#[test]
fn an_old_reason_is_not_kept() {
    let mut controller = Controller::new(1);
    let refused: OpenError = UpstreamError::forbidden(Some("canary")).into();
    controller.streams[0].1.open_failed(&refused, Retries::UsedUp);
    controller.reconcile();
    let (_, reason, refusal) = condition(&controller, "Ready");
    assert_eq!(reason, "WatchNotPermitted");

    // The right is granted, but the next connection is refused.
    controller.streams[0].1.open_failed(&away(), Retries::UsedUp);
    controller.reconcile();
    let (_, reason, message) = condition(&controller, "Ready");
    assert_eq!(reason, "WatchError");
    assert!(
        message.contains("cannot be reached") && !message.contains("allow"),
        "{message}"
    );
    assert_eq!(condition(&controller, STALLED).1, "WatchError");

    controller.streams[0].1.opened(&Start::Fresh);
    controller.streams[0].1.synced();
    controller.reconcile();
    assert_eq!(condition(&controller, STALLED).0, ConditionStatus::False);
    let stored = controller.store.read().object.to_string();
    for old in [&*refusal, &*message, "WatchError", "WatchNotPermitted", "canary"] {
        assert!(!stored.contains(old), "{old} in {stored}");
    }
}

#[test]
fn the_same_outcome_is_not_written_again() {
    let mut controller = ready(2);
    let before = controller.store.read();
    for _ in 0..5 {
        assert_eq!(controller.reconcile(), None);
    }
    assert_eq!(
        controller.store.read().object.to_string(),
        before.object.to_string()
    );
    assert_eq!(controller.store.read().writes, before.writes);
}

#[test]
fn another_reason_is_one_write_at_the_old_time_and_another_status_moves_it() {
    let mut controller = ready(1);
    let time = |controller: &Controller| {
        let conditions = controller.status().conditions;
        conditions
            .get("Ready")
            .unwrap()
            .last_transition_time
            .unix_seconds()
    };
    let was_ready_at = time(&controller);

    // Converged gates beside the streams do not win, so nothing is written.
    controller.gates = vec![Gate::new(Level::Converged, "AlsoFine", "")];
    assert_eq!(controller.reconcile(), None);

    controller.gates = vec![Gate::new(Level::Progressing(NotReady::NotYet), "Issuing", "")];
    controller.reconcile();
    let was_unready_at = time(&controller);
    assert!(was_unready_at > was_ready_at);

    controller.gates = vec![Gate::new(Level::Progressing(NotReady::NotYet), "Waiting", "")];
    let writes = controller.store.read().writes;
    controller.reconcile();
    assert_eq!(controller.store.read().writes, writes + 1);
    assert_eq!(time(&controller), was_unready_at);

    controller.now = 3;
    controller.gates.clear();
    controller.reconcile();
    assert_eq!(
        time(&controller),
        was_unready_at,
        "a clock that went back takes the time nowhere"
    );
    let order: Vec<String> = controller
        .status()
        .conditions
        .as_slice()
        .iter()
        .map(|held| held.type_.to_string())
        .collect();
    assert_eq!(order, ["Ready", "Reconciling", "Stalled"]);
}

#[test]
fn routine_ends_do_not_flap() {
    let mut controller = ready(3);
    let before = controller.store.read();
    for round in 0..20 {
        for (_, stream) in &mut controller.streams {
            stream.ended(Ended::Session(&SessionEnd::Closed));
        }
        assert_eq!(controller.reconcile(), None, "round {round}");
        for (_, stream) in &mut controller.streams {
            stream.opened(&Start::After(round.to_string().as_str().into()));
        }
        assert_eq!(controller.reconcile(), None, "round {round}");
    }
    assert_eq!(controller.store.read(), before);
}

#[test]
fn sessions_that_end_early_for_ever_are_one_warning_and_one_write() {
    type Row = fn(&mut Controller);
    fn step(controller: &mut Controller, happens: impl FnOnce(&mut WatchStream)) {
        happens(&mut controller.streams[0].1);
        controller.reconcile();
    }
    let closed = Ended::Session(&SessionEnd::Closed);
    let before_the_boundary: Row = |controller| {
        step(controller, |s| s.opened(&Start::Fresh));
        step(controller, |s| s.ended(Ended::Session(&SessionEnd::Closed)));
        step(controller, |s| s.opened(&Start::Fresh));
        step(controller, |s| s.feed_ended(&FeedEnd::Unavailable(None)));
    };
    let after_it: Row = |controller| {
        step(controller, |s| s.opened(&Start::Fresh));
        step(controller, WatchStream::synced);
        for _ in 0..4 {
            step(controller, |s| s.ended(Ended::Session(&SessionEnd::Closed)));
            step(controller, |s| s.opened(&Start::After("7".into())));
        }
        step(controller, WatchStream::ended_early_again);
        step(controller, |s| s.opened(&Start::Fresh));
        step(controller, WatchStream::synced);
        step(controller, |s| s.feed_ended(&FeedEnd::Unavailable(None)));
    };
    let (normal, warning) = (EventSeverity::Normal, EventSeverity::Warning);
    for (row, expected) in [
        (before_the_boundary, vec![(warning, "WatchError")]),
        (
            after_it,
            vec![(normal, "AllStreamsReady"), (warning, "WatchError")],
        ),
    ] {
        let mut controller = ready(2);
        step(&mut controller, |s| *s = WatchStream::new());
        let before = controller.store.read();
        for round in 0..20 {
            row(&mut controller);
            let after = controller.store.read();
            assert_eq!(after.writes - before.writes, expected.len(), "round {round}");
            let told: Vec<(EventSeverity, &str)> = after.events[before.events.len()..]
                .iter()
                .map(|event| (event.severity(), event.reason()))
                .collect();
            assert_eq!(told, expected);
        }
        step(&mut controller, |s| s.opened(&Start::Fresh));
        step(&mut controller, WatchStream::synced);
        assert_eq!(controller.reading(), Reading::Failed);
        step(&mut controller, WatchStream::lived);
        assert_eq!(controller.reading(), Reading::Current);
        step(&mut controller, |s| s.ended(closed));
        assert_eq!(controller.reading(), Reading::Current);
    }
}

#[test]
fn an_expired_version_is_two_writes_and_two_normal_events() {
    let mut controller = ready(2);
    let before = controller.store.read();
    let stream = &mut controller.streams[0].1;
    stream.ended(Ended::Session(&SessionEnd::Expired));
    controller.reconcile();
    assert_eq!(condition(&controller, "Ready").1, "Replaying");
    controller.streams[0].1.opened(&Start::Fresh);
    assert_eq!(controller.reconcile(), None);
    controller.streams[0].1.synced();
    controller.reconcile();

    let after = controller.store.read();
    assert_eq!(after.writes - before.writes, 2);
    let told: Vec<(EventSeverity, &str)> = after.events[before.events.len()..]
        .iter()
        .map(|event| (event.severity(), event.reason()))
        .collect();
    assert_eq!(
        told,
        [
            (EventSeverity::Normal, "Replaying"),
            (EventSeverity::Normal, "AllStreamsReady")
        ]
    );
}

#[test]
fn the_same_trouble_is_told_in_the_same_words_whatever_the_server_adds() {
    let mut messages = std::collections::BTreeSet::new();
    for number in 0..10 {
        let mut controller = ready(1);
        let upstream_text = format!("too old resource version: {number} ({number}00), request {number}");
        let expired = away().with_cause(Said(upstream_text.clone(), OpenError::Expired));
        controller.streams[0]
            .1
            .ended(Ended::Session(&SessionEnd::Failed(expired)));
        controller.reconcile();
        assert_eq!(condition(&controller, "Ready").1, "Replaying");
        messages.insert(condition(&controller, "Ready").2);
        controller.streams[0]
            .1
            .open_failed(&away().with_cause(upstream_text), Retries::UsedUp);
        controller.reconcile();
        messages.insert(condition(&controller, "Ready").2);
    }
    assert_eq!(messages.len(), 2, "{messages:?}");
}

/// An upstream's own text around an expired version.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Said(String, #[source] OpenError);

#[test]
fn a_conflict_drops_the_write_and_the_next_reading_repeats_it() {
    let mut controller = Controller::new(1);
    let stale = controller.store.read();
    controller.store.write_in_between();
    assert_eq!(controller.write(&stale), Some(AfterWrite::ReadAgain));
    assert_eq!(
        (
            controller.store.read().writes,
            controller.store.read().events.len()
        ),
        (0, 0)
    );

    assert!(matches!(
        controller.reconcile(),
        Some(AfterWrite::Tell { event: Some(_), .. })
    ));
    assert_eq!(
        (
            controller.store.read().writes,
            controller.store.read().events.len()
        ),
        (1, 1)
    );
}

#[test]
fn an_object_that_is_gone_is_left_in_peace() {
    let mut controller = Controller::new(1);
    controller.store.delete();
    assert_eq!(controller.reconcile(), Some(AfterWrite::Gone));
    assert_eq!(controller.store.read().events.len(), 0);
}
