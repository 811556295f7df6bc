//! Why an event cannot be applied.

use crate::EventType;
use crate::json::JsonError;

/// Why an event cannot be applied. Whichever it is, the connection cannot be trusted any more: open another.
#[derive(Debug, thiserror::Error)]
pub enum ConsumerError {
    /// The data is not JSON.
    #[error("the event is not json: open another connection")]
    NotJson(#[from] JsonError),
    /// A field that the event's type needs is missing or of the wrong kind.
    #[error("the event has no usable field `{field}`: open another connection")]
    Malformed {
        /// The field.
        field: &'static str,
    },
    /// An event was lost or repeated.
    #[error("expected event {expected} of the connection and found {found}: open another connection")]
    SequenceGap {
        /// The `seq` that was due.
        expected: u64,
        /// The `seq` that came.
        found: u64,
    },
    /// An event that belongs into a cycle came outside of one.
    #[error("`{}` came outside of its cycle: open another connection", .event_type.as_str())]
    OutsideCycle {
        /// What came.
        event_type: EventType,
    },
    /// An event came after an error that ends the connection.
    #[error("an event came after an error that ended the connection: do as that error's decision says")]
    AfterEnd,
}
