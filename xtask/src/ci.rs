//! `cargo xtask ci`: every check, as the script `.ci/run` lists them.
//!
//! The list of steps is in that script alone, since it also installs what the steps need.

use std::process::{Command, ExitCode};

use crate::process::{self, ProcessError};
use crate::workspace;

/// Runs the script and passes its exit code on.
///
/// # Errors
///
/// When `bash` cannot be started.
pub(crate) fn run() -> Result<ExitCode, ProcessError> {
    let mut script = Command::new("bash");
    script.arg(workspace::root().join(".ci/run"));
    process::status(&mut script).map(process::exit_code)
}
