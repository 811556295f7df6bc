//! One condition, in the form of `metav1.Condition`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The condition that says whether everything is as it was asked for.
pub const READY: &str = "Ready";
/// The condition that says whether something is on its way; of the pair that [kstatus] reads.
///
/// [kstatus]: https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
pub const RECONCILING: &str = "Reconciling";
/// The condition that says whether something does not go on by itself; of the pair that [kstatus] reads.
///
/// [kstatus]: https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
pub const STALLED: &str = "Stalled";

/// What stands for an empty reason: an API server accepts none.
pub const UNSPECIFIED: &str = "Unspecified";

/// The longest message of a condition, in bytes.
///
/// The [API conventions] limit it to 32,768; counted in bytes it is never too long for an API server that counts
/// characters.
///
/// [API conventions]: https://pkg.go.dev/k8s.io/apimachinery/pkg/apis/meta/v1#Condition
pub const MESSAGE_BYTES: usize = 32_768;

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody knows yet.
    Unknown,
}

impl ConditionStatus {
    /// The status as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// A condition as it was read, or as it is to be written. Its JSON is that of `metav1.Condition`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// `type`: the name, unique in its list.
    #[serde(rename = "type")]
    pub type_: Cow<'static, str>,
    /// `status`.
    pub status: ConditionStatus,
    /// `observedGeneration`: the `metadata.generation` that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `lastTransitionTime`: when `status` last became another.
    pub last_transition_time: Timestamp,
    /// `reason`: one word in `CamelCase`, at most 1,024 characters.
    #[serde(default)]
    pub reason: Cow<'static, str>,
    /// `message`: for people, at most [`MESSAGE_BYTES`].
    #[serde(default)]
    pub message: String,
}

/// What a condition is to say from now on; when it began to say so is found by
/// [`Conditions::upsert`](crate::Conditions::upsert).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionUpdate {
    pub(crate) type_: Cow<'static, str>,
    pub(crate) status: ConditionStatus,
    pub(crate) reason: Cow<'static, str>,
    pub(crate) message: String,
}

impl ConditionUpdate {
    /// A condition of this `type`, status, reason and message. An empty reason becomes [`UNSPECIFIED`], a message over
    /// [`MESSAGE_BYTES`] is cut at a character boundary.
    pub fn new(
        type_: impl Into<Cow<'static, str>>,
        status: ConditionStatus,
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        let (mut reason, mut message) = (reason.into(), message.into());
        if reason.is_empty() {
            reason = Cow::Borrowed(UNSPECIFIED);
        }
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES));
        Self {
            type_: type_.into(),
            status,
            reason,
            message,
        }
    }
}
