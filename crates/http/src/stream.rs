//! One stream: from the request to the last event, chunk by chunk.
//!
//! # Policy
//! - Headers are out before anything is asked; every refusal is one error event.
//! - Each cycle takes the same steps before it reads; see `gateway::cycle`.
//! - While a check of an open stream runs, nothing of it passes, not even what was written before. Where it ends the stream,
//!   what was not handed out is dropped, and the error takes its place. A stream that ends anyway is not checked: where a
//!   check is due, what was not handed out is dropped all the same.
//! - Heartbeats go out between frames only: when nothing else waits. They run through checks and openings too.
//! - A terminal error is the last event. A non-terminal one other than `RESYNC_REQUIRED` ends the connection as well.

mod attending;
mod checking;
mod cut;
mod ending;
mod pace;
mod piece;
mod resolving;
mod span;
mod stage;
mod timer;
mod turning;

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use http::request::Parts;
use krm_stream_protocol::{Moment, Observation, StreamError, frame};
use krm_stream_shared::{Outbox, Reader, Step};
use tokio::task::coop;
use tokio::time::Instant;

use crate::gateway::{Host, Place, Request};
use crate::settings::CHUNK_BYTES;
use checking::{Standing, Timed};
use pace::Pace;
use piece::piece_of;
use resolving::resolve;
use span::StreamSpan;
use stage::{Ending, Stage};
use timer::Timer;
use turning::enter;

/// The driver of one stream. Polled by whatever transport the events go to; dropped when that is gone.
pub(crate) struct GatewayStream {
    host: Arc<Host>,
    stage: Stage,
    standing: Standing,
    timed: Timed,
    pace: Pace,
    reader: Reader,
    outbox: Outbox,
    /// What is left of a chunk that is too large to be handed out as a whole: a check must be able to hold it up.
    rest: Bytes,
    timer: Timer,
    /// The task that is woken for all that may come. Kept over deliveries; see [`waits`](Self::waits).
    waiting: Option<Waker>,
    /// When something was last handed out, or the stream began.
    delivered_at: Instant,
    /// Whether what was handed out ends where an event ends.
    is_between_events: bool,
    /// When the API server last refused a feed that this stream was on.
    refused_at: Option<Moment>,
    span: StreamSpan,
    /// Dropped last: until then the stream is there. A stream that is refused at once has none.
    place: Option<Place>,
}

/// No event holds a blank line.
const END_OF_EVENT: &[u8] = b"\n\n";

impl GatewayStream {
    /// The stream of an HTTP request.
    pub(crate) fn resolve(host: Arc<Host>, request: Parts) -> Self {
        match Place::register(&host) {
            Ok(place) => {
                let stage = Stage::Resolving(Box::pin(resolve(Arc::clone(&host), request)));
                Self::new(host, stage, Some(place))
            }
            Err(error) => Self::refused(host, error),
        }
    }

    /// The stream of a known caller, who asks for what the scope policy admits.
    pub(crate) fn of_caller(host: Arc<Host>, request: Request) -> Self {
        let place = match Place::register(&host) {
            Ok(place) => place,
            Err(error) => return Self::refused(host, error),
        };
        match enter(&host, &place, request) {
            Ok(stage) => Self::new(host, stage, Some(place)),
            Err(error) => Self::refused(host, error),
        }
    }

    /// A stream of one error.
    pub(crate) fn refused(host: Arc<Host>, error: StreamError) -> Self {
        let mut stream = Self::new(host, Stage::Ending(Ending::default()), None);
        stream.end(error);
        stream
    }

    fn new(host: Arc<Host>, stage: Stage, place: Option<Place>) -> Self {
        let now = Instant::now();
        Self {
            stage,
            standing: Standing::Good,
            timed: Timed::Never,
            pace: Pace::Free,
            reader: Reader::new(host.observing.clone()),
            outbox: Outbox::new(CHUNK_BYTES),
            rest: Bytes::new(),
            timer: Timer::new(now + host.settings.heartbeat_interval),
            waiting: None,
            delivered_at: now,
            is_between_events: true,
            refused_at: None,
            span: StreamSpan::new(place.as_ref().map(Place::id)),
            place,
            host,
        }
    }

    /// Whether nothing will come any more.
    pub(crate) fn is_over(&self) -> bool {
        match &self.stage {
            Stage::Ending(ending) => self.rest.is_empty() && self.outbox.is_empty() && ending.last.is_none(),
            Stage::Resolving(_)
            | Stage::Authorizing { .. }
            | Stage::Joining { .. }
            | Stage::Joined { .. }
            | Stage::Reading(_) => false,
        }
    }

    /// Whether nothing may pass, not even what was taken before and not handed out.
    pub(crate) const fn is_held(&self) -> bool {
        self.standing.is_checking()
    }

    /// The next chunk of at most 64 KiB, or a heartbeat; `None` once the stream is over. A large object may be chunks of its
    /// own, between the beginning and the end of its frame; nothing else comes in between.
    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.poll_chunk_after(cx, &mut BytesMut::new())
    }

    /// As [`poll_chunk`](Self::poll_chunk), where `unsent`, the latest of what was taken, has not been handed on: a check may
    /// still take it back.
    pub(crate) fn poll_chunk_after(
        &mut self,
        cx: &mut Context<'_>,
        unsent: &mut BytesMut,
    ) -> Poll<Option<Bytes>> {
        if self.waits(cx.waker()) {
            return Poll::Pending;
        }
        let span = self.span.take();
        let polled = span.in_scope(|| self.poll_steps(cx, unsent));
        self.span = span;
        polled
    }

    fn poll_steps(&mut self, cx: &mut Context<'_>, unsent: &mut BytesMut) -> Poll<Option<Bytes>> {
        loop {
            self.attend(cx, unsent);
            if !self.is_held() {
                if let Some(chunk) = self.take() {
                    self.delivers(&chunk);
                    return Poll::Ready(Some(chunk));
                }
                if self.is_over() {
                    self.place = None;
                    return Poll::Ready(None);
                }
            }
            if self.advance(cx, unsent).is_ready() {
                continue;
            }
            if let Some(place) = &self.place {
                place.register_waker(cx.waker());
                if place.has_news() {
                    continue;
                }
            }
            // Where a task has used up what it may do at once, a timer does not remember it.
            let is_remembered = coop::has_budget_remaining();
            if self.poll_due(cx).is_pending() {
                if is_remembered && self.waiting.is_none() {
                    self.waiting = Some(cx.waker().clone());
                }
                return Poll::Pending;
            }
            if self.is_heartbeat_due() {
                let heartbeat = Bytes::from_static(frame::HEARTBEAT);
                self.delivers(&heartbeat);
                return Poll::Ready(Some(heartbeat));
            }
        }
    }

    /// Whether this task waits for all that may come, and nothing has: transports poll more often than there is something,
    /// twice for each chunk in hyper's HTTP/1.1, and need not pay for it.
    ///
    /// News and the timer forget the task when they wake it; then the long way is taken, which registers it anew. A change of
    /// the feed leaves both alone.
    fn waits(&mut self, waker: &Waker) -> bool {
        let is_undisturbed = self.waiting.as_ref().is_some_and(|known| known.will_wake(waker))
            && matches!(self.stage, Stage::Reading(_))
            && matches!(self.pace, Pace::Free)
            && !self.is_held()
            && self.is_between_events
            && !self.timer.has_fired()
            && self.place.as_ref().is_some_and(|place| !place.has_news());
        if !is_undisturbed {
            self.waiting = None;
            return false;
        }
        self.rest.is_empty() && self.outbox.is_empty() && self.reader.has_nothing_new()
    }

    fn take(&mut self) -> Option<Bytes> {
        if !self.rest.is_empty() {
            return Some(self.rest.split_to(piece_of(self.rest.len())));
        }
        if let Stage::Ending(ending) = &mut self.stage
            && self.outbox.is_empty()
        {
            return ending.last.take();
        }
        let mut chunk = self.outbox.take()?;
        let piece = piece_of(chunk.len());
        if piece < chunk.len() {
            self.rest = chunk.split_off(piece);
        }
        Some(chunk)
    }

    fn delivers(&mut self, chunk: &Bytes) {
        self.host.observing.observe(&Observation::BytesDelivered {
            bytes: chunk.len() as u64,
        });
        self.delivered_at = Instant::now();
        self.is_between_events = chunk.ends_with(END_OF_EVENT);
    }

    fn is_heartbeat_due(&self) -> bool {
        self.is_between_events && self.delivered_at.elapsed() >= self.host.settings.heartbeat_interval
    }

    /// Ready when anything is due.
    fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let heartbeat = self.delivered_at + self.host.settings.heartbeat_interval;
        // Within an event no heartbeat may stand; what holds the event up wakes the task.
        let heartbeat = self.is_between_events.then_some(heartbeat);
        let check = match self.timed {
            Timed::At(at) if !self.is_held() && self.stage.checked().is_some() => Some(at),
            Timed::At(_) | Timed::Never => None,
        };
        // Only one that reads finds out that its rest is over.
        let reads = matches!(self.stage, Stage::Reading(_)) && !self.is_held();
        let rest = self.pace.rests_until().filter(|_| reads);
        match [heartbeat, check, rest].into_iter().flatten().min() {
            Some(due) => self.timer.poll_until(due, cx),
            None => Poll::Pending,
        }
    }

    /// Takes one step; pending where it has to wait.
    fn advance(&mut self, cx: &mut Context<'_>, unsent: &mut BytesMut) -> Poll<()> {
        match &mut self.stage {
            Stage::Resolving(request) => match std::task::ready!(request.as_mut().poll(cx)) {
                Ok(request) => self.enters(request),
                Err(error) => self.end(error),
            },
            Stage::Authorizing { check, .. } => match std::task::ready!(check.as_mut().poll(cx)) {
                Ok(sent) => self.is_allowed(sent),
                Err(error) => self.end(error),
            },
            Stage::Joining { steps, .. } => match std::task::ready!(steps.as_mut().poll(cx)) {
                Ok(joined) => self.has_joined(joined, unsent),
                Err(error) => self.end_anyhow(error, unsent),
            },
            Stage::Joined { .. } | Stage::Reading(_) if self.standing.is_checking() => return Poll::Pending,
            Stage::Joined { .. } => self.begin_cycle(),
            Stage::Reading(_) => return self.read(cx),
            Stage::Ending(_) => {}
        }
        Poll::Ready(())
    }

    fn read(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (now, interval) = (Instant::now(), self.host.settings.delivery_interval);
        if self.rests(cx, now) {
            return Poll::Pending;
        }
        match self.reader.poll(cx, self.host.moment(now), &mut self.outbox) {
            Poll::Pending => {
                let reader = &self.reader;
                self.pace.has_sent_all(interval, now, || reader.is_at_head());
                // What came since that look, or rouses the stream, is looked at first.
                return if self.pace.rests(now) && !self.rests(cx, now) {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                };
            }
            Poll::Ready(Step::Wrote) => self.pace.sends(interval, now),
            Poll::Ready(Step::NextCycle(next)) => self.next_cycle(next),
            Poll::Ready(Step::End(error)) => self.end(error),
        }
        Poll::Ready(())
    }

    /// Whether the stream rests; changes do not wake it meanwhile.
    fn rests(&mut self, cx: &Context<'_>, now: Instant) -> bool {
        self.pace.rests(now) && self.reader.rest(cx.waker())
    }
}

impl fmt::Debug for GatewayStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayStream")
            .field("pending", &self.outbox.pending())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_small() {
        let size = size_of::<GatewayStream>();
        assert!(
            size <= 768,
            "{size} bytes, of which its reader has {}",
            size_of::<Reader>()
        );
    }
}
