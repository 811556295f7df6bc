//! Each row of the continuity rules, as a schedule in virtual time.

use bytes::Bytes;

use super::*;
use crate::{Object, WatchEvent};

/// A feed under test, with a clock that only the test moves.
struct Feed {
    machine: Continuity,
    now: Moment,
}

const ASKED: Duration = Duration::from_secs(400);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn unavailable() -> UpstreamError {
    UpstreamError::new(UpstreamErrorKind::Unavailable)
}

fn object(uid: &str, version: &str) -> Object {
    let text = format!(r#"{{"metadata":{{"uid":"{uid}","name":"n","resourceVersion":"{version}"}}}}"#);
    Object::parse(Bytes::from(text)).unwrap()
}

fn bookmark(version: &str, initial_events_end: bool) -> WatchEvent {
    WatchEvent::Bookmark {
        resource_version: Some(version.into()),
        initial_events_end,
    }
}

impl Feed {
    fn new(ordering: Ordering) -> Self {
        let now = Moment::after_origin(Duration::from_secs(1000));
        Self {
            machine: Continuity::new(ordering, now, 7),
            now,
        }
    }

    /// A feed that reached its boundary at version 100 and lived ten seconds since.
    fn live() -> Self {
        let mut feed = Self::new(Ordering::Strict);
        feed.open();
        feed.boundary("100");
        feed.pass(ms(10_000));
        feed
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    /// Waits until the next request is due, sends it and returns how long that took and where it starts.
    fn request(&mut self) -> (Duration, Start) {
        let (at, start) = self.machine.next_open().expect("a request is due");
        let waited = at.since(self.now);
        self.now = self.now.max(at);
        self.machine.request_sent(self.now);
        (waited, start)
    }

    fn open(&mut self) -> (Duration, Start) {
        let request = self.request();
        self.machine.opened(self.now, Some(ASKED));
        request
    }

    fn boundary(&mut self, version: &str) {
        assert!(matches!(
            self.machine.event(self.now, &bookmark(version, true)),
            Verdict::Boundary
        ));
    }

    fn upsert(&mut self, uid: &str, version: &str) -> Verdict {
        self.machine
            .event(self.now, &WatchEvent::Modified(object(uid, version)))
    }

    fn ended(&mut self, end: SessionEnd) -> Next {
        self.machine.ended(self.now, end)
    }

    fn fail(&mut self, error: UpstreamError) -> Next {
        self.machine.open_failed(self.now, OpenError::Failed(error))
    }
}

fn after(version: &str) -> Start {
    Start::After(version.into())
}

#[track_caller]
fn assert_within(waited: Duration, least: u64) {
    assert!(
        waited >= ms(least) && waited <= ms(least + least / 4),
        "{waited:?} is not about {least} ms"
    );
}

#[test]
fn a_routine_close_is_resumed_at_once_from_the_greatest_version_seen() {
    let mut feed = Feed::live();
    for version in ["500", "530", "470"] {
        assert!(matches!(
            feed.machine.event(feed.now, &bookmark(version, false)),
            Verdict::Ignore
        ));
    }
    assert!(matches!(feed.ended(SessionEnd::Closed), Next::Open));
    assert_eq!(feed.open(), (Duration::ZERO, after("530")));
}

#[test]
fn a_replay_in_a_resumed_session_is_dropped() {
    let mut feed = Feed::live();
    assert!(matches!(feed.upsert("a", "510"), Verdict::Deliver));
    let _ = feed.ended(SessionEnd::Closed);
    feed.open();
    assert!(matches!(feed.upsert("b", "510"), Verdict::Ignore));
    assert!(matches!(feed.upsert("b", "99"), Verdict::Ignore));
    assert!(matches!(feed.upsert("b", "511"), Verdict::Deliver));
}

#[test]
fn a_bookmark_without_a_version_changes_nothing() {
    let mut feed = Feed::live();
    let bare = WatchEvent::Bookmark {
        resource_version: None,
        initial_events_end: false,
    };
    assert!(matches!(feed.machine.event(feed.now, &bare), Verdict::Ignore));
    assert_eq!(feed.machine.cursor().unwrap().as_str(), "100");
}

#[test]
fn the_cursor_starts_at_the_lists_version_whatever_the_items_are() {
    let mut feed = Feed::new(Ordering::Strict);
    feed.open();
    for version in ["150", "30", "90"] {
        assert!(matches!(feed.upsert("u", version), Verdict::Deliver));
    }
    feed.boundary("200");
    feed.pass(ms(6000));
    let _ = feed.ended(SessionEnd::Closed);
    assert_eq!(feed.open().1, after("200"));
}

#[test]
fn a_cut_before_the_boundary_starts_again_from_nothing() {
    let mut feed = Feed::new(Ordering::Strict);
    feed.open();
    let _ = feed.upsert("u", "150");
    assert!(matches!(feed.ended(SessionEnd::Closed), Next::Open));
    let (waited, start) = feed.open();
    assert_eq!(start, Start::Fresh);
    assert_within(waited, 250);
}

#[test]
fn a_second_early_end_in_a_row_ends_the_feed() {
    let mut feed = Feed::new(Ordering::Strict);
    feed.open();
    assert!(matches!(feed.ended(SessionEnd::Closed), Next::Open));
    feed.open();
    feed.boundary("5");
    feed.pass(ms(900));
    assert!(matches!(
        feed.ended(SessionEnd::Closed),
        Next::End(FeedEnd::Unavailable(None))
    ));
}

#[test]
fn an_early_end_is_forgotten_once_a_session_lived() {
    let mut feed = Feed::new(Ordering::Strict);
    for _ in 0..5 {
        feed.open();
        feed.boundary("5");
        feed.pass(ms(100));
        assert!(
            matches!(feed.ended(SessionEnd::Closed), Next::Open),
            "one early end is tolerated"
        );
        assert_eq!(
            feed.open().1,
            after("5"),
            "after the boundary it is resumed like any other"
        );
        feed.pass(ms(5000));
        assert!(matches!(feed.ended(SessionEnd::Expired), Next::Open));
    }
}

#[test]
fn a_session_lives_five_seconds_past_its_boundary_or_headers_or_to_its_asked_timeout() {
    let mut feed = Feed::new(Ordering::Strict);
    assert_eq!(feed.machine.lives_at(), None);
    feed.open();
    feed.pass(ms(60_000));
    assert_eq!(feed.machine.lives_at(), None, "not before its boundary");
    feed.boundary("100");
    assert_eq!(feed.machine.lives_at(), Some(feed.now + ms(5000)));
    feed.pass(ms(10_000));
    let _ = feed.ended(SessionEnd::Closed);
    assert_eq!(feed.machine.lives_at(), None);
    feed.open();
    assert_eq!(feed.machine.lives_at(), Some(feed.now + ms(5000)));

    // One that asked for 3 s may end after 2 s, counted from its request.
    let mut feed = Feed::new(Ordering::Strict);
    feed.request();
    let sent = feed.now;
    feed.pass(ms(300));
    feed.machine.opened(feed.now, Some(ms(3000)));
    feed.boundary("100");
    assert_eq!(feed.machine.lives_at(), Some(sent + ms(2000)));

    let mut feed = Feed::new(Ordering::Strict);
    feed.request();
    feed.machine.opened(feed.now, Some(ms(1000)));
    feed.boundary("100");
    assert_eq!(
        feed.machine.lives_at(),
        Some(feed.now),
        "any end of it is routine"
    );
}

#[test]
fn a_session_that_delivered_has_worked_a_second_after_its_boundary_or_headers() {
    let mut feed = Feed::new(Ordering::Strict);
    feed.open();
    let _ = feed.upsert("u", "90");
    feed.pass(ASKED);
    assert!(!feed.machine.has_worked(feed.now), "not before its boundary");
    feed.boundary("100");
    feed.pass(ms(3000));
    assert!(
        feed.machine.has_worked(feed.now),
        "this one has reached its asked timeout"
    );

    let mut feed = Feed::new(Ordering::Strict);
    feed.open();
    feed.boundary("100");
    feed.pass(ms(3000));
    assert!(
        !feed.machine.has_worked(feed.now),
        "its boundary is what it is to bear out"
    );
    let _ = feed.upsert("u", "101");
    assert!(feed.machine.has_worked(feed.now));
    let _ = feed.ended(SessionEnd::Closed);
    assert!(!feed.machine.has_worked(feed.now), "none is open");
    // One that goes on after a version, with a bookmark.
    feed.open();
    let _ = feed.machine.event(feed.now, &bookmark("110", false));
    feed.pass(ms(999));
    assert!(!feed.machine.has_worked(feed.now));
    feed.pass(ms(1));
    assert!(feed.machine.has_worked(feed.now));
    let _ = feed.ended(SessionEnd::Closed);
    feed.open();
    feed.pass(ms(4999));
    assert!(!feed.machine.has_worked(feed.now), "nothing came");
    feed.pass(ms(1));
    assert!(feed.machine.has_worked(feed.now), "it lived");

    // Without a version to go on after, its end costs continuity.
    let mut feed = Feed::new(Ordering::Lenient);
    feed.open();
    feed.boundary("0");
    let _ = feed.upsert("u", "");
    feed.pass(ms(3000));
    assert!(!feed.machine.has_worked(feed.now));
}

#[test]
fn a_session_that_worked_does_not_end_the_row_of_early_ends() {
    let mut feed = Feed::new(Ordering::Strict);
    feed.open();
    assert!(matches!(feed.ended(SessionEnd::Closed), Next::Open));
    feed.open();
    feed.boundary("100");
    let _ = feed.upsert("u", "101");
    feed.pass(ms(3000));
    assert!(feed.machine.has_worked(feed.now));
    let _ = feed.ended(SessionEnd::Expired);
    feed.open();
    assert!(matches!(
        feed.ended(SessionEnd::Closed),
        Next::End(FeedEnd::Unavailable(None))
    ));
}

#[test]
fn early_ends_for_events_that_cannot_be_used_say_so() {
    let nameless = || WatchEvent::Added(Object::parse(Bytes::from_static(b"{}")).unwrap());
    for (event, why) in [
        (nameless(), "which object"),
        (WatchEvent::SnapshotRestarted, "begins anew"),
    ] {
        let mut feed = Feed::new(Ordering::Strict);
        for is_last in [false, true] {
            feed.open();
            feed.boundary("100");
            let Verdict::Leave(next) = feed.machine.event(feed.now, &event) else {
                panic!("{event:?} was used")
            };
            let Next::End(FeedEnd::Unavailable(Some(error))) = next else {
                assert!(!is_last && matches!(next, Next::Open), "{next:?}");
                continue;
            };
            assert!(is_last);
            assert_eq!(*error.kind(), UpstreamErrorKind::Unreadable);
            let cause = std::error::Error::source(&error).unwrap().to_string();
            assert!(cause.contains(why), "{cause}");
        }
    }
}

#[test]
fn the_row_of_early_ends_is_over_exactly_when_a_session_lived() {
    for (lives, expected) in [(ms(4999), false), (ms(5000), true)] {
        let mut feed = Feed::new(Ordering::Strict);
        feed.open();
        assert!(matches!(feed.ended(SessionEnd::Closed), Next::Open));
        feed.open();
        feed.boundary("100");
        let at = feed.machine.lives_at().unwrap();
        feed.pass(lives);
        assert_eq!(feed.now >= at, expected);
        let _ = feed.ended(SessionEnd::Expired);
        feed.open();
        let tolerated = matches!(feed.ended(SessionEnd::Closed), Next::Open);
        assert_eq!(tolerated, expected);
    }
}

#[test]
fn a_reopen_that_fails_is_retried_three_times_then_a_fresh_cycle_then_the_end() {
    let mut feed = Feed::live();
    let _ = feed.ended(SessionEnd::Closed);
    feed.request();
    for delay in [250, 1000, 4000] {
        assert!(matches!(feed.fail(unavailable()), Next::Open));
        let (waited, start) = feed.request();
        assert_eq!(start, after("100"));
        assert!(waited >= ms(delay) && waited <= ms(delay * 5 / 4), "{waited:?}");
    }
    assert!(matches!(feed.fail(unavailable()), Next::Open));
    assert_eq!(feed.request().1, Start::Fresh);
    assert!(matches!(
        feed.fail(unavailable()),
        Next::End(FeedEnd::Unavailable(Some(_)))
    ));
}

#[test]
fn an_error_after_a_session_that_lived_is_the_first_failure_of_a_new_row() {
    let mut feed = Feed::live();
    for _ in 0..6 {
        assert!(matches!(
            feed.ended(SessionEnd::Failed(unavailable())),
            Next::Open
        ));
        let (waited, start) = feed.open();
        assert_eq!(start, after("100"));
        assert_within(waited, 250);
        // Silent, but alive.
        feed.pass(ms(60_000));
    }
}

#[test]
fn an_api_server_that_fails_again_soon_after_it_came_back_is_not_waited_for_any_longer() {
    let mut feed = Feed::live();
    let _ = feed.ended(SessionEnd::Closed);
    for _ in 0..3 {
        feed.request();
        assert!(matches!(feed.fail(unavailable()), Next::Open));
    }
    feed.open();
    let _ = feed.upsert("a", "101");
    feed.pass(ms(3000));

    let second_outage = feed.now;
    assert!(matches!(feed.ended(SessionEnd::Closed), Next::Open));
    let mut attempts = 1;
    feed.request();
    while let Next::Open = feed.fail(unavailable()) {
        feed.request();
        attempts += 1;
    }
    assert_eq!(attempts, 5, "at once, three retries, a fresh cycle");
    let waited = feed.now.since(second_outage);
    assert!(waited >= ms(5250) && waited <= ms(7200), "{waited:?}");
}

#[test]
fn a_reopen_that_delivers_nothing_and_ends_at_once_counts_as_failed() {
    let mut feed = Feed::live();
    let began = feed.now;
    let mut starts = Vec::new();
    let _ = feed.ended(SessionEnd::Closed);
    while feed.now.since(began) < Duration::from_secs(10) {
        let (_, start) = feed.open();
        starts.push(start.clone());
        if start == Start::Fresh {
            break;
        }
        feed.pass(ms(50));
        assert!(matches!(feed.ended(SessionEnd::Closed), Next::Open));
    }
    assert_eq!(starts.len(), 5, "one reopen, three retries, one fresh list");
    assert_eq!(starts.last(), Some(&Start::Fresh));
}

#[test]
fn a_silent_session_that_reaches_its_asked_timeout_is_routine_however_often() {
    let mut feed = Feed::live();
    for _ in 0..50 {
        assert!(matches!(feed.ended(SessionEnd::Closed), Next::Open));
        let (at, start) = feed.machine.next_open().unwrap();
        assert_eq!((at, start), (feed.now, after("100")));
        feed.machine.request_sent(feed.now);
        feed.machine.opened(feed.now, Some(ms(2000)));
        feed.pass(ms(2000));
    }
}

#[test]
fn one_bookmark_and_a_close_for_ever_is_spaced_up_to_thirty_seconds() {
    let mut feed = Feed::live();
    let _ = feed.ended(SessionEnd::Closed);
    let mut longest = Duration::ZERO;
    for round in 0..20_u64 {
        let (waited, start) = feed.open();
        assert!(matches!(start, Start::After(_)), "nothing is lost");
        longest = longest.max(waited);
        let _ = feed
            .machine
            .event(feed.now, &bookmark(&(101 + round).to_string(), false));
        feed.pass(ms(50));
        assert!(matches!(feed.ended(SessionEnd::Closed), Next::Open));
    }
    assert!(longest >= ms(29_900) && longest <= ms(37_500), "{longest:?}");
}

#[test]
fn expiry_begins_a_fresh_cycle_and_a_row_of_them_is_spaced() {
    let mut feed = Feed::live();
    assert!(matches!(feed.ended(SessionEnd::Expired), Next::Open));
    assert!(feed.machine.cursor().is_none(), "the old version is gone");
    assert_eq!(
        feed.open(),
        (Duration::ZERO, Start::Fresh),
        "the first one is answered at once"
    );
    let mut longest = Duration::ZERO;
    for _ in 0..12 {
        feed.boundary("100");
        feed.pass(ms(6000));
        let _ = feed.ended(SessionEnd::Expired);
        let (waited, start) = feed.open();
        assert_eq!(start, Start::Fresh);
        longest = longest.max(waited);
    }
    assert!(longest >= ms(30_000), "{longest:?}");
    feed.boundary("100");
    feed.pass(ms(60_000));
    let _ = feed.ended(SessionEnd::Expired);
    assert_eq!(
        feed.open().0,
        Duration::ZERO,
        "a row of them ends after a minute without one"
    );
}

#[test]
fn expiry_two_seconds_after_each_boundary_is_spaced_up_to_thirty_seconds() {
    let mut feed = Feed::live();
    let _ = feed.ended(SessionEnd::Expired);
    let mut last = Duration::ZERO;
    for _ in 0..14 {
        last = feed.open().0;
        feed.boundary("100");
        feed.pass(ms(2000));
        assert!(matches!(feed.ended(SessionEnd::Expired), Next::Open));
    }
    assert!(last >= ms(27_000), "{last:?}");
}

#[test]
fn expiry_at_a_reopen_is_expiry() {
    let mut feed = Feed::live();
    let _ = feed.ended(SessionEnd::Closed);
    feed.request();
    assert!(matches!(
        feed.machine.open_failed(feed.now, OpenError::Expired),
        Next::Open
    ));
    assert_eq!(feed.open().1, Start::Fresh);
}

#[test]
fn a_partial_object_begins_a_new_cycle_and_a_second_at_once_ends_the_feed() {
    let partial = WatchEvent::Modified(Object::parse(Bytes::from_static(b"{\"metadata\":{}}")).unwrap());
    let mut feed = Feed::live();
    assert!(matches!(
        feed.machine.event(feed.now, &partial),
        Verdict::Leave(Next::Open)
    ));
    assert_eq!(feed.open().1, Start::Fresh);
    assert!(
        matches!(feed.machine.event(feed.now, &partial), Verdict::Leave(Next::Open)),
        "one early end is tolerated"
    );
    feed.open();
    assert!(matches!(
        feed.machine.event(feed.now, &partial),
        Verdict::Leave(Next::End(FeedEnd::Unavailable(Some(_))))
    ));
}

#[test]
fn a_first_opening_that_fails_is_not_repeated() {
    for kind in [
        UpstreamErrorKind::Unavailable,
        UpstreamErrorKind::Forbidden { message: None },
        UpstreamErrorKind::NotFound,
    ] {
        let mut feed = Feed::new(Ordering::Strict);
        feed.request();
        assert!(matches!(
            feed.fail(UpstreamError::new(kind)),
            Next::End(FeedEnd::NotOpened(_))
        ));
    }
    let mut feed = Feed::new(Ordering::Strict);
    feed.request();
    let next = feed.machine.open_failed(feed.now, OpenError::Expired);
    assert!(matches!(next, Next::End(FeedEnd::NotOpened(_))));
}

#[test]
fn what_the_server_says_of_our_right_ends_an_open_feed_for_each_stream_by_itself() {
    for kind in [
        UpstreamErrorKind::Forbidden { message: None },
        UpstreamErrorKind::Unauthenticated,
        UpstreamErrorKind::NotFound,
        UpstreamErrorKind::Rejected,
    ] {
        let mut feed = Feed::live();
        let end = SessionEnd::Failed(UpstreamError::new(kind.clone()));
        assert!(
            matches!(feed.ended(end), Next::End(FeedEnd::Refused(_))),
            "{kind:?} in the stream"
        );
        let mut feed = Feed::live();
        let _ = feed.ended(SessionEnd::Closed);
        feed.request();
        assert!(
            matches!(
                feed.fail(UpstreamError::new(kind.clone())),
                Next::End(FeedEnd::Refused(_))
            ),
            "{kind:?}"
        );
    }
}

#[test]
fn what_cannot_be_read_ends_the_feed_for_all() {
    for kind in [
        UpstreamErrorKind::LineTooLong { limit: 10 },
        UpstreamErrorKind::Unreadable,
        UpstreamErrorKind::OutOfScope,
    ] {
        let mut feed = Feed::live();
        let next = feed.ended(SessionEnd::Failed(UpstreamError::new(kind)));
        assert!(matches!(next, Next::End(FeedEnd::Fatal(error)) if error.is_terminal()));
    }
}

#[test]
fn an_error_in_the_stream_keeps_the_version_and_honours_the_hint_up_to_its_cap() {
    for (hint, least, most) in [(7, 7000, 7000), (0, 250, 313), (999_999, 30_000, 30_000)] {
        let mut feed = Feed::live();
        let error = unavailable().with_retry_after(Some(Duration::from_secs(hint)));
        assert!(matches!(feed.ended(SessionEnd::Failed(error)), Next::Open));
        let (waited, start) = feed.open();
        assert_eq!(start, after("100"));
        assert!(
            waited >= ms(least) && waited <= ms(most),
            "{waited:?} for a hint of {hint} s"
        );
    }
}

#[test]
fn a_version_that_is_too_large_is_left_aside_after_the_hint() {
    let mut feed = Feed::live();
    let _ = feed.ended(SessionEnd::Closed);
    feed.request();
    let error = UpstreamError::new(UpstreamErrorKind::VersionTooLarge).with_retry_after(Some(ms(3000)));
    assert!(matches!(feed.fail(error.clone()), Next::Open));
    assert_eq!(feed.open(), (ms(3000), Start::Fresh));
    feed.boundary("90");
    feed.pass(ms(7000));
    assert!(matches!(feed.ended(SessionEnd::Failed(error)), Next::Open));
    assert_eq!(feed.open().1, Start::Fresh);
}

#[test]
fn a_version_that_stays_too_large_ends_the_feed_with_what_was_said() {
    let too_large = UpstreamError::new(UpstreamErrorKind::VersionTooLarge);
    let mut feed = Feed::live();
    let mut next = feed.ended(SessionEnd::Failed(too_large.clone()));
    let mut attempts = 0;
    while let Next::Open = next {
        attempts += 1;
        // Lists are served, and the watches after them are not.
        feed.open();
        next = feed.ended(SessionEnd::Failed(too_large.clone()));
    }
    assert_eq!(attempts, 4, "three retries, a fresh cycle");
    let Next::End(FeedEnd::Unavailable(Some(error))) = next else {
        panic!("{next:?}")
    };
    assert_eq!(*error.kind(), UpstreamErrorKind::VersionTooLarge);
}

#[test]
fn strict_ordering_ends_at_a_version_that_does_not_order_and_names_the_way_out() {
    for version in ["opaque-alpha", "007", ""] {
        let mut feed = Feed::new(Ordering::Strict);
        feed.open();
        match feed.upsert("u", version) {
            Verdict::Leave(Next::End(FeedEnd::Fatal(error))) => assert!(error.message().contains("lenient")),
            other => panic!("{other:?}"),
        }
    }
    let mut feed = Feed::new(Ordering::Strict);
    feed.open();
    let without = Object::parse(Bytes::from_static(
        b"{\"metadata\":{\"uid\":\"u\",\"name\":\"n\"}}",
    ))
    .unwrap();
    assert!(matches!(
        feed.machine.event(feed.now, &WatchEvent::Added(without)),
        Verdict::Leave(Next::End(FeedEnd::Fatal(_)))
    ));
}

#[test]
fn lenient_ordering_delivers_everything_and_drops_nothing() {
    let mut feed = Feed::new(Ordering::Lenient);
    feed.open();
    assert!(matches!(feed.upsert("u", "opaque"), Verdict::Deliver));
    feed.boundary("100");
    feed.pass(ms(6000));
    let _ = feed.ended(SessionEnd::Closed);
    feed.open();
    assert!(matches!(feed.upsert("u", "50"), Verdict::Deliver));
    assert!(matches!(feed.upsert("u", "opaque-2"), Verdict::Deliver));
    assert_eq!(feed.machine.cursor().unwrap().as_str(), "opaque-2");
}

#[test]
fn a_snapshot_that_is_read_again_is_said_so_and_after_the_boundary_is_a_loss() {
    let mut feed = Feed::new(Ordering::Strict);
    feed.open();
    assert!(matches!(
        feed.machine.event(feed.now, &WatchEvent::SnapshotRestarted),
        Verdict::RestartSnapshot
    ));
    feed.boundary("7");
    feed.pass(ms(6000));
    assert!(matches!(
        feed.machine.event(feed.now, &WatchEvent::SnapshotRestarted),
        Verdict::Leave(Next::Open)
    ));
    assert_eq!(feed.open().1, Start::Fresh);
}

#[test]
fn an_unknown_line_and_calls_out_of_order_do_nothing() {
    let mut feed = Feed::new(Ordering::Strict);
    feed.machine.opened(feed.now, None);
    assert!(matches!(
        feed.machine.event(feed.now, &WatchEvent::Unknown),
        Verdict::Ignore
    ));
    assert!(feed.machine.next_open().is_some());
    feed.open();
    feed.machine.request_sent(feed.now);
    assert!(matches!(
        feed.machine.event(feed.now, &WatchEvent::Unknown),
        Verdict::Ignore
    ));
    assert!(matches!(
        feed.ended(SessionEnd::Teardown),
        Next::End(FeedEnd::Teardown)
    ));
    assert!(feed.machine.next_open().is_none());
}

#[test]
fn no_session_resumes_after_a_version_that_means_whatever_the_api_server_has() {
    let mut feed = Feed::new(Ordering::Lenient);
    feed.open();
    feed.boundary("100");
    feed.pass(ms(10_000));
    for version in ["", "0"] {
        assert!(matches!(feed.upsert("a", version), Verdict::Deliver));
        feed.machine.event(feed.now, &bookmark(version, false));
    }
    assert_eq!(feed.machine.cursor(), Some(&"100".into()), "not moved");
    for version in ["", "0"] {
        let mut feed = Feed::new(Ordering::Lenient);
        feed.open();
        feed.boundary(version);
        feed.pass(ms(10_000));
        assert!(matches!(feed.ended(SessionEnd::Closed), Next::Open));
        assert_eq!(feed.request().1, Start::Fresh, "after {version:?}");
    }
}
