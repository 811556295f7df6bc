//! `cargo xtask demo`: builds the demo and becomes it, so that its exit code and Ctrl-C are its own.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use crate::process::{self, ProcessError};
use crate::workspace::{self, WorkspaceError};

/// The flags of the demo, passed on as they are.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Flags of krm-stream-demo.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) flags: Vec<String>,
}

/// The demo could not be built or started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DemoError {
    /// Cargo failed; it has said why.
    #[error("the demo does not build")]
    Build(#[source] ProcessError),
    /// The built program is not where cargo puts it, or the target folder is unknown.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The operating system refused to run it.
    #[error("the demo does not start")]
    Start(#[source] ProcessError),
}

/// Builds the demo and replaces this process by it. `KRM_RELEASE=1` asks for an optimised build.
///
/// # Errors
///
/// When it does not build or start.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, DemoError> {
    let release = std::env::var("KRM_RELEASE").is_ok_and(|value| value == "1");
    let mut build = process::cargo();
    build
        .args(["build", "--package", "krm-stream-demo"])
        .current_dir(workspace::root());
    if release {
        build.arg("--release");
    }
    process::run(&mut build).map_err(DemoError::Build)?;

    let profile = if release { "release" } else { "debug" };
    let mut demo = Command::new(workspace::target()?.join(profile).join("krm-stream-demo"));
    demo.args(&arguments.flags);
    let refused = demo.exec();
    Err(DemoError::Start(process::start_error(&demo, refused)))
}
