//! Checks in flight: equal ones are asked once.

use std::collections::HashMap;
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::{Either, Shared, WeakShared, select};
use krm_stream_protocol::{BoxFuture, StreamError};
use tokio::sync::watch;
use tokio::time::Instant;

use super::decisions::{Decided, Decisions};
use super::question::Question;

type Outcome = Result<(), StreamError>;
/// It goes on as long as one waits for it, and ends with the last.
type Check = Shared<BoxFuture<'static, Outcome>>;

/// The checks in flight and what was decided. A clone is the same.
#[derive(Clone)]
pub(super) struct Checks(Arc<Mutex<State>>);

struct State {
    in_flight: HashMap<Arc<Question>, InFlight>,
    decisions: Decisions,
}

struct InFlight {
    /// Only those who wait keep a check alive.
    check: WeakShared<BoxFuture<'static, Outcome>>,
    sent: Sent,
}

/// When a check was sent; nothing while it waits for its turn. It tells one check from another, too.
#[derive(Clone, Debug, Default)]
pub(super) struct Sent(Arc<watch::Sender<Option<Instant>>>);

/// How a question is answered.
pub(super) enum Answer {
    /// It was decided not long ago.
    Decided(Decided),
    /// By this check.
    InFlight(Joined),
}

/// A check in flight that one more waits for.
pub(super) struct Joined {
    check: Check,
    sent: Sent,
}

impl Checks {
    pub(super) fn new(decisions: Decisions) -> Self {
        Self(Arc::new(Mutex::new(State {
            in_flight: HashMap::new(),
            decisions,
        })))
    }

    /// Answers from what was decided, by an equal check in flight, or by a new one that `begin` makes. Neither of the
    /// former may have been sent before `trigger`.
    pub(super) fn answer(
        &self,
        question: &Arc<Question>,
        trigger: Option<Instant>,
        begin: impl FnOnce(Place) -> BoxFuture<'static, Outcome>,
    ) -> Answer {
        let mut state = self.state();
        if let Some(decided) = state.decisions.find(question, trigger, Instant::now()) {
            return Answer::Decided(decided);
        }
        if let Some(joined) = state.in_flight.get(question).and_then(|it| it.join(trigger)) {
            return Answer::InFlight(joined);
        }
        let place = Place {
            checks: self.clone(),
            question: Arc::clone(question),
            sent: Sent::default(),
        };
        let sent = place.sent.clone();
        let check = begin(place).shared();
        if let Some(check) = check.downgrade() {
            state.in_flight.insert(
                Arc::clone(question),
                InFlight {
                    check,
                    sent: sent.clone(),
                },
            );
        }
        Answer::InFlight(Joined { check, sent })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Checks")
            .field("in_flight", &state.in_flight.len())
            .field("decisions", &state.decisions.len())
            .finish()
    }
}

impl InFlight {
    /// This check, unless it was sent before `trigger`.
    fn join(&self, trigger: Option<Instant>) -> Option<Joined> {
        let is_too_old = trigger.is_some_and(|trigger| self.sent.before(trigger));
        if is_too_old {
            return None;
        }
        self.check.upgrade().map(|check| Joined {
            check,
            sent: self.sent.clone(),
        })
    }
}

impl Joined {
    /// What it is answered; `on_sent` is told when it was sent, once it is.
    ///
    /// # Cancel safety
    /// Dropping the future is leaving the check; the last to leave ends it.
    pub(super) async fn answer(self, on_sent: impl FnOnce(Instant)) -> Outcome {
        let mut told = self.sent.0.subscribe();
        let is_sent = pin!(async move {
            // It cannot be given up: this check has a hand on it.
            let _ = told.wait_for(Option::is_some).await;
        });
        match select(is_sent, self.check).await {
            Either::Left(((), check)) => {
                if let Some(sent) = self.sent.get() {
                    on_sent(sent);
                }
                check.await
            }
            Either::Right((outcome, _)) => outcome,
        }
    }
}

impl Sent {
    /// From now on only those may join whose reason to ask is older.
    pub(super) fn mark(&self) {
        self.0.send_if_modified(|sent| {
            let is_first = sent.is_none();
            sent.get_or_insert_with(Instant::now);
            is_first
        });
    }

    fn get(&self) -> Option<Instant> {
        *self.0.borrow()
    }

    fn before(&self, trigger: Instant) -> bool {
        self.get().is_some_and(|sent| sent < trigger)
    }
}

/// The place of a check among those in flight. It is given up when the check ends, however it ends.
pub(super) struct Place {
    checks: Checks,
    question: Arc<Question>,
    sent: Sent,
}

impl Place {
    /// When it was sent, to be marked.
    pub(super) fn sent(&self) -> Sent {
        self.sent.clone()
    }

    /// Gives the place up for a decision. One that a later check has replaced leaves the decision to that.
    pub(super) fn keep(&self, decided: Decided) {
        let mut state = self.checks.state();
        if let Some(asked) = self.sent.get()
            && self.give_up(&mut state)
        {
            state
                .decisions
                .keep(Arc::clone(&self.question), asked, decided, Instant::now());
        }
    }

    /// Whether it had not been given up or lost before.
    fn give_up(&self, state: &mut State) -> bool {
        let is_ours = state
            .in_flight
            .get(&self.question)
            .is_some_and(|in_flight| Arc::ptr_eq(&in_flight.sent.0, &self.sent.0));
        is_ours && state.in_flight.remove(&self.question).is_some()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.checks.state();
        self.give_up(&mut state);
    }
}
