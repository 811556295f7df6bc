//! From the flags to a running program, and to its end.

use std::net::SocketAddr;
use std::sync::Arc;

use krm_stream_http::Gateway;
use krm_stream_metrics::{MetricsObserver, Registry};
use krm_stream_protocol::Observer;
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::admin::{Admin, Connections};
use crate::allow;
use crate::announce::Announcement;
use crate::clusters::{self, Cluster, ClusterError, Clusters};
use crate::declared::{self, DeclaredError};
use crate::flags::{Figures, Flags, ServerFlags};
use crate::gateway::{self, GatewayError};
use crate::hosts::AllowedHosts;
use crate::page::Page;
use crate::presets::{self, Preset};
use crate::routes::Routes;
use crate::server::Server;
use crate::simulator::{self, Simulation, SimulationError};
use crate::tls::{Certificate, TlsError};

/// What the curl line asks for where no scope is offered.
const FALLBACK_EXAMPLE: &str = "version=v1&resource=configmaps&namespace=default";

/// How many connections may wait to be accepted, as far as the system lets them (`net.core.somaxconn`): after a restart
/// all readers come at once.
const BACKLOG: u32 = 8192;

/// Why the program does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("the runtime cannot be started")]
    Runtime(#[source] std::io::Error),
    #[error("{flag} {address} cannot be listened on: choose another address, or port 0 for a free port")]
    Listen {
        flag: &'static str,
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    #[error(transparent)]
    Declared(#[from] DeclaredError),
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    #[error("signals cannot be received")]
    Signals(#[source] std::io::Error),
}

/// Runs until SIGINT or SIGTERM. SIGHUP has all streams checked again.
///
/// # Errors
/// [`StartError`] if something that the flags ask for cannot be had.
pub(crate) async fn serve(flags: Flags) -> Result<(), StartError> {
    let mut interrupt = signal(SignalKind::interrupt()).map_err(StartError::Signals)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(StartError::Signals)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(StartError::Signals)?;

    // The addresses first: a mistake in them should not take a cluster to be found.
    let listeners = Listeners::bind(&flags.server).await?;
    let certificate = flags.server.certificate().map(Certificate::load).transpose()?;
    let acceptor = certificate.as_ref().map(Certificate::acceptor).transpose()?;
    let backend = Backend::start(&flags).await?;
    let policy = allow::policy(
        &flags.scopes,
        backend.clusters.keys(),
        backend
            .is_simulated()
            .then(simulator::further_rules)
            .into_iter()
            .flatten(),
    );
    let presets = match &backend.simulation {
        Some(simulation) => simulation.presets(&policy),
        None => presets::of_clusters(&policy, &backend.clusters),
    };
    let config = presets::config(&backend.clusters, &presets, &flags.scopes.projection);

    let mut registry = Registry::default();
    let observer = Arc::new(MetricsObserver::new(&mut registry));
    let observing: Arc<dyn Observer> = observer.clone();
    let gateway = gateway::build(&flags, &backend.clusters, policy.clone(), observing)?;
    let declared = declared::build(&flags, &backend.clusters, policy, &gateway)?;
    let counted = gateway.clone();
    krm_stream_metrics::register_open_feeds(&mut registry, move || counted.feeds().count());
    if let Some(controller) = &declared {
        declared::register(&mut registry, controller.counts());
    }
    let connections = Arc::new(Connections::default());
    let admin = Arc::new(Admin::new(
        registry,
        observer,
        gateway.clone(),
        Arc::clone(&connections),
    ));

    let (end, ending) = watch::channel(false);
    let declared = declared::run(declared, ending.clone(), flags.delivery.drain_timeout);
    let announcement = Announcement {
        page: listeners.page.1,
        is_tls: acceptor.is_some(),
        admin: listeners.admin.as_ref().map(|(_, address)| *address),
        simulator: backend.simulation.as_ref().map(Simulation::url),
        example: presets.first().map_or(FALLBACK_EXAMPLE, Preset::query),
        identity: &flags.access.identity,
    };
    let hosts = listeners.hosts(&flags.server);
    let beside_page = flags.server.figures() == Figures::BesideThePage;
    let server = |routes: Routes| Server {
        routes: Arc::new(routes),
        counting: Arc::clone(&connections),
        end: ending.clone(),
        grace: flags.delivery.drain_timeout,
        write_timeout: flags.delivery.write_timeout(),
    };
    let page = server(Routes {
        hosts: hosts.clone(),
        site: Some((gateway.clone(), Page::new(config))),
        admin: beside_page.then(|| Arc::clone(&admin)),
    });
    let page = page.serve(listeners.page.0, acceptor);
    let figures = server(Routes {
        hosts,
        site: None,
        admin: Some(admin),
    });
    let figures = async {
        if let Some((listener, _)) = listeners.admin {
            figures.serve(listener, None).await;
        }
    };
    announcement.say();

    let signalled = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            () = renewed(certificate) => {}
            () = rechecked(&gateway, &mut hangup) => {}
        }
        tracing::info!("ending");
        // Readers are told first, so that their connections have something to finish with.
        gateway.drain(flags.delivery.drain_spread);
        end.send_replace(true);
    };
    tokio::join!(page, figures, declared, signalled);
    backend.end().await;
    Ok(())
}

/// Keeps the certificate fresh, if there is one; never resolves.
async fn renewed(certificate: Option<Arc<Certificate>>) {
    match certificate {
        Some(certificate) => certificate.keep_fresh().await,
        None => std::future::pending().await,
    }
}

/// Has all streams checked at each SIGHUP; never resolves.
async fn rechecked(gateway: &Gateway, hangup: &mut Signal) {
    while hangup.recv().await.is_some() {
        let streams = gateway.recheck(|_, _| true);
        tracing::info!(streams, "checking again who may read");
    }
    std::future::pending::<()>().await;
}

/// Bound listeners, with the addresses that they got.
struct Listeners {
    page: (TcpListener, SocketAddr),
    admin: Option<(TcpListener, SocketAddr)>,
}

impl Listeners {
    async fn bind(flags: &ServerFlags) -> Result<Self, StartError> {
        Ok(Self {
            page: bind("--listen", flags.listen).await?,
            admin: match flags.figures() {
                Figures::At(address) => Some(bind("--admin-listen", address).await?),
                Figures::BesideThePage | Figures::Nowhere => None,
            },
        })
    }

    fn hosts(&self, flags: &ServerFlags) -> AllowedHosts {
        let mut listening = vec![self.page.1];
        listening.extend(self.admin.as_ref().map(|(_, address)| *address));
        AllowedHosts::new(&flags.allow_host, &listening)
    }
}

async fn bind(flag: &'static str, address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let bound = async {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    bound.await.map_err(|source| StartError::Listen {
        flag,
        address,
        source,
    })
}

/// Where the objects come from.
struct Backend {
    clusters: Clusters,
    simulation: Option<Simulation>,
}

impl Backend {
    async fn start(flags: &Flags) -> Result<Self, StartError> {
        if !flags.clusters.is_simulated() {
            let clusters = clusters::load(&flags.clusters, &flags.upstream).await?;
            return Ok(Self {
                clusters,
                simulation: None,
            });
        }
        let simulation = Simulation::start(&flags.simulator).await?;
        let cluster = Cluster::at(&simulation.url(), simulator::NAMESPACE, &flags.upstream)?;
        Ok(Self {
            clusters: Clusters::from([(krm_stream_protocol::Target::default(), cluster)]),
            simulation: Some(simulation),
        })
    }

    fn is_simulated(&self) -> bool {
        self.simulation.is_some()
    }

    async fn end(self) {
        if let Some(simulation) = self.simulation {
            simulation.end().await;
        }
    }
}
