//! The tasks that wait for a change, each in a numbered place, so that to wait again costs no search.

use std::task::{Context, Poll, Waker};

use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, PoisonError};

/// One waker for each stream that waits.
#[derive(Debug, Default)]
pub(super) struct Wakers {
    table: Mutex<Table>,
    /// How often those who waited were woken.
    wakes: AtomicU64,
}

#[derive(Debug, Default)]
struct Table {
    places: Vec<State>,
    free: Vec<Place>,
    /// The places that wait.
    waiting: Vec<Place>,
    /// How many were woken in this round and have not looked since.
    unsettled: usize,
    /// Those who were woken in an earlier round are not waited for.
    round: u64,
    /// Who waits until all are settled.
    settling: Option<Waker>,
}

/// A stream's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u32);

/// What the stream of a place does.
#[derive(Debug)]
enum State {
    Free,
    /// It has not looked yet.
    Idle,
    /// It is to be woken; `at` is where the list of those who wait names it.
    Waiting {
        waker: Waker,
        at: usize,
    },
    /// It was woken, and has not looked since.
    Woken {
        round: u64,
    },
    /// It has seen all there was, and is not woken by changes, only when all have to look.
    Resting {
        waker: Waker,
    },
}

impl Wakers {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(&self) -> Place {
        let mut table = self.table();
        if let Some(place) = table.free.pop() {
            table.places[place.0 as usize] = State::Idle;
            return place;
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "fewer streams than that fit into memory"
        )]
        let place = Place(table.places.len() as u32);
        table.places.push(State::Idle);
        place
    }

    pub(super) fn leave(&self, place: Place) {
        let mut table = self.table();
        table.stop_waiting(place, State::Free);
        table.free.push(place);
        if table.free.len() == table.places.len() {
            (table.places, table.free, table.waiting) = (Vec::new(), Vec::new(), Vec::new());
        }
        let settling = table.settled();
        drop(table);
        wake(settling);
    }

    /// Has `waker` woken at the next change.
    pub(super) fn register(&self, place: Place, waker: &Waker) {
        let mut table = self.table();
        if let State::Waiting { waker: known, .. } = &mut table.places[place.0 as usize] {
            known.clone_from(waker);
            return;
        }
        let next = State::Waiting {
            waker: waker.clone(),
            at: table.waiting.len(),
        };
        table.stop_waiting(place, next);
        table.waiting.push(place);
        let settling = table.settled();
        drop(table);
        wake(settling);
    }

    /// Has `waker` woken by the next [`rouse`](Self::rouse) in place of the next change. Returns `false`, and does nothing,
    /// where the stream was woken since it registered, or roused since it rests: it is awaited, so it has to look.
    pub(super) fn rest(&self, place: Place, waker: &Waker) -> bool {
        let mut table = self.table();
        match &mut table.places[place.0 as usize] {
            State::Resting { waker: known } => known.clone_from(waker),
            State::Waiting { .. } => {
                let waker = waker.clone();
                table.stop_waiting(place, State::Resting { waker });
            }
            State::Free | State::Idle | State::Woken { .. } => return false,
        }
        true
    }

    /// Wakes all that rest: from now on they count as woken.
    pub(super) fn rouse(&self) {
        let mut table = self.table();
        let Table {
            places,
            unsettled,
            round,
            ..
        } = &mut *table;
        let resting = |state: &&mut State| match state {
            State::Resting { .. } => true,
            State::Free | State::Idle | State::Waiting { .. } | State::Woken { .. } => false,
        };
        let woken = || State::Woken { round: *round };
        let wakers: Vec<Waker> = places
            .iter_mut()
            .filter(resting)
            .filter_map(|state| std::mem::replace(state, woken()).into_waker())
            .collect();
        *unsettled += wakers.len();
        drop(table);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// How often those who waited were woken. Whoever registered since this was asked for, and is told the same again, still
    /// waits.
    pub(super) fn wakes(&self) -> u64 {
        self.wakes.load(Ordering::Acquire)
    }

    /// Wakes all that wait. They are woken outside the lock, since a woken task may run at once and register again.
    pub(super) fn wake_all(&self) {
        let mut table = self.table();
        let Table {
            places,
            waiting,
            unsettled,
            round,
            ..
        } = &mut *table;
        *unsettled += waiting.len();
        self.wakes.fetch_add(1, Ordering::Release);
        let wakers: Vec<Waker> = waiting
            .drain(..)
            .filter_map(|place| {
                let woken = State::Woken { round: *round };
                std::mem::replace(&mut places[place.0 as usize], woken).into_waker()
            })
            .collect();
        drop(table);
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(super) fn poll_settled(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut table = self.table();
        if table.unsettled == 0 {
            return Poll::Ready(());
        }
        table.settling = Some(cx.waker().clone());
        Poll::Pending
    }

    pub(super) fn unsettled(&self) -> usize {
        self.table().unsettled
    }

    pub(super) fn give_up_unsettled(&self) {
        let mut table = self.table();
        table.unsettled = 0;
        table.round += 1;
        table.settling = None;
    }
}

impl State {
    fn into_waker(self) -> Option<Waker> {
        match self {
            Self::Waiting { waker, .. } | Self::Resting { waker } => Some(waker),
            Self::Free | Self::Idle | Self::Woken { .. } => None,
        }
    }
}

impl Table {
    /// Puts a place into another state than the one it is in, and takes it off the books of that.
    fn stop_waiting(&mut self, place: Place, next: State) {
        match std::mem::replace(&mut self.places[place.0 as usize], next) {
            State::Waiting { at, .. } => {
                self.waiting.swap_remove(at);
                if let Some(moved) = self.waiting.get(at)
                    && let State::Waiting { at: known, .. } = &mut self.places[moved.0 as usize]
                {
                    *known = at;
                }
            }
            State::Woken { round } if round == self.round => self.unsettled -= 1,
            State::Free | State::Idle | State::Woken { .. } | State::Resting { .. } => {}
        }
    }

    fn settled(&mut self) -> Option<Waker> {
        self.settling.take_if(|_| self.unsettled == 0)
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests;
