//! One session: its items in batches, and its observation from opening to end.

use std::task::Poll;

use krm_stream_protocol::{Observation, Observing, Session, SessionEndReason, SessionItem};

/// How many events that are there already are applied at once, so that streams are woken once for all of them.
const LARGEST_BATCH: usize = 256;

/// Fills `batch` with what is there, at least one item.
pub(super) async fn next_batch(session: &mut dyn Session, batch: &mut Vec<SessionItem>) {
    std::future::poll_fn(|cx| {
        while batch.len() < LARGEST_BATCH {
            match session.poll_next(cx) {
                Poll::Ready(item) => {
                    let is_end = matches!(item, SessionItem::End(_));
                    batch.push(item);
                    if is_end {
                        break;
                    }
                }
                Poll::Pending => break,
            }
        }
        if batch.is_empty() {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
}

/// Observes a session's opening, and its end exactly once, also when the feed is dropped under it.
pub(super) struct SessionCount<'a> {
    observing: &'a Observing,
    pub(super) reason: SessionEndReason,
}

impl<'a> SessionCount<'a> {
    pub(super) fn open(observing: &'a Observing) -> Self {
        observing.observe(&Observation::UpstreamSessionOpened);
        Self {
            observing,
            reason: SessionEndReason::Teardown,
        }
    }
}

impl Drop for SessionCount<'_> {
    fn drop(&mut self) {
        self.observing
            .observe(&Observation::UpstreamSessionEnded { reason: self.reason });
    }
}
