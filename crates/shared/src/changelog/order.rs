//! Slots in the order in which they were appended: a doubly linked list through an array, so that each step is O(1).

/// A list in which each slot stands at most once.
#[derive(Debug)]
pub(super) struct SlotOrder {
    links: Vec<Links>,
    first: u32,
    last: u32,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Links {
    before: u32,
    after: u32,
}

/// No slot has this number.
const NONE: u32 = u32::MAX;

const UNLINKED: Links = Links {
    before: NONE,
    after: NONE,
};

impl SlotOrder {
    pub(super) const fn new() -> Self {
        Self {
            links: Vec::new(),
            first: NONE,
            last: NONE,
            len: 0,
        }
    }

    /// Appends a slot that is not in the list.
    pub(super) fn push_last(&mut self, slot: u32) {
        let index = slot as usize;
        if index >= self.links.len() {
            self.links.resize(index + 1, UNLINKED);
        }
        self.links[index] = Links {
            before: self.last,
            after: NONE,
        };
        if self.last == NONE {
            self.first = slot;
        } else {
            self.links[self.last as usize].after = slot;
        }
        self.last = slot;
        self.len += 1;
    }

    /// Takes a slot out that is in the list.
    pub(super) fn remove(&mut self, slot: u32) {
        let Links { before, after } = std::mem::replace(&mut self.links[slot as usize], UNLINKED);
        if before == NONE {
            self.first = after;
        } else {
            self.links[before as usize].after = after;
        }
        if after == NONE {
            self.last = before;
        } else {
            self.links[after as usize].before = before;
        }
        self.len -= 1;
    }

    /// Gives back the memory of slots from this number on; none of them is in the list.
    pub(super) fn truncate(&mut self, slots: usize) {
        self.links.truncate(slots);
        if self.links.len() < self.links.capacity() / 4 {
            self.links.shrink_to(self.links.len() * 2);
        }
    }

    pub(super) fn first(&self) -> Option<u32> {
        some(self.first)
    }

    pub(super) fn last(&self) -> Option<u32> {
        some(self.last)
    }

    pub(super) fn before(&self, slot: u32) -> Option<u32> {
        some(self.links[slot as usize].before)
    }

    pub(super) fn after(&self, slot: u32) -> Option<u32> {
        some(self.links[slot as usize].after)
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }
}

fn some(slot: u32) -> Option<u32> {
    (slot != NONE).then_some(slot)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forward(order: &SlotOrder) -> Vec<u32> {
        std::iter::successors(order.first(), |&slot| order.after(slot)).collect()
    }

    fn backward(order: &SlotOrder) -> Vec<u32> {
        std::iter::successors(order.last(), |&slot| order.before(slot)).collect()
    }

    #[test]
    fn agrees_with_a_plain_vector_for_every_short_sequence_of_moves() {
        // Base-4 digits of a number choose one of four slots, which is appended, or moved to the end by way of removal.
        for moves in 0..4_u32.pow(7) {
            let (mut order, mut plain) = (SlotOrder::new(), Vec::new());
            for step in 0..7 {
                let slot = moves / 4_u32.pow(step) % 4;
                if let Some(at) = plain.iter().position(|&s| s == slot) {
                    plain.remove(at);
                    order.remove(slot);
                    if step % 2 == 0 {
                        continue;
                    }
                }
                plain.push(slot);
                order.push_last(slot);
            }
            assert_eq!(forward(&order), plain);
            assert_eq!(order.len(), plain.len());
            plain.reverse();
            assert_eq!(backward(&order), plain);
        }
    }
}
