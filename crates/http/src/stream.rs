//! One stream: from the request to the last event, chunk by chunk.
//!
//! # Policy
//! - Headers are out before anything is asked; every refusal is one error event.
//! - Each cycle takes the same steps before it reads; see `gateway::cycle`.
//! - Heartbeats go out between frames only: when nothing else waits. They run through checks and openings too.
//! - A terminal error is the last event. A non-terminal one other than `RESYNC_REQUIRED` ends the connection as well.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use krm_stream_protocol::{
    BoxFuture, Moment, Observation, Principal, ProjectionName, Scope, ScopeRequest, StreamError, frame,
};
use krm_stream_shared::{NextCycle, Outbox, Reader, Step, Subscription};
use tokio::time::{Instant, Sleep, sleep};

use crate::gateway::Host;
use crate::resolver;
use crate::settings::CHUNK_BYTES;

/// The driver of one stream. Polled by whatever transport the events go to; dropped when that is gone.
pub(crate) struct GatewayStream {
    host: Arc<Host>,
    stage: Stage,
    reader: Reader,
    outbox: Outbox,
    heartbeat: Pin<Box<Sleep>>,
    /// When the API server last refused a feed that this stream was on.
    refused_at: Option<Moment>,
}

/// An API server that opens a scope and soon after refuses it, twice within this time, would do so for ever.
const REFUSED_AGAIN_WITHIN: Duration = Duration::from_secs(10);

enum Stage {
    /// Who is calling, and for what? Known: `Preparing`. Refused: `Ended`.
    Resolving(BoxFuture<'static, Result<Request, StreamError>>),
    /// The steps of a cycle. Joined: `Reading`. Refused: `Ended`.
    Preparing {
        request: Entered,
        /// Whether the consumer is still to be told that a new cycle begins.
        is_resync_due: bool,
        steps: BoxFuture<'static, Result<Subscription, StreamError>>,
    },
    /// In a cycle. Over: `Preparing`. The feed or the stream ends: `Ended`.
    Reading(Entered),
    /// What is in the outbox is the last of it.
    Ended,
}

/// A caller and what for.
struct Request {
    principal: Principal,
    scope: Scope,
    projection: Option<ProjectionName>,
}

/// A request that was let in, as long as its stream lives: observed from here to its end.
struct Entered {
    request: Request,
    host: Arc<Host>,
    /// The number that an isolated stream's feed has.
    stream: u64,
}

impl GatewayStream {
    /// The stream of an HTTP request.
    pub(crate) fn resolve(host: Arc<Host>, request: Parts) -> Self {
        let stage = Stage::Resolving(Box::pin(resolve(Arc::clone(&host), request)));
        Self::new(host, stage)
    }

    /// The stream of a known caller.
    pub(crate) fn prepare(
        host: Arc<Host>,
        principal: Principal,
        scope: Scope,
        projection: Option<ProjectionName>,
    ) -> Self {
        let request = Request {
            principal,
            scope,
            projection,
        };
        let stage = Stage::prepare(Entered::new(Arc::clone(&host), request), false);
        Self::new(host, stage)
    }

    /// A stream of one error.
    pub(crate) fn refused(host: Arc<Host>, error: &StreamError) -> Self {
        let mut stream = Self::new(host, Stage::Ended);
        stream.end(error);
        stream
    }

    fn new(host: Arc<Host>, stage: Stage) -> Self {
        Self {
            stage,
            reader: Reader::new(host.observing.clone()),
            outbox: Outbox::new(CHUNK_BYTES),
            heartbeat: Box::pin(sleep(host.settings.heartbeat_interval)),
            refused_at: None,
            host,
        }
    }

    /// Whether nothing will come any more.
    pub(crate) fn is_over(&self) -> bool {
        match self.stage {
            Stage::Ended => self.outbox.is_empty(),
            Stage::Resolving(_) | Stage::Preparing { .. } | Stage::Reading(_) => false,
        }
    }

    /// The next chunk, or a heartbeat; `None` once the stream is over. A large object may be a chunk of its own, between
    /// the beginning and the end of its frame; nothing else comes in between.
    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(chunk) = self.outbox.take() {
                self.delivers(&chunk);
                return Poll::Ready(Some(chunk));
            }
            if self.is_over() {
                return Poll::Ready(None);
            }
            if self.advance(cx).is_pending() {
                break;
            }
        }
        if self.heartbeat.as_mut().poll(cx).is_ready() {
            let heartbeat = Bytes::from_static(frame::HEARTBEAT);
            self.delivers(&heartbeat);
            // The new timer must wake this task.
            let _ = self.heartbeat.as_mut().poll(cx);
            return Poll::Ready(Some(heartbeat));
        }
        Poll::Pending
    }

    fn delivers(&mut self, chunk: &Bytes) {
        self.host.observing.observe(&Observation::BytesDelivered {
            bytes: chunk.len() as u64,
        });
        self.heartbeat
            .as_mut()
            .reset(Instant::now() + self.host.settings.heartbeat_interval);
    }

    /// Takes one step; pending where it has to wait.
    fn advance(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Resolving(mut request) => match request.as_mut().poll(cx) {
                Poll::Pending => {
                    self.stage = Stage::Resolving(request);
                    return Poll::Pending;
                }
                Poll::Ready(Ok(request)) => {
                    self.stage = Stage::prepare(Entered::new(Arc::clone(&self.host), request), false);
                }
                Poll::Ready(Err(error)) => self.end(&error),
            },
            Stage::Preparing {
                request,
                is_resync_due,
                mut steps,
            } => match steps.as_mut().poll(cx) {
                Poll::Pending => {
                    self.stage = Stage::Preparing {
                        request,
                        is_resync_due,
                        steps,
                    };
                    return Poll::Pending;
                }
                Poll::Ready(Ok(subscription)) => {
                    let resync = is_resync_due.then(|| {
                        StreamError::resync("the watch of this scope was replaced; a new snapshot follows")
                    });
                    self.reader
                        .begin_cycle(subscription, resync.as_ref(), self.host.now(), &mut self.outbox);
                    self.stage = Stage::Reading(request);
                }
                Poll::Ready(Err(error)) => self.end(&error),
            },
            Stage::Reading(request) => match self.reader.poll(cx, self.host.now(), &mut self.outbox) {
                Poll::Pending => {
                    self.stage = Stage::Reading(request);
                    return Poll::Pending;
                }
                Poll::Ready(Step::Wrote) => self.stage = Stage::Reading(request),
                Poll::Ready(Step::NextCycle(next)) => self.next_cycle(request, next),
                Poll::Ready(Step::End(error)) => self.end(&error),
            },
            Stage::Ended => {}
        }
        Poll::Ready(())
    }

    fn next_cycle(&mut self, mut request: Entered, next: NextCycle) {
        if let Some(refusal) = self.refused_again(next.refusal) {
            return self.end(&refusal);
        }
        if next.needs_new_feed {
            request.stream = self.host.feeds.next_stream();
        }
        self.stage = Stage::prepare(request, !next.is_told);
    }

    /// The refusal of a feed, if the one before it was only just refused too.
    fn refused_again(&mut self, refusal: Option<StreamError>) -> Option<StreamError> {
        let refusal = refusal?;
        let now = self.host.now();
        let before = self.refused_at.replace(now)?;
        (now.since(before) < REFUSED_AGAIN_WITHIN).then_some(refusal)
    }

    fn end(&mut self, error: &StreamError) {
        self.reader.end(error, &mut self.outbox);
        self.stage = Stage::Ended;
    }
}

impl Stage {
    fn prepare(request: Entered, is_resync_due: bool) -> Self {
        let Request {
            principal,
            scope,
            projection,
        } = &request.request;
        let steps = Arc::clone(&request.host).begin_cycle(
            principal.clone(),
            scope.clone(),
            projection.clone(),
            request.stream,
        );
        Self::Preparing {
            is_resync_due,
            steps: Box::pin(steps),
            request,
        }
    }
}

impl Entered {
    fn new(host: Arc<Host>, request: Request) -> Self {
        host.observing.observe(&Observation::StreamOpened);
        Self {
            request,
            stream: host.feeds.next_stream(),
            host,
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.host.observing.observe(&Observation::StreamClosed);
    }
}

impl fmt::Debug for GatewayStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayStream")
            .field("pending", &self.outbox.pending())
            .finish_non_exhaustive()
    }
}

/// Finds out who is calling and what for. The caller first: a scope's refusal is told to nobody unknown.
async fn resolve(host: Arc<Host>, request: Parts) -> Result<Request, StreamError> {
    let answer = tokio::time::timeout(host.settings.check_timeout, host.resolver.resolve(&request)).await;
    let principal = match answer {
        Ok(Ok(principal)) => principal,
        Ok(Err(error)) => {
            host.diagnosing.report("resolving the caller", None, &*error);
            return Err(resolver::refusal(&error));
        }
        Err(elapsed) => {
            host.diagnosing.report("resolving the caller", None, &elapsed);
            return Err(StreamError::unavailable(
                "who you are could not be found out in time",
                Some(Duration::from_secs(5)),
            ));
        }
    };
    let wanted = ScopeRequest::parse(request.uri.query().unwrap_or_default()).map_err(StreamError::from)?;
    host.scope_policy
        .check(wanted.scope())
        .map_err(StreamError::from)?;
    Ok(Request {
        principal,
        scope: wanted.scope().clone(),
        projection: wanted.projection().cloned(),
    })
}
