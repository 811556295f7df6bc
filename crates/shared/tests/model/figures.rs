//! The model's figures for a slow link and for a namespace that is emptied, with the real types.

use std::collections::BTreeMap;

use krm_stream_shared::{Changelog, Progress, Sweep};

use crate::consumer::Consumer;
use crate::frames::{Budget, Collected, Frame, State, Uid};
use crate::random::Random;

/// A changelog and one reader of it.
struct Link {
    changelog: Changelog<Uid, u64, State>,
    sweep: Sweep<Uid>,
    consumer: Consumer,
}

impl Link {
    /// Over a collection that is complete, of objects `u0` on.
    fn to(objects: u64, content: impl Fn(u64) -> u64) -> Self {
        let mut changelog = Changelog::new(256);
        for n in 0..objects {
            changelog.upsert(Uid::numbered(n), 0, State::new(content(n)));
        }
        changelog.reach_boundary();
        let mut link = Self {
            changelog,
            sweep: Sweep::new(),
            consumer: Consumer::default(),
        };
        let mut out = Collected::within(Budget::objects(0));
        link.sweep.begin_cycle(&link.changelog, &mut out);
        link.deliver(&out.frames);
        link
    }

    fn poll(&mut self, objects: usize) -> Vec<Frame> {
        let mut out = Collected::within(Budget::objects(objects));
        if self.sweep.poll(&self.changelog, &mut out) == Progress::BetweenCycles {
            self.sweep.begin_cycle(&self.changelog, &mut out);
            let _ = self.sweep.poll(&self.changelog, &mut out);
        }
        self.deliver(&out.frames);
        out.frames
    }

    fn deliver(&mut self, frames: &[Frame]) {
        for frame in frames {
            self.consumer.apply(frame).unwrap();
        }
    }
}

/// Which objects change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spread {
    RoundRobin,
    Random,
    /// As `Random`, and one object in every second.
    OneHot,
}

/// What a slow link came to. Times are in seconds.
#[derive(Debug, Default, PartialEq, Eq)]
struct SlowLink {
    cycles: u64,
    synced_at: u64,
    objects: usize,
    oldest_after_synced: u64,
    longest_wait_of_u0: u64,
}

/// 1,000 objects, 60 changes a second, over a link that takes 21 of them, for 230 s.
fn slow_link(spread: Spread) -> SlowLink {
    const OBJECTS: u64 = 1_000;
    const CHANGES: u64 = 60;
    let mut r = Random::new(1);
    let mut link = Link::to(OBJECTS, |_| 0);
    let (mut figures, mut last_of_u0) = (SlowLink::default(), 0);
    let u0 = Uid::numbered(0);
    for t in 1..230 {
        for k in 0..CHANGES {
            let n = match spread {
                Spread::OneHot if k == 0 => 0,
                Spread::OneHot | Spread::Random => r.below(1_000) as u64,
                Spread::RoundRobin => (t * CHANGES + k) % OBJECTS,
            };
            link.changelog.upsert(Uid::numbered(n), t, State::new(t));
        }
        for frame in link.poll(21) {
            match frame {
                Frame::Synced if figures.synced_at == 0 => figures.synced_at = t,
                Frame::Upsert { uid, state, .. } => {
                    if state.content > 0 && figures.synced_at > 0 {
                        figures.oldest_after_synced = figures.oldest_after_synced.max(t - state.content);
                    }
                    if uid == u0 {
                        figures.longest_wait_of_u0 = figures.longest_wait_of_u0.max(t - last_of_u0);
                        last_of_u0 = t;
                    }
                }
                Frame::Synced | Frame::Reset | Frame::Deleted(_) | Frame::Resync(_) | Frame::SlowConsumer => {
                }
            }
        }
    }
    SlowLink {
        cycles: link.sweep.cycles(),
        objects: link.consumer.state.len(),
        ..figures
    }
}

#[test]
fn a_slow_link_becomes_synced_once_and_starves_no_object() {
    let figures = SlowLink {
        cycles: 1,
        synced_at: 48,
        objects: 1_000,
        ..SlowLink::default()
    };
    assert_eq!(
        slow_link(Spread::RoundRobin),
        SlowLink {
            oldest_after_synced: 16,
            longest_wait_of_u0: 48,
            ..figures
        }
    );
    let figures = SlowLink {
        oldest_after_synced: 46,
        ..figures
    };
    assert_eq!(
        slow_link(Spread::Random),
        SlowLink {
            longest_wait_of_u0: 89,
            ..figures
        }
    );
    assert_eq!(
        slow_link(Spread::OneHot),
        SlowLink {
            longest_wait_of_u0: 47,
            ..figures
        }
    );
}

#[test]
fn a_namespace_emptied_at_once_drives_no_fast_reader_away() {
    const OBJECTS: u64 = 5_000;
    let mut link = Link::to(OBJECTS, |n| n);
    while !link.sweep.is_synced() {
        let _ = link.poll(1_000);
    }
    for n in 0..OBJECTS {
        link.changelog.delete(&Uid::numbered(n).0, 0);
        if n % 300 == 0 {
            let _ = link.poll(1_000);
        }
    }
    for _ in 0..10 {
        let _ = link.poll(1_000);
    }
    assert_eq!(link.consumer.state, BTreeMap::new());
    assert_eq!((link.sweep.is_ended(), link.sweep.cycles()), (false, 8));
    assert!(link.sweep.is_at_head(&link.changelog));
}

#[test]
fn objects_that_came_and_went_are_forgotten_whatever_their_number() {
    let mut link = Link::to(100, |n| n);
    for n in 0..20_000 {
        link.changelog.upsert(Uid::numbered(1_000 + n), n, State::new(n));
        link.changelog.delete(&Uid::numbered(1_000 + n).0, n);
        if n % 10 == 0 {
            let _ = link.poll(100);
        }
    }
    let size = link.changelog.size();
    assert_eq!((size.live, size.most_live, link.sweep.cycles()), (100, 101, 1));
    assert!(size.slots <= 101 + 10 && size.tombstones <= 10, "{size:?}");
}
