//! `cargo xtask control-plane`: a real kube-apiserver with etcd, without containers and without nodes.
//!
//! It has what a watch depends on (RBAC, custom resources, the watch cache, streaming lists, priority and
//! fairness) and nothing that runs pods: a Deployment is stored and never rolls out, and a deleted
//! namespace stays `Terminating`, since no controller finishes it.

mod binaries;
mod certificates;
mod cluster;
mod error;
mod flags;
mod kubeconfig;
mod ports;
mod record;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use crate::files::{self, FileError};
use crate::process::ProcessError;
use crate::workspace::{self, WorkspaceError};

pub(crate) use self::binaries::{BuildError, build};
pub(crate) use self::cluster::{ControlPlane, KUBECTL_REMEDY};
pub(crate) use self::error::ClusterError;
pub(crate) use self::flags::Options;
use self::record::Component;

/// What to do with the control plane.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Build kube-apiserver and etcd from their Go modules, once; later calls find them in the cache.
    Build,
    /// Start a fresh control plane; its kubeconfig's path is the last line on standard output.
    Up {
        #[command(flatten)]
        state: StateFolder,
        #[command(flatten)]
        options: Options,
    },
    /// End the control plane and remove its state.
    Down {
        #[command(flatten)]
        state: StateFolder,
    },
    /// Say what runs; the exit code is 0 when it is ready.
    Status {
        #[command(flatten)]
        state: StateFolder,
    },
    /// Do something to one of its processes, as a fault or to end one.
    Process {
        /// Which process.
        component: Component,
        /// What to do to it.
        fault: Fault,
        #[command(flatten)]
        state: StateFolder,
    },
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Fault {
    /// SIGKILL, and wait until it is gone.
    Kill,
    /// SIGTERM, a grace, SIGKILL, and wait until it is gone.
    Stop,
    /// Start it again on its ports and data, and wait until the API server is ready.
    Start,
    /// `kill` and then `start`.
    Restart,
    /// SIGSTOP: the peer falls silent, its connections stay open.
    Pause,
    /// SIGCONT.
    Resume,
}

#[derive(Debug, clap::Args)]
struct StateFolder {
    /// The folder of this control plane's data, keys, logs and kubeconfig; give each its own to run several
    /// [default: control-plane/default in the cache folder].
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

impl StateFolder {
    fn path(self) -> Result<PathBuf, ControlPlaneError> {
        match self.state {
            Some(folder) => Ok(files::absolute(&folder)?),
            None => Ok(workspace::cache()?.join("control-plane/default")),
        }
    }
}

/// A control-plane command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlPlaneError {
    /// The programs could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The cluster could not be started, read or ended.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// There is no cache folder.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The state folder has no meaning as a path.
    #[error(transparent)]
    File(#[from] FileError),
    /// A process could not be ended.
    #[error(transparent)]
    Process(#[from] ProcessError),
}

/// Does what the command line asks.
///
/// # Errors
///
/// When a program cannot be built, started or ended; the message says what to do.
pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, ControlPlaneError> {
    match arguments.action {
        Action::Build => {
            let binaries = build()?;
            println!("{}", binaries.etcd.display());
            println!("{}", binaries.apiserver.display());
        }
        Action::Up { state, options } => {
            let cluster = ControlPlane::start(&build()?, &state.path()?, &options)?;
            println!("{}", cluster.kubeconfig().display());
        }
        Action::Down { state } => {
            let folder = state.path()?;
            if ControlPlane::destroy(&folder)? {
                eprintln!("ended, and removed {}", folder.display());
            } else {
                eprintln!("nothing to end in {}", folder.display());
            }
        }
        Action::Status { state } => return status(&ControlPlane::open(&state.path()?)?),
        Action::Process {
            component,
            fault,
            state,
        } => {
            inflict(&mut ControlPlane::open(&state.path()?)?, component, fault)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn status(cluster: &ControlPlane) -> Result<ExitCode, ControlPlaneError> {
    for component in Component::ALL {
        let word = if cluster.is_running(component) {
            "runs"
        } else {
            "is gone"
        };
        let process = cluster.process(component);
        println!(
            "{component} {word}: process {}, {}",
            process.pid,
            cluster.address(component)
        );
    }
    let ready = cluster.is_ready()?;
    println!("{}", if ready { "ready" } else { "not ready" });
    println!("{}", cluster.kubeconfig().display());
    Ok(if ready {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn inflict(cluster: &mut ControlPlane, component: Component, fault: Fault) -> Result<(), ClusterError> {
    match fault {
        Fault::Kill => cluster.kill(component),
        Fault::Stop => cluster.stop(component),
        Fault::Start => cluster.launch(component),
        Fault::Restart => {
            cluster.kill(component)?;
            cluster.launch(component)
        }
        Fault::Pause => {
            cluster.pause(component);
            Ok(())
        }
        Fault::Resume => {
            cluster.resume(component);
            Ok(())
        }
    }
}
