//! One series for each variant of an enum: all of them exist from the start, so that a rate is right from the first
//! event on, and counting looks nothing up.

use krm_stream_protocol::{AuthorizationOutcome, ErrorCode, EventType, SessionEndReason};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::histogram::Histogram;

use crate::buckets::AUTHORIZATION_SECONDS;

/// The one label of a family.
pub(crate) type Label = [(&'static str, &'static str); 1];

/// Defines the series of a family that is labelled with a variant of an enum.
macro_rules! series_per_variant {
    ($(#[$doc:meta])* $name:ident<$metric:ty> for $enum:ident as $label:literal {
        $($variant:ident => $field:ident,)*
    }) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name {
            $($field: $metric,)*
        }

        impl $name {
            pub(crate) fn of<C: MetricConstructor<$metric>>(family: &Family<Label, $metric, C>) -> Self {
                Self {
                    $($field: family.get_or_create_owned(&[($label, $enum::$variant.as_str())]),)*
                }
            }

            pub(crate) const fn get(&self, variant: $enum) -> &$metric {
                match variant {
                    $($enum::$variant => &self.$field,)*
                }
            }
        }
    };
}

series_per_variant! {
    /// A counter for each type of event.
    PerEventType<Counter> for EventType as "type" {
        Reset => reset,
        Added => added,
        Modified => modified,
        Deleted => deleted,
        Synced => synced,
        Error => error,
    }
}

series_per_variant! {
    /// A counter for each error code.
    PerErrorCode<Counter> for ErrorCode as "code" {
        Forbidden => forbidden,
        Unauthenticated => unauthenticated,
        ScopeInvalid => scope_invalid,
        UpstreamUnavailable => upstream_unavailable,
        ResyncRequired => resync_required,
        SlowConsumer => slow_consumer,
        Internal => internal,
    }
}

series_per_variant! {
    /// A counter for each reason for which an upstream session ends.
    PerSessionEnd<Counter> for SessionEndReason as "reason" {
        Closed => closed,
        Expired => expired,
        Error => error,
        Teardown => teardown,
    }
}

series_per_variant! {
    /// A histogram for each outcome of an authorization check.
    PerOutcome<Histogram> for AuthorizationOutcome as "outcome" {
        Allowed => allowed,
        Denied => denied,
        Failed => failed,
    }
}

impl PerEventType {
    /// Events of all types.
    pub(crate) fn total(&self) -> u64 {
        let Self {
            reset,
            added,
            modified,
            deleted,
            synced,
            error,
        } = self;
        [reset, added, modified, deleted, synced, error]
            .into_iter()
            .map(Counter::get)
            .sum()
    }
}

/// Makes the histograms of authorization checks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuthorizationHistogram;

impl MetricConstructor<Histogram> for AuthorizationHistogram {
    fn new_metric(&self) -> Histogram {
        Histogram::new(AUTHORIZATION_SECONDS)
    }
}
