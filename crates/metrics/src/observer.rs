//! The observer: every observation to its metric.

use std::time::Duration;

use krm_stream_protocol::{AuthorizationOutcome, Observation, Observer};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::buckets::{SNAPSHOT_BYTES, SNAPSHOT_OBJECTS, SNAPSHOT_SECONDS};
use crate::lifetimes::Lifetimes;
use crate::projections::Projections;
use crate::series::{AuthorizationHistogram, Label, PerErrorCode, PerEventType, PerOutcome, PerSessionEnd};
use crate::totals::Totals;

/// Counts what a gateway observes.
///
/// All metrics are named `krm_stream_…`, but `watch_sessions_ended_total`, whose name is that of a controller's watch
/// streams as well. Counting is an atomic addition; a snapshot or an authorization check takes a short lock.
#[derive(Debug)]
pub struct MetricsObserver {
    streams: Lifetimes,
    subscriptions: Lifetimes,
    upstream_sessions: Lifetimes,
    session_ends: PerSessionEnd,
    cycles: Projections,
    events_emitted: PerEventType,
    events_suppressed: Counter,
    consumer_resyncs: Counter,
    shared_overflows: Counter,
    retryable_errors: PerErrorCode,
    terminal_errors: PerErrorCode,
    transports_rejected: Counter,
    delivery_timeouts: Counter,
    snapshots: Snapshots,
    authorizations: PerOutcome,
    bytes_delivered: Counter,
}

/// Complete snapshots, as they were delivered.
#[derive(Debug)]
struct Snapshots {
    delivered: Counter,
    duration: Histogram,
    objects: Histogram,
    bytes: Histogram,
}

impl MetricsObserver {
    /// Registers the metrics. One observer may serve all gateways of a process; two in one registry would register each
    /// name twice.
    pub fn new(registry: &mut Registry) -> Self {
        let ends = Family::<Label, Counter>::default();
        registry.register(
            "watch_sessions_ended",
            "Upstream watch sessions that ended; a rising rate of closed ones is a server that flaps",
            ends.clone(),
        );
        let registry = registry.sub_registry_with_prefix("krm_stream");
        registry.register(
            "build",
            "The version of krm-stream",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );

        let cycles = Projections::default();
        registry.register(
            "cycles_started",
            "Cycles begun, by granted projection",
            cycles.family(),
        );
        let events = Family::<Label, Counter>::default();
        registry.register(
            "events_emitted",
            "Events handed to a transport, by type",
            events.clone(),
        );
        let retryable = Family::<Label, Counter>::default();
        registry.register(
            "retryable_errors",
            "Errors after which a consumer comes back, by code",
            retryable.clone(),
        );
        let terminal = Family::<Label, Counter>::default();
        registry.register(
            "terminal_errors",
            "Errors after which a consumer stays away, by code",
            terminal.clone(),
        );
        let authorizations = Family::<Label, Histogram, _>::new_with_constructor(AuthorizationHistogram);
        registry.register_with_unit(
            "authorization_duration",
            "How long authorization checks took, by outcome",
            Unit::Seconds,
            authorizations.clone(),
        );

        Self {
            streams: Lifetimes::register(registry, "streams", "Streams"),
            subscriptions: Lifetimes::register(
                registry,
                "subscriptions",
                "Attachments of a stream to a feed",
            ),
            upstream_sessions: Lifetimes::register(registry, "upstream_sessions", "Upstream watch sessions"),
            session_ends: PerSessionEnd::of(&ends),
            cycles,
            events_emitted: PerEventType::of(&events),
            events_suppressed: counter(
                registry,
                "events_suppressed",
                "Upstream changes that made no difference under the projection",
            ),
            consumer_resyncs: counter(
                registry,
                "consumer_resyncs",
                "Streams that were told RESYNC_REQUIRED",
            ),
            shared_overflows: counter(
                registry,
                "shared_overflows",
                "Streams that fell behind what their feed can still tell them",
            ),
            retryable_errors: PerErrorCode::of(&retryable),
            terminal_errors: PerErrorCode::of(&terminal),
            transports_rejected: counter(
                registry,
                "http_transports_rejected",
                "Requests aborted since their transport cannot bound delivery",
            ),
            delivery_timeouts: counter(
                registry,
                "delivery_timeouts",
                "Chunks that a transport did not take in time",
            ),
            snapshots: Snapshots::register(registry),
            authorizations: PerOutcome::of(&authorizations),
            bytes_delivered: counter(registry, "delivered_bytes", "Bytes handed to a transport"),
        }
    }

    /// What was counted so far, for a host's own status page.
    pub fn totals(&self) -> Totals {
        Totals {
            streams_open: self.streams.now(),
            streams_opened: self.streams.total(),
            subscriptions_open: self.subscriptions.now(),
            subscriptions_opened: self.subscriptions.total(),
            upstream_sessions_open: self.upstream_sessions.now(),
            upstream_sessions_opened: self.upstream_sessions.total(),
            snapshots_delivered: self.snapshots.delivered.get(),
            events_emitted: self.events_emitted.total(),
            bytes_delivered: self.bytes_delivered.get(),
        }
    }

    fn authorization_checked(&self, outcome: AuthorizationOutcome, duration: Duration) {
        self.authorizations.get(outcome).observe(duration.as_secs_f64());
    }
}

impl Observer for MetricsObserver {
    fn observe(&self, observation: &Observation) {
        match observation {
            Observation::StreamOpened => self.streams.opened(),
            Observation::StreamClosed => self.streams.closed(),
            Observation::SharedSubscriptionOpened => self.subscriptions.opened(),
            Observation::SharedSubscriptionClosed => self.subscriptions.closed(),
            Observation::CycleStarted { projection } => self.cycles.count(projection),
            Observation::EventEmitted { event_type, count } => {
                add(self.events_emitted.get(*event_type), *count);
            }
            Observation::EventSuppressed => add(&self.events_suppressed, 1),
            Observation::ConsumerResync => add(&self.consumer_resyncs, 1),
            Observation::SharedOverflow => add(&self.shared_overflows, 1),
            Observation::RetryableError { code } => add(self.retryable_errors.get(*code), 1),
            Observation::TerminalError { code } => add(self.terminal_errors.get(*code), 1),
            Observation::HttpTransportRejected => add(&self.transports_rejected, 1),
            Observation::DeliveryTimeout => add(&self.delivery_timeouts, 1),
            Observation::UpstreamSessionOpened => self.upstream_sessions.opened(),
            Observation::UpstreamSessionEnded { reason } => {
                self.upstream_sessions.closed();
                add(self.session_ends.get(*reason), 1);
            }
            Observation::SnapshotDelivered {
                objects,
                bytes,
                duration,
            } => self.snapshots.delivered(*objects, *bytes, *duration),
            Observation::AuthorizationChecked { outcome, duration } => {
                self.authorization_checked(*outcome, *duration);
            }
            Observation::BytesDelivered { bytes } => add(&self.bytes_delivered, *bytes),
        }
    }
}

impl Snapshots {
    fn register(registry: &mut Registry) -> Self {
        let snapshots = Self {
            delivered: Counter::default(),
            duration: Histogram::new(SNAPSHOT_SECONDS),
            objects: Histogram::new(SNAPSHOT_OBJECTS),
            bytes: Histogram::new(SNAPSHOT_BYTES),
        };
        registry.register_with_unit(
            "snapshot_duration",
            "From reset to synced",
            Unit::Seconds,
            snapshots.duration.clone(),
        );
        registry.register(
            "snapshot_objects",
            "Objects sent before synced",
            snapshots.objects.clone(),
        );
        registry.register_with_unit(
            "snapshot_size",
            "Bytes sent before synced",
            Unit::Bytes,
            snapshots.bytes.clone(),
        );
        snapshots
    }

    #[expect(clippy::cast_precision_loss, reason = "a histogram's sums are floating point")]
    fn delivered(&self, objects: u64, bytes: u64, duration: Duration) {
        self.delivered.inc();
        self.duration.observe(duration.as_secs_f64());
        self.objects.observe(objects as f64);
        self.bytes.observe(bytes as f64);
    }
}

fn counter(registry: &mut Registry, name: &str, help: &str) -> Counter {
    let counter = Counter::default();
    registry.register(name, help, counter.clone());
    counter
}

fn add(counter: &Counter, count: u64) {
    counter.inc_by(count);
}

#[cfg(test)]
mod tests;
