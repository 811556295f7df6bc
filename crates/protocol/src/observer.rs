//! The seam that counts: synchronous observations of low cardinality.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::{ErrorCode, ProjectionName};

/// Receives observations. Must not block. No observation holds an object's name, a uid, a principal, a scope's value
/// or an error's text, so all of them may become metric labels.
pub trait Observer: Send + Sync {
    /// Takes one observation.
    fn observe(&self, observation: &Observation);
}

/// An observer that may be absent, and whose panic harms nobody.
#[derive(Clone, Default)]
pub struct Observing(Option<Arc<dyn Observer>>);

impl Observing {
    /// Tells `observer`.
    pub fn with(observer: Arc<dyn Observer>) -> Self {
        Self(Some(observer))
    }

    /// Passes one observation on. A panic of the observer ends here: it must not end a stream.
    pub fn observe(&self, observation: &Observation) {
        if let Some(observer) = &self.0 {
            let _ = catch_unwind(AssertUnwindSafe(|| observer.observe(observation)));
        }
    }
}

impl fmt::Debug for Observing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observing").field(&self.0.is_some()).finish()
    }
}

/// What happened. Every `…Opened` is followed by its `…Closed`.
#[derive(Clone, Debug, PartialEq)]
pub enum Observation {
    /// A stream was entered; refusals by the authorizer count, HTTP identity and scope refusals do not.
    StreamOpened,
    /// A stream returned.
    StreamClosed,
    /// A stream was attached to a feed, warm or cold.
    SharedSubscriptionOpened,
    /// The attachment ended, once, whatever ended it.
    SharedSubscriptionClosed,
    /// A cycle began: a `reset` is being sent.
    CycleStarted {
        /// The granted projection.
        projection: ProjectionName,
    },
    /// Events of one type were handed to the transport: one, or as many as a shared chunk of a snapshot holds.
    EventEmitted {
        /// The type of the events.
        event_type: EventType,
        /// How many, at least 1.
        count: u64,
    },
    /// An upstream change made no difference under the projection.
    EventSuppressed,
    /// A stream was told `RESYNC_REQUIRED`.
    ConsumerResync,
    /// A stream fell behind what its feed can still tell it.
    SharedOverflow,
    /// A non-terminal error other than `RESYNC_REQUIRED` is about to be sent.
    RetryableError {
        /// Its code.
        code: ErrorCode,
    },
    /// A terminal error is about to be sent.
    TerminalError {
        /// Its code.
        code: ErrorCode,
    },
    /// A request was aborted since its transport cannot bound delivery.
    HttpTransportRejected,
    /// A chunk was not taken in time.
    DeliveryTimeout,
    /// An upstream session was opened.
    UpstreamSessionOpened,
    /// An upstream session ended.
    UpstreamSessionEnded {
        /// Why.
        reason: SessionEndReason,
    },
    /// A stream has its complete snapshot.
    SnapshotDelivered {
        /// Objects sent before `synced`.
        objects: u64,
        /// Bytes sent before `synced`.
        bytes: u64,
        /// From `reset` to `synced`.
        duration: Duration,
    },
    /// An authorization check came back.
    AuthorizationChecked {
        /// How.
        outcome: AuthorizationOutcome,
        /// How long it took.
        duration: Duration,
    },
    /// Bytes were handed to the transport.
    BytesDelivered {
        /// How many.
        bytes: u64,
    },
}

/// The type of a wire event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// `reset`
    Reset,
    /// `added`
    Added,
    /// `modified`
    Modified,
    /// `deleted`
    Deleted,
    /// `synced`
    Synced,
    /// `error`
    Error,
}

impl EventType {
    /// The type as it stands on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reset => "reset",
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
            Self::Synced => "synced",
            Self::Error => "error",
        }
    }
}

/// Why an upstream session ended. Teardown outranks the close or error that it causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SessionEndReason {
    /// The transport ended.
    Closed,
    /// The version was too old.
    Expired,
    /// The server said so, or it could not be read.
    Error,
    /// Our own wish.
    Teardown,
}

impl SessionEndReason {
    /// The reason as a metric label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Expired => "expired",
            Self::Error => "error",
            Self::Teardown => "teardown",
        }
    }
}

/// How an authorization check came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AuthorizationOutcome {
    /// Allowed.
    Allowed,
    /// Denied.
    Denied,
    /// Not answered, or not in time.
    Failed,
}

impl AuthorizationOutcome {
    /// The outcome as a metric label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Failed => "failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Panics;

    impl Observer for Panics {
        fn observe(&self, _: &Observation) {
            panic!("an observer's own fault");
        }
    }

    #[test]
    fn a_panic_of_an_observer_ends_in_the_observer() {
        Observing::with(Arc::new(Panics)).observe(&Observation::StreamOpened);
        Observing::default().observe(&Observation::StreamOpened);
    }
}
