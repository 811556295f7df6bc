//! One session: its items in batches, and its observation from opening to end.

use std::task::Poll;

use krm_stream_protocol::{Observation, Observing, Session, SessionEndReason, SessionItem, WatchEvent};

/// How many events that are there already are applied at once, so that streams are woken once for all of them.
const LARGEST_BATCH: usize = 256;

/// A batch is not added to once it holds this many bytes: what is not projected yet is not to pile up in memory, nor is its
/// projection to hold up the other tasks of this thread.
const BATCH_BYTES: usize = 4 * 1024 * 1024;

fn is_deletion(item: &SessionItem) -> bool {
    matches!(item, SessionItem::Event(WatchEvent::Deleted(_)))
}

/// Fills `batch`, which is empty, with what is there, at least one item, and no more than so many deletions, at least one.
pub(super) async fn next_batch(
    session: &mut dyn Session,
    batch: &mut Vec<SessionItem>,
    most_deletions: usize,
) {
    let (mut bytes, mut deletions) = (0, 0);
    std::future::poll_fn(|cx| {
        while batch.len() < LARGEST_BATCH && bytes < BATCH_BYTES && deletions < most_deletions {
            match session.poll_next(cx) {
                Poll::Ready(item) => {
                    bytes += bytes_of(&item);
                    deletions += usize::from(is_deletion(&item));
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

fn bytes_of(item: &SessionItem) -> usize {
    match item {
        SessionItem::Event(
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object),
        ) => object.json().len(),
        SessionItem::Event(
            WatchEvent::Bookmark { .. } | WatchEvent::SnapshotRestarted | WatchEvent::Unknown,
        )
        | SessionItem::End(_) => 0,
    }
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

#[cfg(test)]
mod tests {
    use std::task::Context;
    use std::time::Duration;

    use bytes::Bytes;
    use krm_stream_protocol::Object;

    use super::*;

    /// A session that always has one more object of this many bytes.
    struct Endless(usize);

    impl Session for Endless {
        fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<SessionItem> {
            let text = format!(r#"{{"data":"{}"}}"#, "x".repeat(self.0));
            let object = Object::parse(Bytes::from(text)).unwrap();
            Poll::Ready(SessionItem::Event(WatchEvent::Added(object)))
        }

        fn asked_timeout(&self) -> Option<Duration> {
            None
        }
    }

    async fn batch_of(object_bytes: usize) -> usize {
        let mut batch = Vec::new();
        next_batch(&mut Endless(object_bytes), &mut batch, 1).await;
        batch.len()
    }

    #[tokio::test]
    async fn a_batch_is_bounded_in_events_and_in_bytes() {
        assert_eq!(batch_of(10).await, LARGEST_BATCH);
        assert_eq!(batch_of(BATCH_BYTES / 2).await, 2);
        assert_eq!(
            batch_of(2 * BATCH_BYTES).await,
            1,
            "one that is larger goes alone"
        );
    }
}
