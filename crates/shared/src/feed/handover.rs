//! How changes reach the streams that wait for them: the state under its lock, and who is to be woken.
//!
//! # Rules
//! - A stream registers and looks under one hold of the lock; whoever changes the state wakes after releasing it. So a change
//!   was either seen by the look, or wakes the stream.
//! - Streams that were woken and have not looked yet are *unsettled*. Whoever is about to make changes that may not pile up
//!   can wait until there are none. Since a stream registers while it holds the lock, the next change comes after its look.
//! - A stream that has seen all there is may *rest*: changes do not wake it, and nobody waits for it. Whoever is about to make
//!   changes that may not pile up *rouses* those that rest first; from then on they are unsettled like all the others.

mod wakers;

use std::task::{Context, Poll, Waker};

pub(crate) use self::wakers::Place;
use self::wakers::Wakers;
use crate::sync::{PoisonError, RwLock, RwLockReadGuard};

/// A state that one task changes and any number of tasks look at.
#[derive(Debug)]
pub(crate) struct Handover<S> {
    state: RwLock<S>,
    wakers: Wakers,
}

impl<S> Handover<S> {
    pub(crate) fn new(state: S) -> Self {
        Self {
            state: RwLock::new(state),
            wakers: Wakers::default(),
        }
    }

    /// A place for a stream, to be given to [`leave`](Self::leave) in the end.
    pub(crate) fn enter(&self) -> Place {
        self.wakers.enter()
    }

    pub(crate) fn leave(&self, place: Place) {
        self.wakers.leave(place);
    }

    /// Looks at the state without waiting for a change.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, S> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the state, and has `waker` woken at the next change.
    pub(crate) fn look(&self, place: Place, waker: &Waker) -> RwLockReadGuard<'_, S> {
        let state = self.read();
        self.wakers.register(place, waker);
        state
    }

    /// Has `waker` woken when streams are roused, no longer at the next change. Returns `false`, and does nothing, if the stream
    /// was woken or roused since its latest look: it has to look first.
    pub(crate) fn rest(&self, place: Place, waker: &Waker) -> bool {
        self.wakers.rest(place, waker)
    }

    /// Wakes all that rest: they have to look.
    pub(crate) fn rouse(&self) {
        self.wakers.rouse();
    }

    /// How often those who waited were woken. A stream that asked for this before its latest look, and is told the same again,
    /// still waits, and has seen all there is to see: it need not look.
    pub(crate) fn wakes(&self) -> u64 {
        self.wakers.wakes()
    }

    /// Makes a change and, if `change` says that there is something to see, wakes all who wait. What else it returns is
    /// handed on after the lock was released.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut S) -> (R, Visible)) -> R {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let (result, visible) = change(&mut state);
        drop(state);
        match visible {
            Visible::Yes => self.wakers.wake_all(),
            Visible::No => {}
        }
        result
    }

    /// Ready when every stream that was woken has looked since, or has left.
    pub(crate) fn poll_settled(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.wakers.poll_settled(cx)
    }

    /// How many streams were woken and have not looked since, but for those who were given up.
    pub(crate) fn unsettled(&self) -> usize {
        self.wakers.unsettled()
    }

    /// Waits no longer for those who are unsettled now: they are stuck.
    pub(crate) fn give_up_unsettled(&self) {
        self.wakers.give_up_unsettled();
    }
}

/// Whether a change is one that streams have to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visible {
    Yes,
    No,
}

impl From<bool> for Visible {
    fn from(is_visible: bool) -> Self {
        if is_visible { Self::Yes } else { Self::No }
    }
}
