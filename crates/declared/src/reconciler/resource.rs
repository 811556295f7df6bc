//! One resource: its streams, and where the publishing of its status stands.

mod publishing;
mod stream;
mod waiting;

use std::cmp::Ordering::Less;
use std::time::Duration;

use krm_stream_protocol::{Identity, Moment, ResourceVersion};
use krm_stream_shared::FeedReport;
use krm_stream_status::{
    AfterWrite, EventPlan, Gate, Level, ReadStatus, Readiness, StreamSummary, WriteOutcome, WritePlan,
    plan_write,
};

use self::publishing::{Publishing, Sent, backoff};
use self::stream::{Stream, tell};
use self::waiting::Waiting;
use super::{FeedId, Now, Written};
use crate::{
    DeclaredPolicy, DeclaredStreamSpec, DeclaredStreamStatus, ReadResource, StreamCounts, UnreadableSpec,
    WarmScope,
};

/// The reason where the specification cannot be read.
const INVALID_SPECIFICATION: &str = "InvalidSpecification";
/// The least time between writes that do not change Ready.
const QUIET_PACE: Duration = Duration::from_secs(1);

/// One resource.
#[derive(Debug)]
pub(super) struct Resource {
    identity: Identity,
    version: ResourceVersion,
    generation: i64,
    is_terminating: bool,
    spec: Result<DeclaredStreamSpec, UnreadableSpec>,
    /// As it was last read, or written since.
    read: Option<DeclaredStreamStatus>,
    streams: Vec<Stream>,
    waiting: Waiting,
    /// How the streams are once all that waits is taken in.
    counts: StreamCounts,
    publishing: Publishing,
    /// A write of which nobody knows whether it was stored.
    unanswered: Option<Box<Sent>>,
    /// The Event of a write that was found to be stored.
    untold: Option<EventPlan>,
    /// Writes and readings in a row that did not do what they should.
    failures: u32,
    /// None, if all that was read was written by another process.
    last_write: Option<Moment>,
    /// A write is due at this time that may not go out before.
    quiet_until: Option<Moment>,
    /// What was read is left alone until then, unless something else becomes known.
    unknown_until: Option<Moment>,
    seed: u64,
}

/// How the feeds of a resource change.
#[derive(Debug, Default)]
pub(super) struct FeedChange {
    pub(super) released: Vec<FeedId>,
    pub(super) kept: Vec<(FeedId, WarmScope)>,
}

impl Resource {
    pub(super) fn new(read: ReadResource, seed: u64) -> Self {
        Self {
            publishing: if read.is_terminating {
                Publishing::Gone
            } else {
                Publishing::Idle
            },
            identity: read.identity,
            version: read.version,
            generation: read.generation,
            is_terminating: read.is_terminating,
            spec: read.spec,
            read: read.status,
            streams: Vec::new(),
            waiting: Waiting::default(),
            counts: StreamCounts::default(),
            unanswered: None,
            untold: None,
            failures: 0,
            last_write: None,
            quiet_until: None,
            unknown_until: None,
            seed,
        }
    }

    pub(super) const fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(super) fn uid(&self) -> &str {
        &self.identity.uid
    }

    pub(super) fn name(&self) -> &str {
        &self.identity.name
    }

    pub(super) fn feeds(&self) -> impl Iterator<Item = FeedId> + '_ {
        self.streams
            .iter()
            .filter_map(|stream| stream.feed.as_ref().map(|(feed, _)| *feed))
    }

    /// Takes in what was read. Returns false if it is older than what is known.
    pub(super) fn take(&mut self, read: ReadResource) -> bool {
        if read.version.compare(&self.version) == Some(Less) {
            return false;
        }
        self.version = read.version;
        self.generation = read.generation;
        self.spec = read.spec;
        self.read = read.status;
        self.is_terminating = read.is_terminating;
        self.confirm();
        if self.is_terminating {
            self.is_gone();
        } else if let Publishing::Gone = self.publishing {
            // Its status alone was not found: the definition was removed and is back, or had no such subresource.
            self.publishing = Publishing::Idle;
        }
        true
    }

    /// Brings the streams in line with the specification. A stream that stays what it is keeps its feed and its state.
    pub(super) fn resolve(
        &mut self,
        now: Moment,
        policy: &DeclaredPolicy,
        mut next_feed: impl FnMut() -> FeedId,
    ) -> FeedChange {
        let mut change = FeedChange::default();
        let mut former = std::mem::take(&mut self.streams);
        let resolved = match &self.spec {
            Ok(spec) if !self.is_terminating => spec.resolve(policy),
            Ok(_) | Err(UnreadableSpec) => Vec::new(),
        };
        for resolved in resolved {
            let scope = resolved.outcome().ok().cloned();
            let is_same = |stream: &Stream| stream.keeps(resolved.name(), scope.as_ref());
            if let Some(place) = former.iter().position(is_same) {
                self.streams.push(former.swap_remove(place));
                continue;
            }
            let feed = scope.map(|scope| (next_feed(), scope));
            change.kept.extend(feed.clone());
            self.streams.push(Stream {
                name: resolved.name().to_owned(),
                state: resolved.initial_stream(),
                since: now,
                feed,
            });
        }
        change.released = former
            .into_iter()
            .filter_map(|stream| stream.feed.map(|(feed, _)| feed))
            .collect();
        self.counts = self.count();
        change
    }

    /// How its streams are, what waits to be published included: a status that cannot be written hides nothing. A
    /// specification that cannot be read is one stream that is blocked.
    pub(super) const fn counts(&self) -> StreamCounts {
        self.counts
    }

    fn count(&self) -> StreamCounts {
        if self.spec.is_err() && !self.is_terminating {
            return StreamCounts {
                blocked: 1,
                ..StreamCounts::default()
            };
        }
        let states = self
            .streams
            .iter()
            .map(|stream| stream.after(self.waiting.reports()));
        states.fold(StreamCounts::default(), |counts, stream| {
            counts.and(stream.state())
        })
    }

    /// Something happened to one of its feeds.
    pub(super) fn report(&mut self, now: Moment, feed: FeedId, report: FeedReport) {
        if self.waiting.is_full() {
            self.follow_one();
        }
        self.waiting.push(now, feed, report);
        self.counts = self.count();
    }

    /// Follows all reports without publishing any.
    pub(super) fn follow(&mut self) {
        while self.follow_one() {}
    }

    fn follow_one(&mut self) -> bool {
        let Some((feed, report)) = self.waiting.pop() else {
            return false;
        };
        let kept = |stream: &&mut Stream| stream.feed.as_ref().is_some_and(|(kept, _)| *kept == feed);
        if let Some(stream) = self.streams.iter_mut().find(kept) {
            tell(&mut stream.state, &report);
        }
        true
    }

    /// The next write, if one may go out now.
    pub(super) fn plan(&mut self, now: Now) -> Option<WritePlan> {
        match &self.publishing {
            Publishing::Idle => {}
            Publishing::Writing(_) | Publishing::Backoff(_) | Publishing::Reading => return None,
            Publishing::Gone => {
                self.follow();
                return None;
            }
        }
        self.quiet_until = None;
        while self.waiting.begins_with_history(now.moment) {
            self.follow_one();
        }
        loop {
            self.unknown_until = self.unknown_until(now.moment);
            if self.unknown_until.is_some() {
                if self.follow_one() {
                    continue;
                }
                return None;
            }
            let desired = self.evaluate(now);
            let read = ReadStatus {
                resource_version: &self.version,
                status: self.read.as_ref(),
            };
            // What was read has a version, and a status of this type is an object: there is always a plan or none.
            if let Some(plan) = plan_write(&read, &desired).ok().flatten() {
                if plan.changes_ready() || (self.waiting.is_empty() && self.is_quiet(now.moment)) {
                    self.publishing = Publishing::Writing(Box::new(Sent {
                        status: desired,
                        plan: plan.clone(),
                        replaces: self.version.clone(),
                    }));
                    self.last_write = Some(now.moment);
                    self.quiet_until = None;
                    return Some(plan);
                }
            } else {
                self.failures = 0;
                self.quiet_until = None;
            }
            if !self.follow_one() {
                return None;
            }
        }
    }

    /// Whether a write that does not change Ready may go out; if not, it is due later.
    fn is_quiet(&mut self, now: Moment) -> bool {
        let until = self.last_write.map(|last| last + QUIET_PACE);
        self.quiet_until = until.filter(|until| now < *until);
        self.quiet_until.is_none()
    }

    /// Until when what was read is left alone, if it tells of this specification, and says that it is ready or was written by
    /// another process: one that has just begun, or takes over as it begins, has to read the first snapshots before it can
    /// tell. None if something is known that speaks against them.
    fn unknown_until(&self, now: Moment) -> Option<Moment> {
        let status = self.read.as_ref()?;
        let is_left_alone = status.conditions.is_ready() || self.last_write.is_none();
        if status.observed_generation != Some(self.generation) || !is_left_alone {
            return None;
        }
        stream::first_snapshots(&self.streams).filter(|until| now < *until)
    }

    fn evaluate(&self, now: Now) -> DeclaredStreamStatus {
        let states = self
            .streams
            .iter()
            .map(|stream| (stream.name.as_str(), stream.state.state()));
        let summary = StreamSummary::of(states);
        let readiness = match &self.spec {
            Ok(_) => Readiness::of(summary.gate()),
            Err(error) => Readiness::of(Gate::new(
                Level::Stalled,
                INVALID_SPECIFICATION,
                error.to_string(),
            )),
        };
        DeclaredStreamStatus::of(self.read.as_ref(), self.generation, &summary, readiness, now.time)
    }

    pub(super) fn written(&mut self, now: Moment, written: Written) {
        let publishing = std::mem::replace(&mut self.publishing, Publishing::Idle);
        let Publishing::Writing(sent) = publishing else {
            // It is gone since, or nothing was sent.
            self.publishing = publishing;
            return;
        };
        match written {
            Written::Answered(AfterWrite::Tell { resource_version, .. }) => {
                self.failures = 0;
                // No other write of the same version can have been stored.
                self.unanswered = None;
                // What was read since is newer than what was written.
                if resource_version.compare(&self.version) != Some(Less) {
                    self.version = resource_version;
                    self.read = Some(sent.status);
                }
            }
            Written::Answered(AfterWrite::ReadAgain) => self.failed(now),
            Written::Failed => {
                self.failed(now);
                self.unanswered = Some(sent);
                self.confirm();
            }
            Written::Answered(AfterWrite::Gone) => self.is_gone(),
        }
    }

    /// Whether a write without an answer was stored is known once there is another version than the one that it replaces.
    fn confirm(&mut self) {
        let is_known = |sent: &mut Box<Sent>| sent.replaces != self.version;
        if let Some(sent) = self.unanswered.take_if(is_known)
            && self.read.as_ref() == Some(&sent.status)
            && let AfterWrite::Tell { event, .. } =
                sent.plan.settle(WriteOutcome::Persisted(self.version.clone()))
        {
            self.untold = event;
        }
    }

    /// The Event of a write whose answer was lost, now that the write is known to be stored.
    pub(super) const fn take_untold(&mut self) -> Option<EventPlan> {
        self.untold.take()
    }

    /// Begins to read it again, if the backoff is over.
    pub(super) fn begin_reading(&mut self, now: Moment) -> bool {
        let is_over = matches!(&self.publishing, Publishing::Backoff(until) if *until <= now);
        if is_over {
            self.publishing = Publishing::Reading;
        }
        is_over
    }

    /// It was read again.
    pub(super) fn was_read(&mut self) {
        if let Publishing::Reading = self.publishing {
            self.publishing = Publishing::Idle;
        }
    }

    pub(super) fn is_gone(&mut self) {
        self.publishing = Publishing::Gone;
    }

    pub(super) fn failed(&mut self, now: Moment) {
        if let Publishing::Gone = self.publishing {
            return;
        }
        self.publishing = Publishing::Backoff(now + backoff(self.failures, self.seed));
        self.failures = self.failures.saturating_add(1);
    }

    /// Whether its latest write did not succeed.
    pub(super) const fn is_unwritten(&self) -> bool {
        self.failures > 0 && !matches!(self.publishing, Publishing::Gone)
    }

    /// When it has something to do without being told anything.
    pub(super) fn due(&self) -> Option<Moment> {
        match &self.publishing {
            Publishing::Idle => self.quiet_until.or(self.unknown_until),
            Publishing::Backoff(until) => Some(*until),
            Publishing::Writing(_) | Publishing::Reading | Publishing::Gone => None,
        }
    }
}
