//! What must hold after every step.

use std::collections::BTreeSet;

use krm_stream_shared::Size;

use crate::consumer::check;
use crate::frames::{Budget, Frame};
use crate::naive::Entry;
use crate::run::{Connection, Run};

impl Run {
    /// No more objects than there is room for, deletions first, each object in its latest state, and in order at the head.
    pub(crate) fn check_frames(
        &self,
        c: &Connection,
        was_at_head: bool,
        budget: Budget,
    ) -> Result<(), String> {
        let frames = &c.stream.frames;
        let is_object = |frame: &Frame| matches!(frame, Frame::Upsert { .. });
        let objects = frames.iter().filter(|frame| is_object(frame)).count();
        check!(
            objects <= budget.objects,
            "{objects} objects for a budget of {}",
            budget.objects
        );
        let after_objects = frames.iter().skip_while(|frame| !is_object(frame));
        let late = after_objects
            .filter(|frame| matches!(frame, Frame::Deleted(_)))
            .count();
        check!(late == 0, "{late} deletions after an object");
        let in_order = was_at_head && !frames.contains(&Frame::Reset);
        let mut last = 0;
        for frame in frames {
            let Frame::Upsert {
                uid, state, position, ..
            } = frame
            else {
                continue;
            };
            let entry = self
                .feed
                .entries
                .get(uid)
                .ok_or_else(|| format!("{frame} is not there"))?;
            let is_latest = entry.position == *position && entry.state == *state;
            check!(is_latest, "{frame} is not the latest state");
            check!(
                !in_order || last < *position,
                "{frame} is out of order at the head"
            );
            last = *position;
        }
        Ok(())
    }

    /// A slot waits no more whose object is gone: it is neither sent nor due.
    pub(crate) fn forget_waits(&self, c: &mut Connection) {
        let sent: BTreeSet<usize> = c
            .stream
            .frames
            .iter()
            .filter_map(|frame| match frame {
                Frame::Upsert { uid, .. } => Some(self.feed.entries.get(uid)?.slot),
                Frame::Reset | Frame::Deleted(_) | Frame::Synced | Frame::Resync(_) | Frame::SlowConsumer => {
                    None
                }
            })
            .collect();
        c.waits
            .retain(|slot, _| sent.contains(slot) || c.stream.due.contains(slot));
    }

    /// What waits is registered; no object may be sent twice while another one waits.
    pub(crate) fn check_waits(&self, c: &mut Connection) -> Result<(), String> {
        c.waits.retain(|slot, _| c.stream.due.contains(slot));
        for &slot in &c.stream.due {
            c.waits.entry(slot).or_default();
        }
        let Some(reader) = c.stream.reader(&self.feed) else {
            return Ok(());
        };
        check!(
            reader.epoch != self.feed.epoch
                || reader.waiting
                || c.stream.apart.is_some()
                || reader.cursor == self.feed.head,
            "a poll did not take all in"
        );
        Ok(())
    }

    /// `synced` was sent if and only if it is due, and a stream at the head has told all there is.
    pub(crate) fn check_synced(&self, c: &Connection) -> Result<(), String> {
        let Some(reader) = c.stream.reader(&self.feed) else {
            return Ok(());
        };
        let is_apart = c.stream.apart.is_some();
        if reader.epoch != self.feed.epoch || reader.waiting || is_apart || !c.stream.deletions.is_empty() {
            return Ok(());
        }
        let is_due = self.boundary.is_some_and(|boundary| {
            let gate = c.stream.begin.max(boundary);
            self.feed
                .entries
                .values()
                .filter(|entry| entry.live && entry.back <= gate)
                .all(|entry| {
                    c.consumer
                        .sent
                        .get(&entry.uid)
                        .is_some_and(|&sent| sent >= entry.back)
                })
        });
        check!(
            c.consumer.is_live() == is_due,
            "synced is due: {is_due}, was sent: {}",
            c.consumer.is_live()
        );
        Ok(())
    }

    pub(crate) fn check_connection(&self, c: &Connection) -> Result<(), String> {
        let Some(real) = &self.real else { return Ok(()) };
        let up_to_date = self.is_at_head(c)
            && c.stream
                .reader(&self.feed)
                .is_some_and(|reader| reader.cursor == self.feed.head);
        check!(
            c.sweep.is_at_head(real) == up_to_date,
            "is_at_head is not {up_to_date}"
        );
        check!(
            !up_to_date || c.sweep.memory() == 0,
            "{} bytes at the head",
            c.sweep.memory()
        );
        check!(
            c.sweep.is_apart() == c.stream.apart.is_some(),
            "apart: {}",
            c.sweep.is_apart()
        );
        check!(
            c.sweep.cycles() == c.stream.cycles,
            "{} cycles, not {}",
            c.sweep.cycles(),
            c.stream.cycles
        );
        check!(
            c.sweep.is_ended() == c.stream.ended,
            "ended: {}",
            c.sweep.is_ended()
        );
        check!(
            c.sweep.is_synced() == (c.stream.is_synced && !c.stream.ended),
            "synced: {}",
            c.sweep.is_synced()
        );
        check!(
            c.sweep.is_recovering() == c.stream.recovering,
            "recovering: {}",
            c.sweep.is_recovering()
        );
        Ok(())
    }

    /// The bounds of the feed's memory, and that both agree on what it holds.
    pub(crate) fn check_feed(&self) -> Result<(), String> {
        let feed = &self.feed;
        let kept = feed.queue_depth.max(feed.most_live);
        check!(
            feed.index.len() == feed.entries.len(),
            "{} nodes for {} entries",
            feed.index.len(),
            feed.entries.len()
        );
        check!(
            feed.entries.len() <= feed.live + kept,
            "{} entries, {} live",
            feed.entries.len(),
            feed.live
        );
        check!(
            feed.slots.len() <= feed.most_live + kept,
            "{} slots",
            feed.slots.len()
        );
        check!(
            feed.slots.last().is_none_or(Option::is_some),
            "a free slot at the end"
        );
        let Some(real) = &self.real else { return Ok(()) };
        let size = Size {
            live: feed.live,
            most_live: feed.most_live,
            tombstones: feed.entries.len() - feed.live,
            slots: feed.slots.len(),
            uids: feed.entries.len(),
            index_nodes: feed.index.len(),
            readers: feed
                .readers
                .values()
                .filter(|r| r.epoch == feed.epoch && !r.waiting)
                .count(),
        };
        check!(real.size() == size, "{:?} is not {size:?}", real.size());
        let positions = |of: (u64, u64, u64, Option<u64>)| of;
        let (theirs, ours) = (
            positions((feed.epoch, feed.head, feed.trimmed, feed.boundary)),
            positions((real.epoch(), real.head(), real.trimmed(), real.boundary())),
        );
        check!(
            theirs == ours,
            "epoch, head, trimmed, boundary: {theirs:?}, {ours:?}"
        );
        check!(
            real.is_continuous() == feed.continuous,
            "continuous: {}",
            real.is_continuous()
        );
        let live = |entry: &&Entry| entry.live;
        let mut objects: Vec<_> = feed
            .entries
            .values()
            .filter(live)
            .map(|e| (e.slot, &e.uid, e.state))
            .collect();
        objects.sort_unstable_by_key(|&(slot, ..)| slot);
        check!(
            real.objects()
                .map(|o| (o.slot as usize, o.identity, *o.payload))
                .eq(objects),
            "the changelog holds other objects"
        );
        Ok(())
    }
}
