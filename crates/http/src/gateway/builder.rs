//! Building a gateway, and what can be wrong with it.

use std::sync::Arc;
use std::time::Duration;

use krm_stream_projection::{DigestKey, Projections};
use krm_stream_protocol::{
    Authorizer, ClientFor, Diagnosing, Diagnostics, Observer, Observing, Ordering, ProjectionPolicy,
    ScopePolicy,
};
use krm_stream_shared::{FeedSettings, Feeds};
use tokio::time::Instant;

use super::{Gateway, Host, Limits, Streams};
use crate::resolver::Resolver;
use crate::settings::StreamSettings;

/// Builds a [`Gateway`]. The five seams are required; allowing all is an explicit type.
#[derive(Default)]
#[must_use = "a builder does nothing until it is built"]
pub struct GatewayBuilder {
    resolver: Option<Arc<dyn Resolver>>,
    scope_policy: Option<ScopePolicy>,
    authorizer: Option<Arc<dyn Authorizer>>,
    client_for: Option<Arc<dyn ClientFor>>,
    projection_policy: Option<Arc<dyn ProjectionPolicy>>,
    projections: Projections,
    observing: Observing,
    diagnosing: Diagnosing,
    digest_key: Option<DigestKey>,
    feeds: FeedSettings,
    streams: StreamSettings,
    limits: Limits,
}

/// Why a gateway cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A seam is missing.
    #[error("the gateway has no {seam}: call .{seam}(…) on its builder, {advice}")]
    Missing {
        /// The builder's method.
        seam: &'static str,
        /// What to give it.
        advice: &'static str,
    },
    /// A setting has no meaning.
    #[error("{setting} must be {expected}")]
    Setting {
        /// The builder's method.
        setting: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// Timed checks without bounded delivery.
    #[error(
        "reauthorization_interval needs a write_timeout: without one, a reader that takes nothing keeps what was sent to it, and \
         nothing that it was denied can be held back; call .write_timeout(…) as well"
    )]
    UnboundedDelivery,
    /// The operating system has no randomness for the digest key.
    #[error("no randomness for the digest key")]
    Randomness(#[source] getrandom::Error),
}

impl GatewayBuilder {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Who is calling. Required.
    pub fn resolver(mut self, resolver: impl Resolver + 'static) -> Self {
        self.resolver = Some(Arc::new(resolver));
        self
    }

    /// Which scopes may be asked for at all. Required.
    pub fn scope_policy(mut self, policy: ScopePolicy) -> Self {
        self.scope_policy = Some(policy);
        self
    }

    /// Whether a caller may see a scope. Required.
    pub fn authorizer(mut self, authorizer: impl Authorizer + 'static) -> Self {
        self.authorizer = Some(Arc::new(authorizer));
        self
    }

    /// Where a caller's objects come from. Required.
    pub fn client_for(mut self, client_for: impl ClientFor + 'static) -> Self {
        self.client_for = Some(Arc::new(client_for));
        self
    }

    /// Which projection a caller is granted. Required.
    pub fn projection_policy(mut self, policy: impl ProjectionPolicy + 'static) -> Self {
        self.projection_policy = Some(Arc::new(policy));
        self
    }

    /// The projections that can be granted. Default: the built-in ones.
    pub fn projections(mut self, projections: Projections) -> Self {
        self.projections = projections;
        self
    }

    /// Who counts. Default: nobody.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observing = Observing::with(observer);
        self
    }

    /// Who is told raw causes. Default: nobody.
    pub fn diagnostics(mut self, diagnostics: Arc<dyn Diagnostics>) -> Self {
        self.diagnosing = Diagnosing::with(diagnostics);
        self
    }

    /// The process's one key for digests of withheld values. Default: drawn from the operating system. Give one key to
    /// all gateways of a process whose streams may share feeds.
    pub fn digest_key(mut self, key: DigestKey) -> Self {
        self.digest_key = Some(key);
        self
    }

    /// How long a stream may be silent before a heartbeat is sent, also while its upstream is being opened. Default 20 s.
    pub fn heartbeat_interval(mut self, interval: Duration) -> Self {
        self.streams.heartbeat_interval = interval;
        self
    }

    /// How long a chunk of at most 64 KiB, or the headers, or a heartbeat, may wait until its transport has taken it as a
    /// whole. Default none. Longer than zero and at most a day.
    ///
    /// With it, requests are served only on connections that can bound delivery: those of
    /// `serve` and `serve_connection`. On others they are aborted.
    pub fn write_timeout(mut self, timeout: Duration) -> Self {
        self.streams.write_timeout = Some(timeout);
        self
    }

    /// How often an open stream is checked: its caller's right, and which projection is granted. Default: never, only at each
    /// cycle's begin. Longer than zero and at most a day; it needs a [`write_timeout`](Self::write_timeout), since without one
    /// a reader that takes nothing would keep what it was sent for ever.
    ///
    /// A check holds the stream's delivery: no object passes while it runs, heartbeats do. **A right that is taken away ends
    /// delivery within this interval and [`reauthorization_timeout`](Self::reauthorization_timeout) together.** The first
    /// check of each stream is at a random time within the interval, so that streams that began together are not checked
    /// together. [`Gateway::recheck`] checks at once.
    pub fn reauthorization_interval(mut self, interval: Duration) -> Self {
        self.streams.reauthorization_interval = Some(interval);
        self
    }

    /// How long a check of a stream may take. Default 10 s.
    ///
    /// At a cycle's begin it is the bound of each seam by itself: the authorizer's answer from when the question is sent, the
    /// projection policy's and the client's from when they are asked. A check of an open stream, on time or by
    /// [`Gateway::recheck`], has this time in all, counted from its reason.
    pub fn reauthorization_timeout(mut self, timeout: Duration) -> Self {
        self.streams.check_timeout = timeout;
        self
    }

    /// How many deletions a stream may owe before it begins a new cycle; at least 1. Default 256.
    pub fn queue_depth(mut self, deletions: usize) -> Self {
        self.feeds.queue_depth = deletions;
        self
    }

    /// How long a feed outlives its last stream. Default 5 s; isolated feeds end at once.
    pub fn linger(mut self, linger: Duration) -> Self {
        self.feeds.linger = linger;
        self
    }

    /// What to do with resourceVersions that do not order. Default strict.
    pub fn ordering(mut self, ordering: Ordering) -> Self {
        self.feeds.ordering = ordering;
        self
    }

    /// How long a stream rests after it sent what there was; what changes meanwhile goes out together, each object once. Default
    /// zero: everything at once. At most a minute.
    ///
    /// A snapshot is never slowed down, nor is a stream that has more to send than its reader took. The end of a feed is told
    /// within the interval, all other errors at once. Deletions do not merge, and a stream may owe only so many: whenever
    /// half of [`queue_depth`](Self::queue_depth) of a scope's objects were deleted, its streams send what there is before the
    /// interval is over.
    pub fn delivery_interval(mut self, interval: Duration) -> Self {
        self.streams.delivery_interval = interval;
        self
    }

    /// How many streams the gateway serves at once; at least 1. Default: any number. One more is told
    /// `UPSTREAM_UNAVAILABLE`, with a time to come back after, before anybody is asked who is calling. A stream counts from
    /// its request on, also while its caller is being resolved.
    pub fn max_streams(mut self, streams: usize) -> Self {
        self.limits.streams = Some(streams);
        self
    }

    /// How many streams one caller may have open at once, by the complete subject; at least 1. Default: any number. One more
    /// is told `UPSTREAM_UNAVAILABLE`, with a time to come back after.
    pub fn max_streams_per_caller(mut self, streams: usize) -> Self {
        self.limits.streams_per_caller = Some(streams);
        self
    }

    /// How many objects a scope may hold; at least 1. Default: any number. The streams of a larger one end with a terminal
    /// `INTERNAL` that names the limit.
    pub fn max_snapshot_objects(mut self, objects: usize) -> Self {
        self.feeds.max_snapshot_objects = Some(objects);
        self
    }

    /// How many bytes of projected objects a scope may hold; at least 1. Default: any number. The streams of a larger one end
    /// with a terminal `INTERNAL` that names the limit.
    pub fn max_snapshot_bytes(mut self, bytes: u64) -> Self {
        self.feeds.max_snapshot_bytes = Some(bytes);
        self
    }

    /// Builds the gateway. Must be called on a tokio runtime, the one that serves its streams.
    ///
    /// # Errors
    /// [`BuildError`] where a seam is missing or a setting has no meaning.
    pub fn build(self) -> Result<Gateway, BuildError> {
        self.check_settings()?;
        let digest_key = match self.digest_key {
            Some(key) => key,
            None => random_key()?,
        };
        Ok(Gateway(Arc::new(Host {
            resolver: required(
                self.resolver,
                "resolver",
                "with a function from a request's parts to the principal who is calling",
            )?,
            scope_policy: required(
                self.scope_policy,
                "scope_policy",
                "with a ScopePolicy that allows what may be asked for",
            )?,
            authorizer: required(
                self.authorizer,
                "authorizer",
                "with what decides about each caller; AllowAll allows everyone, and says so",
            )?,
            client_for: required(
                self.client_for,
                "client_for",
                "with what chooses the upstream of each caller, and as whom it acts",
            )?,
            projection_policy: required(
                self.projection_policy,
                "projection_policy",
                "with GrantNamed::default(), which withholds the values of Secrets, or a policy of your own",
            )?,
            projections: self.projections,
            feeds: Feeds::new(
                self.feeds,
                digest_key,
                self.observing.clone(),
                self.diagnosing.clone(),
            ),
            streams: Streams::new(self.limits),
            settings: self.streams,
            observing: self.observing,
            diagnosing: self.diagnosing,
            origin: Instant::now(),
        })))
    }

    fn check_settings(&self) -> Result<(), BuildError> {
        bounded("heartbeat_interval", self.streams.heartbeat_interval)?;
        bounded("reauthorization_timeout", self.streams.check_timeout)?;
        if let Some(write_timeout) = self.streams.write_timeout {
            bounded("write_timeout", write_timeout)?;
        }
        if let Some(interval) = self.streams.reauthorization_interval {
            bounded("reauthorization_interval", interval)?;
            if self.streams.write_timeout.is_none() {
                return Err(BuildError::UnboundedDelivery);
            }
        }
        if self.streams.delivery_interval > LONGEST_DELIVERY_INTERVAL {
            return Err(BuildError::Setting {
                setting: "delivery_interval",
                expected: "at most a minute",
            });
        }
        for (setting, value) in [
            ("queue_depth", Some(self.feeds.queue_depth)),
            ("max_streams", self.limits.streams),
            ("max_streams_per_caller", self.limits.streams_per_caller),
            ("max_snapshot_objects", self.feeds.max_snapshot_objects),
            (
                "max_snapshot_bytes",
                self.feeds.max_snapshot_bytes.map(|bytes| usize::from(bytes > 0)),
            ),
        ] {
            if value == Some(0) {
                return Err(BuildError::Setting {
                    setting,
                    expected: "at least 1",
                });
            }
        }
        Ok(())
    }
}

/// A longer wait than this is none, and adding it to a clock may overflow.
const LONGEST_INTERVAL: Duration = Duration::from_hours(24);
/// A page that hears of changes later than this is not live, and a feed's end would be told too late.
const LONGEST_DELIVERY_INTERVAL: Duration = Duration::from_mins(1);

fn bounded(setting: &'static str, interval: Duration) -> Result<(), BuildError> {
    if interval.is_zero() || interval > LONGEST_INTERVAL {
        return Err(BuildError::Setting {
            setting,
            expected: "longer than zero and at most a day",
        });
    }
    Ok(())
}

fn required<T>(given: Option<T>, seam: &'static str, advice: &'static str) -> Result<T, BuildError> {
    given.ok_or(BuildError::Missing { seam, advice })
}

fn random_key() -> Result<DigestKey, BuildError> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(BuildError::Randomness)?;
    Ok(DigestKey::new(random))
}
