//! Which of several replicas publishes: the holder of a Lease. A state machine without I/O and without a clock.
//!
//! # Rules
//! They are those of Kubernetes' own [leader election], with which it may share a Lease:
//! - A Lease that nobody holds, or that has not changed for as long as it says that it lasts, may be taken. How long it has
//!   not changed is measured here, from when the change was seen; the times in it are for people, so that clocks that differ
//!   between machines do no harm.
//! - The holder renews it at each retry period. One that could not for the renew deadline, counted from when its last
//!   successful request was sent, holds it no longer: that is before anybody else may take it.
//! - Each write names the version that it replaces. At shutdown the holder gives it up, so that another takes over at once.
//!
//! [leader election]: https://kubernetes.io/docs/concepts/architecture/leases/#leader-election

use std::time::Duration;

use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use krm_stream_protocol::{Moment, ResourceVersion};

/// Which Lease, and how it is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseSettings {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) identity: String,
    pub(crate) duration: Duration,
    pub(crate) renew_deadline: Duration,
    pub(crate) retry_period: Duration,
}

/// Why a Lease cannot be held with these settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseSettingsError {
    /// A name is not what Kubernetes calls one: the namespace is a label, the name may be several, joined by dots.
    #[error(
        "the lease's {0} must be one as Kubernetes has them, such as krm-stream: lower-case letters, digits and `-`, with a \
         letter or digit at each end; at most 63 characters for a namespace, and 253 for a name, whose parts dots may join"
    )]
    Name(&'static str),
    /// Without an identity nobody could tell who holds it.
    #[error("the lease needs an identity of this process, for example the name of its pod")]
    Identity,
    /// A holder must give up before others may take over, and must have tried more than once by then.
    #[error(
        "the lease's times must be: duration, of which whole seconds count, longer than the renew deadline, which is longer \
         than twice the retry period, which is longer than nothing"
    )]
    Times,
}

impl LeaseSettings {
    /// The Lease of this name in this namespace. `identity` must be another one for each process, such as the name of its
    /// pod. It lasts 15 s, is given up 10 s after the last renewal, and is renewed every 2 s, as Kubernetes' own are.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }

    /// How long it lasts without being renewed (in whole seconds), when a holder that cannot renew it gives it up, and how
    /// often it is renewed or looked at.
    #[must_use]
    pub const fn times(
        mut self,
        duration: Duration,
        renew_deadline: Duration,
        retry_period: Duration,
    ) -> Self {
        self.duration = duration;
        self.renew_deadline = renew_deadline;
        self.retry_period = retry_period;
        self
    }

    pub(crate) fn check(&self) -> Result<(), LeaseSettingsError> {
        if self.namespace.len() > 63 || !is_dns_label(&self.namespace) {
            return Err(LeaseSettingsError::Name("namespace"));
        }
        // Its parts may be longer: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#names
        if self.name.len() > 253 || !self.name.split('.').all(is_dns_label) {
            return Err(LeaseSettingsError::Name("name"));
        }
        if self.identity.is_empty() {
            return Err(LeaseSettingsError::Identity);
        }
        // What others read of it.
        let lasts = Duration::from_secs(self.duration.as_secs());
        let are_in_order = lasts > self.renew_deadline
            && self.renew_deadline > self.retry_period * 2
            && !self.retry_period.is_zero();
        if are_in_order {
            Ok(())
        } else {
            Err(LeaseSettingsError::Times)
        }
    }
}

/// Lower-case letters, digits and `-`, with a letter or digit at each end.
fn is_dns_label(text: &str) -> bool {
    let is_plain = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9');
    let bytes = text.as_bytes();
    bytes.iter().all(|byte| is_plain(byte) || *byte == b'-')
        && bytes.first().is_some_and(is_plain)
        && bytes.last().is_some_and(is_plain)
}

/// What to ask of the API server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LeaseRequest {
    Read,
    Create(LeaseSpec),
    Replace {
        spec: LeaseSpec,
        version: ResourceVersion,
    },
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LeaseAnswer {
    Found {
        spec: LeaseSpec,
        version: ResourceVersion,
    },
    NotFound,
    Stored {
        version: ResourceVersion,
    },
    /// Somebody wrote in between.
    Conflict,
    /// Whether it was stored is not known.
    Failed,
}

/// One replica's part in the election.
#[derive(Debug)]
pub(crate) struct Election {
    settings: LeaseSettings,
    standing: Standing,
    observed: Option<Observed>,
    /// The write that is out, and when it was sent.
    sent: Option<(LeaseSpec, Moment)>,
    next: Moment,
    jitter: u64,
}

#[derive(Clone, Copy, Debug)]
enum Standing {
    /// Somebody else may hold it. When a write of ours is stored: `Holder`.
    Candidate,
    /// We hold it, by a write that was sent at this time. Too long ago, or taken by another: `Candidate`.
    Holder { renewed: Moment },
}

/// The Lease as it was last seen.
#[derive(Debug)]
struct Observed {
    spec: LeaseSpec,
    version: ResourceVersion,
    /// When this state of it was first seen.
    since: Moment,
}

impl Election {
    /// A candidate that looks at once.
    pub(crate) const fn new(settings: LeaseSettings, now: Moment, seed: u64) -> Self {
        Self {
            settings,
            standing: Standing::Candidate,
            observed: None,
            sent: None,
            next: now,
            jitter: seed,
        }
    }

    /// Until when we hold it, if we do.
    pub(crate) fn holds_until(&self) -> Option<Moment> {
        match self.standing {
            Standing::Candidate => None,
            Standing::Holder { renewed } => Some(renewed + self.settings.renew_deadline),
        }
    }

    /// Whether we hold it.
    pub(crate) fn is_holder(&self, now: Moment) -> bool {
        self.holds_until().is_some_and(|until| now < until)
    }

    /// When to ask next.
    pub(crate) const fn next_due(&self) -> Moment {
        self.next
    }

    /// What to ask now. `wall` is what people are told.
    pub(crate) fn begin(&mut self, now: Moment, wall: &MicroTime) -> LeaseRequest {
        if !self.is_holder(now) {
            self.standing = Standing::Candidate;
        }
        match (self.standing, &self.observed) {
            (Standing::Holder { .. }, Some(_)) => self.take(now, wall),
            (Standing::Holder { .. }, None) | (Standing::Candidate, _) => LeaseRequest::Read,
        }
    }

    /// Takes in what came of it. Returns what to ask at once, if anything.
    pub(crate) fn answered(
        &mut self,
        now: Moment,
        wall: &MicroTime,
        answer: LeaseAnswer,
    ) -> Option<LeaseRequest> {
        let sent = self.sent.take();
        match answer {
            LeaseAnswer::Found { spec, version } => {
                self.observe(spec, version, now);
                if self.may_take(now) {
                    return Some(self.take(now, wall));
                }
                self.standing = Standing::Candidate;
            }
            LeaseAnswer::NotFound => {
                let was_creation = self.observed.take().is_none() && sent.is_some();
                // Nor is there the namespace, and nothing to hold: whoever makes one is waited for.
                self.standing = Standing::Candidate;
                if !was_creation {
                    return Some(self.take(now, wall));
                }
            }
            LeaseAnswer::Stored { version } => {
                if let Some((spec, renewed)) = sent {
                    self.observed = Some(Observed {
                        spec,
                        version,
                        since: renewed,
                    });
                    self.standing = Standing::Holder { renewed };
                }
            }
            // It is another one by now; what it says is read at the next attempt.
            LeaseAnswer::Conflict => self.observed = None,
            LeaseAnswer::Failed => {}
        }
        self.schedule(now);
        None
    }

    /// Gives it up, if we hold it.
    pub(crate) fn release(&mut self, now: Moment, wall: &MicroTime) -> Option<LeaseRequest> {
        let is_holder = self.is_holder(now);
        self.standing = Standing::Candidate;
        let observed = self.observed.take().filter(|_| is_holder)?;
        Some(LeaseRequest::Replace {
            spec: LeaseSpec {
                holder_identity: None,
                lease_duration_seconds: Some(1),
                renew_time: Some(wall.clone()),
                ..observed.spec
            },
            version: observed.version,
        })
    }

    fn observe(&mut self, spec: LeaseSpec, version: ResourceVersion, now: Moment) {
        let since = match &self.observed {
            Some(observed) if observed.version == version => observed.since,
            Some(_) | None => now,
        };
        self.observed = Some(Observed { spec, version, since });
    }

    fn may_take(&self, now: Moment) -> bool {
        let Some(observed) = &self.observed else {
            return true;
        };
        let holder = observed.spec.holder_identity.as_deref().unwrap_or_default();
        let lasts = observed
            .spec
            .lease_duration_seconds
            .and_then(|seconds| u64::try_from(seconds).ok())
            .map_or(self.settings.duration, Duration::from_secs);
        holder.is_empty() || holder == self.settings.identity || observed.since + lasts <= now
    }

    /// The write that makes it ours, or keeps it so.
    fn take(&mut self, now: Moment, wall: &MicroTime) -> LeaseRequest {
        let seconds = i32::try_from(self.settings.duration.as_secs()).unwrap_or(i32::MAX);
        let former = self.observed.as_ref().map(|observed| &observed.spec);
        let is_ours =
            former.is_some_and(|spec| spec.holder_identity.as_ref() == Some(&self.settings.identity));
        let transitions = former.and_then(|spec| spec.lease_transitions).unwrap_or_default();
        let spec = LeaseSpec {
            holder_identity: Some(self.settings.identity.clone()),
            lease_duration_seconds: Some(seconds),
            acquire_time: former
                .and_then(|spec| spec.acquire_time.clone())
                .filter(|_| is_ours)
                .or_else(|| Some(wall.clone())),
            renew_time: Some(wall.clone()),
            lease_transitions: Some(match former {
                None => 0,
                Some(_) if is_ours => transitions,
                Some(_) => transitions.saturating_add(1),
            }),
            ..former.cloned().unwrap_or_default()
        };
        self.sent = Some((spec.clone(), now));
        match &self.observed {
            None => LeaseRequest::Create(spec),
            Some(observed) => LeaseRequest::Replace {
                spec,
                version: observed.version.clone(),
            },
        }
    }

    fn schedule(&mut self, now: Moment) {
        let period = self.settings.retry_period;
        self.next = now
            + match self.standing {
                Standing::Holder { .. } => period,
                // Spread, so that candidates do not all ask at once.
                Standing::Candidate => {
                    self.jitter = self
                        .jitter
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    let thousandths = u32::try_from((self.jitter >> 33) % 1200).unwrap_or_default();
                    period + period * thousandths / 1000
                }
            };
    }
}

#[cfg(test)]
mod tests;
