//! The rules of a feed and its streams that a test can break, one at a time.

/// Declares the rules, and a list of them all.
macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident,)*) => {
        /// One rule. The naive model with this rule broken must be found out.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Rule {
            $($(#[$doc])* $rule,)*
        }

        impl Rule {
            pub(crate) const ALL: &[Self] = &[$(Self::$rule,)*];
        }
    };
}

rules! {
    /// A second boundary in an epoch does not count.
    BoundaryStays,
    /// Nothing of the old state survives a swap.
    SwapReplacesAll,
    /// Streams are told of a swap.
    SwapBeginsAnEpoch,
    /// A snapshot built aside is complete.
    SwapIsAtItsBoundary,
    /// A suppressed upsert moves no position.
    SuppressedDoesNotMove,
    /// A suppressed upsert replaces what is sent.
    SuppressedReplacesTheState,
    /// A uid that comes back keeps its first position.
    FirstIsKept,
    /// A uid that comes back is new to those who took in its death.
    ReturnMovesBack,
    /// A deletion of a dead uid does nothing.
    DeadDeletionMovesNothing,
    /// The position of a death is remembered after a return.
    DeathIsDated,
    /// The index has one node for each entry.
    OneNodeAnEntry,
    /// As many tombstones are kept as objects were live.
    KeepsAsManyAsWereLive,
    /// A tombstone stays until all streams took it in, or too many are kept.
    TrimWaitsForReaders,
    /// A tombstone that all streams took in is dropped.
    TrimDropsWhatAllTookIn,
    /// Beyond a number, tombstones are dropped.
    TombstonesAreBounded,
    /// It is remembered up to where tombstones are gone.
    TrimIsRecorded,
    /// Free slots at the end are given back.
    FreeSlotsAreGivenBack,
    /// A new cycle owes no deletion of the last one.
    CycleForgetsDeletions,
    /// A cycle that begins without continuity waits for the new snapshot.
    CycleWaitsForContinuity,
    /// A cycle owes all that is there when it begins.
    CycleOwesAll,
    /// A new epoch is not the reader's fault.
    NewEpochForgivesOverflow,
    /// An overflow in a recovery is told from a first one.
    RecoveryIsRemembered,
    /// In a recovery the queue holds as many as the feed keeps.
    RecoveryMayOweAllKept,
    /// A recovery ends with `synced`.
    SyncedEndsRecovery,
    /// A cursor before the dropped tombstones is an overflow.
    LagIsNoticed,
    /// What was taken in is not taken in again.
    CursorMoves,
    /// An object that left and came back is told `deleted` first.
    ReturnIsTold,
    /// One that was never sent is not told `deleted` when it comes back.
    UnsentReturnIsNotTold,
    /// An object that came back was not sent yet.
    ReturnIsUnsent,
    /// At the head, changes go out in the order of their positions.
    HeadSendsInOrder,
    /// An object that is gone is not due.
    DeathSettlesDue,
    /// An object that is gone is not unsent.
    DeathSettlesUnsent,
    /// The deletion of an object that was never sent is not told.
    UnsentDeletionIsNotTold,
    /// The deletion of an object that came and went unseen is not told.
    UnseenDeletionIsNotTold,
    /// The deletion of an object that was sent is told.
    DeletionIsTold,
    /// The queue holds as many deletions as its depth.
    QueueHoldsItsDepth,
    /// The queue holds no more deletions than its depth.
    QueueHoldsNoMore,
    /// Deletions go before objects.
    DeletionsGoFirst,
    /// No more objects are sent than there is room for.
    BudgetHolds,
    /// The sweep goes on where it stopped.
    SweepIsRoundRobin,
    /// Before `synced` every upsert is `added`.
    AddedBeforeSynced,
    /// After `synced` an object that was not sent yet is `added`.
    UnsentIsSpelledAdded,
    /// What was sent is no longer unsent.
    SendingSettlesUnsent,
    /// No `synced` before the boundary.
    SyncedWaitsForBoundary,
    /// `synced` covers what was live by the boundary.
    SyncedCoversBoundary,
    /// `synced` covers what was live at the cycle's begin.
    SyncedCoversBegin,
    /// `synced` does not wait for what came later.
    SyncedWaitsForNoMore,
    /// Shared bytes that are older than a dropped tombstone are not handed out.
    OldBytesAreNotHandedOut,
    /// A stream that reads shared bytes has its cursor at their position.
    BytesHaveTheirOwnCursor,
    /// A stream that leaves shared bytes owes what they still held.
    LeavingBytesOwesTheRest,
    /// What shared bytes still held is unsent.
    RestOfBytesIsUnsent,
}
