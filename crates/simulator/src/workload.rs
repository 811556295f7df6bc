//! A believable cluster that changes step by step: for demos, benchmarks and tests that want something to look at.
//!
//! Everything is drawn from a seed, so the same steps give the same cluster. Time is the simulator's clock, and the
//! caller says when a step is taken: nothing here waits, spawns or reads a clock of its own.

mod bulk;
mod configuration;
mod deployment;
mod event;
mod node;
mod report;
mod widget;

use serde_json::{Value, json};

use crate::{draw::Draw, resource::Resource, simulator::Simulator, store::WriteError, time::rfc3339};

use self::{bulk::Bulk, deployment::Rollout, event::Events, report::Reports, widget::Widgets};

/// The namespace of most objects.
const SHOP: &str = "shop";
const TEAM: &str = "team-a";

/// A cluster with the namespaces `shop` and `team-a`: ConfigMaps, Secrets that rotate, Deployments that roll out with their
/// Pods, the Pods of a job, Events, Nodes, and the custom resource `widgets.example.com`.
///
/// Others may change and delete its objects meanwhile, as with `kubectl`: what it changes itself comes back, a Pod is
/// replaced by another, and a Deployment that is scaled gets as many Pods as it asks for.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use krm_stream_simulator::{Simulator, Workload};
///
/// let simulator = Simulator::start().await?;
/// let mut workload = Workload::new(7).with_configmaps(100, 2_300);
/// workload.seed(&simulator)?;
/// assert_eq!(simulator.objects("deployments.apps").len(), 8);
///
/// // Once a second, say:
/// workload.step(&simulator, 1)?;
/// // And fifty changes among the hundred ConfigMaps:
/// workload.change_configmaps(&simulator, 50)?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct Workload {
    draw: Draw,
    taken: u64,
    rollouts: Vec<Rollout>,
    reports: Reports,
    widgets: Widgets,
    events: Events,
    bulk: Bulk,
}

impl Workload {
    /// The namespace of the many ConfigMaps.
    pub const BULK_NAMESPACE: &'static str = "bulk";

    /// A workload that draws from this seed.
    pub fn new(seed: u64) -> Self {
        Self {
            draw: Draw::new(seed),
            taken: 0,
            rollouts: vec![
                Rollout::new(SHOP, "web", 3),
                Rollout::new(SHOP, "cart", 2),
                Rollout::new(SHOP, "search", 2),
                Rollout::new(SHOP, "checkout", 3),
                Rollout::new(SHOP, "payments", 2),
                Rollout::new(SHOP, "catalog", 2),
                Rollout::new(SHOP, "mailer", 1),
                Rollout::new(TEAM, "worker", 4),
            ],
            reports: Reports::default(),
            widgets: Widgets::default(),
            events: Events::default(),
            bulk: Bulk::default(),
        }
    }

    /// Adds so many ConfigMaps, `item-00000` and on, in the namespace [`Workload::BULK_NAMESPACE`], each about `bytes` long as a
    /// watch sends it (at least 300). Only [`Workload::change_configmaps`] changes them.
    #[must_use]
    pub fn with_configmaps(mut self, count: usize, bytes: usize) -> Self {
        self.bulk = Bulk::new(count, bytes);
        self
    }

    /// The custom resource of the workload; [`Workload::seed`] registers it.
    pub fn widgets() -> Resource {
        Resource::custom("example.com", "v1", "widgets", "Widget")
    }

    /// Creates the cluster. Objects that are there already are made like those of the workload.
    ///
    /// # Errors
    ///
    /// If the simulator refuses an object.
    pub fn seed(&mut self, simulator: &Simulator) -> Result<(), WriteError> {
        simulator.register(Self::widgets());
        let mut namespaces = vec!["default", "kube-system", SHOP, TEAM];
        if !self.bulk.is_empty() {
            namespaces.push(Self::BULK_NAMESPACE);
        }
        for namespace in namespaces {
            let labels = json!({"kubernetes.io/metadata.name": namespace});
            simulator.apply(
                "namespaces",
                json!({"metadata": {"name": namespace, "labels": labels}}),
            )?;
        }
        node::seed(simulator)?;
        configuration::seed(simulator, &mut self.draw)?;
        self.widgets.seed(simulator, &mut self.draw)?;
        for rollout in &mut self.rollouts {
            rollout.seed(simulator, &mut self.draw)?;
        }
        self.events.step(simulator, 0, None, &mut self.draw)?;
        self.bulk.seed(simulator, &mut self.draw)
    }

    /// Takes so many steps. Each changes a few objects: a flag, a counter, a Pod of a rollout, a status; now and then one
    /// appears or goes.
    ///
    /// # Errors
    ///
    /// If the simulator refuses a change, as it does when the custom resource is not served.
    pub fn step(&mut self, simulator: &Simulator, steps: u64) -> Result<(), WriteError> {
        for _ in 0..steps {
            self.taken += 1;
            node::step(simulator, self.taken)?;
            configuration::step(simulator, self.taken, &mut self.draw)?;
            self.widgets.step(simulator, self.taken, &mut self.draw)?;
            self.reports.step(simulator, self.taken, &mut self.draw)?;
            let count = self.rollouts.len() as u64;
            for (index, rollout) in (0..).zip(&mut self.rollouts) {
                // Each rolls out every 48 steps, one after the other.
                if self.taken % 48 == (index * 48 / count + 1) {
                    rollout.begin(simulator, &mut self.draw)?;
                }
                rollout.step(simulator, &mut self.draw)?;
            }
            let pod = self.rollouts.first().and_then(Rollout::oldest_pod);
            self.events.step(simulator, self.taken, pod, &mut self.draw)?;
        }
        Ok(())
    }

    /// Changes so many of the many ConfigMaps, one after the other in an order that is drawn: each change is one version
    /// and one event.
    ///
    /// # Errors
    ///
    /// If the simulator refuses a change.
    pub fn change_configmaps(&mut self, simulator: &Simulator, changes: usize) -> Result<(), WriteError> {
        self.bulk.change(simulator, changes, &mut self.draw)
    }

    /// How many steps were taken.
    pub fn steps_taken(&self) -> u64 {
        self.taken
    }
}

/// The simulator's time, as objects hold it.
fn now(simulator: &Simulator) -> String {
    rfc3339(simulator.now())
}

/// A condition; `since` is the time of its last transition.
fn condition(kind: &str, holds: bool, reason: &str, message: &str, since: &str) -> Value {
    json!({
        "type": kind,
        "status": if holds { "True" } else { "False" },
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    })
}

/// Which part of an object a patch is for.
#[derive(Debug, Clone, Copy)]
enum Part {
    Main,
    Status,
}

/// Merges a patch into the object that `whole` is the first state of. If somebody deleted it, it comes back first.
fn patch_or_restore(
    simulator: &Simulator,
    (resource, part): (&str, Part),
    whole: Value,
    patch: &Value,
) -> Result<(), WriteError> {
    let place = |field: &str| whole["metadata"][field].as_str().unwrap_or_default().to_owned();
    let (namespace, name) = (place("namespace"), place("name"));
    let merge = || match part {
        Part::Main => simulator.patch(resource, &namespace, &name, patch),
        Part::Status => simulator.patch_status(resource, &namespace, &name, patch),
    };
    if unless_gone(merge().map(drop))? == Found::Gone {
        simulator.apply(resource, whole)?;
        merge()?;
    }
    Ok(())
}

/// Whether an object was still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    There,
    /// Somebody else deleted it.
    Gone,
}

fn unless_gone(written: Result<(), WriteError>) -> Result<Found, WriteError> {
    match written {
        Ok(()) => Ok(Found::There),
        Err(WriteError::NotFound { .. }) => Ok(Found::Gone),
        Err(
            error @ (WriteError::UnknownResource(_)
            | WriteError::AlreadyExists { .. }
            | WriteError::Conflict { .. }
            | WriteError::Invalid(_)
            | WriteError::BadRequest(_)
            | WriteError::NamelessRawObject
            | WriteError::Opaque(_)),
        ) => Err(error),
    }
}

#[cfg(test)]
mod tests;
