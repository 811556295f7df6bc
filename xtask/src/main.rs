//! The commands of this workspace: `cargo xtask <command>`, one file each.
//!
//! Progress goes to standard error. Standard output carries what a script would read: an address, a
//! kubeconfig path, a list of findings.
#![expect(clippy::print_stdout, reason = "a command speaks on its standard output")]

mod alerts;
mod bench;
mod ci;
mod cleanup;
mod control_plane;
mod demo;
mod e2e;
mod files;
mod process;
mod public_api;
mod tidy;
mod wait;
mod workspace;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The commands of the krm-stream workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build and run the demo; every flag is passed on (try `cargo xtask demo --help`).
    #[command(disable_help_flag = true)]
    Demo(demo::Arguments),
    /// Build, start and end a real kube-apiserver with etcd, without containers.
    ControlPlane(control_plane::Arguments),
    /// Run the tests that need a cluster, or, with `--browser`, those that need a browser.
    E2e(e2e::Arguments),
    /// Measure the gateway beside the limit: CPU, memory and delays, at up to 5,000 streams.
    Bench(bench::Arguments),
    /// Be a part of the bench (started by `bench`, not by hand).
    #[command(hide = true, subcommand)]
    BenchRole(bench::Role),
    /// Check the layers, the manifests and the sources for the rules no compiler knows.
    Tidy,
    /// Check the alert rules and run their tests, with promtool; it is fetched if it is not there.
    Alerts,
    /// Write the lists of what each library offers, in `docs/public-api`, anew from the sources.
    PublicApi,
    /// Run every check of continuous integration, as `.ci/run` lists them.
    Ci,
    /// Wait until standard input closes, then undo what it named (started by `e2e`, not by hand).
    #[command(hide = true)]
    Cleanup,
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {}", with_sources(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode, Box<dyn Error>> {
    match command {
        Command::Demo(arguments) => Ok(demo::run(&arguments)?),
        Command::ControlPlane(arguments) => Ok(control_plane::run(arguments)?),
        Command::E2e(arguments) => Ok(e2e::run(&arguments)?),
        Command::Bench(arguments) => Ok(bench::run(&arguments)?),
        Command::BenchRole(role) => Ok(bench::run_role(&role)?),
        Command::Tidy => Ok(tidy::run()?),
        Command::Alerts => Ok(alerts::run()?),
        Command::PublicApi => Ok(public_api::run()?),
        Command::Ci => Ok(ci::run()?),
        Command::Cleanup => {
            cleanup::run(std::io::stdin().lock());
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The error and each of its causes, in one line.
fn with_sources(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn every_flag_of_the_demo_is_passed_on() {
        let parsed = Arguments::parse_from(["xtask", "demo", "--listen", "127.0.0.1:0", "--help", "-x"]);
        let Command::Demo(arguments) = parsed.command else {
            panic!("parsed as another command: {parsed:?}");
        };
        assert_eq!(arguments.flags, ["--listen", "127.0.0.1:0", "--help", "-x"]);
    }

    #[test]
    fn an_error_names_its_causes() {
        let error = workspace::WorkspaceError::Metadata {
            source: process::ProcessError::Start {
                program: "cargo".to_owned(),
                source: std::io::Error::other("no such file"),
            },
        };
        assert!(
            with_sources(&error).ends_with("no such file"),
            "{}",
            with_sources(&error)
        );
    }
}
