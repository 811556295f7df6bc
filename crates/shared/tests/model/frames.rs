//! The frames of a stream as plain values, and the two ways to a list of them.

use std::fmt;
use std::sync::Arc;

use krm_stream_shared as shared;
use krm_stream_shared::{Identified, ResyncReason, Sink, Spelling};

/// An object's uid, which is all its identity here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Uid(pub(crate) Arc<str>);

impl Uid {
    pub(crate) fn numbered(n: u64) -> Self {
        Self(format!("u{n}").into())
    }
}

impl Identified for Uid {
    fn uid(&self) -> &str {
        &self.0
    }
}

/// A state of an object: what a browser would see, and a version that may change alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) content: u64,
    pub(crate) resource_version: u64,
}

impl State {
    pub(crate) fn new(n: u64) -> Self {
        Self {
            content: n,
            resource_version: n,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Reset,
    Upsert {
        spelling: Spelling,
        uid: Uid,
        state: State,
        position: u64,
    },
    Deleted(Uid),
    Synced,
    Resync(ResyncReason),
    SlowConsumer,
}

/// As the model would print it, without quotes and brackets.
impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reset => f.write_str("reset"),
            Self::Upsert {
                spelling: Spelling::Added,
                uid,
                state,
                position,
            } => {
                write!(f, "added {} {} {position}", uid.0, state.content)
            }
            Self::Upsert {
                spelling: Spelling::Modified,
                uid,
                state,
                position,
            } => {
                write!(f, "modified {} {} {position}", uid.0, state.content)
            }
            Self::Deleted(uid) => write!(f, "deleted {}", uid.0),
            Self::Synced => f.write_str("synced"),
            Self::Resync(_) => f.write_str("error RESYNC_REQUIRED"),
            Self::SlowConsumer => f.write_str("error SLOW_CONSUMER"),
        }
    }
}

/// How much a poll may send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) objects: usize,
    pub(crate) deletions: usize,
}

impl Budget {
    pub(crate) fn objects(objects: usize) -> Self {
        Self {
            objects,
            deletions: usize::MAX,
        }
    }
}

/// Collects what a sweep sends, within a budget.
pub(crate) struct Collected {
    pub(crate) frames: Vec<Frame>,
    left: Budget,
}

impl Collected {
    pub(crate) fn within(budget: Budget) -> Self {
        Self {
            frames: Vec::new(),
            left: budget,
        }
    }
}

impl Sink<Uid, State> for Collected {
    fn has_room(&self) -> bool {
        self.left.objects > 0
    }

    fn has_room_for_deletion(&self) -> bool {
        self.left.deletions > 0
    }

    fn push(&mut self, frame: shared::Frame<'_, Uid, State>) {
        self.frames.push(match frame {
            shared::Frame::Reset => Frame::Reset,
            shared::Frame::Upsert {
                spelling,
                identity,
                payload,
                position,
            } => {
                self.left.objects -= 1;
                Frame::Upsert {
                    spelling,
                    uid: identity.clone(),
                    state: *payload,
                    position,
                }
            }
            shared::Frame::Deleted { identity } => {
                self.left.deletions -= 1;
                Frame::Deleted(identity.clone())
            }
            shared::Frame::Synced => Frame::Synced,
            shared::Frame::Resync(reason) => Frame::Resync(reason),
            shared::Frame::SlowConsumer => Frame::SlowConsumer,
        });
    }
}
