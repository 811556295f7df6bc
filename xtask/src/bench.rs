//! `cargo xtask bench`: the gateway beside the limit, both in processes of their own, measured from outside.
//!
//! The command builds optimised programs, then becomes the optimised build of itself, which starts the others: an API
//! server (the simulator), the gateway, and the limit program, each in turn. It is the readers of both itself.
#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times and counts become figures for people"
)]

mod figures;
mod load;
mod machine;
mod measure;
mod report;
mod roles;
mod scenarios;
mod servers;
mod statistics;

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use serde_json::json;

pub(crate) use self::roles::Role;
use self::scenarios::{Effort, SCENARIOS, Scenario, Settings};
use crate::files::{self, FileError};
use crate::process::{self, ProcessError};
use crate::wait;
use crate::workspace::{self, WorkspaceError};

/// What is measured, and how long.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A short run: less of everything, and none of the scenarios that take minutes. Its figures are rough.
    #[arg(long)]
    quick: bool,
    /// Whether every scenario still gives its figures, and those that are exact: next to nothing of everything, with
    /// builds that are not optimised. How fast it was says nothing, and nothing is written unless `--json` says where.
    #[arg(long, conflicts_with_all = ["quick", "runs", "seconds", "soak_minutes", "compare"])]
    smoke: bool,
    /// Run this scenario only; repeated. `--list` tells their names.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// List the scenarios.
    #[arg(long)]
    list: bool,
    /// How often gateway and limit are each run, in turn [default: 3, quick: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// How long live delivery is measured in each run, in seconds [default: 20, quick: 4].
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    seconds: Option<u32>,
    /// How long the soak lasts.
    #[arg(long, value_name = "MINUTES", default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..))]
    soak_minutes: u32,
    /// Where the figures are written to [default: bench.json in the target folder].
    #[arg(long, value_name = "PATH")]
    json: Option<PathBuf>,
    /// Say what changed since this older file.
    #[arg(long, value_name = "OLD.json")]
    compare: Option<PathBuf>,
    /// Measure this build of the gateway, and build none.
    #[arg(long, value_name = "PROGRAM")]
    gateway: Option<PathBuf>,
}

/// The bench could not be run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("cannot {doing}")]
    Io { doing: &'static str, source: io::Error },
    #[error("a part of the bench failed: {0}")]
    Role(String),
    #[error("{0}")]
    Late(String),
    #[error("a reader was ended: {0}")]
    ReaderEnded(String),
    #[error("the bench no longer tells what it has to:\n{}", .0.join("\n"))]
    Smoke(Vec<String>),
    #[error("there is no scenario {0:?}; --list tells their names")]
    NoScenario(String),
    #[error("{} cannot be compared with: {why}", path.display())]
    Unreadable { path: PathBuf, why: String },
    #[error(
        "the readers and the server need {needed} open files each, and this machine allows {allowed}; raise the hard limit: \
         ulimit -Hn {needed} (as root), or nofile in /etc/security/limits.conf"
    )]
    Files { needed: u64, allowed: u64 },
}

impl BenchError {
    fn io(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }
}

/// What 5,000 readers need, and what a process has open besides.
const OPEN_FILES: u64 = 5_500;

/// Builds what is measured, and becomes the optimised build of this command.
///
/// # Errors
///
/// When something does not build, or a scenario cannot be run; a bar that is missed is no error, the report says so.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, BenchError> {
    if arguments.list {
        for scenario in SCENARIOS {
            println!("{:16} {}", scenario.name, scenario.about);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = choose(arguments)?;
    if cfg!(debug_assertions) && !arguments.smoke {
        build("xtask", true)?;
        let mut own = Command::new(program("release", "xtask")?);
        own.args(std::env::args_os().skip(1));
        let refused = own.exec();
        return Err(process::start_error(&own, refused).into());
    }
    let gateway = if let Some(program) = &arguments.gateway {
        files::absolute(program)?
    } else {
        build("krm-stream-demo", !arguments.smoke)?;
        let profile = if arguments.smoke { "debug" } else { "release" };
        program(profile, "krm-stream-demo")?
    };
    if !arguments.smoke {
        raise_open_files()?;
    }
    let settings = settings(arguments, gateway);
    let machine = machine::facts();
    eprintln!("{}", machine::line(&machine));
    let mut figures = Vec::new();
    for scenario in chosen {
        eprintln!("{}: {}", scenario.name, scenario.about);
        let clock = wait::stopwatch();
        figures.extend(scenario.run(&settings)?);
        eprintln!("{}: {:.0} s", scenario.name, clock());
    }
    figures.extend(scenarios::flatness(&figures));
    let described = json!({
        "effort": settings.effort.name(),
        "runs": settings.runs,
        "live_seconds": settings.live.as_secs_f64(),
        "object_bytes": scenarios::OBJECT_BYTES,
    });
    let report = report::json(&figures, &machine, &described);
    let path = match &arguments.json {
        Some(path) => Some(files::absolute(path)?),
        None if arguments.smoke => None,
        None => Some(workspace::target()?.join("bench.json")),
    };
    if !arguments.smoke {
        println!("{}\n\n{}", machine::line(&machine), report::table(&figures));
    }
    if let Some(old) = &arguments.compare {
        println!("{}", report::compare(old, &report)?);
    }
    if let Some(path) = path {
        report::write(&path, &report)?;
        eprintln!("written to {}", path.display());
    }
    if arguments.smoke {
        let faults = report::faults(&figures);
        if !faults.is_empty() {
            return Err(BenchError::Smoke(faults));
        }
        println!("{} figures came out, and those that are exact are", figures.len());
    }
    Ok(ExitCode::SUCCESS)
}

/// Becomes a part of the bench.
///
/// # Errors
///
/// When it cannot listen or start.
pub(crate) fn run_role(role: &Role) -> Result<ExitCode, BenchError> {
    roles::run(role)?;
    Ok(ExitCode::SUCCESS)
}

fn choose(arguments: &Arguments) -> Result<Vec<Scenario>, BenchError> {
    if arguments.only.is_empty() {
        let short = |scenario: &Scenario| !arguments.quick || !scenario.is_long;
        return Ok(SCENARIOS.into_iter().filter(short).collect());
    }
    let named = arguments.only.iter().map(|name| {
        let found = SCENARIOS.into_iter().find(|scenario| scenario.name == name);
        found.ok_or_else(|| BenchError::NoScenario(name.clone()))
    });
    named.collect()
}

fn settings(arguments: &Arguments, gateway: PathBuf) -> Settings {
    let effort = match (arguments.smoke, arguments.quick) {
        (true, _) => Effort::Smoke,
        (false, true) => Effort::Quick,
        (false, false) => Effort::Full,
    };
    let seconds = arguments.seconds.unwrap_or(effort.pick(20, 4, 1));
    let soak = Duration::from_secs(u64::from(arguments.soak_minutes) * 60);
    Settings {
        gateway,
        runs: arguments.runs.unwrap_or(effort.pick(3, 1, 1)) as usize,
        live: Duration::from_secs(u64::from(seconds)),
        join_objects: effort.pick(1_000_000, 100_000, 1),
        effort,
        soak: effort.pick(soak, soak, Duration::from_secs(4)),
    }
}

fn build(package: &str, optimised: bool) -> Result<(), ProcessError> {
    let mut build = process::cargo();
    build
        .args(["build", "--package", package])
        .args(optimised.then_some("--release"))
        .current_dir(workspace::root());
    process::run(&mut build)
}

fn program(profile: &str, name: &str) -> Result<PathBuf, WorkspaceError> {
    Ok(workspace::target()?.join(profile).join(name))
}

/// Raises the limit of open files, which the programs that are started inherit.
fn raise_open_files() -> Result<(), BenchError> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= OPEN_FILES) {
        return Ok(());
    }
    let allowed = limit.maximum.unwrap_or(u64::MAX);
    let refused = BenchError::Files {
        needed: OPEN_FILES,
        allowed,
    };
    if allowed < OPEN_FILES {
        return Err(refused);
    }
    let wanted = Rlimit {
        current: Some(OPEN_FILES),
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, wanted).map_err(|_| refused)
}
