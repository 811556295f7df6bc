//! A feed's opening, and those who wait for it.
//!
//! # Policy
//! - An opening uses the upstream of one waiting stream. It holds up only those who wait for this feed; each may leave.
//! - 401 and 403 refuse the stream whose upstream it was. Where the upstream acts as the caller, the next waiter's is
//!   tried, each once; where it is a service's, all are refused.
//! - Any other failure is everyone's.

use std::collections::VecDeque;
use std::sync::Arc;

use krm_stream_protocol::{StreamError, Upstream};
use tokio::sync::oneshot;

/// Whether a feed is open yet.
#[derive(Debug)]
pub(crate) enum Opening {
    /// Not yet. Opened: `Done`. Refused: `Done`, and the feed has ended.
    Waiting(VecDeque<Place>),
    /// It was opened, or never will be.
    Done,
}

/// One stream in the queue.
#[derive(Debug)]
pub(crate) struct Place {
    stream: u64,
    upstream: Arc<dyn Upstream>,
    answer: oneshot::Sender<Result<(), StreamError>>,
}

/// Resolves when the feed is open, or why it is not.
pub(crate) type Waiter = oneshot::Receiver<Result<(), StreamError>>;

impl Opening {
    /// Queues a stream; `None` if there is nothing to wait for.
    pub(super) fn join(&mut self, stream: u64, upstream: Arc<dyn Upstream>) -> Option<Waiter> {
        match self {
            Self::Waiting(places) => {
                let (answer, waiter) = oneshot::channel();
                places.push_back(Place {
                    stream,
                    upstream,
                    answer,
                });
                Some(waiter)
            }
            Self::Done => None,
        }
    }

    pub(super) fn leave(&mut self, stream: u64) {
        match self {
            Self::Waiting(places) => places.retain(|place| place.stream != stream),
            Self::Done => {}
        }
    }

    /// The stream whose turn it is, and its upstream.
    pub(super) fn first(&self) -> Option<(u64, Arc<dyn Upstream>)> {
        match self {
            Self::Waiting(places) => places
                .front()
                .map(|place| (place.stream, Arc::clone(&place.upstream))),
            Self::Done => None,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        match self {
            Self::Waiting(_) => false,
            Self::Done => true,
        }
    }

    /// The feed is open: everyone goes on.
    pub(super) fn opened(&mut self) {
        if let Self::Waiting(places) = std::mem::replace(self, Self::Done) {
            for place in places {
                // A receiver that is gone has left.
                let _ = place.answer.send(Ok(()));
            }
        }
    }

    /// Refuses `stream` alone, if it still waits.
    pub(super) fn refuse(&mut self, stream: u64, error: StreamError) {
        match self {
            Self::Waiting(places) => {
                let place = places.iter().position(|place| place.stream == stream);
                if let Some(place) = place.and_then(|at| places.remove(at)) {
                    let _ = place.answer.send(Err(error));
                }
            }
            Self::Done => {}
        }
    }

    /// Refuses everyone; nobody joins this feed any more.
    pub(super) fn refuse_all(&mut self, error: &StreamError) {
        if let Self::Waiting(places) = std::mem::replace(self, Self::Done) {
            for place in places {
                let _ = place.answer.send(Err(error.clone()));
            }
        }
    }
}
