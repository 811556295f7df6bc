//! What a feed knows, and how an upstream's events change it. No I/O, no clock.

use std::cmp::Ordering::{Equal, Greater, Less};
use std::collections::HashSet;
use std::sync::Arc;

use krm_stream_protocol::{Identity, Ordering, ResourceVersion, StreamError};

use super::held::Held;
use super::limits::{Exceeded, Limits};
use crate::changelog::{Changelog, Identified, Retired, Snapshot};
use crate::settings::FeedSettings;

pub(crate) type FeedChangelog = Changelog<Arc<Identity>, Option<ResourceVersion>, Held>;
type FeedSnapshot = Snapshot<Arc<Identity>, Option<ResourceVersion>, Held>;
type FeedRetired = Retired<Arc<Identity>, Option<ResourceVersion>, Held>;

impl Identified for Identity {
    fn uid(&self) -> &str {
        &self.uid
    }
}

/// The state of one feed.
#[derive(Debug)]
pub(crate) struct FeedState {
    pub(crate) changelog: FeedChangelog,
    ordering: Ordering,
    /// Whether a lost snapshot is streamed as it arrives again, instead of being built aside.
    streams_snapshots: bool,
    snapshot: SnapshotProgress,
    limits: Limits,
    /// What the objects in the changelog amount to.
    bytes: u64,
    pub(crate) over: Option<Over>,
}

/// How a feed that is over leaves its streams.
#[derive(Clone, Debug)]
pub(crate) enum Over {
    /// Each ends with this error.
    Told(StreamError),
    /// Each begins a cycle of its own, and is refused, if so, as itself. With what the API server refused the feed with, if
    /// it did.
    EachByItself(Option<StreamError>),
}

/// How far the snapshot of the present upstream session is.
#[derive(Debug)]
enum SnapshotProgress {
    /// It arrives in the changelog itself, which nobody has read to an end.
    Streaming,
    /// The same, read again from its start: whoever is not seen by the boundary is gone.
    StreamingAgain { seen: HashSet<Box<str>> },
    /// It is built aside; the changelog serves what it has.
    Aside { snapshot: FeedSnapshot, bytes: u64 },
    /// It is complete.
    Complete,
}

/// One change, projected.
#[derive(Debug)]
pub(crate) enum Change {
    /// Here is the state of an object.
    Upsert {
        identity: Arc<Identity>,
        version: Option<ResourceVersion>,
        held: Held,
    },
    /// An object left.
    Delete {
        identity: Arc<Identity>,
        version: Option<ResourceVersion>,
    },
}

/// What came of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applied {
    /// Streams have something to take in.
    Changed,
    /// Nothing that a browser would see.
    Suppressed,
    /// Older than what the feed has, or about an object it does not know.
    Dropped,
    /// It went into a snapshot that is built aside.
    Aside,
    /// It was not taken: the scope is larger than the host allows.
    OverLimit(Exceeded),
}

impl FeedState {
    pub(crate) fn new(settings: &FeedSettings, streams_snapshots: bool) -> Self {
        Self {
            changelog: Changelog::new(settings.queue_depth),
            ordering: settings.ordering,
            streams_snapshots,
            snapshot: SnapshotProgress::Streaming,
            limits: Limits::of(settings),
            bytes: 0,
            over: None,
        }
    }

    /// A fresh session is about to be asked for: its snapshot will replace what the feed has.
    pub(crate) fn begin_snapshot(&mut self) -> Option<FeedRetired> {
        match &self.snapshot {
            SnapshotProgress::Streaming if self.changelog.head() == 0 => None,
            // Streams that were in this cycle begin another: what they were sent of it may be gone by now.
            SnapshotProgress::Streaming | SnapshotProgress::StreamingAgain { .. } => {
                self.snapshot = SnapshotProgress::Streaming;
                self.bytes = 0;
                Some(self.changelog.begin_epoch())
            }
            SnapshotProgress::Complete if self.streams_snapshots => {
                self.snapshot = SnapshotProgress::Streaming;
                self.bytes = 0;
                Some(self.changelog.begin_epoch())
            }
            SnapshotProgress::Complete | SnapshotProgress::Aside { .. } => {
                self.changelog.lose_continuity();
                self.snapshot = SnapshotProgress::aside();
                None
            }
        }
    }

    /// The session reads its snapshot again from the start.
    pub(crate) fn restart_snapshot(&mut self) {
        match &mut self.snapshot {
            SnapshotProgress::Streaming => {
                self.snapshot = SnapshotProgress::StreamingAgain { seen: HashSet::new() };
            }
            SnapshotProgress::StreamingAgain { seen } => seen.clear(),
            SnapshotProgress::Aside { .. } => self.snapshot = SnapshotProgress::aside(),
            SnapshotProgress::Complete => {}
        }
    }

    /// The snapshot is complete.
    pub(crate) fn reach_boundary(&mut self) -> Option<FeedRetired> {
        // Those that were not deleted before.
        for deletion in self.unseen() {
            self.apply(deletion);
        }
        match std::mem::replace(&mut self.snapshot, SnapshotProgress::Complete) {
            SnapshotProgress::Streaming | SnapshotProgress::StreamingAgain { .. } => {
                self.changelog.reach_boundary();
            }
            SnapshotProgress::Aside { snapshot, bytes } => {
                self.bytes = bytes;
                return Some(self.changelog.swap(snapshot));
            }
            SnapshotProgress::Complete => {}
        }
        None
    }

    /// The deletion of each object that a snapshot which is read again does not hold, if its boundary is reached now. Streams
    /// that have the first reading owe each of them, so that it may be too many for one change.
    pub(crate) fn unseen(&self) -> Vec<Change> {
        match &self.snapshot {
            SnapshotProgress::StreamingAgain { seen } => self
                .changelog
                .objects()
                .filter(|object| !seen.contains(&object.identity.uid))
                .map(|object| Change::Delete {
                    identity: Arc::clone(object.identity),
                    version: object.version.clone(),
                })
                .collect(),
            SnapshotProgress::Streaming | SnapshotProgress::Aside { .. } | SnapshotProgress::Complete => {
                Vec::new()
            }
        }
    }

    fn remove(&mut self, uid: &str, version: Option<ResourceVersion>) -> bool {
        let bytes = self.changelog.payload_of(uid).map_or(0, Held::bytes);
        self.bytes -= bytes;
        self.changelog.delete(uid, version)
    }

    /// Applies one change. Within a cycle no state of a uid that is older than one already taken in is taken.
    pub(crate) fn apply(&mut self, change: Change) -> Applied {
        if let SnapshotProgress::StreamingAgain { seen } = &mut self.snapshot {
            match &change {
                Change::Upsert { identity, .. } => seen.insert(identity.uid.clone()),
                Change::Delete { identity, .. } => seen.remove(&identity.uid),
            };
        }
        match (&mut self.snapshot, change) {
            (
                SnapshotProgress::Aside { snapshot, bytes },
                Change::Upsert {
                    identity,
                    version,
                    held,
                },
            ) => {
                let known = snapshot.version_of(&identity.uid).and_then(Option::as_ref);
                if is_older(self.ordering, version.as_ref(), known, Equality::IsOld) {
                    return Applied::Aside;
                }
                let before = snapshot.payload_of(&identity.uid);
                match self.limits.grown(snapshot.len(), *bytes, &held, before) {
                    Ok(grown) => *bytes = grown,
                    Err(exceeded) => return Applied::OverLimit(exceeded),
                }
                snapshot.upsert(identity, version, held);
                Applied::Aside
            }
            (SnapshotProgress::Aside { snapshot, bytes }, Change::Delete { identity, version }) => {
                *bytes -= snapshot.payload_of(&identity.uid).map_or(0, Held::bytes);
                snapshot.delete(&identity.uid, version);
                Applied::Aside
            }
            (
                SnapshotProgress::Streaming
                | SnapshotProgress::StreamingAgain { .. }
                | SnapshotProgress::Complete,
                Change::Upsert {
                    identity,
                    version,
                    held,
                },
            ) => self.upsert(identity, version, held),
            (
                SnapshotProgress::Streaming
                | SnapshotProgress::StreamingAgain { .. }
                | SnapshotProgress::Complete,
                Change::Delete { identity, version },
            ) => self.delete(&identity, version),
        }
    }

    fn upsert(&mut self, identity: Arc<Identity>, version: Option<ResourceVersion>, held: Held) -> Applied {
        let known = self.changelog.version_of(&identity.uid).and_then(Option::as_ref);
        if is_older(self.ordering, version.as_ref(), known, Equality::IsOld) {
            return Applied::Dropped;
        }
        let before = self.changelog.payload_of(&identity.uid);
        match self
            .limits
            .grown(self.changelog.live(), self.bytes, &held, before)
        {
            Ok(grown) => self.bytes = grown,
            Err(exceeded) => return Applied::OverLimit(exceeded),
        }
        let is_same = before.is_some_and(|previous| held.is_same_state(previous));
        if is_same {
            let held = held.replacing_unsent(before);
            self.changelog.upsert_suppressed(identity, version, held);
            Applied::Suppressed
        } else {
            self.changelog.upsert(identity, version, held);
            Applied::Changed
        }
    }

    fn delete(&mut self, identity: &Identity, version: Option<ResourceVersion>) -> Applied {
        let known = self.changelog.version_of(&identity.uid).and_then(Option::as_ref);
        // Some API servers send a deletion with the version of the object's last state.
        if is_older(self.ordering, version.as_ref(), known, Equality::IsNew) {
            return Applied::Dropped;
        }
        if self.remove(&identity.uid, version) {
            Applied::Changed
        } else {
            Applied::Dropped
        }
    }
}

impl SnapshotProgress {
    fn aside() -> Self {
        Self::Aside {
            snapshot: Snapshot::new(),
            bytes: 0,
        }
    }
}

/// What an equal version is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Equality {
    IsOld,
    IsNew,
}

fn is_older(
    ordering: Ordering,
    version: Option<&ResourceVersion>,
    known: Option<&ResourceVersion>,
    equality: Equality,
) -> bool {
    let (Ordering::Strict, Some(version), Some(known)) = (ordering, version, known) else {
        return false;
    };
    match version.compare(known) {
        Some(Less) => true,
        Some(Equal) => equality == Equality::IsOld,
        Some(Greater) | None => false,
    }
}

#[cfg(test)]
pub(crate) mod tests;
