//! What a stream owes while it is behind: two bits a slot, and no memory at all while it owes nothing.

/// A set of slots that are due, a part of which was never sent since the object came.
#[derive(Debug, Default)]
pub(super) struct Owed {
    words: Vec<Word>,
    due: usize,
}

/// The bits of 64 slots. `unsent` is within `due`.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    due: u64,
    unsent: u64,
}

impl Owed {
    pub(super) fn is_empty(&self) -> bool {
        self.due == 0
    }

    /// Takes memory for so many slots at once, rather than in steps.
    pub(super) fn reserve(&mut self, slots: u32) {
        let words = (slots as usize).div_ceil(64);
        self.words.reserve_exact(words.saturating_sub(self.words.len()));
    }

    /// The slot's latest state is due; what was unsent stays so.
    pub(super) fn owe(&mut self, slot: u32) {
        let (index, bit) = place(slot);
        if index >= self.words.len() {
            self.words.resize(index + 1, Word::default());
        }
        let word = &mut self.words[index];
        self.due += usize::from(word.due & bit == 0);
        word.due |= bit;
    }

    /// The slot's latest state is due, and the stream was never sent this object.
    pub(super) fn owe_unsent(&mut self, slot: u32) {
        self.owe(slot);
        let (index, bit) = place(slot);
        self.words[index].unsent |= bit;
    }

    pub(super) fn is_unsent(&self, slot: u32) -> bool {
        let (index, bit) = place(slot);
        self.words.get(index).is_some_and(|word| word.unsent & bit != 0)
    }

    /// The slot is no longer due: it was sent, or the object is gone. Returns whether it was unsent.
    pub(super) fn settle(&mut self, slot: u32) -> bool {
        let (index, bit) = place(slot);
        let Some(word) = self.words.get_mut(index) else {
            return false;
        };
        let was_unsent = word.unsent & bit != 0;
        self.due -= usize::from(word.due & bit != 0);
        word.due &= !bit;
        word.unsent &= !bit;
        self.release_if_empty();
        was_unsent
    }

    /// Gives the memory back if nothing is due.
    pub(super) fn release_if_empty(&mut self) {
        if self.due == 0 {
            self.words = Vec::new();
        }
    }

    /// The first slot from this one on that is due.
    pub(super) fn next_due(&self, from: u32) -> Option<u32> {
        self.next(from, |word| word.due)
    }

    /// The first slot from this one on that is unsent.
    pub(super) fn next_unsent(&self, from: u32) -> Option<u32> {
        self.next(from, |word| word.unsent)
    }

    fn next(&self, from: u32, bits: impl Fn(&Word) -> u64) -> Option<u32> {
        let (first, _) = place(from);
        let mut mask = u64::MAX << (from % 64);
        let mut base = from - from % 64;
        for word in self.words.get(first..)? {
            let bits = bits(word) & mask;
            if bits != 0 {
                return Some(base + bits.trailing_zeros());
            }
            mask = u64::MAX;
            base += 64;
        }
        None
    }

    /// Bytes of memory that this takes beside itself.
    pub(super) fn memory(&self) -> usize {
        self.words.capacity() * size_of::<Word>()
    }
}

fn place(slot: u32) -> (usize, u64) {
    (slot as usize / 64, 1 << (slot % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn agrees_with_plain_sets_over_many_steps() {
        let (mut owed, mut due, mut unsent) = (Owed::default(), BTreeSet::new(), BTreeSet::new());
        let mut state = 7_u32;
        for _ in 0..20_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let slot = (state >> 8) % 200;
            match state >> 30 {
                0 => {
                    owed.owe(slot);
                    due.insert(slot);
                }
                1 => {
                    owed.owe_unsent(slot);
                    due.insert(slot);
                    unsent.insert(slot);
                }
                _ => {
                    due.remove(&slot);
                    assert_eq!(owed.settle(slot), unsent.remove(&slot));
                }
            }
            assert_eq!(owed.is_empty(), due.is_empty());
            assert_eq!(owed.is_unsent(slot), unsent.contains(&slot));
            assert_eq!(owed.next_due(slot), due.range(slot..).next().copied());
            assert_eq!(owed.next_unsent(slot), unsent.range(slot..).next().copied());
        }
    }

    #[test]
    fn costs_two_bits_a_slot_and_nothing_when_empty() {
        let mut owed = Owed::default();
        assert_eq!(owed.memory(), 0);
        owed.reserve(64_000);
        for slot in 0..64_000 {
            owed.owe_unsent(slot);
        }
        assert_eq!(owed.memory(), 64_000 * 2 / 8);
        for slot in 0..64_000 {
            owed.settle(slot);
        }
        assert_eq!(owed.memory(), 0);
    }
}
