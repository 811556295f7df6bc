//! What a sweep has to say, and to whom.

/// One event of a stream, without what is the connection's own (`seq`, revisions of withheld values).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a, I, P> {
    /// A cycle begins: the consumer marks all it holds as unseen.
    Reset,
    /// The complete state of an object: the consumer replaces what it holds of this uid.
    Upsert {
        /// How the event is called.
        spelling: Spelling,
        /// Whose state it is.
        identity: &'a I,
        /// What is sent.
        payload: &'a P,
        /// The position of the object's last change. It grows from one state of a uid to the next within a cycle.
        position: u64,
    },
    /// The object has left the scope: the consumer drops the uid.
    Deleted {
        /// Who left.
        identity: &'a I,
    },
    /// The snapshot is complete: the consumer prunes what is still unseen.
    Synced,
    /// Continuity was lost; the next frame is the `Reset` of another cycle.
    Resync(ResyncReason),
    /// This reader cannot be served. Nothing follows.
    SlowConsumer,
}

/// How an upsert is spelled. Both mean the same for state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// Before `synced`, or where the stream is known not to have had the object in this cycle.
    Added,
    /// Any other.
    Modified,
}

/// Why a cycle is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResyncReason {
    /// The feed began a new epoch.
    NewEpoch,
    /// This stream missed deletions that can no longer be told, or owed more than it may.
    Overflow,
}

/// Where a sweep puts its frames, and what says how many of them.
pub trait Sink<I, P> {
    /// Whether one more object may be pushed. Asked before each object, so that a sink can count bytes; as long as the answer
    /// is no, what the stream owes stays in the changelog, where it coalesces.
    fn has_room(&self) -> bool;

    /// Whether one more deletion may be pushed. Deletions are small, go before objects and are bounded in number, so that
    /// the answer may always be yes. No object passes a deletion that waits.
    fn has_room_for_deletion(&self) -> bool {
        true
    }

    /// Takes a frame. Only the two kinds above wait for room.
    fn push(&mut self, frame: Frame<'_, I, P>);
}
