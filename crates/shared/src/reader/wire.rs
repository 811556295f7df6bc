//! Where a sweep's frames become the bytes of one connection.

use std::sync::Arc;

use krm_stream_projection::{Projected, Upsert};
use krm_stream_protocol::{Event, EventType, Identity, Moment, Observation, StreamError, frame};

use super::outbox::WORTH_SHARING;
use super::{Connection, Outbox};
use crate::feed::{FeedKey, Held};
use crate::sweep::{Frame, ResyncReason, Sink, Spelling};

/// One poll's writing.
pub(super) struct Wire<'a> {
    connection: &'a mut Connection,
    key: &'a FeedKey,
    now: Moment,
    outbox: &'a mut Outbox,
    pending_before: usize,
    resync: Option<ResyncReason>,
}

impl<'a> Wire<'a> {
    pub(super) fn new(
        connection: &'a mut Connection,
        key: &'a FeedKey,
        now: Moment,
        outbox: &'a mut Outbox,
    ) -> Self {
        let pending_before = outbox.pending();
        Self {
            connection,
            key,
            now,
            outbox,
            pending_before,
            resync: None,
        }
    }

    /// Why the cycle is over, if it is.
    pub(super) fn resync(&self) -> Option<ResyncReason> {
        self.resync
    }

    /// Whether anything was written.
    pub(super) fn wrote(&self) -> bool {
        self.outbox.pending() > self.pending_before
    }

    fn write_object(&mut self, spelling: Spelling, held: &Held) {
        let (upsert, event_type) = match spelling {
            Spelling::Added => (Upsert::Added, EventType::Added),
            Spelling::Modified => (Upsert::Modified, EventType::Modified),
        };
        let before = self.outbox.pending();
        if held
            .send(|projected| self.write_projected(upsert, projected))
            .is_none()
        {
            self.connection.lacks_bytes = true;
            return;
        }
        self.connection.snapshot.objects += 1;
        self.connection.snapshot.bytes += (self.outbox.pending() - before) as u64;
        self.connection.emitted(event_type);
    }

    fn write_projected(&mut self, upsert: Upsert, projected: &Projected) {
        let seq = self.connection.next_seq();
        let shared = projected.tail().len();
        let copied = if shared < WORTH_SHARING { shared } else { 0 };
        self.outbox.reserve(frame::LONGEST_BEGIN + copied);
        self.outbox.write(|out| projected.write_prefix(seq, upsert, out));
        self.outbox.share(projected.tail());
        let revisions = &mut self.connection.revisions;
        self.outbox.write(|out| revisions.write_redacted(projected, out));
    }

    fn write_synced(&mut self) {
        self.connection.revisions.end_snapshot();
        self.connection.write_event(&Event::Synced, self.outbox);
        let snapshot = self.connection.snapshot;
        self.connection
            .observing
            .observe(&Observation::SnapshotDelivered {
                objects: snapshot.objects,
                bytes: snapshot.bytes,
                duration: self.now.since(snapshot.began),
            });
    }

    fn write_resync(&mut self, reason: ResyncReason) {
        self.resync = Some(reason);
        let message = match reason {
            ResyncReason::NewEpoch => "the history of this scope was lost; a new snapshot follows",
            ResyncReason::Overflow => {
                self.connection.observing.observe(&Observation::SharedOverflow);
                "this connection fell behind; a new snapshot follows"
            }
        };
        self.connection
            .write_error(&StreamError::resync(message), self.outbox);
    }
}

impl Sink<Arc<Identity>, Held> for Wire<'_> {
    fn has_room(&self) -> bool {
        self.outbox.has_room() && !self.connection.lacks_bytes
    }

    /// As many as a stream owes at most outside a recovery always find room; in a recovery it may be as many as the feed
    /// keeps, and these wait in the stream's queue.
    fn has_room_for_deletion(&self) -> bool {
        self.outbox.has_room_for_deletion()
    }

    fn push(&mut self, frame: Frame<'_, Arc<Identity>, Held>) {
        match frame {
            Frame::Reset => {
                let event = Event::Reset {
                    scope: &self.key.scope,
                    projection: &self.key.projection,
                };
                self.connection.write_event(&event, self.outbox);
            }
            Frame::Upsert {
                spelling, payload, ..
            } => self.write_object(spelling, payload),
            Frame::Deleted { identity } => {
                self.connection.revisions.forget(&identity.uid);
                self.connection
                    .write_event(&Event::Deleted(identity), self.outbox);
            }
            Frame::Synced => self.write_synced(),
            Frame::Resync(reason) => self.write_resync(reason),
            Frame::SlowConsumer => {
                // The caller writes the error that ends a stream, whatever its reason.
                self.connection.observing.observe(&Observation::SharedOverflow);
            }
        }
    }
}
