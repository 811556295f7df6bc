//! What a conforming browser holds after the frames of one connection, and what it would complain of.

use std::collections::{BTreeMap, BTreeSet};

use krm_stream_shared::Spelling;

use crate::frames::{Frame, State, Uid};

#[derive(Default)]
pub(crate) struct Consumer {
    pub(crate) state: BTreeMap<Uid, State>,
    unseen: BTreeSet<Uid>,
    phase: Phase,
    /// The position last sent of each uid in this cycle.
    pub(crate) sent: BTreeMap<Uid, u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    NoCycle,
    Snapshot,
    Live,
    Ended,
}

/// Fails with the given text unless the condition holds.
macro_rules! check {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err(format!($($text)+));
        }
    };
}
pub(crate) use check;

impl Consumer {
    /// Whether it holds a complete snapshot.
    pub(crate) fn is_live(&self) -> bool {
        self.phase == Phase::Live
    }

    pub(crate) fn apply(&mut self, frame: &Frame) -> Result<(), String> {
        check!(self.phase != Phase::Ended, "{frame} after the last event");
        match frame {
            Frame::Reset => {
                check!(self.phase == Phase::NoCycle, "a reset within a cycle");
                self.unseen = self.state.keys().cloned().collect();
                self.sent.clear();
                self.phase = Phase::Snapshot;
            }
            Frame::Upsert {
                spelling,
                uid,
                state,
                position,
            } => {
                check!(
                    matches!(self.phase, Phase::Snapshot | Phase::Live),
                    "{frame} outside a cycle"
                );
                check!(
                    self.sent.get(uid).is_none_or(|sent| sent < position),
                    "{frame} went backwards"
                );
                let expected = match self.phase {
                    Phase::Live if self.state.contains_key(uid) => Spelling::Modified,
                    Phase::Live | Phase::Snapshot | Phase::NoCycle | Phase::Ended => Spelling::Added,
                };
                check!(*spelling == expected, "{frame} should be {expected:?}");
                self.sent.insert(uid.clone(), *position);
                self.state.insert(uid.clone(), *state);
                self.unseen.remove(uid);
            }
            Frame::Deleted(uid) => {
                check!(
                    matches!(self.phase, Phase::Snapshot | Phase::Live),
                    "{frame} outside a cycle"
                );
                self.state.remove(uid);
                self.unseen.remove(uid);
            }
            Frame::Synced => {
                check!(self.phase == Phase::Snapshot, "synced outside a snapshot");
                for uid in std::mem::take(&mut self.unseen) {
                    self.state.remove(&uid);
                }
                self.phase = Phase::Live;
            }
            Frame::Resync(_) => self.phase = Phase::NoCycle,
            Frame::SlowConsumer => self.phase = Phase::Ended,
        }
        Ok(())
    }

    /// The connection left its cycle of its own accord.
    pub(crate) fn leave(&mut self) {
        self.phase = Phase::NoCycle;
    }
}
