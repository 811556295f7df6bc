//! Readiness over several gates: the worst of them wins, and three conditions tell it together.

use std::borrow::Cow;

use crate::{ConditionStatus, ConditionUpdate, Conditions, READY, RECONCILING, STALLED, Timestamp};

/// What one part of a controller's work says about the whole: its streams are one gate, others are the controller's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    level: Level,
    reason: Cow<'static, str>,
    message: String,
}

/// How far a gate has come, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// As it was asked for.
    Converged,
    /// On its way, by itself.
    Progressing(NotReady),
    /// Not going on by itself, or not for now.
    Stalled,
}

/// What Ready says while something is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReady {
    /// Not yet: Ready is False.
    NotYet,
    /// Not established, so nobody can say: Ready is Unknown.
    NotEstablished,
}

impl Gate {
    /// A gate at this level. `reason` is one word in `CamelCase`; it and `message` are published if this gate wins.
    pub fn new(level: Level, reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self {
            level,
            reason: reason.into(),
            message: message.into(),
        }
    }

    /// The level.
    pub const fn level(&self) -> Level {
        self.level
    }

    /// The reason.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl Level {
    const fn rank(self) -> u8 {
        match self {
            Self::Converged => 0,
            Self::Progressing(_) => 1,
            Self::Stalled => 2,
        }
    }
}

/// Takes in gates and derives Ready, Reconciling and Stalled from them, together and once.
///
/// Converged < Progressing < Stalled: the worst gate wins, and of several at one level the first, so that the order of
/// the gates says which trouble to look at first. It begins with a gate, so that a controller that looked at nothing
/// cannot call itself ready.
///
/// | worst gate | Ready | Reconciling | Stalled | kstatus reads |
/// |---|---|---|---|---|
/// | converged | True | False | False | Current |
/// | progressing | False or Unknown | True | False | `InProgress` |
/// | stalled | False | False | True | Failed |
///
/// ```
/// use krm_stream_status::{Conditions, Gate, Level, NotReady, Readiness, Timestamp};
///
/// let streams = Gate::new(Level::Converged, "AllStreamsReady", "4 of 4 streams are ready");
/// let certificate = Gate::new(Level::Progressing(NotReady::NotYet), "Issuing", "waiting for a certificate");
/// let mut conditions = Conditions::default();
/// Readiness::of(streams).and(certificate).publish(&mut conditions, 1, Timestamp::from_unix_seconds(0));
/// assert_eq!(&*conditions.get("Ready").unwrap().reason, "Issuing");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "it says nothing until it is published"]
pub struct Readiness {
    worst: Gate,
}

impl Readiness {
    /// Begins with one gate.
    pub const fn of(first: Gate) -> Self {
        Self { worst: first }
    }

    /// Takes in a further gate.
    pub fn and(self, gate: Gate) -> Self {
        if gate.level.rank() > self.worst.level.rank() {
            Self { worst: gate }
        } else {
            self
        }
    }

    /// The gate that wins.
    pub const fn worst(&self) -> &Gate {
        &self.worst
    }

    /// Puts the three conditions in place. `generation` is the `metadata.generation` that the gates looked at.
    pub fn publish(self, conditions: &mut Conditions, generation: i64, now: Timestamp) {
        for update in self.into_trio() {
            conditions.upsert(update, generation, now);
        }
    }

    /// Reconciling and Stalled are written also when they are False: a tool then need not guess whether this controller
    /// has them, and what they said before is gone.
    fn into_trio(self) -> [ConditionUpdate; 3] {
        use ConditionStatus::{False, True, Unknown};

        let Gate {
            level,
            reason,
            message,
        } = self.worst;
        let (ready, reconciling, stalled) = match level {
            Level::Converged => (True, False, False),
            Level::Progressing(NotReady::NotYet) => (False, True, False),
            Level::Progressing(NotReady::NotEstablished) => (Unknown, True, False),
            Level::Stalled => (False, False, True),
        };
        let of_the_pair = |type_, status| {
            // What does not hold needs no words.
            let message = if status == True { &*message } else { "" };
            ConditionUpdate::new(type_, status, reason.clone(), message)
        };
        let reconciling = of_the_pair(RECONCILING, reconciling);
        let stalled = of_the_pair(STALLED, stalled);
        [
            ConditionUpdate::new(READY, ready, reason, message),
            reconciling,
            stalled,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(level: Level, reason: &'static str) -> Gate {
        Gate::new(level, reason, "in words")
    }

    fn winner(gates: &[Gate]) -> String {
        let [first, rest @ ..] = gates else {
            panic!("no gate")
        };
        let readiness = rest
            .iter()
            .cloned()
            .fold(Readiness::of(first.clone()), Readiness::and);
        readiness.worst().reason().to_owned()
    }

    #[test]
    fn the_worst_gate_wins_and_the_first_at_its_level_keeps_it() {
        let good = gate(Level::Converged, "Good");
        let also_good = gate(Level::Converged, "AlsoGood");
        let not_yet = gate(Level::Progressing(NotReady::NotYet), "NotYet");
        let unclear = gate(Level::Progressing(NotReady::NotEstablished), "Unclear");
        let bad = gate(Level::Stalled, "Bad");
        let worse = gate(Level::Stalled, "AlsoBad");
        for (gates, wins) in [
            (vec![&good, &also_good], "Good"),
            (vec![&good, &not_yet], "NotYet"),
            (vec![&not_yet, &good], "NotYet"),
            (vec![&not_yet, &unclear], "NotYet"),
            (vec![&unclear, &not_yet], "Unclear"),
            (vec![&good, &bad, &not_yet, &worse], "Bad"),
            (vec![&worse, &bad], "AlsoBad"),
        ] {
            let gates: Vec<Gate> = gates.into_iter().cloned().collect();
            assert_eq!(winner(&gates), wins);
        }
    }

    #[test]
    fn the_trio_is_written_in_full_for_each_level() {
        use ConditionStatus::{False, True, Unknown};

        for (level, ready, reconciling, stalled) in [
            (Level::Converged, True, False, False),
            (Level::Progressing(NotReady::NotYet), False, True, False),
            (Level::Progressing(NotReady::NotEstablished), Unknown, True, False),
            (Level::Stalled, False, False, True),
        ] {
            let mut conditions = Conditions::default();
            Readiness::of(gate(level, "Why")).publish(&mut conditions, 5, Timestamp::from_unix_seconds(1));
            for (type_, status) in [(READY, ready), (RECONCILING, reconciling), (STALLED, stalled)] {
                let held = conditions.get(type_).unwrap();
                assert_eq!(
                    (held.status, &*held.reason),
                    (status, "Why"),
                    "{type_} at {level:?}"
                );
                assert_eq!(held.observed_generation, Some(5));
                let has_words = type_ == READY || status == True;
                assert_eq!(held.message, if has_words { "in words" } else { "" });
            }
        }
    }
}
