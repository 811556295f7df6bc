//! What one connection remembers of withheld values: which revision of each it was told.

use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bytes::BufMut;
use krm_stream_protocol::{Identity, frame};

use crate::projected::Projected;
use crate::redaction::{Redaction, Redactions};

/// The revisions that one connection gave to withheld values.
///
/// A revision (`rev`) starts at 1 for each path of each uid, and grows by one when the value there is another than the
/// one this connection was last told of. It survives new cycles of the connection, also on another feed, as long as
/// the digests are made with one [`DigestKey`](crate::DigestKey). It is forgotten when `deleted` was sent, and at
/// `synced` for every uid that the cycle did not send. A path that goes and comes back, under one uid, goes on
/// counting: no revision ever names two values.
///
/// In the order of a connection's life: [`begin_cycle`](Self::begin_cycle) at each `reset`; for each upsert that is sent
/// [`write_redacted`](Self::write_redacted), or [`advance`](Self::advance) where the frame's end came from elsewhere;
/// [`forget`](Self::forget) for each `deleted`; [`end_snapshot`](Self::end_snapshot) at `synced`.
///
/// Only objects with withheld values cost memory here.
#[derive(Debug, Default)]
pub struct Revisions {
    cycle: u64,
    objects: HashMap<Uid, Known>,
}

impl Revisions {
    /// The memory of a new connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// A `reset` is being sent.
    pub fn begin_cycle(&mut self) {
        self.cycle += 1;
    }

    /// `synced` is being sent: forgets every uid that was not sent since the last [`begin_cycle`](Self::begin_cycle).
    pub fn end_snapshot(&mut self) {
        let cycle = self.cycle;
        self.objects.retain(|_, known| known.sent_in == cycle);
        self.objects.shrink_to_fit();
    }

    /// `deleted` is being sent for this uid.
    pub fn forget(&mut self, uid: &str) {
        self.objects.remove(uid);
    }

    /// Takes note that this state is being sent.
    pub fn advance(&mut self, projected: &Projected) {
        let uid = &*projected.identity().uid;
        if let Some(known) = self.objects.get_mut(uid) {
            known.sent_in = self.cycle;
            known.advance(projected.redactions());
        } else if let Some(redactions) = projected.redactions() {
            self.objects.insert(
                Uid(Arc::clone(projected.identity())),
                Known::first(self.cycle, redactions),
            );
        }
    }

    /// Takes note that this state is being sent, and appends the end of its frame after
    /// [`Projected::tail`]: `,"redacted":[{"path":"/data/token","rev":1}]}` and the blank line. Appends nothing where
    /// nothing is withheld, as the tail is complete then.
    pub fn write_redacted(&mut self, projected: &Projected, out: &mut impl BufMut) {
        self.advance(projected);
        if let (Some(redactions), Some(known)) = (
            projected.redactions(),
            self.objects.get(&*projected.identity().uid),
        ) {
            write_redacted(redactions, |index| known.rev(index), out);
        }
    }

    /// How many objects this remembers.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether it remembers none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}

impl Redactions {
    /// Appends the end of a frame as [`Revisions::write_redacted`] does on a connection that was told nothing of this
    /// uid before: every revision is 1. For snapshots that are encoded once for all who join; each of them takes note
    /// with [`Revisions::advance`].
    pub fn write_first(&self, out: &mut impl BufMut) {
        write_redacted(self, |_| 1, out);
    }
}

fn write_redacted(redactions: &Redactions, rev: impl Fn(usize) -> u64, out: &mut impl BufMut) {
    out.put_slice(br#","redacted":["#);
    for (index, redaction) in redactions.as_slice().iter().enumerate() {
        if index > 0 {
            out.put_u8(b',');
        }
        out.put_slice(br#"{"path":"#);
        out.put_slice(redaction.path_json().as_bytes());
        out.put_slice(br#","rev":"#);
        frame::put_integer(out, rev(index));
        out.put_u8(b'}');
    }
    out.put_u8(b']');
    frame::end(out);
}

/// An identity as the key of its uid, so that the uid is not stored twice.
#[derive(Debug)]
struct Uid(Arc<Identity>);

impl Borrow<str> for Uid {
    fn borrow(&self) -> &str {
        &self.0.uid
    }
}

impl PartialEq for Uid {
    fn eq(&self, other: &Self) -> bool {
        self.0.uid == other.0.uid
    }
}

impl Eq for Uid {}

impl Hash for Uid {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.uid.hash(state);
    }
}

/// What a connection was told of one uid.
#[derive(Debug)]
struct Known {
    /// The cycle in which the uid was last sent.
    sent_in: u64,
    /// What was withheld then.
    last: Option<Redactions>,
    /// The revision of each of `last`; empty while all are 1.
    revs: Box<[u64]>,
    /// Paths that were withheld once and are not in `last`; boxed, as hardly any object has some.
    gone: Option<Box<Gone>>,
}

impl Known {
    fn first(cycle: u64, redactions: &Redactions) -> Self {
        Self {
            sent_in: cycle,
            last: Some(redactions.clone()),
            revs: Box::default(),
            gone: None,
        }
    }

    fn rev(&self, index: usize) -> u64 {
        self.revs.get(index).copied().unwrap_or(1)
    }

    fn advance(&mut self, next: Option<&Redactions>) {
        let (last, next) = match (&self.last, next) {
            (None, None) => return,
            (Some(last), Some(next)) if last.is_same_allocation(next) => return,
            (last, next) => (last.clone(), next),
        };
        let before = last.as_ref().map_or(&[][..], Redactions::as_slice);
        let after = next.map_or(&[][..], Redactions::as_slice);
        let revs: Box<[u64]> = if has_same_paths(before, after) {
            let pairs = before.iter().zip(after).enumerate();
            pairs
                .map(|(index, (old, new))| self.rev(index) + u64::from(old.digest() != new.digest()))
                .collect()
        } else {
            self.advance_paths(before, after)
        };
        let all_first = revs.iter().all(|rev| *rev == 1);
        self.revs = if all_first { Box::default() } else { revs };
        self.last = next.cloned();
    }

    /// The slow way, where paths came or went.
    fn advance_paths(&mut self, before: &[Redaction], after: &[Redaction]) -> Box<[u64]> {
        let mut old: HashMap<&str, (&Redaction, u64)> = before
            .iter()
            .enumerate()
            .map(|(index, redaction)| (redaction.path_json(), (redaction, self.rev(index))))
            .collect();
        let revs = after
            .iter()
            .map(|new| match old.remove(new.path_json()) {
                Some((old, rev)) => rev + u64::from(old.digest() != new.digest()),
                None => self
                    .gone
                    .as_mut()
                    .map_or(1, |gone| gone.come_back(new.path_json())),
            })
            .collect();
        // In the order of the paths, so that what is folded away first does not depend on a hash.
        for redaction in before {
            if let Some((_, rev)) = old.remove(redaction.path_json()) {
                self.gone
                    .get_or_insert_default()
                    .remember(redaction.path_json(), rev);
            }
        }
        revs
    }
}

fn has_same_paths(before: &[Redaction], after: &[Redaction]) -> bool {
    before.len() == after.len()
        && before
            .iter()
            .zip(after)
            .all(|(old, new)| old.path_json() == new.path_json())
}

/// The last revisions of paths that are gone, the most recent at the end.
#[derive(Debug, Default)]
struct Gone {
    paths: VecDeque<(Box<str>, u64)>,
    /// The highest revision of those that are no longer in `paths`: a new path starts above it.
    floor: u64,
}

/// The most gone paths remembered one by one for an object. Beyond it a new path may start above 1, which is no harm:
/// what counts is that no revision names two values. It keeps an object whose keys change for ever from growing.
const GONE_PATHS: usize = 64;

impl Gone {
    fn remember(&mut self, path: &str, rev: u64) {
        self.paths.push_back((path.into(), rev));
        if self.paths.len() > GONE_PATHS
            && let Some((_, rev)) = self.paths.pop_front()
        {
            self.floor = self.floor.max(rev);
        }
    }

    /// The revision of a path that was not withheld before this state.
    fn come_back(&mut self, path: &str) -> u64 {
        let at = self.paths.iter().position(|(gone, _)| **gone == *path);
        at.and_then(|at| self.paths.remove(at))
            .map_or(self.floor, |(_, rev)| rev)
            + 1
    }
}

#[cfg(test)]
mod tests;
