//! One reader of a stream: what it holds of the answer, and what it has counted.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::answer::{Answer, AnswerError};
use super::blocks::{Block, Blocks, Kind, read_block, stamp, uid};

/// How the numbers of a stream are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbering {
    /// From 1, without a gap.
    Strict,
    /// Preformatted: the snapshot's from 1, and those of live events without a gap among themselves.
    Preformatted,
}

/// What a reader keeps of the objects.
#[derive(Debug)]
pub(crate) enum Keeping {
    Nothing,
    /// The newest stamp of each uid, as a consumer would hold the object.
    Stamps(Held),
}

/// The objects that a consumer holds: a hash of the uid, the stamp, and the cycle that it was last seen in.
#[derive(Debug, Default)]
pub(crate) struct Held {
    objects: HashMap<u64, (u64, u32)>,
    cycle: u32,
}

/// What was received so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) cycles: u64,
    /// Cycles after the first of their connection.
    pub(crate) later_cycles: u64,
    pub(crate) synced: u64,
    /// Objects before the `synced` of their cycle.
    pub(crate) snapshot: u64,
    /// Objects after it.
    pub(crate) live: u64,
    pub(crate) deleted: u64,
    pub(crate) heartbeats: u64,
    pub(crate) bytes: u64,
    /// Events whose number was not the next one.
    pub(crate) gaps: u64,
    pub(crate) unreadable: u64,
    pub(crate) errors: u64,
    /// The newest stamp, in nanoseconds since 1970.
    pub(crate) newest: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.cycles += other.cycles;
        self.later_cycles += other.later_cycles;
        self.synced += other.synced;
        self.snapshot += other.snapshot;
        self.live += other.live;
        self.deleted += other.deleted;
        self.heartbeats += other.heartbeats;
        self.bytes += other.bytes;
        self.gaps += other.gaps;
        self.unreadable += other.unreadable;
        self.errors += other.errors;
        self.newest = self.newest.max(other.newest);
    }
}

/// One reader.
#[derive(Debug)]
pub(crate) struct Reader {
    answer: Answer,
    events: Events,
}

#[derive(Debug)]
struct Events {
    blocks: Blocks,
    numbering: Numbering,
    keeping: Keeping,
    seq: u64,
    in_cycle: bool,
    tally: Tally,
    last_error: Option<String>,
}

impl Reader {
    pub(crate) fn new(numbering: Numbering, keeping: Keeping) -> Self {
        Self {
            answer: Answer::default(),
            events: Events {
                blocks: Blocks::default(),
                numbering,
                keeping,
                seq: 0,
                in_cycle: false,
                tally: Tally::default(),
                last_error: None,
            },
        }
    }

    /// Takes in what came over HTTP/1.1; `live` is handed the stamp of each object after `synced`.
    ///
    /// # Errors
    ///
    /// When it is no answer that can be read.
    pub(crate) fn read(&mut self, bytes: &[u8], mut live: impl FnMut(u64)) -> Result<(), AnswerError> {
        let Self { answer, events } = self;
        events.tally.bytes += bytes.len() as u64;
        answer.read(bytes, |body| events.read(body, &mut live))
    }

    /// Takes in what is the body already.
    pub(crate) fn read_body(&mut self, body: &[u8], mut live: impl FnMut(u64)) {
        self.events.tally.bytes += body.len() as u64;
        self.events.read(body, &mut live);
    }

    /// Gives back memory that only the snapshot needed.
    pub(crate) fn shrink(&mut self) {
        self.events.blocks.shrink();
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.events.tally
    }

    /// Whether the answer has said that nothing follows.
    pub(crate) fn is_complete(&self) -> bool {
        self.answer.is_complete()
    }

    /// Whether the latest cycle is complete.
    pub(crate) fn is_synced(&self) -> bool {
        self.events.tally.synced > 0 && !self.events.in_cycle
    }

    /// The latest `error` event.
    pub(crate) fn last_error(&self) -> Option<&str> {
        self.events.last_error.as_deref()
    }

    /// The digest of what a consumer holds, to be compared with [`digest`] of the truth.
    pub(crate) fn digest(&self) -> Option<Digest> {
        match &self.events.keeping {
            Keeping::Nothing => None,
            Keeping::Stamps(held) => {
                let mut digest = Digest::default();
                for (uid, (stamp, _)) in &held.objects {
                    digest.add(*uid, *stamp);
                }
                Some(digest)
            }
        }
    }
}

impl Events {
    fn read(&mut self, body: &[u8], live: &mut impl FnMut(u64)) {
        let mut blocks = std::mem::take(&mut self.blocks);
        blocks.read(body, |block| self.take(block, live));
        self.blocks = blocks;
    }

    fn take(&mut self, block: &[u8], live: &mut impl FnMut(u64)) {
        let (seq, kind, json) = match read_block(block) {
            Block::Comment => {
                self.tally.heartbeats += 1;
                return;
            }
            Block::Unreadable => {
                self.tally.unreadable += 1;
                return;
            }
            Block::Event { seq, kind, json } => (seq, kind, json),
        };
        let skips = self.numbering == Numbering::Preformatted && !self.in_cycle;
        let first_live = skips && self.tally.live == 0;
        if seq != self.seq + 1 && !first_live {
            self.tally.gaps += 1;
        }
        self.seq = seq;
        match kind {
            Kind::Reset => {
                self.in_cycle = true;
                self.tally.later_cycles += u64::from(self.tally.cycles > 0);
                self.tally.cycles += 1;
                if let Keeping::Stamps(held) = &mut self.keeping {
                    held.cycle += 1;
                }
            }
            Kind::Added | Kind::Modified => {
                let at = stamp(json).unwrap_or(0);
                self.tally.newest = self.tally.newest.max(at);
                if self.in_cycle {
                    self.tally.snapshot += 1;
                } else {
                    self.tally.live += 1;
                    live(at);
                }
                if let (Keeping::Stamps(held), Some(uid)) = (&mut self.keeping, uid(json)) {
                    held.objects.insert(hash(uid), (at, held.cycle));
                }
            }
            Kind::Deleted => {
                self.tally.deleted += 1;
                if let (Keeping::Stamps(held), Some(uid)) = (&mut self.keeping, uid(json)) {
                    held.objects.remove(&hash(uid));
                }
            }
            Kind::Synced => {
                self.in_cycle = false;
                self.tally.synced += 1;
                if let Keeping::Stamps(held) = &mut self.keeping {
                    let cycle = held.cycle;
                    held.objects.retain(|_, (_, seen)| *seen == cycle);
                }
            }
            Kind::Error => {
                self.tally.errors += 1;
                let text = String::from_utf8_lossy(&json[..json.len().min(300)]);
                self.last_error = Some(text.into_owned());
            }
            Kind::Other => {}
        }
    }
}

/// A digest of a set of objects that does not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) objects: u64,
    pub(crate) sum: u64,
}

impl Digest {
    fn add(&mut self, uid: u64, stamp: u64) {
        self.objects += 1;
        self.sum = self.sum.wrapping_add(hash(&(uid, stamp)));
    }
}

/// The digest of objects as the API server sends them.
pub(crate) fn digest<'a>(objects: impl IntoIterator<Item = &'a [u8]>) -> Digest {
    let mut digest = Digest::default();
    for object in objects {
        digest.add(hash(uid(object).unwrap_or_default()), stamp(object).unwrap_or(0));
    }
    digest
}

fn hash(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(uid: &str, stamp: u64) -> String {
        format!(r#"{{"metadata":{{"uid":"{uid}"}},"data":{{"stamp":"{stamp}"}}}}"#)
    }

    fn event(seq: u64, kind: &str, more: &str) -> String {
        format!("data: {{\"seq\":{seq},\"type\":\"{kind}\"{more}}}\n\n")
    }

    fn upsert(seq: u64, kind: &str, uid: &str, stamp: u64) -> String {
        event(
            seq,
            kind,
            &format!(",\"object\":{},\"redacted\":[]", object(uid, stamp)),
        )
    }

    #[test]
    fn a_stream_is_counted_and_its_live_stamps_are_handed_on() {
        let mut reader = Reader::new(Numbering::Strict, Keeping::Nothing);
        let text = event(1, "reset", "")
            + &upsert(2, "added", "a", 10)
            + &event(3, "synced", "")
            + ": heartbeat\n\n"
            + &upsert(4, "modified", "a", 12)
            + &upsert(6, "modified", "a", 13);
        let mut stamps = Vec::new();
        reader.read_body(text.as_bytes(), |stamp| stamps.push(stamp));
        assert_eq!(stamps, [12, 13]);
        let tally = reader.tally();
        assert_eq!(
            (tally.cycles, tally.synced, tally.snapshot, tally.live),
            (1, 1, 1, 2)
        );
        assert_eq!((tally.heartbeats, tally.gaps, tally.newest), (1, 1, 13));
        assert!(reader.is_synced());
    }

    #[test]
    fn what_begins_anew_within_a_connection_is_counted_apart_from_what_connections_begin_with() {
        let mut sum = Tally::default();
        for resets in [1, 1, 3] {
            let mut reader = Reader::new(Numbering::Strict, Keeping::Nothing);
            for cycle in 0..resets {
                let text = event(2 * cycle + 1, "reset", "") + &event(2 * cycle + 2, "synced", "");
                reader.read_body(text.as_bytes(), |_| {});
            }
            sum.add(reader.tally());
        }
        assert_eq!((sum.cycles, sum.later_cycles), (5, 2));
    }

    #[test]
    fn preformatted_live_events_may_begin_at_any_number_but_have_no_gap() {
        let mut reader = Reader::new(Numbering::Preformatted, Keeping::Nothing);
        let text = event(1, "reset", "") + &event(2, "synced", "") + &upsert(90, "modified", "a", 1);
        reader.read_body(text.as_bytes(), |_| {});
        assert_eq!(reader.tally().gaps, 0);
        reader.read_body(upsert(92, "modified", "a", 2).as_bytes(), |_| {});
        assert_eq!(reader.tally().gaps, 1);
    }

    #[test]
    fn a_consumer_that_converged_has_the_digest_of_the_truth() {
        let mut reader = Reader::new(Numbering::Strict, Keeping::Stamps(Held::default()));
        let text = event(1, "reset", "")
            + &upsert(2, "added", "a", 1)
            + &upsert(3, "added", "b", 2)
            + &event(4, "synced", "")
            + &upsert(5, "modified", "a", 5)
            + &event(6, "reset", "")
            + &upsert(7, "added", "a", 5);
        reader.read_body(text.as_bytes(), |_| {});
        let (a, b) = (object("a", 5), object("b", 2));
        assert_eq!(reader.digest(), Some(digest([a.as_bytes(), b.as_bytes()])));
        reader.read_body(event(8, "synced", "").as_bytes(), |_| {});
        assert_eq!(reader.digest(), Some(digest([a.as_bytes()])));
        assert_ne!(reader.digest(), Some(digest([object("a", 6).as_bytes()])));
        let gone = event(9, "deleted", r#","identity":{"uid":"a"}"#);
        reader.read_body(gone.as_bytes(), |_| {});
        assert_eq!(reader.digest(), Some(Digest::default()));
    }
}
