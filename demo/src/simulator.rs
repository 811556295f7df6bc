//! The embedded simulator: an API server in this process, with a shop whose objects change.

mod workload;

use std::sync::Arc;
use std::time::Duration;

use krm_stream_protocol::{Scope, ScopeBuilder, ScopePolicy};
use krm_stream_simulator::{Resource, Simulator, WriteError};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::allow::AllowRule;
use crate::flags::SimulatorFlags;
use crate::presets::Preset;

pub(crate) use workload::NAMESPACE;
use workload::{BULK, Named, STOREFRONTS};

/// The simulator, and what changes its objects.
#[derive(Debug)]
pub(crate) struct Simulation {
    simulator: Arc<Simulator>,
    ticking: Option<JoinHandle<()>>,
    has_bulk: bool,
}

/// Why there is no simulator.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SimulationError {
    #[error(
        "--simulator-listen {address} cannot be listened on: choose another address, or port 0 for a free port"
    )]
    Listen {
        address: std::net::SocketAddr,
        #[source]
        source: std::io::Error,
    },
    #[error("the simulator refused the object that it was given")]
    Write(#[from] WriteError),
}

/// What the simulator has beyond the default set of resources.
pub(crate) fn further_rules() -> impl Iterator<Item = AllowRule> {
    std::iter::once(AllowRule::new(STOREFRONTS.group, STOREFRONTS.resource))
}

impl Simulation {
    /// Starts it with its objects.
    ///
    /// # Errors
    /// If its address cannot be listened on.
    pub(crate) async fn start(flags: &SimulatorFlags) -> Result<Self, SimulationError> {
        let storefronts = Resource::custom(
            STOREFRONTS.group,
            STOREFRONTS.version,
            STOREFRONTS.resource,
            STOREFRONTS.kind,
        );
        let address = flags.listen;
        let simulator = Simulator::builder()
            .address(address)
            .resource(storefronts)
            .start()
            .await
            .map_err(|source| SimulationError::Listen { address, source })?;
        let simulator = Arc::new(simulator);
        for (resource, object) in workload::constant().into_iter().chain(workload::at(0)) {
            simulator.create(resource, object)?;
        }
        for number in 0..flags.objects {
            simulator.create("configmaps", workload::bulk(number, 0))?;
        }
        let ticking = (flags.tick > 0).then(|| {
            let period = Duration::from_millis(flags.tick);
            tokio::spawn(tick(Arc::clone(&simulator), period, flags.objects))
        });
        Ok(Self {
            simulator,
            ticking,
            has_bulk: flags.objects > 0,
        })
    }

    /// Where its API is.
    pub(crate) fn url(&self) -> String {
        self.simulator.url()
    }

    /// What is worth a look, as far as the policy allows it.
    pub(crate) fn presets(&self, policy: &ScopePolicy) -> Vec<Preset> {
        let core = |resource: &str| Scope::builder("v1", resource);
        let shop = |resource: &str| core(resource).namespace(NAMESPACE);
        let storefronts = Scope::builder(STOREFRONTS.version, STOREFRONTS.resource).group(STOREFRONTS.group);
        let mut offered: Vec<(&str, ScopeBuilder)> = vec![
            ("Config maps", shop("configmaps")),
            ("Secrets, values withheld", shop("secrets")),
            ("Deployments", shop("deployments").group("apps")),
            ("Pods", shop("pods")),
            ("Events", shop("events")),
            ("Storefronts, a custom resource", storefronts.namespace(NAMESPACE)),
            ("One config map", shop("configmaps").name("prices")),
            ("Namespaces", core("namespaces")),
            ("Nodes", core("nodes")),
        ];
        if self.has_bulk {
            offered.push(("Many config maps", core("configmaps").namespace(BULK)));
        }
        offered
            .into_iter()
            .filter_map(|(label, scope)| Preset::of(policy, label, &scope.build().ok()?))
            .collect()
    }

    /// Stops it.
    pub(crate) async fn end(self) {
        if let Some(ticking) = self.ticking {
            ticking.abort();
            // So that its share of the simulator is gone. Being aborted is how it ends.
            let _ = ticking.await;
        }
        if let Some(simulator) = Arc::into_inner(self.simulator) {
            simulator.shutdown().await;
        }
    }
}

async fn tick(simulator: Arc<Simulator>, period: Duration, bulk: u32) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    // The first one is at once, and the objects are there already.
    ticks.tick().await;
    for step in 1.. {
        ticks.tick().await;
        for (resource, object) in workload::at(step) {
            // What is as it should be is left alone; what somebody deleted comes back.
            if let Err(error) = simulator.apply(resource, object) {
                tracing::debug!(%error, resource, "an object could not be changed");
            }
        }
        for Named { resource, name } in workload::gone_at(step) {
            // Somebody may have been faster.
            let _ = simulator.delete(resource, NAMESPACE, &name);
        }
        if let Some(number) = step.checked_rem(bulk.into()) {
            let change = json!({"data": {"changes": step.to_string()}});
            let name = workload::bulk_name(number);
            let _ = simulator.patch("configmaps", BULK, &name, &change);
        }
    }
}
