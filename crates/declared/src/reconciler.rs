//! What is to be done about the declared streams: a state machine without I/O and without a clock.
//!
//! # How it is driven
//! A driver tells it what it reads, what happens to the feeds, what came of writes, whether this replica publishes, and that
//! time has passed; after each it does what [`actions`](Reconciler::actions) says.
//!
//! # Rules
//! - A stream that is the same before and after an edit of the specification keeps its feed; all others get feeds of their
//!   own, and what is told of the feed of a former specification is nobody's news.
//! - All that is published is derived by [`krm_stream_status`] from the resource as it was last read.
//! - One write of a resource is out at a time. Reports that come meanwhile wait, so that a change of Ready is published even
//!   if it is over by the time that it is; what does not change Ready is summed up, and written at most once a second. Where
//!   writes fail for seconds, what happened meanwhile is history: the state at its end is published, not each that it had.
//! - A write that met a conflict is dropped; the resource is read again after a backoff. So is one that failed.
//! - Whether a write without an answer was stored is seen when the resource is read again; if so, its Event is told then.
//! - A replica that does not publish follows all reports, so that it can take over at once.
//! - One that has just begun knows nothing of its streams until their first snapshots are there. A status of the present
//!   specification, whatever it says, is left alone until then, until something is known that speaks against them, or for as long
//!   as a snapshot may take. What the process before it believed is not kept: the first sign of recovery counts.

mod resource;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use krm_stream_protocol::{Identity, Moment};
use krm_stream_shared::FeedReport;
use krm_stream_status::{AfterWrite, EventPlan, Timestamp, WritePlan};

use self::resource::Resource;
use crate::{DeclaredPolicy, PublishingCounts, ReadResource, StreamCounts, WarmScope};

/// A feed that is kept for one declared stream. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FeedId(u64);

/// The time, by the clock that measures and by the clock on the wall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// For waits.
    pub moment: Moment,
    /// For what is published.
    pub time: Timestamp,
}

/// What a driver has to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Keep a feed of this scope, and tell what happens to it.
    Keep {
        /// Its name from now on.
        feed: FeedId,
        /// What to watch.
        scope: WarmScope,
    },
    /// Keep it no longer.
    Release {
        /// Which.
        feed: FeedId,
    },
    /// Write this plan's status, and tell what came of it. If it was stored, its Event is recorded by the way: the next write
    /// must not wait for it.
    Write {
        /// The resource.
        object: Identity,
        /// What to write, and what to tell of it.
        plan: WritePlan,
    },
    /// Record this Event: the write that it tells of was stored, although its answer was lost.
    Tell {
        /// The resource.
        object: Identity,
        /// What to tell.
        event: EventPlan,
    },
    /// Read this resource, and tell what was read.
    Read {
        /// The resource.
        object: Identity,
    },
}

/// What came of a write.
#[derive(Clone, Debug, PartialEq)]
pub enum Written {
    /// The API server answered.
    Answered(AfterWrite),
    /// It did not, or with an error; whether the status was stored is not known.
    Failed,
}

/// What came of reading a resource again.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadAgain {
    /// Here it is.
    Found(Box<ReadResource>),
    /// It is gone.
    Gone,
    /// It could not be read.
    Failed,
}

/// All declared streams, and what is known and published of them.
#[derive(Debug)]
pub struct Reconciler {
    policy: Arc<DeclaredPolicy>,
    seed: u64,
    publishes: bool,
    /// By uid.
    resources: BTreeMap<Box<str>, Resource>,
    /// Whose feed it is, by uid.
    owners: BTreeMap<FeedId, Box<str>>,
    next_feed: u64,
    /// The uids that were seen in the snapshot that is being read.
    seen: Option<BTreeSet<Box<str>>>,
    actions: VecDeque<Action>,
}

impl Reconciler {
    /// Knows of no resource, and does not publish. `seed` is for jitter.
    pub fn new(policy: Arc<DeclaredPolicy>, seed: u64) -> Self {
        Self {
            policy,
            seed,
            publishes: false,
            resources: BTreeMap::new(),
            owners: BTreeMap::new(),
            next_feed: 1,
            seen: None,
            actions: VecDeque::new(),
        }
    }

    /// What is to be done since the last call, in order.
    pub fn actions(&mut self) -> impl Iterator<Item = Action> + '_ {
        self.actions.drain(..)
    }

    /// A snapshot of all resources begins.
    pub fn snapshot_began(&mut self) {
        self.seen = Some(BTreeSet::new());
    }

    /// The snapshot is complete: what was not in it is gone.
    pub fn snapshot_complete(&mut self) {
        let Some(seen) = self.seen.take() else {
            return;
        };
        let gone: Vec<Box<str>> = self
            .resources
            .keys()
            .filter(|uid| !seen.contains(*uid))
            .cloned()
            .collect();
        for uid in gone {
            self.remove(&uid);
        }
    }

    /// The API server does not serve the resource: there is none.
    pub fn not_served(&mut self) {
        self.snapshot_began();
        self.snapshot_complete();
    }

    /// The watch tells that a resource is there, or has changed.
    pub fn read(&mut self, now: Now, read: ReadResource) {
        if let Some(seen) = &mut self.seen {
            seen.insert(read.identity.uid.clone());
        }
        self.take(now, read);
    }

    /// Takes in a resource as it was read, by the watch or by itself. What was read by itself may have been deleted since, so
    /// it is no part of a snapshot.
    fn take(&mut self, now: Now, read: ReadResource) {
        let uid = read.identity.uid.clone();
        // One of the same name with another uid is one whose predecessor is gone.
        let former = self
            .resources
            .values()
            .find(|resource| resource.name() == &*read.identity.name && resource.uid() != &*uid)
            .map(|resource| Box::from(resource.uid()));
        if let Some(former) = former {
            self.remove(&former);
        }
        if let Some(known) = self.resources.get_mut(&uid) {
            if !known.take(read) {
                return;
            }
        } else {
            let resource = Resource::new(read, self.seed ^ self.next_feed);
            self.resources.insert(uid.clone(), resource);
        }
        self.resolve(now.moment, &uid);
        self.publish(now, &uid);
    }

    /// A resource is gone.
    pub fn deleted(&mut self, uid: &str) {
        self.remove(uid);
    }

    /// Something happened to a feed.
    pub fn reported(&mut self, now: Now, feed: FeedId, report: FeedReport) {
        let Some(uid) = self.owners.get(&feed).cloned() else {
            return;
        };
        if let Some(resource) = self.resources.get_mut(&uid) {
            resource.report(now.moment, feed, report);
        }
        self.publish(now, &uid);
    }

    /// Something came of a write of the resource with this uid.
    pub fn written(&mut self, now: Now, uid: &str, written: Written) {
        if let Some(resource) = self.resources.get_mut(uid) {
            resource.written(now.moment, written);
            self.publish(now, uid);
        }
    }

    /// Something came of reading the resource with this uid again.
    pub fn read_again(&mut self, now: Now, uid: &str, read: ReadAgain) {
        let Some(resource) = self.resources.get_mut(uid) else {
            return;
        };
        match read {
            ReadAgain::Found(read) => {
                resource.was_read();
                if read.identity.uid.as_ref() == uid {
                    self.take(now, *read);
                }
                // Also if it is the state that was known already.
                self.publish(now, uid);
            }
            // The watch will say so too, and ends its feeds then.
            ReadAgain::Gone => resource.is_gone(),
            ReadAgain::Failed => resource.failed(now.moment),
        }
    }

    /// Whether this replica is the one that publishes.
    pub fn publishes(&mut self, now: Now, publishes: bool) {
        self.publishes = publishes;
        self.publish_all(now);
    }

    /// When [`passed`](Self::passed) must be called at the latest.
    pub fn next_due(&self) -> Option<Moment> {
        if !self.publishes {
            return None;
        }
        self.resources.values().filter_map(Resource::due).min()
    }

    /// Time has passed.
    pub fn passed(&mut self, now: Now) {
        if !self.publishes {
            return;
        }
        for resource in self.resources.values_mut() {
            if resource.begin_reading(now.moment) {
                self.actions.push_back(Action::Read {
                    object: resource.identity().clone(),
                });
            }
        }
        self.publish_all(now);
    }

    /// How many feeds are kept.
    pub fn feeds(&self) -> usize {
        self.owners.len()
    }

    /// How all streams are, as far as it was told: not only what was published.
    pub fn counts(&self) -> StreamCounts {
        self.resources.values().map(Resource::counts).sum()
    }

    /// Whether this replica publishes, and of how many resources the latest write did not succeed.
    pub fn publishing(&self) -> PublishingCounts {
        let unwritten = self.resources.values().filter(|resource| resource.is_unwritten());
        PublishingCounts {
            publishes: self.publishes,
            unwritten: if self.publishes { unwritten.count() } else { 0 },
        }
    }

    fn publish_all(&mut self, now: Now) {
        let uids: Vec<Box<str>> = self.resources.keys().cloned().collect();
        for uid in uids {
            self.publish(now, &uid);
        }
    }

    fn publish(&mut self, now: Now, uid: &str) {
        let Some(resource) = self.resources.get_mut(uid) else {
            return;
        };
        // Also by one that publishes no longer: to the next one it is no news.
        if let Some(event) = resource.take_untold() {
            self.actions.push_back(Action::Tell {
                object: resource.identity().clone(),
                event,
            });
        }
        if !self.publishes {
            resource.follow();
        } else if let Some(plan) = resource.plan(now) {
            self.actions.push_back(Action::Write {
                object: resource.identity().clone(),
                plan,
            });
        }
    }

    /// Brings the feeds of a resource in line with its specification.
    fn resolve(&mut self, now: Moment, uid: &str) {
        let Some(resource) = self.resources.get_mut(uid) else {
            return;
        };
        let next_feed = &mut self.next_feed;
        let change = resource.resolve(now, &self.policy, || {
            let feed = FeedId(*next_feed);
            *next_feed += 1;
            feed
        });
        for feed in change.released {
            self.owners.remove(&feed);
            self.actions.push_back(Action::Release { feed });
        }
        for (feed, scope) in change.kept {
            self.owners.insert(feed, uid.into());
            self.actions.push_back(Action::Keep { feed, scope });
        }
    }

    fn remove(&mut self, uid: &str) {
        let Some(resource) = self.resources.remove(uid) else {
            return;
        };
        for feed in resource.feeds() {
            self.owners.remove(&feed);
            self.actions.push_back(Action::Release { feed });
        }
    }
}

#[cfg(test)]
mod tests;
