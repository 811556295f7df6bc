//! The shared bytes of a snapshot: what they hold, who gets them, and when they are gone.

use krm_stream_projection::Revisions;

use super::*;
use crate::feed::state::tests::upsert_of;
use crate::feed::state::{Change, FeedState};
use crate::settings::FeedSettings;

const SECRET: &str = "canary";

fn upsert(n: usize, version: u64, size: usize) -> Change {
    let (value, pad) = (format!("{SECRET}{version}"), "x".repeat(size));
    let text = format!(
        r#"{{"kind":"Secret","apiVersion":"v1","metadata":{{"uid":"u{n}","name":"n{n}","resourceVersion":"{version}","labels":{{"pad":"{pad}"}}}},"data":{{"k":"{value}"}}}}"#
    );
    upsert_of("secrets", text)
}

/// A warm feed of so many Secrets of about this size.
fn warm(objects: usize, size: usize) -> FeedState {
    let mut state = FeedState::new(&FeedSettings::default(), false);
    for n in 0..objects {
        state.apply(upsert(n, 1, size));
    }
    state.reach_boundary();
    state
}

fn at(milliseconds: u64) -> Moment {
    Moment::after_origin(Duration::from_millis(milliseconds))
}

/// The second of two who join at once.
fn lend(bytes: &SnapshotBytes, state: &FeedState, now: Moment) -> (Point, Arc<Loan>) {
    let _ = bytes.lend(&state.changelog, now);
    bytes.lend(&state.changelog, now).0.unwrap()
}

fn take(loan: &Loan) -> Arc<Chunk> {
    match loan.take() {
        Next::Chunk(chunk) => chunk,
        Next::Left { next_slot } => panic!("left at {next_slot}"),
    }
}

#[test]
fn they_are_the_frames_of_a_first_cycle_in_chunks() {
    let state = warm(100, 3_000);
    let bytes = SnapshotBytes::default();
    let (point, loan) = lend(&bytes, &state, at(0));
    assert_eq!(point, state.changelog.point());

    let (mut expected, mut revisions) = (Vec::new(), Revisions::new());
    revisions.begin_cycle();
    for (seq, object) in (2..).zip(state.changelog.objects()) {
        let projected = object.payload.shared().unwrap();
        projected.write_prefix(seq, krm_stream_projection::Upsert::Added, &mut expected);
        expected.extend_from_slice(projected.tail());
        revisions.write_redacted(&projected, &mut expected);
    }

    let (mut wire, mut objects, mut withheld) = (Vec::new(), 0, 0);
    loop {
        match loan.take() {
            Next::Chunk(chunk) => {
                assert!(chunk.bytes().len() <= 64 * 1024 && chunk.bytes().ends_with(b"\n\n"));
                wire.extend_from_slice(chunk.bytes());
                objects += chunk.objects();
                withheld += chunk.withheld().len();
            }
            Next::Left { next_slot } => {
                assert_eq!(next_slot, u32::MAX);
                break;
            }
        }
    }
    assert_eq!((objects, withheld), (100, 100));
    assert!(wire == expected, "other bytes than a sweep would send");
    assert!(!String::from_utf8(wire).unwrap().contains(SECRET));
}

#[test]
fn all_who_join_near_take_the_same_allocation_and_an_object_of_any_size_is_one_chunk() {
    let mut state = warm(40, 100_000);
    let bytes = SnapshotBytes::default();
    assert!(
        bytes.lend(&state.changelog, at(0)).0.is_none(),
        "a lone join sweeps"
    );
    let (first_point, first) = bytes.lend(&state.changelog, at(500)).0.unwrap();
    for n in 0..16 {
        state.apply(upsert(n, 2, 100));
    }
    let (second_point, second) = bytes.lend(&state.changelog, at(1_499)).0.unwrap();
    assert_eq!(first_point, second_point);
    for _ in 0..40 {
        let (one, other) = (take(&first), take(&second));
        assert_eq!((one.objects(), one.bytes().as_ptr()), (1, other.bytes().as_ptr()));
    }
    state.apply(upsert(30, 2, 100));
    let (third_point, third) = bytes.lend(&state.changelog, at(1_500)).0.unwrap();
    assert_eq!(third_point, state.changelog.point(), "too much has changed");
    assert_eq!(take(&third).objects(), 16, "the small ones fit into one");
}

#[test]
fn they_are_not_handed_out_past_a_dropped_tombstone_nor_without_continuity_nor_before_the_boundary() {
    let bytes = SnapshotBytes::default();
    let mut cold = FeedState::new(&FeedSettings::default(), false);
    cold.apply(upsert(1, 1, 10));
    for _ in 0..3 {
        assert!(bytes.lend(&cold.changelog, at(0)).0.is_none());
    }
    let mut state = warm(40, 10);
    let (point, _) = lend(&bytes, &state, at(0));
    state.changelog.delete("u3", None);
    // Nobody reads, so the tombstone is dropped at once.
    assert!(state.changelog.trimmed() > point.position);
    let (next, _) = bytes.lend(&state.changelog, at(1)).0.unwrap();
    assert_ne!(next, point);
    state.begin_snapshot();
    assert!(bytes.lend(&state.changelog, at(2)).0.is_none());
}

#[test]
fn they_go_when_joins_cease_and_what_is_read_goes_chunk_by_chunk() {
    let state = warm(1_000, 1_000);
    let bytes = SnapshotBytes::default();
    let (_, loan) = lend(&bytes, &state, at(0));
    let first = Arc::downgrade(&take(&loan));
    let stuck = bytes.lend(&state.changelog, at(0)).0.unwrap().1;
    assert!(bytes.tick(), "there was a join since the last time");
    assert!(first.upgrade().is_some());
    take(&loan);
    assert!(bytes.tick(), "one goes on, the other one is made to leave");
    assert!(first.upgrade().is_none());
    assert!(matches!(stuck.take(), Next::Left { next_slot: 0 }));
    let next = loan.leave();
    assert!(next > 50 && next < 1_000, "{next}");
    assert!(matches!(loan.take(), Next::Left { next_slot } if next_slot == next));
    assert!(!bytes.tick(), "nothing is left");
    assert!(
        bytes.lend(&state.changelog, at(1_000)).0.is_none(),
        "another lone join"
    );
}

#[test]
fn storm_after_storm_on_a_scope_that_changes_keeps_two_copies_at_most_and_readers_have_some_seconds() {
    let mut state = warm(1_000, 1_000);
    let bytes = SnapshotBytes::default();
    let (mut readers, mut firsts) = (Vec::new(), Vec::new());
    for storm in 0..10 {
        for n in 0..200 {
            state.apply(upsert(n, storm + 2, 1_000));
        }
        let (_, loan) = lend(&bytes, &state, at(storm * 1_000));
        firsts.push(Arc::downgrade(&take(&loan)));
        readers.push(loan);
        bytes.tick();
        let reading = readers
            .iter()
            .filter(|loan| matches!(loan.take(), Next::Chunk(_)));
        assert_eq!(reading.count() as u64, COPIES.min(storm + 1));
    }
    let [second_to_last, last] = [&readers[8], &readers[9]];
    // The first tick without a join lets go of the bytes, and one more for each second that readers are given.
    for _ in 0..KEPT_TICKS - 1 {
        assert!(bytes.tick());
        assert!(second_to_last.is_read() && last.is_read());
        second_to_last.take();
        last.take();
    }
    assert!(!bytes.tick());
    assert!(readers.iter().all(|loan| !loan.is_read()));
    assert!(firsts.iter().all(|first| first.upgrade().is_none()));
}

#[test]
fn a_copy_is_lent_and_read_only_while_few_objects_have_left_since() {
    let mut state = warm(4_000, 10);
    let bytes = SnapshotBytes::default();
    // Somebody who has to be told of deletions.
    state.changelog.readers().enter(state.changelog.head());
    let (point, loan) = lend(&bytes, &state, at(0));
    for n in 0..64 {
        state.changelog.delete(&format!("u{n}"), None);
    }
    let near = bytes.lend(&state.changelog, at(1)).0.unwrap().0;
    assert_eq!(near, point);
    state.changelog.delete("u64", None);
    assert_ne!(bytes.lend(&state.changelog, at(1)).0.unwrap().0, point);
    for n in 65..128 {
        state.changelog.delete(&format!("u{n}"), None);
    }
    assert!(!loan.is_left_behind(&state.changelog));
    state.changelog.delete("u128", None);
    assert!(loan.is_left_behind(&state.changelog));
}

#[test]
fn a_reader_that_goes_away_leaves_nothing_and_a_long_list_is_freed_without_a_deep_stack() {
    let state = warm(1_000, 40_000);
    let bytes = SnapshotBytes::default();
    let (_, loan) = lend(&bytes, &state, at(0));
    let stays = bytes.lend(&state.changelog, at(0)).0.unwrap().1;
    while let Next::Chunk(_) = loan.take() {}
    let free = move || drop((stays, bytes));
    std::thread::Builder::new()
        .stack_size(64 * 1024)
        .spawn(free)
        .unwrap()
        .join()
        .unwrap();
    assert!(!loan.is_read());
}
