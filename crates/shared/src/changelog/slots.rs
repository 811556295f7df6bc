//! Numbered places for entries: small numbers that stay with an entry, are used again, and are given back at the end.

use super::order::SlotOrder;

/// A slab. The slot that was vacated last is used first; free slots at the end are given back.
#[derive(Debug)]
pub(super) struct Slots<T> {
    cells: Vec<Option<T>>,
    free: SlotOrder,
    /// The number of cells, which is the number of the next new slot.
    end: u32,
}

impl<T> Slots<T> {
    pub(super) const fn new() -> Self {
        Self {
            cells: Vec::new(),
            free: SlotOrder::new(),
            end: 0,
        }
    }

    pub(super) fn insert(&mut self, value: T) -> u32 {
        if let Some(slot) = self.free.last() {
            self.free.remove(slot);
            self.cells[slot as usize] = Some(value);
            return slot;
        }
        let slot = self.end;
        self.cells.push(Some(value));
        self.end += 1;
        slot
    }

    /// Empties an occupied slot.
    pub(super) fn vacate(&mut self, slot: u32) -> Option<T> {
        let value = self.cells[slot as usize].take()?;
        self.free.push_last(slot);
        Some(value)
    }

    /// Gives back the free slots at the end.
    pub(super) fn give_back(&mut self) {
        let before = self.end;
        while let Some(None) = self.cells.last() {
            self.end -= 1;
            self.free.remove(self.end);
            self.cells.pop();
        }
        if self.end < before {
            self.free.truncate(self.cells.len());
            if self.cells.len() < self.cells.capacity() / 4 {
                self.cells.shrink_to(self.cells.len() * 2);
            }
        }
    }

    pub(super) fn get(&self, slot: u32) -> Option<&T> {
        self.cells.get(slot as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.cells.get_mut(slot as usize)?.as_mut()
    }

    /// The occupied slots from this number on, in the order of their numbers.
    pub(super) fn from(&self, slot: u32) -> impl Iterator<Item = (u32, &T)> {
        (slot..self.end)
            .zip(self.cells.iter().skip(slot as usize))
            .filter_map(|(slot, cell)| Some((slot, cell.as_ref()?)))
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.cells.iter_mut().flatten()
    }

    /// One more than the greatest slot number in use.
    pub(super) fn end(&self) -> u32 {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slot_vacated_last_is_used_first_and_free_slots_at_the_end_are_given_back() {
        let mut slots = Slots::new();
        for value in 0..6 {
            assert_eq!(slots.insert(value), value);
        }
        for slot in [1, 5, 3, 4] {
            assert_eq!(slots.vacate(slot), Some(slot));
            assert_eq!(slots.vacate(slot), None, "a free slot cannot be vacated again");
        }
        slots.give_back();
        assert_eq!(
            slots.end(),
            3,
            "3, 4 and 5 were free at the end; 1 is not at the end"
        );
        assert_eq!(slots.from(0).map(|(slot, _)| slot).collect::<Vec<_>>(), [0, 2]);
        assert_eq!([slots.insert(10), slots.insert(11), slots.insert(12)], [1, 3, 4]);
        assert_eq!(slots.get(3), Some(&11));
        assert_eq!(slots.get(7), None);
    }

    #[test]
    fn memory_of_a_large_collection_is_given_back_when_it_empties() {
        let mut slots = Slots::new();
        for value in 0..10_000 {
            slots.insert(value);
        }
        for slot in (0..10_000).rev() {
            slots.vacate(slot);
            slots.give_back();
        }
        assert_eq!(slots.end(), 0);
        assert!(
            slots.cells.capacity() < 64,
            "{} cells are kept",
            slots.cells.capacity()
        );
    }
}
