//! The runnable gateway and its page: a Kubernetes watch goes in, a stream that a browser can trust comes out.
//!
//! This program wires the crates together and owns none of what they decide. `--help` lists its flags, `docs/running.md`
//! explains them.

mod admin;
mod allow;
mod announce;
mod clients;
mod clusters;
mod declared;
mod diagnostics;
mod flags;
mod gateway;
mod hosts;
mod identity;
mod networks;
mod page;
mod presets;
mod routes;
mod rules;
mod server;
mod simulator;
mod start;
mod tls;

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;

use crate::flags::Flags;

/// For flags that cannot be used, as clap does.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let flags = Flags::parse();
    if let Err(error) = rules::check(&flags) {
        return refuse(&error, USAGE);
    }
    if let Err(error) = diagnostics::start_log() {
        return refuse(error.as_ref(), USAGE);
    }
    match run(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refuse(&error, 1),
    }
}

fn run(flags: Flags) -> Result<(), start::StartError> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(start::StartError::Runtime)?
        .block_on(start::serve(flags))
}

fn refuse(error: &dyn Error, code: u8) -> ExitCode {
    eprintln!("error: {}", diagnostics::with_causes(error));
    ExitCode::from(code)
}
