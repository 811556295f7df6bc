//! One of each observation. The tests of the operating kit include this file: what they look for is what is counted here.

use std::time::Duration;

use krm_stream_protocol::{AuthorizationOutcome, ErrorCode, EventType, Observation, SessionEndReason};

/// One of each observation.
pub(crate) fn each_observation() -> Vec<Observation> {
    vec![
        Observation::StreamOpened,
        Observation::StreamClosed,
        Observation::SharedSubscriptionOpened,
        Observation::SharedSubscriptionClosed,
        Observation::CycleStarted {
            projection: "krm-full/v1".into(),
        },
        Observation::EventEmitted {
            event_type: EventType::Added,
            count: 1,
        },
        Observation::EventSuppressed,
        Observation::ConsumerResync,
        Observation::SharedOverflow,
        Observation::RetryableError {
            code: ErrorCode::UpstreamUnavailable,
        },
        Observation::TerminalError {
            code: ErrorCode::Forbidden,
        },
        Observation::HttpTransportRejected,
        Observation::DeliveryTimeout,
        Observation::UpstreamSessionOpened,
        Observation::UpstreamSessionEnded {
            reason: SessionEndReason::Closed,
        },
        Observation::SnapshotDelivered {
            objects: 1,
            bytes: 1,
            duration: Duration::from_millis(1),
        },
        Observation::AuthorizationChecked {
            outcome: AuthorizationOutcome::Allowed,
            duration: Duration::from_millis(1),
        },
        Observation::BytesDelivered { bytes: 1 },
    ]
}
