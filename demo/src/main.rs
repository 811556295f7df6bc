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
use std::ffi::OsString;
use std::num::NonZero;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use crate::flags::Flags;

/// mimalloc's own variable for how long it keeps freed memory before the system gets it back, in milliseconds. It reads it as the
/// program starts.
///
/// Its default waits for further allocations of the same thread, which an idle gateway makes none of: the copy of a large
/// snapshot that a thousand readers shared would stay. To give it back at once costs a delivery nothing that can be measured.
const PURGE_DELAY: &str = "MIMALLOC_PURGE_DELAY";

/// An idle stream takes less memory with it than with the system's, whose freed buffers are in between; and musl's is slow.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// For flags that cannot be used, as clap does.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    start_anew_with_purging();
    let flags = Flags::read();
    if let Err(error) = rules::check(&flags) {
        return refuse(&error, USAGE);
    }
    if let Err(error) = diagnostics::start_log() {
        return refuse(error.as_ref(), USAGE);
    }
    let workers = match workers() {
        Ok(workers) => workers,
        Err(error) => return refuse(error.as_ref(), USAGE),
    };
    match run(flags, workers) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refuse(&error, 1),
    }
}

/// Replaces this program by itself, in the same process, with the variable set. Where that cannot be done it goes on as it is.
fn start_anew_with_purging() {
    if variable(PURGE_DELAY).is_some() {
        return;
    }
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    if let Ok(program) = std::env::current_exe() {
        let _error = Command::new(program)
            .arg0(name)
            .args(arguments)
            .env(PURGE_DELAY, "0")
            .exec();
    }
}

/// tokio's own variable for the number of worker threads.
///
/// Without it there is one for every two cores. A change wakes all streams at once, and each wake-up invites idle workers to
/// share them; where it is the kernel that then does most of the work, they take the cores that it needs, and a delivery
/// costs a tenth to a fifth more.
const WORKERS: &str = "TOKIO_WORKER_THREADS";

/// How many worker threads there are to be.
fn workers() -> Result<NonZero<usize>, Box<dyn Error>> {
    let Some(given) = variable(WORKERS) else {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        return Ok(NonZero::new(cores / 2).unwrap_or(NonZero::<usize>::MIN));
    };
    let number = given.to_str().and_then(|text| text.parse().ok());
    number.ok_or_else(|| {
        let given = given.display();
        format!("{WORKERS}: {given} is no number of threads; write one, for example 2, or leave it empty")
            .into()
    })
}

/// An environment variable that is set, and not to nothing.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn run(flags: Flags, workers: NonZero<usize>) -> Result<(), start::StartError> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers.get())
        .enable_all()
        .build()
        .map_err(start::StartError::Runtime)?
        .block_on(start::serve(flags))
}

fn refuse(error: &dyn Error, code: u8) -> ExitCode {
    eprintln!("error: {}", diagnostics::with_causes(error));
    ExitCode::from(code)
}
