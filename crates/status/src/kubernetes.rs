//! Conversions to and from the types of `k8s-openapi`.
//!
//! ```
//! use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
//! use krm_stream_status::{ConditionStatus, ConditionUpdate, Conditions, Timestamp};
//!
//! let mut conditions = Conditions::default();
//! let ready = ConditionUpdate::new("Ready", ConditionStatus::True, "AllStreamsReady", "2 of 2 streams are ready");
//! conditions.upsert(ready, 1, Timestamp::from_unix_seconds(1_785_576_600));
//!
//! let typed: Vec<meta::Condition> = conditions.clone().into();
//! assert_eq!(typed[0].type_, "Ready");
//! assert_eq!(Conditions::try_from(typed), Ok(conditions));
//! ```

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use k8s_openapi::jiff;

use crate::{Condition, ConditionStatus, Conditions, Timestamp};

/// A condition's `status` is none of `True`, `False` and `Unknown`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a condition's status must be True, False or Unknown")]
pub struct ConditionStatusError;

impl From<Timestamp> for meta::Time {
    fn from(time: Timestamp) -> Self {
        Self(instant(time))
    }
}

impl From<meta::Time> for Timestamp {
    fn from(time: meta::Time) -> Self {
        Self::from_unix_seconds(time.0.as_second())
    }
}

impl From<Timestamp> for meta::MicroTime {
    fn from(time: Timestamp) -> Self {
        Self(instant(time))
    }
}

impl From<meta::MicroTime> for Timestamp {
    /// Keeps the whole seconds.
    fn from(time: meta::MicroTime) -> Self {
        Self::from_unix_seconds(time.0.as_second())
    }
}

impl From<Condition> for meta::Condition {
    fn from(condition: Condition) -> Self {
        Self {
            type_: condition.type_.into_owned(),
            status: condition.status.as_str().to_owned(),
            observed_generation: condition.observed_generation,
            last_transition_time: condition.last_transition_time.into(),
            reason: condition.reason.into_owned(),
            message: condition.message,
        }
    }
}

impl TryFrom<meta::Condition> for Condition {
    type Error = ConditionStatusError;

    fn try_from(condition: meta::Condition) -> Result<Self, ConditionStatusError> {
        let status = match condition.status.as_str() {
            "True" => ConditionStatus::True,
            "False" => ConditionStatus::False,
            "Unknown" => ConditionStatus::Unknown,
            _ => return Err(ConditionStatusError),
        };
        Ok(Self {
            type_: condition.type_.into(),
            status,
            observed_generation: condition.observed_generation,
            last_transition_time: condition.last_transition_time.into(),
            reason: condition.reason.into(),
            message: condition.message,
        })
    }
}

impl From<Conditions> for Vec<meta::Condition> {
    fn from(conditions: Conditions) -> Self {
        Vec::<Condition>::from(conditions)
            .into_iter()
            .map(Into::into)
            .collect()
    }
}

impl TryFrom<Vec<meta::Condition>> for Conditions {
    type Error = ConditionStatusError;

    fn try_from(conditions: Vec<meta::Condition>) -> Result<Self, ConditionStatusError> {
        let conditions: Result<Vec<Condition>, _> = conditions.into_iter().map(Condition::try_from).collect();
        conditions.map(Self::from)
    }
}

fn instant(time: Timestamp) -> jiff::Timestamp {
    // The range of ours is within that of theirs.
    jiff::Timestamp::from_second(time.unix_seconds()).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_has_the_same_json_on_both_sides() {
        let text = r#"{"type":"Ready","status":"False","observedGeneration":3,"lastTransitionTime":"2026-08-01T09:30:00Z","reason":"Replaying","message":"1 of 2"}"#;
        let ours: Condition = serde_json::from_str(text).unwrap();
        let theirs: meta::Condition = serde_json::from_str(text).unwrap();
        assert_eq!(meta::Condition::from(ours.clone()), theirs);
        assert_eq!(Condition::try_from(theirs.clone()), Ok(ours));
        let odd = meta::Condition {
            status: "Maybe".to_owned(),
            ..theirs
        };
        assert_eq!(Condition::try_from(odd), Err(ConditionStatusError));
    }

    #[test]
    fn times_keep_their_whole_seconds() {
        let micros = meta::MicroTime("2026-08-01T09:30:00.75Z".parse().unwrap());
        let time = Timestamp::from(micros);
        assert_eq!(time.to_string(), "2026-08-01T09:30:00Z");
        assert_eq!(Timestamp::from(meta::Time::from(time)), time);
        assert_eq!(Timestamp::from(meta::MicroTime::from(time)), time);
    }
}
