//! `cargo xtask e2e`: the tests that need a real API server, and with `--browser` those that need a browser.
//!
//! The tests themselves are ordinary ignored tests of `krm-stream-tests`; this command gives them what they
//! need through the environment. With `control-plane` they run a second time, on an API server that refuses streaming
//! lists, as aggregated ones do; left out then is what has its own control plane or would show nothing new.
//!
//! | variable | is |
//! |---|---|
//! | `KRM_DEMO_BIN` | the demo's program, built just before |
//! | `KRM_E2E_KUBECONFIG` | the kubeconfig of the cluster; its current context is an administrator |
//! | `KRM_E2E_PROVIDER` | `kind`, `control-plane` or `kubeconfig` |
//! | `KRM_E2E_STATE` | with `control-plane`: its state folder, for faults on its processes |
//! | `KRM_XTASK_BIN` | this program, for `control-plane process … --state $KRM_E2E_STATE` |

mod provider;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use crate::cleanup::{self, Cleanup, CleanupFolderError, Leftover};
use crate::control_plane::{BuildError, ClusterError, ControlPlane, Options};
use crate::process::{self, ProcessError};
use crate::workspace::{self, WorkspaceError};

use self::provider::{Choice, Provider, ProviderError};

const BROWSER_REMEDY: &str = "install a browser with its driver: apt-get install chromium chromium-driver";

/// Which tests to run, and against what.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where the API server comes from [default: kind where docker and kind work, else control-plane].
    #[arg(long, value_enum)]
    provider: Option<Provider>,
    /// The kubeconfig of a cluster that exists; implies `--provider kubeconfig`.
    #[arg(long, value_name = "PATH")]
    kubeconfig: Option<PathBuf>,
    /// Run the tests of the page in a headless browser instead; they need no cluster.
    #[arg(long, conflicts_with_all = ["provider", "kubeconfig", "keep"])]
    browser: bool,
    /// Leave the cluster running afterwards.
    #[arg(long)]
    keep: bool,
    /// Run only the tests whose name contains this.
    #[arg(value_name = "FILTER")]
    filter: Option<String>,
}

/// The tests could not be run. That a test failed is no such error: it is in the exit code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum E2eError {
    /// No provider fits.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The control plane's programs could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The control plane does not start.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A program is missing or failed.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// There is no cache or target folder.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// There is no place for the cluster's files.
    #[error(transparent)]
    Folder(#[from] CleanupFolderError),
}

/// Sets up, runs the tests, ends everything, and passes the tests' exit code on.
///
/// # Errors
///
/// When something that the tests need is missing or does not start.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, E2eError> {
    if arguments.browser {
        return browser(arguments);
    }
    // Before anything that takes minutes.
    process::find("kubectl", crate::control_plane::KUBECTL_REMEDY)?;
    let choice = provider::choose(arguments.provider, arguments.kubeconfig.clone())?;
    eprintln!("e2e: {}", choice.reason());

    let mut cleanup = Cleanup::start()?;
    let first = run_on_cluster(&choice, arguments, StreamingLists::Served, &mut cleanup)?;
    let status = match choice {
        Choice::ControlPlane { .. } => {
            let second = run_on_cluster(&choice, arguments, StreamingLists::Refused, &mut cleanup)?;
            if first.success() { second } else { first }
        }
        Choice::Kind { .. } | Choice::Kubeconfig { .. } => {
            eprintln!(
                "e2e: not run again on a cluster that refuses streaming lists; --provider control-plane has one"
            );
            first
        }
    };
    Ok(process::exit_code(status))
}

/// Whether the API server serves streaming lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamingLists {
    Served,
    Refused,
}

impl StreamingLists {
    /// The module of the tests that are for the other sort of cluster.
    fn skipped(self) -> &'static str {
        match self {
            Self::Served => "without_streaming_lists::",
            Self::Refused => "with_streaming_lists::",
        }
    }

    fn options(self) -> Options {
        match self {
            Self::Served => Options::default(),
            Self::Refused => Options::without_streaming_lists(),
        }
    }
}

fn run_on_cluster(
    choice: &Choice,
    arguments: &Arguments,
    lists: StreamingLists,
    cleanup: &mut Cleanup,
) -> Result<ExitStatus, E2eError> {
    if lists == StreamingLists::Refused {
        eprintln!("e2e: once more, on an API server that refuses streaming lists");
    }
    let mut tests = tests("cluster", arguments.filter.as_deref())?;
    tests.args(["--skip", lists.skipped()]);
    let cluster = Cluster::set_up(choice, arguments.keep, &lists.options(), cleanup)?;
    tests
        .env("KRM_E2E_KUBECONFIG", &cluster.kubeconfig)
        .env("KRM_E2E_PROVIDER", choice.name());
    if let Some(state) = &cluster.state {
        tests.env("KRM_E2E_STATE", state);
    }
    let status = run_in_a_group(&mut tests, cleanup)?;
    if arguments.keep {
        eprintln!(
            "e2e: kept the cluster; its kubeconfig is {}",
            cluster.kubeconfig.display()
        );
        if let Some(remedy) = &cluster.end_by_hand {
            eprintln!("e2e: end it with: {remedy}");
        }
    } else if let Some(state) = &cluster.state {
        // Not only at the end: it would take its share of the processors from whatever comes next.
        ControlPlane::destroy(state)?;
    }
    Ok(status)
}

fn browser(arguments: &Arguments) -> Result<ExitCode, E2eError> {
    process::find("chromium", BROWSER_REMEDY)?;
    process::find("chromedriver", BROWSER_REMEDY)?;
    let mut cleanup = Cleanup::start()?;
    let mut tests = tests("browser", arguments.filter.as_deref())?;
    Ok(process::exit_code(run_in_a_group(&mut tests, &mut cleanup)?))
}

/// The command that runs one file of ignored tests, with everything built that they start themselves.
fn tests(file: &str, filter: Option<&str>) -> Result<Command, E2eError> {
    let root = workspace::root();
    process::run(
        process::cargo()
            .args(["build", "--package", "krm-stream-demo"])
            .current_dir(&root),
    )?;
    let demo = workspace::target()?.join("debug/krm-stream-demo");
    let mut tests = process::cargo();
    tests.args(["test", "--package", "krm-stream-tests", "--test", file, "--"]);
    tests.args(filter).args(["--ignored", "--test-threads=1"]);
    tests.current_dir(&root).env("KRM_DEMO_BIN", demo);
    if let Ok(program) = std::env::current_exe() {
        tests.env("KRM_XTASK_BIN", program);
    }
    Ok(tests)
}

/// Runs the tests as a process group of their own, of which nothing survives the end of this command.
fn run_in_a_group(tests: &mut Command, cleanup: &mut Cleanup) -> Result<ExitStatus, E2eError> {
    tests.process_group(0).stdin(std::process::Stdio::null());
    let mut child = tests
        .spawn()
        .map_err(|source| process::start_error(tests, source))?;
    cleanup.promise(&Leftover::Group(child.id()))?;
    let status = child
        .wait()
        .map_err(|source| process::start_error(tests, source))?;
    Ok(status)
}

struct Cluster {
    kubeconfig: PathBuf,
    /// The state folder of a control plane.
    state: Option<PathBuf>,
    end_by_hand: Option<String>,
}

impl Cluster {
    fn set_up(
        choice: &Choice,
        keep: bool,
        options: &Options,
        cleanup: &mut Cleanup,
    ) -> Result<Self, E2eError> {
        match choice {
            Choice::Kubeconfig { path, .. } => Ok(Self {
                kubeconfig: path.clone(),
                state: None,
                end_by_hand: None,
            }),
            Choice::ControlPlane { .. } => {
                let binaries = crate::control_plane::build()?;
                let state = folder(keep, cleanup)?;
                if !keep {
                    cleanup.promise(&Leftover::ControlPlane(state.clone()))?;
                }
                let cluster = ControlPlane::start(&binaries, &state, options)?;
                let end_by_hand = format!("cargo xtask control-plane down --state {}", state.display());
                Ok(Self {
                    kubeconfig: cluster.kubeconfig(),
                    state: Some(state),
                    end_by_hand: Some(end_by_hand),
                })
            }
            Choice::Kind { .. } => {
                let name = format!("krm-stream-e2e-{}", std::process::id());
                let kubeconfig = folder(keep, cleanup)?.join("kubeconfig");
                if !keep {
                    cleanup.promise(&Leftover::Kind(name.clone()))?;
                }
                create_kind(&name, &kubeconfig)?;
                let end_by_hand = format!("kind delete cluster --name {name}");
                Ok(Self {
                    kubeconfig,
                    state: None,
                    end_by_hand: Some(end_by_hand),
                })
            }
        }
    }
}

/// A folder for the cluster's files; a kept one belongs to whoever asked to keep it.
fn folder(keep: bool, cleanup: &mut Cleanup) -> Result<PathBuf, E2eError> {
    let within = workspace::cache()?.join("e2e");
    if keep {
        crate::files::create_folder(&within).map_err(CleanupFolderError::from)?;
        let kept = tempfile::Builder::new().prefix("kept-").tempdir_in(&within);
        let kept = kept
            .map_err(crate::files::naming("create a folder in", &within))
            .map_err(CleanupFolderError::from)?;
        return Ok(kept.keep());
    }
    Ok(cleanup::temporary_folder(cleanup, &within)?)
}

fn create_kind(name: &str, kubeconfig: &Path) -> Result<(), ProcessError> {
    let mut kind = Command::new("kind");
    kind.args([
        "create",
        "cluster",
        "--name",
        name,
        "--wait",
        "180s",
        "--kubeconfig",
    ])
    .arg(kubeconfig);
    process::run(&mut kind)
}
