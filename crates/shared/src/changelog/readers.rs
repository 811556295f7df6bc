//! How far the streams have taken the changelog in: a multiset of cursors whose least one is found at once.

use crate::sync::{Mutex, PoisonError};
use std::collections::BTreeMap;

/// The cursors of all streams that read the current epoch.
///
/// Streams move their cursors while they only read the changelog, so that many may do so at once: hence the lock, which is
/// held for two steps in a map that has as many nodes as there are distinct cursors. Those who change the changelog have it
/// for themselves and need no lock.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    cursors: Mutex<BTreeMap<u64, usize>>,
}

impl Readers {
    pub(crate) fn enter(&self, cursor: u64) {
        let mut cursors = self.cursors.lock().unwrap_or_else(PoisonError::into_inner);
        *cursors.entry(cursor).or_default() += 1;
    }

    pub(crate) fn advance(&self, from: u64, to: u64) {
        let mut cursors = self.cursors.lock().unwrap_or_else(PoisonError::into_inner);
        remove(&mut cursors, from);
        *cursors.entry(to).or_default() += 1;
    }

    pub(crate) fn leave(&self, cursor: u64) {
        remove(
            &mut self.cursors.lock().unwrap_or_else(PoisonError::into_inner),
            cursor,
        );
    }

    /// Everything up to here was taken in by all; `None` if nobody reads.
    pub(super) fn taken_in(&mut self) -> Option<u64> {
        let cursors = self.cursors.get_mut().unwrap_or_else(PoisonError::into_inner);
        cursors.first_key_value().map(|(&cursor, _)| cursor)
    }

    /// A new epoch begins: nobody reads it yet.
    pub(super) fn clear(&mut self) {
        self.cursors
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    pub(super) fn count(&self) -> usize {
        self.cursors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .sum()
    }
}

fn remove(cursors: &mut BTreeMap<u64, usize>, cursor: u64) {
    if let Some(count) = cursors.get_mut(&cursor) {
        *count -= 1;
        if *count == 0 {
            cursors.remove(&cursor);
        }
    }
}
