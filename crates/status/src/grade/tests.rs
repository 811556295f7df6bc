//! Every end of a session, every failed open and every end of a feed, with what is published of it.

use std::fmt;

use krm_stream_protocol::StreamError;

use super::*;

const EXPIRED: Grade = Grade::Replaying(ReplayReason::ExpiredResourceVersion);

/// An error of a host's that wraps another.
#[derive(Debug)]
struct Wrapped<E>(E);

impl<E> fmt::Display for Wrapped<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("while watching")
    }
}

impl<E: Error + 'static> Error for Wrapped<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

fn kinds() -> Vec<UpstreamErrorKind> {
    vec![
        UpstreamErrorKind::Forbidden {
            message: Some("user system:canary cannot watch 4711".into()),
        },
        UpstreamErrorKind::Unauthenticated,
        UpstreamErrorKind::NotFound,
        UpstreamErrorKind::Unavailable,
        UpstreamErrorKind::VersionTooLarge,
        UpstreamErrorKind::Rejected,
        UpstreamErrorKind::LineTooLong { limit: 8 << 20 },
        UpstreamErrorKind::Unreadable,
        UpstreamErrorKind::OutOfScope,
    ]
}

fn reason(grade: &Grade) -> &'static str {
    match grade {
        Grade::Unchanged => "",
        Grade::Replaying(reason) => reason.as_str(),
        Grade::Blocked(blockage) => blockage.reason().as_str(),
    }
}

#[test]
fn ends_that_are_routine_or_our_own_wish_publish_nothing() {
    for end in [SessionEnd::Closed, SessionEnd::Teardown] {
        assert_eq!(
            grade_session_end(Ended::Session(&end)),
            Grade::Unchanged,
            "{end:?}"
        );
    }
}

#[test]
fn lost_continuity_is_a_replay_with_its_reason() {
    assert_eq!(grade_session_end(Ended::Session(&SessionEnd::Expired)), EXPIRED);
    assert_eq!(
        grade_session_end(Ended::UnusableEvent),
        Grade::Replaying(ReplayReason::ResumeReplay)
    );
}

#[test]
fn whatever_a_server_says_in_a_session_is_a_watch_error() {
    for kind in kinds() {
        let end = SessionEnd::Failed(UpstreamError::new(kind));
        assert_eq!(
            reason(&grade_session_end(Ended::Session(&end))),
            "WatchError",
            "{end:?}"
        );
    }
}

#[test]
fn a_refusal_counts_at_once_and_anything_else_when_retries_are_used_up() {
    for kind in kinds() {
        let is_refusal = matches!(kind, UpstreamErrorKind::Forbidden { .. });
        let error = OpenError::Failed(UpstreamError::new(kind));
        let (now, at_last) = if is_refusal {
            ("WatchNotPermitted", "WatchNotPermitted")
        } else {
            ("", "WatchError")
        };
        assert_eq!(
            reason(&grade_failed_open(&error, Retries::Left)),
            now,
            "{error:?}"
        );
        assert_eq!(
            reason(&grade_failed_open(&error, Retries::UsedUp)),
            at_last,
            "{error:?}"
        );
    }
    for retries in [Retries::Left, Retries::UsedUp] {
        assert_eq!(grade_failed_open(&OpenError::Expired, retries), EXPIRED);
    }
}

#[test]
fn wrapped_errors_are_seen_through() {
    let forbidden = || UpstreamError::forbidden(None);
    let away = || UpstreamError::new(UpstreamErrorKind::Unavailable);
    assert_eq!(
        grade_failed_open(&Wrapped(Wrapped(OpenError::Expired)), Retries::Left),
        EXPIRED
    );
    let wrapped_refusals: [Box<dyn Error>; 3] = [
        Box::new(Wrapped(OpenError::Failed(forbidden()))),
        Box::new(Wrapped(forbidden())),
        Box::new(away().with_cause(forbidden())),
    ];
    for error in wrapped_refusals {
        assert_eq!(
            reason(&grade_failed_open(&*error, Retries::Left)),
            "WatchNotPermitted",
            "{error:?}"
        );
    }
    let end = SessionEnd::Failed(away().with_cause(Wrapped(OpenError::Expired)));
    assert_eq!(grade_session_end(Ended::Session(&end)), EXPIRED);
    // The class of the outermost error counts among those that are equally telling.
    let end = SessionEnd::Failed(away().with_cause(UpstreamError::new(UpstreamErrorKind::NotFound)));
    assert_eq!(
        grade_session_end(Ended::Session(&end)),
        watch_error(in_words(&UpstreamErrorKind::Unavailable))
    );
}

#[test]
fn wrappers_that_show_the_source_of_their_content_as_their_own_are_seen_through() {
    let forbidden = || UpstreamError::forbidden(None);
    let io = std::io::Error::other::<Box<dyn Error + Send + Sync>>;
    let wrapped_refusals: [Box<dyn Error>; 7] = [
        Box::new(Arc::new(forbidden())),
        Box::new(Arc::new(OpenError::Failed(forbidden()))),
        Box::new(Box::new(forbidden())),
        Box::new(io(Box::new(forbidden()))),
        Box::new(Arc::new(io(Box::new(OpenError::Failed(forbidden()))))),
        Box::new(io(Box::new(io(Box::new(forbidden()))))),
        Box::new(Wrapped(io(Box::new(Wrapped(Arc::new(forbidden())))))),
    ];
    for error in wrapped_refusals {
        assert_eq!(
            reason(&grade_failed_open(&*error, Retries::Left)),
            "WatchNotPermitted",
            "{error:?}"
        );
    }
    let away = UpstreamError::new(UpstreamErrorKind::Unavailable);
    let end = SessionEnd::Failed(away.with_cause(io(Box::new(OpenError::Expired))));
    assert_eq!(grade_session_end(Ended::Session(&end)), EXPIRED);
}

#[test]
fn an_error_of_an_unknown_kind_is_told_in_fixed_words() {
    let error = Wrapped(std::io::Error::other("canary 10.0.0.1"));
    assert_eq!(grade_failed_open(&error, Retries::Left), Grade::Unchanged);
    assert_eq!(grade_failed_open(&error, Retries::UsedUp), watch_error(UNKNOWN));
}

#[test]
fn no_word_of_the_server_gets_into_a_message() {
    for kind in kinds() {
        let error = UpstreamError::new(kind).with_cause("canary: dial tcp 10.0.0.1:6443, request 4711");
        let ended = grade_session_end(Ended::Session(&SessionEnd::Failed(error.clone())));
        for grade in [ended, grade_failed_open(&error, Retries::UsedUp)] {
            let Grade::Blocked(blockage) = grade else {
                panic!("{error:?}: {grade:?}")
            };
            let message = blockage.message();
            assert!(
                !message.is_empty() && !message.contains("canary") && !message.contains("4711"),
                "{message}"
            );
        }
    }
}

#[test]
fn an_end_of_a_feed_is_graded_like_what_caused_it() {
    let forbidden = UpstreamError::forbidden(Some("canary"));
    let away = UpstreamError::new(UpstreamErrorKind::Unavailable);
    for (end, expected) in [
        (FeedEnd::Teardown, ""),
        (FeedEnd::NotOpened(forbidden.clone()), "WatchNotPermitted"),
        (FeedEnd::NotOpened(away.clone()), "WatchError"),
        (FeedEnd::Refused(forbidden), "WatchNotPermitted"),
        (FeedEnd::Unavailable(Some(away)), "WatchError"),
        (FeedEnd::Unavailable(None), "WatchError"),
        (FeedEnd::Fatal(StreamError::internal("too large")), "WatchError"),
        (FeedEnd::Fatal(StreamError::forbidden("no")), "WatchNotPermitted"),
        (
            FeedEnd::Fatal(StreamError::new(ErrorCode::SlowConsumer, "slow")),
            "",
        ),
    ] {
        assert_eq!(reason(&grade_feed_end(&end)), expected, "{end:?}");
    }
}
