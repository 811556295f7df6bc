//! A stopped stream goes on without skipping a deletion, at the bounds of what it may owe.

use std::collections::BTreeMap;

use krm_stream_shared::{Changelog, Progress, ResyncReason, Spelling, Sweep};

use crate::consumer::Consumer;
use crate::frames::{Budget, Collected, Frame, State, Uid};

/// Depths that are powers of two, and that are not.
const DEPTHS: [u64; 5] = [1, 3, 8, 100, 256];

struct Stopped {
    changelog: Changelog<Uid, u64, State>,
    sweep: Sweep<Uid>,
    consumer: Consumer,
}

impl Stopped {
    /// A stream that has taken all in, of a collection of so many objects.
    fn after(queue_depth: u64, objects: u64) -> Self {
        let mut changelog = Changelog::new(usize::try_from(queue_depth).unwrap());
        for n in 0..objects {
            changelog.upsert(Uid::numbered(n), n, State::new(n));
        }
        changelog.reach_boundary();
        let mut stopped = Self {
            changelog,
            sweep: Sweep::new(),
            consumer: Consumer::default(),
        };
        let mut out = Collected::within(Budget::objects(usize::MAX));
        stopped.sweep.begin_cycle(&stopped.changelog, &mut out);
        let _ = stopped.sweep.poll(&stopped.changelog, &mut out);
        for frame in &out.frames {
            stopped.consumer.apply(frame).unwrap();
        }
        assert!(stopped.sweep.is_at_head(&stopped.changelog));
        stopped
    }

    fn upsert(&mut self, n: u64, content: u64) {
        self.changelog
            .upsert(Uid::numbered(n), content, State::new(content));
    }

    fn delete(&mut self, n: u64) {
        assert!(self.changelog.delete(&Uid::numbered(n).0, 0));
    }

    /// Goes on until there is nothing to send.
    fn resume(&mut self) -> Vec<Frame> {
        let mut out = Collected::within(Budget::objects(usize::MAX));
        while self.sweep.poll(&self.changelog, &mut out) == Progress::BetweenCycles {
            self.sweep.begin_cycle(&self.changelog, &mut out);
        }
        for frame in &out.frames {
            self.consumer.apply(frame).unwrap();
        }
        assert!(self.sweep.is_ended() || self.sweep.is_at_head(&self.changelog));
        out.frames
    }

    /// The consumer holds exactly what the changelog holds.
    fn agrees(&self) -> bool {
        let held: BTreeMap<Uid, State> = self
            .changelog
            .objects()
            .map(|object| (object.identity.clone(), *object.payload))
            .collect();
        self.consumer.state == held
    }
}

#[test]
fn nine_changes_missed_are_told_with_the_deletion_among_them() {
    for depth in DEPTHS {
        let mut stream = Stopped::after(depth, 10);
        // The third change deletes u7; u1 changes three times and u2 twice.
        stream.upsert(1, 101);
        stream.upsert(2, 102);
        stream.delete(7);
        for (n, content) in [(1, 104), (3, 105), (20, 106), (1, 107), (2, 108), (4, 109)] {
            stream.upsert(n, content);
        }
        let lines: Vec<String> = stream.resume().iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "deleted u7",
                "modified u3 105 15",
                "added u20 106 16",
                "modified u1 107 17",
                "modified u2 108 18",
                "modified u4 109 19"
            ],
            "depth {depth}: the deletion, and each other object's latest state once"
        );
        assert!(stream.agrees());
    }
}

#[test]
fn as_many_deletions_as_the_queue_holds_are_told_and_one_more_is_another_cycle() {
    for depth in DEPTHS {
        for missed in [depth - 1, depth, depth + 1] {
            // Enough objects that the feed keeps every tombstone: it is the stream's own bound that is met.
            let mut stream = Stopped::after(depth, 2 * depth + 4);
            for n in 0..missed {
                stream.delete(n);
            }
            stream.upsert(missed, 1_000);
            let frames = stream.resume();
            let deletions = frames
                .iter()
                .filter(|frame| matches!(frame, Frame::Deleted(_)))
                .count() as u64;
            if missed <= depth {
                assert_eq!(
                    (deletions, stream.sweep.cycles()),
                    (missed, 1),
                    "depth {depth}, {missed} deletions"
                );
            } else {
                assert_eq!(frames[..2], [Frame::Resync(ResyncReason::Overflow), Frame::Reset]);
                assert_eq!(
                    (deletions, stream.sweep.cycles()),
                    (0, 2),
                    "depth {depth}, {missed} deletions"
                );
            }
            assert!(stream.agrees(), "depth {depth}, {missed} deletions");
        }
    }
}

#[test]
fn as_many_tombstones_as_the_feed_keeps_can_be_missed_and_one_more_is_another_cycle() {
    for depth in DEPTHS {
        for missed in [depth - 1, depth, depth + 1] {
            // One object at a time: the feed keeps as many tombstones as the queue holds. The stream holds none of those
            // that come and go, so that it owes no deletion, but it cannot know that once a tombstone is gone.
            let mut stream = Stopped::after(depth, 0);
            for n in 0..missed {
                stream.upsert(n, n);
                stream.delete(n);
            }
            let frames = stream.resume();
            if missed <= depth {
                assert_eq!(frames, [], "depth {depth}, {missed} objects came and went");
            } else {
                assert_eq!(
                    frames,
                    [Frame::Resync(ResyncReason::Overflow), Frame::Reset, Frame::Synced]
                );
            }
            assert!(stream.agrees());
        }
    }
}

#[test]
fn updates_alone_never_overflow_anything() {
    let mut stream = Stopped::after(1, 50);
    for change in 0..10_000 {
        stream.upsert(change % 50, change);
    }
    let frames = stream.resume();
    assert_eq!(frames.len(), 50, "each object's latest state once");
    assert!(frames.iter().all(|frame| matches!(
        frame,
        Frame::Upsert {
            spelling: Spelling::Modified,
            ..
        }
    )));
    assert!(stream.agrees());
}

#[test]
fn an_overflow_in_a_recovery_is_a_slow_consumer_and_one_after_it_is_not() {
    let overflow = |stream: &mut Stopped, from: u64| {
        for n in from..from + 4 {
            stream.delete(n);
        }
    };
    let mut stream = Stopped::after(3, 40);
    overflow(&mut stream, 0);
    assert!(stream.resume().contains(&Frame::Synced));
    overflow(&mut stream, 4);
    assert!(
        stream.resume().contains(&Frame::Synced),
        "the first recovery was synced"
    );

    // In a recovery that is not synced yet, the queue holds as many as the feed keeps: 40. These come and go.
    overflow(&mut stream, 8);
    let mut out = Collected::within(Budget::objects(0));
    let _ = stream.sweep.poll(&stream.changelog, &mut out);
    stream.sweep.begin_cycle(&stream.changelog, &mut out);
    let _ = stream.sweep.poll(&stream.changelog, &mut out);
    assert_eq!(out.frames, [Frame::Resync(ResyncReason::Overflow), Frame::Reset]);
    assert!(stream.sweep.is_recovering());
    for frame in &out.frames {
        stream.consumer.apply(frame).unwrap();
    }
    for n in 100..200 {
        stream.upsert(n, n);
        stream.delete(n);
    }
    assert_eq!(stream.resume(), [Frame::SlowConsumer]);
    assert!(stream.sweep.is_ended());
    assert_eq!(stream.changelog.size().readers, 0, "nothing is kept for it");
}
