//! The latest state of one uid.

/// One uid's node in the changelog, in a slot of its own from its first appearance until its tombstone is dropped.
#[derive(Debug)]
pub(crate) struct Entry<I, V, P> {
    pub(crate) identity: I,
    /// The greatest resourceVersion seen of this uid; the caller orders them.
    pub(crate) version: V,
    /// The position of the last change. Zero is before every position.
    pub(crate) position: u64,
    /// The position of the first appearance, kept while the tombstone is kept.
    pub(crate) first: u64,
    /// The position of the last return: of the first appearance, or of the first state after the last death.
    pub(crate) back: u64,
    /// The position of the last death, zero if there was none.
    pub(crate) died: u64,
    pub(crate) life: Life<P>,
}

/// Whether the object is there, and if so what a stream sends of it.
#[derive(Debug)]
pub(crate) enum Life<P> {
    Live(P),
    Tombstone,
}

impl<I, V, P> Entry<I, V, P> {
    /// What a stream sends, unless this is a tombstone.
    pub(crate) fn payload(&self) -> Option<&P> {
        match &self.life {
            Life::Live(payload) => Some(payload),
            Life::Tombstone => None,
        }
    }

    pub(crate) fn is_live(&self) -> bool {
        self.payload().is_some()
    }

    /// Whether a stream that has taken in everything up to `cursor` may hold an object that has left since, although the
    /// uid is there again.
    pub(crate) fn left_since(&self, cursor: u64) -> bool {
        self.first <= cursor && cursor < self.died
    }

    /// Whether the object came, or came back, after `cursor`.
    pub(crate) fn came_since(&self, cursor: u64) -> bool {
        self.back > cursor
    }
}
