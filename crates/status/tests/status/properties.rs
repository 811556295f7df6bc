//! Properties over random sequences of opens, ends and gates.

use krm_stream_protocol::{FeedEnd, OpenError, SessionEnd, Start, UpstreamError, UpstreamErrorKind};
use krm_stream_status::{
    AfterWrite, Condition, ConditionStatus, Conditions, Ended, EventSeverity, Gate, Level, NotReady, READY,
    RECONCILING, Retries, STALLED, StreamState, WatchStream,
};
use proptest::prelude::*;

use crate::controller::Controller;
use crate::kstatus;

/// What can befall a controller.
#[derive(Clone, Debug)]
enum Step {
    Stream(usize, Happening),
    Gates(Vec<Gate>),
    Streams(usize),
    Clock(i64),
    /// Somebody writes between our reading and our writing.
    Conflict,
}

#[derive(Clone, Debug)]
enum Happening {
    Opened(Start),
    Synced,
    Lived,
    Ended(SessionEnd),
    Unusable,
    OpenFailed(OpenError, Retries),
    EndedEarlyAgain,
    FeedEnded(FeedEnd),
}

fn kind() -> impl Strategy<Value = UpstreamErrorKind> {
    prop_oneof![
        "[a-z0-9 ]{0,8}".prop_map(|text| UpstreamErrorKind::Forbidden {
            message: Some(text.into())
        }),
        Just(UpstreamErrorKind::Unauthenticated),
        Just(UpstreamErrorKind::NotFound),
        Just(UpstreamErrorKind::Unavailable),
        Just(UpstreamErrorKind::VersionTooLarge),
        Just(UpstreamErrorKind::Rejected),
        Just(UpstreamErrorKind::LineTooLong { limit: 1 }),
        Just(UpstreamErrorKind::Unreadable),
        Just(UpstreamErrorKind::OutOfScope),
    ]
}

fn happening() -> impl Strategy<Value = Happening> {
    let error = || kind().prop_map(UpstreamError::new);
    let open_error = prop_oneof![Just(OpenError::Expired), error().prop_map(OpenError::Failed)];
    let retries = prop_oneof![Just(Retries::Left), Just(Retries::UsedUp)];
    prop_oneof![
        3 => prop_oneof![Just(Start::Fresh), Just(Start::After("7".into()))].prop_map(Happening::Opened),
        3 => Just(Happening::Synced),
        1 => Just(Happening::Lived),
        3 => prop_oneof![
            Just(SessionEnd::Closed),
            Just(SessionEnd::Expired),
            Just(SessionEnd::Teardown),
            error().prop_map(SessionEnd::Failed),
        ]
        .prop_map(Happening::Ended),
        1 => Just(Happening::Unusable),
        2 => (open_error, retries).prop_map(|(error, retries)| Happening::OpenFailed(error, retries)),
        1 => Just(Happening::EndedEarlyAgain),
        1 => prop_oneof![
            Just(FeedEnd::Teardown),
            Just(FeedEnd::Unavailable(None)),
            error().prop_map(FeedEnd::Refused),
        ]
        .prop_map(Happening::FeedEnded),
    ]
}

fn gate() -> impl Strategy<Value = Gate> {
    let level = prop_oneof![
        Just(Level::Converged),
        Just(Level::Progressing(NotReady::NotYet)),
        Just(Level::Progressing(NotReady::NotEstablished)),
        Just(Level::Stalled),
    ];
    (level, "[A-C]?", "[a-c]?").prop_map(|(level, reason, message)| Gate::new(level, reason, message))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0_usize..4, happening()).prop_map(|(stream, happening)| Step::Stream(stream, happening)),
        1 => prop::collection::vec(gate(), 0..3).prop_map(Step::Gates),
        1 => (0_usize..4).prop_map(Step::Streams),
        1 => (-100_i64..100).prop_map(Step::Clock),
        1 => Just(Step::Conflict),
    ]
}

fn apply(stream: &mut WatchStream, happening: &Happening) {
    match happening {
        Happening::Opened(start) => stream.opened(start),
        Happening::Synced => stream.synced(),
        Happening::Lived => stream.lived(),
        Happening::Ended(end) => stream.ended(Ended::Session(end)),
        Happening::Unusable => stream.ended(Ended::UnusableEvent),
        Happening::OpenFailed(error, retries) => stream.open_failed(error, *retries),
        Happening::EndedEarlyAgain => stream.ended_early_again(),
        Happening::FeedEnded(end) => stream.feed_ended(end),
    }
}

fn said(conditions: &Conditions) -> Option<(ConditionStatus, String)> {
    conditions
        .get(READY)
        .map(|ready| (ready.status, ready.reason.to_string()))
}

fn status_of(conditions: &Conditions, type_: &str) -> Option<ConditionStatus> {
    conditions.get(type_).map(|held| held.status)
}

fn time_moved_only_with_status(before: &Condition, after: &Condition) -> bool {
    if before.status == after.status {
        before.last_transition_time == after.last_transition_time
    } else {
        after.last_transition_time >= before.last_transition_time
    }
}

/// How a stream is read: from good to bad.
fn rank(stream: &WatchStream) -> u8 {
    match stream.state() {
        StreamState::Streaming => 0,
        StreamState::Replaying(_) => 1,
        StreamState::Blocked(_) => 2,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// A sign of recovery is believed once; the next one only after a session has lived.
    #[test]
    fn a_stream_gets_better_no_more_often_than_sessions_have_lived(
        happenings in prop::collection::vec(happening(), 1..100),
    ) {
        let mut stream = WatchStream::new();
        // Since a session lived: how often it turned to streaming, and how often it was blocked no longer.
        let (mut streamed, mut unblocked) = (0, 0);
        let mut is_open = false;
        for happening in &happenings {
            let before = rank(&stream);
            apply(&mut stream, happening);
            let after = rank(&stream);
            let was_open = is_open;
            match happening {
                Happening::Opened(_) => is_open = true,
                Happening::Synced | Happening::Lived => {}
                Happening::Ended(_) | Happening::Unusable | Happening::OpenFailed(..)
                | Happening::EndedEarlyAgain | Happening::FeedEnded(_) => is_open = false,
            }
            match happening {
                // It has ended since.
                Happening::Lived if !was_open => prop_assert_eq!(after, before),
                Happening::Lived => {
                    prop_assert_eq!(after, 0);
                    (streamed, unblocked) = (0, 0);
                    continue;
                }
                // Nothing that goes wrong makes anything better, but that an API server which answers is there again.
                Happening::Ended(SessionEnd::Failed(_)) | Happening::EndedEarlyAgain | Happening::FeedEnded(_) => {
                    prop_assert!(after >= before, "{happening:?}");
                }
                Happening::Ended(SessionEnd::Closed | SessionEnd::Teardown) => prop_assert_eq!(after, before),
                Happening::Opened(Start::Fresh) => prop_assert!(after >= before, "an attempt alone is no sign"),
                Happening::Ended(SessionEnd::Expired) | Happening::Unusable | Happening::OpenFailed(..) => {
                    prop_assert!(after > 0 || before == 0);
                }
                Happening::Opened(Start::After(_)) | Happening::Synced => prop_assert!(after <= before),
            }
            streamed += usize::from(after == 0 && before > 0);
            unblocked += usize::from(after < 2 && before == 2);
            prop_assert!(streamed <= 1 && unblocked <= 1, "{happenings:?}");
        }
        // Whatever happened, a session that lives is the end of it.
        stream.opened(&Start::Fresh);
        stream.synced();
        stream.lived();
        prop_assert_eq!(rank(&stream), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_published_status_never_contradicts_itself_and_is_written_only_when_it_changes(
        streams in 0_usize..4,
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let mut controller = Controller::new(streams);
        controller.reconcile();
        for step in &steps {
            let before = controller.store.read();
            let status_before = controller.status();
            let mut is_conflict = false;
            match step {
                Step::Stream(stream, happening) => {
                    if let Some((_, stream)) = controller.streams.get_mut(*stream) {
                        apply(stream, happening);
                    }
                }
                Step::Gates(gates) => controller.gates.clone_from(gates),
                Step::Streams(count) => controller.streams.truncate(*count),
                Step::Clock(seconds) => controller.now += seconds,
                Step::Conflict => {
                    controller.store.write_in_between();
                    is_conflict = true;
                }
            }
            let outcome = if is_conflict { controller.write(&before) } else { controller.reconcile() };
            let after = controller.store.read();
            let status_after = controller.status();

            // Never both, whichever way round they are read; and Ready agrees with them.
            let reconciling = status_of(&status_after.conditions, RECONCILING);
            let stalled = status_of(&status_after.conditions, STALLED);
            prop_assert!(reconciling.is_some() && stalled.is_some());
            prop_assert!((reconciling, stalled) != (Some(ConditionStatus::True), Some(ConditionStatus::True)));
            prop_assert_eq!(
                status_after.conditions.is_ready(),
                kstatus::read(&after.object) == kstatus::Reading::Current
            );
            let mut reversed = after.object.clone();
            reversed["status"]["conditions"].as_array_mut().unwrap().reverse();
            prop_assert_eq!(kstatus::read(&reversed), kstatus::read(&after.object));

            for held in status_before.conditions.as_slice() {
                let now = status_after.conditions.get(&held.type_).unwrap();
                prop_assert!(time_moved_only_with_status(held, now), "{held:?} became {now:?}");
            }

            // A write where the status changed, and nowhere else; after it there is nothing to write.
            let has_changed = status_before != status_after;
            prop_assert_eq!(after.writes - before.writes, usize::from(has_changed));
            prop_assert_eq!(matches!(outcome, Some(AfterWrite::Tell { .. })), has_changed);
            if is_conflict {
                prop_assert!(!has_changed);
            } else {
                prop_assert_eq!(controller.reconcile(), None);
            }

            // One Event for each persisted change of what Ready says.
            let told = &after.events[before.events.len()..];
            let is_news = said(&status_before.conditions) != said(&status_after.conditions);
            prop_assert_eq!(told.len(), usize::from(is_news));
            if let [event] = told {
                let warns = stalled == Some(ConditionStatus::True);
                prop_assert_eq!(event.severity() == EventSeverity::Warning, warns);
                let (_, reason) = said(&status_after.conditions).unwrap();
                prop_assert_eq!(event.reason(), reason);
            }
        }
    }
}
