//! What the threads do.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll};

use shuttle::future::block_on;
use shuttle::thread;

use crate::changelog::{Changelog, Identified};
use crate::handover::{Handover, Place, Visible};
use crate::sweep::{Frame, Progress, Sink, Sweep};

/// Which threads there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scene {
    /// Changes, two streams that read all of them, and one that leaves as soon as it can.
    Changes,
    /// The same, with streams that join apart: with the state of an earlier moment.
    Apart,
    /// More deletions than a stream may owe, each after all have looked: nobody needs another cycle.
    Deletions,
    /// The same with streams that rest once they have all there is: they are roused before they would have to owe more.
    Resting,
    /// The last changes alone. Who is woken by the first may find nothing to say, and nothing comes after the last that would
    /// wake a stream which has missed it.
    Last,
}

impl Scene {
    pub(crate) const ALL: [Self; 5] = [
        Self::Changes,
        Self::Apart,
        Self::Deletions,
        Self::Resting,
        Self::Last,
    ];
}

/// A mistake that must be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A stream registers after its look, not under the same hold of the lock.
    RegistersAfterTheLook,
    /// A change does not wake.
    DoesNotWake,
    /// A stream registers, releases the lock, and looks later: it counts as settled before it is.
    LooksLater,
    /// Deletions follow each other without waiting for those who were woken.
    DoesNotWait,
    /// Deletions wait for those who were woken, and let those rest that rest.
    DoesNotRouse,
    /// A stream that may not rest, since something came in between or it was roused, rests all the same.
    RestsAllTheSame,
    /// A stream that leaves stays in the changelog's books.
    LeavesItsCursor,
    /// A stream that joins apart takes in what changed only since it rejoined.
    ForgetsItsPoint,
    /// A stream that need not look while nobody was woken since its look asks for the number of wake-ups after that, not before.
    CountsWakesAfterTheLook,
}

impl Fault {
    pub(crate) const ALL: [Self; 9] = [
        Self::RegistersAfterTheLook,
        Self::DoesNotWake,
        Self::LooksLater,
        Self::DoesNotWait,
        Self::DoesNotRouse,
        Self::RestsAllTheSame,
        Self::LeavesItsCursor,
        Self::ForgetsItsPoint,
        Self::CountsWakesAfterTheLook,
    ];

    pub(crate) fn scene(self) -> Scene {
        match self {
            Self::DoesNotWake | Self::LeavesItsCursor => Scene::Changes,
            Self::RegistersAfterTheLook | Self::CountsWakesAfterTheLook => Scene::Last,
            Self::LooksLater | Self::DoesNotWait => Scene::Deletions,
            Self::DoesNotRouse | Self::RestsAllTheSame => Scene::Resting,
            Self::ForgetsItsPoint => Scene::Apart,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Uid(&'static str);

impl Identified for Uid {
    fn uid(&self) -> &str {
        self.0
    }
}

type Feed = Handover<Changelog<Uid, (), u64>>;
type State = BTreeMap<&'static str, u64>;

/// What a consumer holds. It has no room for more than two objects at once.
#[derive(Default)]
struct Consumer {
    state: State,
    is_synced: bool,
    resyncs: usize,
    room: usize,
    pushed: bool,
}

impl Sink<Uid, u64> for Consumer {
    fn has_room(&self) -> bool {
        self.room > 0
    }

    fn push(&mut self, frame: Frame<'_, Uid, u64>) {
        self.pushed = true;
        match frame {
            Frame::Reset => self.is_synced = false,
            Frame::Upsert {
                identity, payload, ..
            } => {
                self.room -= 1;
                self.state.insert(identity.0, *payload);
            }
            Frame::Deleted { identity } => {
                self.state.remove(identity.0);
            }
            Frame::Synced => self.is_synced = true,
            Frame::Resync(_) | Frame::SlowConsumer => self.resyncs += 1,
        }
    }
}

/// The last change brings it: whoever holds it has been told of all.
const LAST: &str = "last";

impl Scene {
    pub(crate) fn play(self, fault: Option<Fault>) {
        let depth = match self {
            Self::Changes | Self::Apart | Self::Last => 8,
            Self::Deletions | Self::Resting => 1,
        };
        let mut changelog = Changelog::new(depth);
        for (uid, value) in [("a", 1), ("b", 2), ("c", 3)] {
            changelog.upsert(Uid(uid), (), value);
        }
        changelog.reach_boundary();
        let feed = Arc::new(Handover::new(changelog));
        // One of them looks whenever it is polled, the other only when somebody was woken since.
        let streams: Vec<_> = [false, true]
            .into_iter()
            .map(|spares_looks| {
                let feed = Arc::clone(&feed);
                thread::spawn(move || self.follow(&feed, spares_looks, fault))
            })
            .collect();
        let leaver = {
            let feed = Arc::clone(&feed);
            thread::spawn(move || self.visit(&feed, fault))
        };
        self.append(&feed, fault);
        let held: Vec<State> = streams.into_iter().map(|stream| stream.join().unwrap()).collect();
        leaver.join().unwrap();
        let changelog = feed.read();
        let there: State = changelog
            .objects()
            .map(|object| (object.identity.0, *object.payload))
            .collect();
        for state in held {
            assert_eq!(state, there);
        }
        assert_eq!(changelog.size().readers, 0, "all have left");
        assert_eq!(feed.unsettled(), 0, "nobody is awaited");
    }

    fn append(self, feed: &Feed, fault: Option<Fault>) {
        let wake = |woken: bool| {
            if woken || fault != Some(Fault::DoesNotWake) {
                Visible::Yes
            } else {
                Visible::No
            }
        };
        let upsert = |uid, value, woken| {
            feed.change(|changelog| {
                changelog.upsert(Uid(uid), (), value);
                ((), wake(woken))
            });
        };
        let delete = |uid| {
            if self == Self::Resting && fault != Some(Fault::DoesNotRouse) {
                feed.rouse();
            }
            if self.is_paced() && fault != Some(Fault::DoesNotWait) {
                block_on(std::future::poll_fn(|cx| feed.poll_settled(cx)));
            }
            feed.change(|changelog| {
                changelog.delete(uid, ());
                ((), Visible::Yes)
            });
        };
        match self {
            Self::Changes | Self::Apart => {
                upsert("a", 10, true);
                delete("b");
                upsert("b", 20, true);
                delete("c");
                // Who is woken by the first of these may find nothing to say.
                upsert("d", 30, true);
                delete("d");
                upsert(LAST, 99, false);
            }
            Self::Deletions => {
                for uid in ["a", "b", "c"] {
                    delete(uid);
                }
                upsert(LAST, 99, true);
            }
            Self::Resting => {
                for uid in ["a", "b", "c"] {
                    delete(uid);
                }
                upsert(LAST, 99, true);
                // No stream rests for ever.
                feed.rouse();
            }
            Self::Last => {
                upsert("d", 30, true);
                delete("d");
                upsert(LAST, 99, false);
            }
        }
    }

    /// Whether streams owe no more than they may: what changes waits for them.
    fn is_paced(self) -> bool {
        match self {
            Self::Deletions | Self::Resting => true,
            Self::Changes | Self::Apart | Self::Last => false,
        }
    }

    /// Reads until it was told of the last change, and says what it holds.
    fn follow(self, feed: &Feed, spares_looks: bool, fault: Option<Fault>) -> State {
        let (place, mut sweep, mut consumer) = (feed.enter(), Sweep::new(), Consumer::default());
        let apart = self.join(feed, &mut sweep, &mut consumer);
        if let Some(objects) = apart {
            read_apart(feed, fault, objects, &mut sweep, &mut consumer);
        }
        // To look once more after something was pushed, as the others do, makes good for most of what this one misses.
        let waits_at_once = fault == Some(Fault::RegistersAfterTheLook);
        let mut waits_since = None;
        // One of them ends its rest by itself twice; the other is always roused.
        let (mut rests, mut ends_left) = (false, if spares_looks { 0 } else { 2 });
        block_on(std::future::poll_fn(|cx| {
            loop {
                if rests && (feed.rest(place, cx.waker()) || fault == Some(Fault::RestsAllTheSame)) {
                    if ends_left > 0 {
                        (rests, ends_left) = (false, ends_left - 1);
                        cx.waker().wake_by_ref();
                    }
                    return Poll::Pending;
                }
                rests = false;
                if waits_since.is_some_and(|wakes| feed.wakes() == wakes) {
                    return Poll::Pending;
                }
                consumer.room = if waits_at_once { usize::MAX } else { 2 };
                consumer.pushed = false;
                let before = spares_looks.then(|| feed.wakes());
                let progress = look(feed, place, cx, fault, &mut sweep, &mut consumer);
                let wakes = if fault == Some(Fault::CountsWakesAfterTheLook) {
                    before.map(|_| feed.wakes())
                } else {
                    before
                };
                waits_since = wakes.filter(|_| progress == Progress::Idle);
                if progress == Progress::BetweenCycles {
                    sweep.begin_cycle(&feed.read(), &mut consumer);
                    continue;
                }
                if consumer.state.contains_key(LAST) && consumer.is_synced && progress == Progress::Idle {
                    return Poll::Ready(());
                }
                if self == Self::Resting && !consumer.pushed && consumer.is_synced {
                    (rests, waits_since) = (true, None);
                    continue;
                }
                if !consumer.pushed || (waits_at_once && progress == Progress::Idle) {
                    return Poll::Pending;
                }
            }
        }));
        if self.is_paced() {
            assert_eq!(consumer.resyncs, 0, "it kept up");
        }
        if fault != Some(Fault::LeavesItsCursor) {
            sweep.leave(&feed.read());
        }
        feed.leave(place);
        consumer.state
    }

    /// Joins, looks once, and leaves, perhaps just as it is woken.
    fn visit(self, feed: &Feed, fault: Option<Fault>) {
        let (place, mut sweep, mut consumer) = (feed.enter(), Sweep::new(), Consumer::default());
        let _ = self.join(feed, &mut sweep, &mut consumer);
        block_on(std::future::poll_fn(|cx| {
            let _ = look(feed, place, cx, fault, &mut sweep, &mut consumer);
            if self == Self::Resting {
                let _ = feed.rest(place, cx.waker());
            }
            Poll::Ready(())
        }));
        sweep.leave(&feed.read());
        feed.leave(place);
    }

    /// Begins a cycle, apart with what is there now if the scene says so.
    fn join(
        self,
        feed: &Feed,
        sweep: &mut Sweep<Uid>,
        consumer: &mut Consumer,
    ) -> Option<VecDeque<(u32, Uid, u64)>> {
        let changelog = feed.read();
        match self {
            Self::Changes | Self::Deletions | Self::Resting | Self::Last => {
                sweep.begin_cycle(&changelog, consumer);
                None
            }
            Self::Apart => {
                assert!(sweep.begin_cycle_apart(&changelog, changelog.point(), consumer));
                let objects = changelog.objects();
                Some(
                    objects
                        .map(|one| (one.slot, one.identity.clone(), *one.payload))
                        .collect(),
                )
            }
        }
    }
}

fn read_apart(
    feed: &Feed,
    fault: Option<Fault>,
    mut objects: VecDeque<(u32, Uid, u64)>,
    sweep: &mut Sweep<Uid>,
    consumer: &mut Consumer,
) {
    for _ in 0..2 {
        let Some((_, uid, value)) = objects.pop_front() else {
            break;
        };
        thread::yield_now();
        consumer.state.insert(uid.0, value);
    }
    let next_slot = objects.front().map_or(u32::MAX, |(slot, ..)| *slot);
    let changelog = feed.read();
    if fault == Some(Fault::ForgetsItsPoint) {
        sweep.leave(&changelog);
        assert!(sweep.begin_cycle_apart(&changelog, changelog.point(), consumer));
    }
    sweep.rejoin(&changelog, next_slot);
}

fn look(
    feed: &Feed,
    place: Place,
    cx: &Context<'_>,
    fault: Option<Fault>,
    sweep: &mut Sweep<Uid>,
    consumer: &mut Consumer,
) -> Progress {
    match fault {
        Some(Fault::RegistersAfterTheLook) => {
            let progress = sweep.poll(&feed.read(), consumer);
            drop(feed.look(place, cx.waker()));
            progress
        }
        Some(Fault::LooksLater) => {
            drop(feed.look(place, cx.waker()));
            sweep.poll(&feed.read(), consumer)
        }
        Some(
            Fault::DoesNotWake
            | Fault::DoesNotWait
            | Fault::DoesNotRouse
            | Fault::RestsAllTheSame
            | Fault::LeavesItsCursor
            | Fault::ForgetsItsPoint
            | Fault::CountsWakesAfterTheLook,
        )
        | None => sweep.poll(&feed.look(place, cx.waker()), consumer),
    }
}
