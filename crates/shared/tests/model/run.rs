//! The naive model and the real types in lock-step, with every rule checked at every step.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use krm_stream_shared as shared;
use krm_stream_shared::{Changelog, Point, Progress, Sink, Snapshot, Spelling, Sweep};

use crate::broken::Rule;
use crate::consumer::{Consumer, check};
use crate::frames::{Budget, Collected, Frame, State, Uid};
use crate::naive::{AtCycleEnd, Bytes, Entry, Feed, Stream};

/// A feed, its streams and their consumers.
pub(crate) struct Run {
    pub(crate) feed: Feed,
    pub(crate) real: Option<Changelog<Uid, u64, State>>,
    pub(crate) boundary: Option<u64>,
    next_id: usize,
    pub(crate) trace: Trace,
    /// What later connections may be handed instead of sweeping.
    bytes: Option<Bytes>,
}

/// One stream, once or twice, and its browser.
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) sweep: Sweep<Uid>,
    pub(crate) consumer: Consumer,
    needs_epoch: u64,
    /// What is left of the shared bytes that the sweep's owner hands on.
    apart: VecDeque<Entry>,
    /// For each slot that waits: the slots that were sent since it does.
    pub(crate) waits: BTreeMap<usize, BTreeSet<usize>>,
}

/// What becomes of the frames.
pub(crate) enum Trace {
    Dropped,
    Printed,
    /// FNV-1a over the lines.
    Digest(u64),
    /// The text of all frames.
    Text(String),
}

impl Trace {
    fn frame(&mut self, frame: &Frame) {
        match self {
            Self::Dropped => {}
            Self::Printed => eprintln!("{frame}"),
            Self::Digest(digest) => {
                for byte in format!("{frame}\n").bytes() {
                    *digest = (*digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
                }
            }
            Self::Text(text) => {
                text.push_str(&frame.to_string());
                text.push('\n');
            }
        }
    }
}

/// The start of an FNV-1a digest.
pub(crate) const DIGEST: u64 = 0xcbf2_9ce4_8422_2325;

impl Run {
    /// Both, compared at every step.
    pub(crate) fn both(queue_depth: usize) -> Self {
        Self {
            real: Some(Changelog::new(queue_depth)),
            ..Self::model(queue_depth, None)
        }
    }

    /// The naive model alone, perhaps with a rule broken.
    pub(crate) fn model(queue_depth: usize, broken: Option<Rule>) -> Self {
        let feed = Feed::new(queue_depth, broken);
        Self {
            feed,
            real: None,
            boundary: None,
            next_id: 0,
            trace: Trace::Dropped,
            bytes: None,
        }
    }

    /// Encodes the snapshot for those who join from now on.
    pub(crate) fn encode(&mut self) {
        if self.feed.continuous {
            self.bytes = Some(Bytes::of(&self.feed));
        }
    }

    pub(crate) fn reach_boundary(&mut self) {
        self.boundary.get_or_insert(self.feed.head);
        self.feed.reach_boundary();
        if let Some(real) = &mut self.real {
            real.reach_boundary();
        }
    }

    pub(crate) fn begin_epoch(&mut self) {
        self.boundary = None;
        self.feed.begin_epoch();
        if let Some(real) = &mut self.real {
            drop(real.begin_epoch());
        }
    }

    pub(crate) fn lose_continuity(&mut self) {
        self.feed.lose_continuity();
        if let Some(real) = &mut self.real {
            real.lose_continuity();
        }
    }

    pub(crate) fn swap(&mut self, state: &[(Uid, State)]) {
        self.feed.swap(state);
        self.boundary = Some(self.feed.head);
        if let Some(real) = &mut self.real {
            let mut next = Snapshot::new();
            for (uid, state) in state {
                next.upsert(uid.clone(), state.resource_version, *state);
            }
            drop(real.swap(next));
        }
    }

    pub(crate) fn upsert(&mut self, uid: &Uid, state: State) -> Result<(), String> {
        self.change(|run| {
            run.feed.upsert(uid, state, false);
            if let Some(real) = &mut run.real {
                real.upsert(uid.clone(), state.resource_version, state);
            }
            Ok(())
        })
    }

    pub(crate) fn upsert_suppressed(&mut self, uid: &Uid, state: State) -> Result<(), String> {
        self.change(|run| {
            let (head, was_live) = (
                run.feed.head,
                run.feed.entries.get(uid).is_some_and(|entry| entry.live),
            );
            run.feed.upsert(uid, state, true);
            check!(
                (run.feed.head == head) == was_live,
                "a suppressed upsert moved, or a new object did not"
            );
            check!(
                run.feed.entries[uid].state == state,
                "a suppressed upsert kept the old state"
            );
            if let Some(real) = &mut run.real {
                let moved = real.upsert_suppressed(uid.clone(), state.resource_version, state);
                check!(moved != was_live, "upsert_suppressed answered {moved}");
            }
            Ok(())
        })
    }

    pub(crate) fn delete(&mut self, uid: &Uid) -> Result<(), String> {
        self.change(|run| {
            let (head, was_live) = (
                run.feed.head,
                run.feed.entries.get(uid).is_some_and(|entry| entry.live),
            );
            run.feed.delete(uid);
            check!(
                (run.feed.head > head) == was_live,
                "the deletion of a dead uid moved, or another did not"
            );
            if let Some(real) = &mut run.real {
                check!(
                    real.delete(uid.0.as_ref(), 0) == was_live,
                    "delete did not answer {was_live}"
                );
            }
            Ok(())
        })
    }

    /// Makes a change and checks that it dropped those tombstones, and only those, that may go.
    fn change(&mut self, change: impl FnOnce(&mut Self) -> Result<(), String>) -> Result<(), String> {
        // A live object that is gone afterwards died at a position after the head.
        let needed_from = |entry: &Entry| if entry.live { u64::MAX } else { entry.position };
        let before: Vec<(Uid, u64)> = self
            .feed
            .entries
            .values()
            .map(|entry| (entry.uid.clone(), needed_from(entry)))
            .collect();
        let (head, taken_in) = (self.feed.head, self.feed.taken_in());
        let kept = self.feed.queue_depth.max(self.feed.most_live);
        change(self)?;
        let after = self.feed.tombstones();
        let reads = self
            .feed
            .readers
            .values()
            .any(|r| r.epoch == self.feed.epoch && !r.waiting);
        let dropped_early = reads
            && before
                .iter()
                .any(|(uid, position)| !self.feed.entries.contains_key(uid) && *position > taken_in);
        check!(
            !dropped_early || after.len() + 1 >= kept,
            "a tombstone was dropped although a stream needs it"
        );
        check!(
            self.feed.head == head || after.iter().all(|entry| entry.position > self.feed.taken_in()),
            "a tombstone is kept although all streams took it in"
        );
        Ok(())
    }

    pub(crate) fn connect(&mut self, with_bytes: bool) -> Result<Connection, String> {
        let mut connection = Connection {
            stream: Stream::new(&mut self.feed, self.next_id),
            sweep: Sweep::new(),
            consumer: Consumer::default(),
            needs_epoch: 0,
            waits: BTreeMap::new(),
            apart: VecDeque::new(),
        };
        self.next_id += 1;
        self.begin_cycle(&mut connection, with_bytes)?;
        Ok(connection)
    }

    /// Begins the real half of a cycle that the model has begun; both read the shared bytes, if they may.
    fn begin_cycle(&mut self, c: &mut Connection, with_bytes: bool) -> Result<(), String> {
        let bytes = self.bytes.clone().filter(|_| with_bytes);
        let usable = bytes.as_ref().filter(|bytes| bytes.may_be_handed_out(&self.feed));
        c.apart.clear();
        if let Some(bytes) = usable {
            c.stream.hand_out(&mut self.feed, bytes);
            c.apart.extend(bytes.objects.iter().cloned());
        }
        let mut out = Collected::within(Budget::objects(0));
        if let Some(real) = &self.real {
            let began = bytes.as_ref().is_some_and(|bytes| {
                let point = Point {
                    epoch: bytes.epoch,
                    position: bytes.position,
                };
                c.sweep.begin_cycle_apart(real, point, &mut out)
            });
            check!(began == usable.is_some(), "a cycle apart began: {began}");
            if !began {
                c.sweep.begin_cycle(real, &mut out);
            }
        }
        self.deliver(c, &out.frames, false)
    }

    pub(crate) fn disconnect(&mut self, connection: &mut Connection) {
        connection.stream.leave(&mut self.feed);
        if let Some(real) = &self.real {
            connection.sweep.leave(real);
        }
    }

    /// Leaves the cycle and begins another, as a stream does whose access was checked in between.
    pub(crate) fn reconnect(&mut self, connection: &mut Connection, with_bytes: bool) -> Result<(), String> {
        if connection.stream.ended {
            return Ok(());
        }
        connection.consumer.leave();
        connection.stream.leave(&mut self.feed);
        connection.stream.begin_cycle(&mut self.feed);
        self.begin_cycle(connection, with_bytes)
    }

    pub(crate) fn poll(
        &mut self,
        c: &mut Connection,
        budget: Budget,
        at_end: AtCycleEnd,
        leaves: bool,
    ) -> Result<(), String> {
        let (was_at_head, was_apart) = (self.is_at_head(c), c.stream.apart.is_some());
        c.stream.poll(&mut self.feed, budget, at_end, leaves)?;
        let out = self.poll_real(c, budget, at_end, leaves)?;
        if !was_apart {
            // What shared bytes hold may have changed or gone since.
            self.check_frames(c, was_at_head, budget)?;
        }
        self.forget_waits(c);
        self.deliver(c, &out, was_apart)?;
        self.check_waits(c)?;
        self.check_synced(c)
    }

    fn poll_real(
        &mut self,
        c: &mut Connection,
        budget: Budget,
        at_end: AtCycleEnd,
        leaves: bool,
    ) -> Result<Vec<Frame>, String> {
        let mut out = Collected::within(budget);
        let Some(real) = &self.real else {
            return Ok(out.frames);
        };
        let mut had_work = c.sweep.has_work(real);
        let mut progress = c.sweep.poll(real, &mut out);
        if progress == Progress::Apart {
            check!(
                !had_work && out.frames.is_empty(),
                "a poll of a stream that is apart"
            );
            while out.has_room()
                && let Some(entry) = c.apart.pop_front()
            {
                out.push(shared::Frame::Upsert {
                    spelling: Spelling::Added,
                    identity: &entry.uid,
                    payload: &entry.state,
                    position: entry.position,
                });
            }
            if leaves || c.apart.is_empty() {
                let next = c
                    .apart
                    .front()
                    .map_or(u32::MAX, |entry| u32::try_from(entry.slot).unwrap());
                c.apart.clear();
                c.sweep.rejoin(real, next);
                had_work = true;
                progress = c.sweep.poll(real, &mut out);
            } else {
                return Ok(out.frames);
            }
        }
        let cycle_is_over = matches!(out.frames.last(), Some(Frame::Resync(_)));
        check!(
            !cycle_is_over || progress == Progress::BetweenCycles,
            "{progress:?} after a resync"
        );
        if cycle_is_over && at_end == AtCycleEnd::Begin {
            c.sweep.begin_cycle(real, &mut out);
            progress = c.sweep.poll(real, &mut out);
        }
        check!(
            had_work || out.frames.is_empty(),
            "has_work said no, yet frames were sent"
        );
        check!(
            c.sweep.has_work(real) == (progress == Progress::Owing),
            "has_work after {progress:?}"
        );
        check!(
            (progress == Progress::Ended) == c.stream.ended,
            "{progress:?}, ended: {}",
            c.stream.ended
        );
        Ok(out.frames)
    }

    /// Gives the consumer its frames; at `synced` it lacks nothing that had to be there and holds no ghost.
    fn deliver(&mut self, c: &mut Connection, real: &[Frame], was_apart: bool) -> Result<(), String> {
        let frames = std::mem::take(&mut c.stream.frames);
        if self.real.is_some() {
            check!(frames == real, "the model sends {frames:?}, the sweep {real:?}");
        }
        for frame in &frames {
            self.trace.frame(frame);
            c.consumer.apply(frame)?;
            match frame {
                Frame::Reset => {
                    c.needs_epoch = self.feed.epoch + u64::from(!self.feed.continuous);
                    c.waits.clear();
                }
                // Bytes may hold what is gone; each of their objects is sent once anyway.
                Frame::Upsert { uid, .. } => match self.feed.entries.get(uid) {
                    Some(entry) if !was_apart => c.sent_slot(entry.slot)?,
                    Some(_) | None => {}
                },
                Frame::Synced => {
                    check!(
                        self.feed.epoch >= c.needs_epoch,
                        "synced from a state whose continuity was lost before the cycle began"
                    );
                    let live = || self.feed.entries.values().filter(|entry| entry.live);
                    let gate = c
                        .stream
                        .begin
                        .max(self.boundary.ok_or("synced before the boundary")?);
                    let alive: BTreeSet<&Uid> = live().map(|entry| &entry.uid).collect();
                    check!(
                        c.consumer.state.keys().all(|uid| alive.contains(uid)),
                        "ghost at synced"
                    );
                    check!(
                        live()
                            .filter(|entry| entry.back <= gate)
                            .all(|entry| c.consumer.state.contains_key(&entry.uid)),
                        "missing at synced"
                    );
                }
                Frame::Deleted(_) | Frame::Resync(_) | Frame::SlowConsumer => {}
            }
        }
        Ok(())
    }

    /// Whether the consumer has to hold exactly what is there.
    pub(crate) fn is_at_head(&self, c: &Connection) -> bool {
        c.stream.is_synced
            && c.stream.apart.is_none()
            && c.stream.due.is_empty()
            && c.stream.deletions.is_empty()
            && c.stream
                .reader(&self.feed)
                .is_some_and(|reader| reader.epoch == self.feed.epoch)
    }
}

impl Connection {
    fn sent_slot(&mut self, sent: usize) -> Result<(), String> {
        self.waits.remove(&sent);
        for (waiting, since) in &mut self.waits {
            check!(
                since.insert(sent),
                "slot {sent} was sent twice while slot {waiting} waited"
            );
        }
        Ok(())
    }
}
