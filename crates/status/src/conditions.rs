//! The list of an object's conditions, and how one is put into it.

use serde::{Deserialize, Serialize};

use crate::{Condition, ConditionStatus, ConditionUpdate, READY, STALLED, Timestamp};

/// `status.conditions`: the conditions of one object, its own and those of others, in the order in which they were read.
///
/// ```
/// use krm_stream_status::{ConditionStatus, ConditionUpdate, Conditions, Timestamp};
///
/// let mut conditions = Conditions::default();
/// let first = Timestamp::from_unix_seconds(100);
/// conditions.upsert(ConditionUpdate::new("Ready", ConditionStatus::False, "Replaying", "3/4"), 1, first);
/// let later = Timestamp::from_unix_seconds(102);
/// conditions.upsert(ConditionUpdate::new("Ready", ConditionStatus::False, "WatchError", "2/4"), 1, later);
///
/// let ready = conditions.get("Ready").unwrap();
/// assert_eq!((&*ready.reason, ready.last_transition_time), ("WatchError", first));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Conditions(Vec<Condition>);

impl Conditions {
    /// Puts what a condition says now in its place, or at the end if it was not there.
    ///
    /// `lastTransitionTime` becomes `now` only if the status is another one, and never goes back, whatever the clock
    /// does. `generation` is the one that was looked at. Of several conditions of one type, which no API server with a
    /// sound schema stores, the first stays.
    pub fn upsert(&mut self, update: ConditionUpdate, generation: i64, now: Timestamp) {
        let ConditionUpdate {
            type_,
            status,
            reason,
            message,
        } = update;
        let Some(place) = self.0.iter().position(|held| held.type_ == type_) else {
            self.0.push(Condition {
                type_,
                status,
                observed_generation: Some(generation),
                last_transition_time: now,
                reason,
                message,
            });
            return;
        };
        let mut index = 0;
        self.0.retain(|held| {
            let stays = held.type_ != type_ || index == place;
            index += 1;
            stays
        });
        let held = &mut self.0[place];
        if held.status != status {
            held.status = status;
            held.last_transition_time = held.last_transition_time.max(now);
        }
        held.observed_generation = Some(generation);
        held.reason = reason;
        held.message = message;
    }

    /// The condition of this type.
    pub fn get(&self, type_: &str) -> Option<&Condition> {
        self.0.iter().find(|held| held.type_ == type_)
    }

    /// Whether Ready is True. "Not ready" is everything else: False, Unknown, and a Ready that is not there.
    pub fn is_ready(&self) -> bool {
        self.status(READY) == Some(ConditionStatus::True)
    }

    /// The status of Stalled.
    pub(crate) fn stalled(&self) -> Option<ConditionStatus> {
        self.status(STALLED)
    }

    fn status(&self, type_: &str) -> Option<ConditionStatus> {
        self.get(type_).map(|held| held.status)
    }

    /// All of them, in order.
    pub fn as_slice(&self) -> &[Condition] {
        &self.0
    }
}

impl From<Vec<Condition>> for Conditions {
    fn from(conditions: Vec<Condition>) -> Self {
        Self(conditions)
    }
}

impl From<Conditions> for Vec<Condition> {
    fn from(conditions: Conditions) -> Self {
        conditions.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MESSAGE_BYTES, UNSPECIFIED};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_seconds(seconds)
    }

    fn says(type_: &'static str, status: ConditionStatus, reason: &'static str) -> ConditionUpdate {
        ConditionUpdate::new(type_, status, reason, "")
    }

    fn ready(conditions: &Conditions) -> &Condition {
        conditions.get(READY).unwrap()
    }

    #[test]
    fn the_time_moves_with_the_status_alone() {
        let mut conditions = Conditions::default();
        let mut times = Vec::new();
        for (status, reason, now) in [
            (ConditionStatus::True, "A", 10),
            (ConditionStatus::True, "B", 20),
            (ConditionStatus::False, "B", 30),
            (ConditionStatus::False, "C", 40),
            (ConditionStatus::True, "A", 50),
        ] {
            conditions.upsert(says(READY, status, reason), 1, at(now));
            times.push(ready(&conditions).last_transition_time.unix_seconds());
        }
        assert_eq!(times, [10, 10, 30, 30, 50]);
    }

    #[test]
    fn a_clock_that_goes_back_does_not_take_the_time_back() {
        let mut conditions = Conditions::default();
        conditions.upsert(says(READY, ConditionStatus::True, "A"), 1, at(100));
        conditions.upsert(says(READY, ConditionStatus::False, "B"), 1, at(40));
        assert_eq!(ready(&conditions).last_transition_time, at(100));
    }

    #[test]
    fn order_is_kept_and_others_conditions_are_left_alone() {
        let read = r#"[
            {"type":"Stalled","status":"False","lastTransitionTime":"2026-08-01T09:30:00Z","reason":"A","message":"m"},
            {"type":"Paid","status":"Unknown","observedGeneration":3,"lastTransitionTime":"2026-08-01T09:30:00Z","reason":"Z","message":""},
            {"type":"Ready","status":"True","lastTransitionTime":"2026-08-01T09:30:00Z","reason":"A","message":"m"}]"#;
        let mut conditions: Conditions = serde_json::from_str(read).unwrap();
        let paid = conditions.get("Paid").cloned();
        conditions.upsert(says(READY, ConditionStatus::False, "B"), 4, at(0));
        conditions.upsert(says("Reconciling", ConditionStatus::True, "B"), 4, at(0));
        conditions.upsert(says(STALLED, ConditionStatus::False, "B"), 4, at(0));
        let order: Vec<&str> = conditions.as_slice().iter().map(|held| &*held.type_).collect();
        assert_eq!(order, ["Stalled", "Paid", "Ready", "Reconciling"]);
        assert_eq!(conditions.get("Paid").cloned(), paid);
        assert_eq!(ready(&conditions).observed_generation, Some(4));
    }

    #[test]
    fn the_first_of_two_conditions_of_one_type_stays() {
        let mut conditions = Conditions::default();
        conditions.upsert(says(READY, ConditionStatus::True, "A"), 1, at(1));
        let twice = [conditions.as_slice(), conditions.as_slice()].concat();
        let mut conditions = Conditions::from(twice);
        conditions.upsert(says(READY, ConditionStatus::True, "B"), 1, at(2));
        assert_eq!(conditions.as_slice().len(), 1);
        assert_eq!(
            (
                &*ready(&conditions).reason,
                ready(&conditions).last_transition_time
            ),
            ("B", at(1))
        );
    }

    #[test]
    fn an_empty_reason_is_named_and_a_long_message_is_cut_between_characters() {
        let mut conditions = Conditions::default();
        // 32,768 is no multiple of three, so a cut in bytes alone would halve a character.
        let long = "語".repeat(MESSAGE_BYTES);
        conditions.upsert(
            ConditionUpdate::new(READY, ConditionStatus::Unknown, "", long),
            1,
            at(1),
        );
        assert_eq!(ready(&conditions).reason, UNSPECIFIED);
        assert_eq!(
            ready(&conditions).message.len(),
            MESSAGE_BYTES - MESSAGE_BYTES % 3
        );
        let fits = "x".repeat(MESSAGE_BYTES);
        conditions.upsert(
            ConditionUpdate::new(READY, ConditionStatus::Unknown, "", &*fits),
            1,
            at(1),
        );
        assert_eq!(ready(&conditions).message, fits);
    }

    #[test]
    fn the_json_is_that_of_a_kubernetes_condition() {
        let mut conditions = Conditions::default();
        conditions.upsert(
            ConditionUpdate::new(
                READY,
                ConditionStatus::True,
                "AllStreamsReady",
                "4 of 4 streams are ready",
            ),
            7,
            at(0),
        );
        assert_eq!(
            serde_json::to_string(&conditions).unwrap(),
            r#"[{"type":"Ready","status":"True","observedGeneration":7,"lastTransitionTime":"1970-01-01T00:00:00Z","reason":"AllStreamsReady","message":"4 of 4 streams are ready"}]"#
        );
    }

    #[test]
    fn ready_is_true_and_nothing_else() {
        let mut conditions = Conditions::default();
        assert!(!conditions.is_ready());
        for (status, is_ready) in [
            (ConditionStatus::True, true),
            (ConditionStatus::False, false),
            (ConditionStatus::Unknown, false),
        ] {
            conditions.upsert(says(READY, status, "A"), 1, at(1));
            assert_eq!(conditions.is_ready(), is_ready);
        }
    }
}
