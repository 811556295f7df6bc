//! The states of one stream, step by step.

use krm_stream_protocol::{OpenError, SessionEnd, UpstreamError, UpstreamErrorKind};

use super::*;

fn away() -> OpenError {
    UpstreamError::new(UpstreamErrorKind::Unavailable).into()
}

fn forbidden() -> OpenError {
    UpstreamError::forbidden(None).into()
}

fn streaming() -> WatchStream {
    let mut stream = WatchStream::new();
    stream.opened(&Start::Fresh);
    stream.synced();
    assert_eq!(*stream.state(), StreamState::Streaming);
    stream
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
fn a_blocked_stream_that_opens_afresh_replays() {
    let mut stream = streaming();
    stream.open_failed(&forbidden(), Retries::Left);
    stream.opened(&Start::Fresh);
    assert_eq!(published(&stream), "ResumeReplay");

    let mut stream = WatchStream::blocked(Blockage::new(BlockReason::WatchError, "no such kind"));
    assert_eq!(published(&stream), "WatchError");
    stream.opened(&Start::Fresh);
    assert_eq!(published(&stream), "InitialReplay");
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
fn a_late_boundary_does_not_free_a_blocked_stream() {
    let mut stream = WatchStream::new();
    stream.open_failed(&forbidden(), Retries::UsedUp);
    stream.synced();
    assert_eq!(published(&stream), "WatchNotPermitted");
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
