//! The states of one stream, step by step.

use krm_stream_protocol::{OpenError, SessionEnd, UpstreamError, UpstreamErrorKind};

use super::*;

fn away() -> OpenError {
    UpstreamError::new(UpstreamErrorKind::Unavailable).into()
}

fn forbidden() -> OpenError {
    UpstreamError::forbidden(None).into()
}

/// A stream that works, and has for a while.
fn streaming() -> WatchStream {
    let mut stream = WatchStream::new();
    stream.opened(&Start::Fresh);
    stream.synced();
    assert_eq!(*stream.state(), StreamState::Streaming);
    stream.lived();
    assert_eq!(*stream.state(), StreamState::Streaming);
    stream
}

/// A session that has its snapshot and ends right after.
fn open_briefly(stream: &mut WatchStream) {
    stream.opened(&Start::Fresh);
    stream.synced();
    stream.ended(Ended::Session(&SessionEnd::Closed));
}

fn published(stream: &WatchStream) -> &'static str {
    match stream.state() {
        StreamState::Streaming => "Streaming",
        StreamState::Replaying(reason) => reason.as_str(),
        StreamState::Blocked(blockage) => blockage.reason().as_str(),
    }
}

#[test]
fn a_first_snapshot_is_an_initial_replay_until_it_is_complete() {
    let mut stream = WatchStream::new();
    assert_eq!(published(&stream), "InitialReplay");
    stream.opened(&Start::Fresh);
    stream.ended(Ended::Session(&SessionEnd::Closed));
    stream.opened(&Start::Fresh);
    assert_eq!(published(&stream), "InitialReplay");
    stream.synced();
    assert_eq!(published(&stream), "Streaming");
}

#[test]
fn an_expired_version_is_replayed_under_its_own_reason() {
    let mut stream = streaming();
    stream.ended(Ended::Session(&SessionEnd::Closed));
    stream.open_failed(&OpenError::Expired, Retries::Left);
    stream.opened(&Start::Fresh);
    assert_eq!(published(&stream), "ExpiredResourceVersion");
    stream.synced();
    assert_eq!(published(&stream), "Streaming");
}

#[test]
fn a_reopen_that_is_retried_in_place_is_no_news() {
    let mut stream = streaming();
    stream.ended(Ended::Session(&SessionEnd::Closed));
    for _ in 0..3 {
        stream.open_failed(&away(), Retries::Left);
        assert_eq!(published(&stream), "Streaming");
    }
    stream.open_failed(&away(), Retries::UsedUp);
    assert_eq!(published(&stream), "WatchError");
}

#[test]
fn a_session_that_goes_on_from_its_cursor_clears_a_blockage_at_once() {
    let mut stream = streaming();
    let end = SessionEnd::Failed(UpstreamError::new(UpstreamErrorKind::Unavailable));
    stream.ended(Ended::Session(&end));
    assert_eq!(published(&stream), "WatchError");
    stream.opened(&Start::After("7".into()));
    assert_eq!(published(&stream), "Streaming");
}

#[test]
fn a_blocked_stream_stays_so_while_another_attempt_begins_and_streams_at_its_boundary() {
    let mut of_old = streaming();
    of_old.open_failed(&forbidden(), Retries::Left);
    let mut of_new = WatchStream::new();
    of_new.feed_ended(&FeedEnd::NotOpened(UpstreamError::forbidden(None)));
    for mut stream in [of_old, of_new] {
        for _ in 0..3 {
            // A list is served, and the watch after it is refused.
            stream.opened(&Start::Fresh);
            assert_eq!(published(&stream), "WatchNotPermitted");
            stream.feed_ended(&FeedEnd::NotOpened(UpstreamError::forbidden(None)));
            assert_eq!(published(&stream), "WatchNotPermitted");
        }
        stream.opened(&Start::Fresh);
        assert_eq!(published(&stream), "WatchNotPermitted");
        stream.synced();
        assert_eq!(published(&stream), "Streaming");
    }
}

#[test]
fn an_event_that_cannot_be_used_is_a_replay() {
    let mut stream = streaming();
    stream.ended(Ended::UnusableEvent);
    stream.opened(&Start::Fresh);
    assert_eq!(published(&stream), "ResumeReplay");
}

#[test]
fn a_fresh_session_after_the_retries_is_a_replay() {
    let mut stream = streaming();
    stream.opened(&Start::Fresh);
    assert_eq!(published(&stream), "ResumeReplay");
}

#[test]
fn a_second_early_end_in_a_row_blocks() {
    let mut stream = WatchStream::new();
    stream.opened(&Start::Fresh);
    stream.ended(Ended::Session(&SessionEnd::Closed));
    assert_eq!(published(&stream), "InitialReplay");
    stream.opened(&Start::Fresh);
    stream.ended(Ended::Session(&SessionEnd::Closed));
    stream.ended_early_again();
    assert_eq!(published(&stream), "WatchError");
    let mut of_the_feed = streaming();
    of_the_feed.feed_ended(&FeedEnd::Unavailable(None));
    assert_eq!(of_the_feed.state(), stream.state());
}

#[test]
fn after_early_ends_in_a_row_only_a_session_that_lived_is_believed() {
    let mut by_the_feed = streaming();
    by_the_feed.feed_ended(&FeedEnd::Unavailable(None));
    let mut with_an_error = streaming();
    let error = UpstreamError::new(UpstreamErrorKind::Unavailable);
    with_an_error.feed_ended(&FeedEnd::Unavailable(Some(error)));
    let mut in_vain = streaming();
    in_vain.ended(Ended::Session(&SessionEnd::Closed));
    in_vain.ended_early_again();
    let mut before_the_boundary = WatchStream::new();
    before_the_boundary.opened(&Start::Fresh);
    before_the_boundary.ended(Ended::Session(&SessionEnd::Closed));
    before_the_boundary.opened(&Start::Fresh);
    before_the_boundary.feed_ended(&FeedEnd::Unavailable(None));
    for mut stream in [by_the_feed, with_an_error, in_vain, before_the_boundary] {
        for _ in 0..3 {
            open_briefly(&mut stream);
            assert_eq!(published(&stream), "WatchError");
            stream.opened(&Start::After("7".into()));
            assert_eq!(published(&stream), "WatchError");
            stream.ended(Ended::Session(&SessionEnd::Expired));
            assert_eq!(
                published(&stream),
                "WatchError",
                "that it answers is no proof either"
            );
        }
        stream.opened(&Start::Fresh);
        stream.synced();
        stream.lived();
        assert_eq!(published(&stream), "Streaming");
        // And now it is believed again.
        stream.open_failed(&away(), Retries::UsedUp);
        stream.opened(&Start::Fresh);
        stream.synced();
        assert_eq!(published(&stream), "Streaming");
    }
}

#[test]
fn early_ends_in_a_row_are_told_in_the_words_of_the_api_server_if_there_are_any() {
    let failed = SessionEnd::Failed(UpstreamError::new(UpstreamErrorKind::Unavailable));
    let mut stream = streaming();
    stream.ended(Ended::Session(&failed));
    let said = stream.state().clone();
    stream.opened(&Start::After("7".into()));
    stream.ended(Ended::Session(&failed));
    stream.ended_early_again();
    assert_eq!(*stream.state(), said);
    stream.opened(&Start::After("7".into()));
    stream.ended(Ended::Session(&SessionEnd::Closed));
    stream.ended_early_again();
    assert_ne!(*stream.state(), said, "nothing was said of this one");
}

#[test]
fn an_opening_that_failed_for_good_is_over_at_the_next_boundary() {
    for kind in [
        UpstreamErrorKind::Unavailable,
        UpstreamErrorKind::NotFound,
        UpstreamErrorKind::Forbidden { message: None },
    ] {
        let mut stream = streaming();
        stream.ended(Ended::Session(&SessionEnd::Closed));
        stream.feed_ended(&FeedEnd::Unavailable(Some(UpstreamError::new(kind))));
        assert_ne!(published(&stream), "Streaming");
        stream.opened(&Start::Fresh);
        stream.synced();
        assert_eq!(published(&stream), "Streaming");
    }
}

#[test]
fn a_recovery_that_does_not_last_is_believed_once() {
    let failed = SessionEnd::Failed(UpstreamError::new(UpstreamErrorKind::Unavailable));
    let mut stream = streaming();
    // Accepted and refused in the stream, again and again.
    stream.ended(Ended::Session(&failed));
    stream.opened(&Start::After("7".into()));
    assert_eq!(published(&stream), "Streaming");
    for _ in 0..3 {
        stream.ended(Ended::Session(&failed));
        stream.opened(&Start::After("7".into()));
        assert_eq!(published(&stream), "WatchError");
    }
    stream.lived();
    assert_eq!(published(&stream), "Streaming");
}

#[test]
fn a_version_that_expires_after_each_boundary_is_replayed_without_a_break() {
    let mut stream = streaming();
    stream.ended(Ended::Session(&SessionEnd::Expired));
    stream.opened(&Start::Fresh);
    stream.synced();
    assert_eq!(published(&stream), "Streaming");
    for _ in 0..3 {
        stream.ended(Ended::Session(&SessionEnd::Expired));
        stream.opened(&Start::Fresh);
        stream.synced();
        assert_eq!(published(&stream), "ExpiredResourceVersion");
    }
    stream.lived();
    assert_eq!(published(&stream), "Streaming");
}

#[test]
fn a_blocked_stream_whose_version_has_expired_meanwhile_replays() {
    let mut stream = streaming();
    let failed = SessionEnd::Failed(UpstreamError::new(UpstreamErrorKind::Unavailable));
    stream.ended(Ended::Session(&failed));
    stream.open_failed(&OpenError::Expired, Retries::Left);
    assert_eq!(published(&stream), "ExpiredResourceVersion");
    stream.opened(&Start::Fresh);
    stream.synced();
    assert_eq!(published(&stream), "Streaming", "all of it is one recovery");
}

#[test]
fn a_late_boundary_does_not_free_a_blocked_stream() {
    let mut stream = WatchStream::new();
    stream.open_failed(&forbidden(), Retries::UsedUp);
    stream.synced();
    assert_eq!(published(&stream), "WatchNotPermitted");
}

#[test]
fn that_a_session_lived_which_has_ended_since_changes_nothing() {
    type Ends = fn(&mut WatchStream, &SessionEnd);
    let failed = SessionEnd::Failed(UpstreamError::new(UpstreamErrorKind::Unavailable));
    let ends: [Ends; 5] = [
        |stream, failed| stream.ended(Ended::Session(failed)),
        |stream, _| stream.ended(Ended::Session(&SessionEnd::Expired)),
        |stream, _| stream.open_failed(&forbidden(), Retries::Left),
        |stream, _| stream.ended_early_again(),
        |stream, _| stream.feed_ended(&FeedEnd::Unavailable(None)),
    ];
    for end in ends {
        let mut stream = streaming();
        end(&mut stream, &failed);
        let before = stream.clone();
        stream.lived();
        assert_eq!(stream, before);
        assert_ne!(published(&stream), "Streaming");
    }
    let mut none_was_open = WatchStream::new();
    none_was_open.lived();
    assert_eq!(published(&none_was_open), "InitialReplay");
}

#[test]
fn a_stream_that_was_not_believed_is_freed_by_a_session_that_worked_until_it_ended() {
    let mut stream = streaming();
    stream.feed_ended(&FeedEnd::Unavailable(None));
    for _ in 0..3 {
        open_briefly(&mut stream);
        assert_eq!(published(&stream), "WatchError");
    }
    stream.opened(&Start::After("7".into()));
    stream.lived();
    stream.ended(Ended::Session(&SessionEnd::Closed));
    assert_eq!(published(&stream), "Streaming");
}

#[test]
fn early_ends_for_events_that_cannot_be_used_are_told_as_such() {
    let unreadable = UpstreamError::new(UpstreamErrorKind::Unreadable);
    let mut stream = streaming();
    stream.feed_ended(&FeedEnd::Unavailable(Some(unreadable)));
    let StreamState::Blocked(trouble) = stream.state() else {
        panic!("{stream:?}")
    };
    assert!(trouble.message().contains("cannot be read"), "{trouble:?}");
}

/// Forbidden, then the right is granted, then the API server is away: the old trouble is not told any longer.
#[test]
fn the_latest_trouble_is_the_one_that_is_told() {
    let mut stream = WatchStream::new();
    stream.open_failed(&forbidden(), Retries::UsedUp);
    let StreamState::Blocked(refusal) = stream.state().clone() else {
        panic!("{stream:?}")
    };
    stream.open_failed(&away(), Retries::UsedUp);
    let StreamState::Blocked(trouble) = stream.state() else {
        panic!("{stream:?}")
    };
    assert_eq!(trouble.reason(), BlockReason::WatchError);
    assert_ne!(trouble.message(), refusal.message());
    assert!(
        trouble.message().contains("cannot be reached"),
        "{}",
        trouble.message()
    );
}
