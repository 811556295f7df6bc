//! One stream's reading of feeds: frames in the order of the wire, from its first `reset` to its last error.

mod outbox;
mod wire;

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use krm_stream_projection::Revisions;
use krm_stream_protocol::{Event, EventType, Identity, Moment, Observation, Observing, StreamError};

pub use outbox::Outbox;
use wire::Wire;

use crate::feed::{Chunk, Loan, NEXT_CHUNK_WITHIN, Next, Over};
use crate::feeds::Subscription;
use crate::sweep::{Progress, ResyncReason, Sweep};

/// What one connection remembers, over all its cycles and feeds.
///
/// A reader is driven in cycles: [`begin_cycle`](Self::begin_cycle) with a subscription, then [`poll`](Self::poll) until
/// it says that the next cycle is due or that the stream is over. Whoever drives it checks access in between.
#[derive(Debug)]
pub struct Reader {
    sweep: Sweep<Arc<Identity>>,
    subscription: Option<Subscription>,
    connection: Connection,
    apart: Option<Apart>,
    /// All was sent, and the task waits since then: the feed's wakes before its latest look.
    waits_since: Option<u64>,
}

/// The opening snapshot is read from the bytes that all share who join now.
#[derive(Debug)]
struct Apart {
    loan: Arc<Loan>,
    taken_at: Moment,
}

/// What is the connection's own: its count of events, its revisions, its observations.
#[derive(Debug)]
struct Connection {
    seq: u64,
    revisions: Revisions,
    observing: Observing,
    snapshot: Snapshot,
    /// An object's bytes were gone when they were due; only another session can bring them.
    lacks_bytes: bool,
}

/// What was sent of the present cycle before `synced`.
#[derive(Clone, Copy, Debug, Default)]
struct Snapshot {
    began: Moment,
    objects: u64,
    bytes: u64,
}

/// What a reader says when it is polled.
#[derive(Debug)]
pub enum Step {
    /// There is something in the outbox.
    Wrote,
    /// The cycle is over, and the next one is due. The reader keeps its place at a feed that goes on, until then.
    NextCycle(NextCycle),
    /// The stream ends with this error, which is not written yet.
    End(StreamError),
}

/// Why another cycle begins, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextCycle {
    /// Whether the consumer was told `RESYNC_REQUIRED` already; if not, it is told when the cycle begins, so that a
    /// stream that is refused meanwhile ends with that refusal alone.
    pub is_told: bool,
    /// Whether an isolated stream needs a new feed, under a new number, as its present one has forgotten what it sent.
    pub needs_new_feed: bool,
    /// What the API server refused the feed with, if it did: the next cycle shows whether this stream is refused as well.
    pub refusal: Option<StreamError>,
}

impl Reader {
    /// A reader of a new connection.
    pub fn new(observing: Observing) -> Self {
        Self {
            sweep: Sweep::new(),
            subscription: None,
            apart: None,
            waits_since: None,
            connection: Connection {
                seq: 0,
                revisions: Revisions::new(),
                observing,
                snapshot: Snapshot::default(),
                lacks_bytes: false,
            },
        }
    }

    /// Whether the consumer has a complete snapshot and all that followed.
    pub fn is_at_head(&self) -> bool {
        self.subscription
            .as_ref()
            .is_some_and(|subscription| self.sweep.is_at_head(&subscription.feed().read().changelog))
    }

    /// Whether the task that polled last is still to be woken for what comes, and nothing has come since: the same task need
    /// not poll again. Costs a look at one number.
    pub fn has_nothing_new(&self) -> bool {
        match (&self.subscription, self.waits_since) {
            (Some(subscription), Some(wakes)) => subscription.feed().wakes() == wakes,
            (Some(_) | None, _) => false,
        }
    }

    /// Has `waker` woken no longer by each change, but only when the feed is about to apply more deletions than a stream may
    /// owe. Returns whether the reader may rest; if not, something has come since it was polled last, or it was woken for that
    /// reason, and it has to be polled first.
    ///
    /// For one that is [at the head](Self::is_at_head) and is not to send yet. It keeps resting until it is polled; to be
    /// called again whenever its task is woken.
    pub fn rest(&mut self, waker: &Waker) -> bool {
        self.waits_since = None;
        self.subscription
            .as_ref()
            .is_some_and(|subscription| subscription.feed().rest(subscription.attachment(), waker))
    }

    /// Begins a cycle on this subscription: writes `reset`, after `resync` if the consumer is still to be told.
    pub fn begin_cycle(
        &mut self,
        subscription: Subscription,
        resync: Option<&StreamError>,
        now: Moment,
        outbox: &mut Outbox,
    ) {
        self.leave();
        if let Some(error) = resync {
            self.connection.write_error(error, outbox);
        }
        self.connection.revisions.begin_cycle();
        self.connection.snapshot = Snapshot {
            began: now,
            ..Snapshot::default()
        };
        self.connection.lacks_bytes = false;
        let feed = Arc::clone(subscription.feed());
        self.connection.observing.observe(&Observation::CycleStarted {
            projection: feed.key().projection.clone(),
        });
        let is_first_event = self.connection.seq == 0;
        let state = feed.read();
        let mut wire = Wire::new(&mut self.connection, feed.key(), now, outbox);
        let (lent, given_up) = if is_first_event {
            feed.lend_snapshot(&state, now)
        } else {
            Default::default()
        };
        if let Some((point, loan)) = lent
            && self.sweep.begin_cycle_apart(&state.changelog, point, &mut wire)
        {
            self.apart = Some(Apart { loan, taken_at: now });
        } else {
            self.sweep.begin_cycle(&state.changelog, &mut wire);
        }
        drop(state);
        drop(given_up);
        self.subscription = Some(subscription);
    }

    /// Writes what is owed, as far as the outbox has room; otherwise has the task woken when there is more.
    ///
    /// # Cancel safety
    /// Nothing is lost if the result is dropped: what was written is in the outbox.
    pub fn poll(&mut self, cx: &mut Context<'_>, now: Moment, outbox: &mut Outbox) -> Poll<Step> {
        let Some(subscription) = &self.subscription else {
            return Poll::Ready(Step::NextCycle(NextCycle {
                is_told: false,
                needs_new_feed: false,
                refusal: None,
            }));
        };
        let feed = Arc::clone(subscription.feed());
        // Before the look: whoever is woken in between must look again.
        let wakes = feed.wakes();
        let state = feed.look(subscription.attachment(), cx.waker());
        if let Some(over) = &state.over {
            let step = match over {
                Over::Told(error) => Step::End(error.clone()),
                Over::EachByItself(refusal) => Step::NextCycle(NextCycle {
                    is_told: false,
                    needs_new_feed: true,
                    refusal: refusal.clone(),
                }),
            };
            drop(state);
            self.leave();
            return Poll::Ready(step);
        }
        let mut wire = Wire::new(&mut self.connection, feed.key(), now, outbox);
        let mut progress = self.sweep.poll(&state.changelog, &mut wire);
        let mut state = state;
        let mut left_behind = None;
        if progress == Progress::Apart {
            left_behind = self
                .apart
                .take_if(|apart| apart.loan.is_left_behind(&state.changelog));
            let next_slot = if let Some(apart) = &left_behind {
                // At this look, or more deletions may come before the next one than it may owe.
                apart.loan.next_slot()
            } else {
                drop(state);
                // Encoding and taking note of withheld values is no business of the feed's lock.
                self.waits_since = None;
                let Some(next_slot) = self.read_apart(now, outbox) else {
                    return Poll::Ready(Step::Wrote);
                };
                state = feed.read();
                next_slot
            };
            self.sweep.rejoin(&state.changelog, next_slot);
            wire = Wire::new(&mut self.connection, feed.key(), now, outbox);
            progress = self.sweep.poll(&state.changelog, &mut wire);
        }
        let (resync, wrote) = (wire.resync(), wire.wrote());
        drop(state);
        // Perhaps the last that held a copy: not under the feed's lock.
        drop(left_behind);
        self.waits_since = (progress == Progress::Idle).then_some(wakes);
        self.conclude(progress, resync, wrote)
    }

    /// Writes the next of the shared bytes. Returns the slot from which on nothing was sent, if the stream has left them.
    fn read_apart(&mut self, now: Moment, outbox: &mut Outbox) -> Option<u32> {
        let apart = self.apart.as_mut()?;
        let next = if now.since(apart.taken_at) > NEXT_CHUNK_WITHIN {
            Next::Left {
                next_slot: apart.loan.leave(),
            }
        } else {
            apart.loan.take()
        };
        match next {
            Next::Chunk(chunk) => {
                apart.taken_at = now;
                self.connection.write_chunk(&chunk, outbox);
                None
            }
            Next::Left { next_slot } => {
                self.apart = None;
                Some(next_slot)
            }
        }
    }

    fn conclude(&mut self, progress: Progress, resync: Option<ResyncReason>, wrote: bool) -> Poll<Step> {
        if self.connection.lacks_bytes {
            self.leave();
            return Poll::Ready(Step::NextCycle(NextCycle {
                is_told: false,
                needs_new_feed: true,
                refusal: None,
            }));
        }
        match progress {
            Progress::Ended => {
                self.leave();
                Poll::Ready(Step::End(StreamError::new(
                    krm_stream_protocol::ErrorCode::SlowConsumer,
                    "this connection is too slow for what changes here",
                )))
            }
            Progress::BetweenCycles => {
                let is_isolated = self.subscription.as_ref().is_some_and(Subscription::is_isolated);
                let needs_new_feed = is_isolated && resync == Some(ResyncReason::Overflow);
                if needs_new_feed {
                    self.leave();
                }
                // Otherwise it keeps its place until the next cycle begins: were the last stream to leave, the feed would
                // end between the two, and with it the new session and the spacing of sessions.
                Poll::Ready(Step::NextCycle(NextCycle {
                    is_told: true,
                    needs_new_feed,
                    refusal: None,
                }))
            }
            Progress::Idle | Progress::Owing | Progress::Apart if wrote => Poll::Ready(Step::Wrote),
            // Where more is owed than the outbox has room for, whoever empties it polls again.
            Progress::Idle | Progress::Owing | Progress::Apart => Poll::Pending,
        }
    }

    /// Writes the error that ends the stream. Nothing may be written after it.
    pub fn end(&mut self, error: &StreamError, outbox: &mut Outbox) {
        self.leave();
        let code = error.code();
        self.connection.observing.observe(&if error.is_terminal() {
            Observation::TerminalError { code }
        } else {
            Observation::RetryableError { code }
        });
        self.connection.write_error(error, outbox);
    }

    /// Leaves the feed, if it is on one.
    fn leave(&mut self) {
        (self.apart, self.waits_since) = (None, None);
        if let Some(subscription) = self.subscription.take() {
            self.sweep.leave(&subscription.feed().read().changelog);
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Connection {
    fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    fn write_event(&mut self, event: &Event<'_>, outbox: &mut Outbox) {
        let seq = self.next_seq();
        outbox.write(|out| event.encode(seq, out));
        self.emitted(event.event_type());
    }

    fn write_error(&mut self, error: &StreamError, outbox: &mut Outbox) {
        if error.code() == krm_stream_protocol::ErrorCode::ResyncRequired {
            self.observing.observe(&Observation::ConsumerResync);
        }
        self.write_event(&Event::Error(error), outbox);
    }

    fn write_chunk(&mut self, chunk: &Chunk, outbox: &mut Outbox) {
        for projected in chunk.withheld() {
            self.revisions.advance(projected);
        }
        outbox.hand_on(chunk.bytes());
        self.seq += chunk.objects();
        self.snapshot.objects += chunk.objects();
        self.snapshot.bytes += chunk.bytes().len() as u64;
        self.observing.observe(&Observation::EventEmitted {
            event_type: EventType::Added,
            count: chunk.objects(),
        });
    }

    fn emitted(&self, event_type: EventType) {
        self.observing
            .observe(&Observation::EventEmitted { event_type, count: 1 });
    }
}
