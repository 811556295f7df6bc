//! The embedded simulator: an API server in this process, with a shop whose objects change.

use std::sync::Arc;
use std::time::Duration;

use krm_stream_protocol::{Scope, ScopeBuilder, ScopePolicy};
use krm_stream_simulator::{Simulator, Workload, WriteError};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::allow::AllowRule;
use crate::flags::SimulatorFlags;
use crate::presets::Preset;

/// The namespace of the workload that the page offers.
pub(crate) const NAMESPACE: &str = "shop";

/// Every run shows the same.
const SEED: u64 = 1;

/// About the size of each of the many ConfigMaps, in bytes.
const BULK_BYTES: usize = 400;

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
    let widgets = Workload::widgets();
    std::iter::once(AllowRule::new(widgets.group(), widgets.plural()))
}

impl Simulation {
    /// Starts it with its objects.
    ///
    /// # Errors
    /// If its address cannot be listened on.
    pub(crate) async fn start(flags: &SimulatorFlags) -> Result<Self, SimulationError> {
        let address = flags.listen;
        let simulator = Simulator::builder()
            .address(address)
            .start()
            .await
            .map_err(|source| SimulationError::Listen { address, source })?;
        let simulator = Arc::new(simulator);
        let count = usize::try_from(flags.objects).unwrap_or(usize::MAX);
        let mut workload = Workload::new(SEED).with_configmaps(count, BULK_BYTES);
        workload.seed(&simulator)?;
        let ticking =
            (!flags.tick.is_zero()).then(|| tokio::spawn(tick(Arc::clone(&simulator), workload, flags.tick)));
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
        let custom = Workload::widgets();
        let widgets = Scope::builder(custom.version(), custom.plural()).group(custom.group());
        let mut offered: Vec<(&str, ScopeBuilder)> = vec![
            ("Config maps", shop("configmaps")),
            ("Secrets, values withheld", shop("secrets")),
            ("Deployments", shop("deployments").group("apps")),
            ("Pods", shop("pods")),
            ("Events", shop("events")),
            ("Widgets, a custom resource", widgets.namespace(NAMESPACE)),
            ("One config map", shop("configmaps").name("prices")),
            ("Namespaces", core("namespaces")),
            ("Nodes", core("nodes")),
        ];
        if self.has_bulk {
            offered.push((
                "Many config maps",
                core("configmaps").namespace(Workload::BULK_NAMESPACE),
            ));
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

async fn tick(simulator: Arc<Simulator>, mut workload: Workload, period: Duration) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    // The first one is at once, and the objects are there already.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let changed = workload
            .step(&simulator, 1)
            .and_then(|()| workload.change_configmaps(&simulator, 1));
        if let Err(error) = changed {
            tracing::debug!(%error, "an object could not be changed");
        }
    }
}
