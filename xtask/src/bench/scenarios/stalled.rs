//! 20,000 changes to 50 live readers, with and without one that takes nothing.

use std::time::Duration;

use crate::bench::BenchError;
use crate::bench::figures::{Bar, Figure};
use crate::bench::load::Load;
use crate::bench::servers::{self, Server};
use crate::bench::statistics::percentile;
use crate::wait;

use super::{Settings, size};

const LIVE: usize = 50;
const RATE: f64 = 1_000.0;
const JOINED_WITHIN: Duration = Duration::from_mins(1);
/// How long a stalled reader is let be, in seconds.
const WRITE_TIMEOUT: u64 = 5;
/// How long what was sent may be on its way.
const ARRIVED_WITHIN: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug)]
struct Measured {
    /// Seconds until all live readers had what they were owed.
    wall: f64,
    cpu: f64,
    high_delay: f64,
    /// What the memory grew by, in KiB.
    grown: f64,
    /// After how many seconds the stalled one's connection was gone on the server's side.
    cut: Option<f64>,
    delivered: f64,
}

pub(super) fn run(settings: &Settings, scenario: &'static str) -> Result<Vec<Figure>, BenchError> {
    let changes = if settings.quick { 4_000 } else { 20_000 };
    let deadline = WRITE_TIMEOUT.to_string();
    let flags: &[&str] = if servers::knows_flag(&settings.gateway, "--write-timeout")? {
        &["--write-timeout", &deadline]
    } else {
        &[]
    };
    let mut runs = Vec::new();
    for _ in 0..settings.runs {
        let without = measure(settings, flags, changes, false)?;
        let with = measure(settings, flags, changes, true)?;
        runs.push((without, with));
    }
    let figure = |name: &str, unit, of: fn(&Measured) -> f64| {
        let mut figure = Figure::new(scenario, name, unit);
        figure.gateway = runs.iter().map(|(_, with)| of(with)).collect();
        figure
    };
    let without = |of: fn(&Measured) -> f64| {
        let values: Vec<f64> = runs.iter().map(|(without, _)| of(without)).collect();
        crate::bench::statistics::median(&values).unwrap_or(0.0)
    };
    let mut figures = vec![
        figure("50 live readers have it all after", "s", |run| run.wall)
            .bar(Bar::Near(without(|run| run.wall))),
        figure("CPU", "s", |run| run.cpu).bar(Bar::Near(without(|run| run.cpu))),
        figure("write to receipt of the 50, p99", "ms", |run| run.high_delay),
        Figure::new(scenario, "the same without the stalled one", "ms").of(without(|run| run.high_delay)),
        figure("delivered of changes × live readers", "share", |run| {
            run.delivered
        }),
        figure("memory grown", "KiB", |run| run.grown),
        Figure::new(scenario, "the same without the stalled one", "KiB").of(without(|run| run.grown)),
    ];
    let cuts: Vec<f64> = runs.iter().filter_map(|(_, with)| with.cut).collect();
    if !cuts.is_empty() {
        let name = format!("cut after (--write-timeout {WRITE_TIMEOUT})");
        let mut cut = Figure::new(scenario, name, "s").bar(Bar::AtMost(WRITE_TIMEOUT as f64 + 2.0));
        cut.gateway = cuts;
        figures.push(cut);
    }
    Ok(figures)
}

fn measure(settings: &Settings, flags: &[&str], changes: u64, stalled: bool) -> Result<Measured, BenchError> {
    let mut server = Server::start(&settings.gateway(flags), size(1_000))?;
    let observed = server.observed();
    let mut load = Load::new(server.source())?;
    load.join(LIVE, LIVE, JOINED_WITHIN)?;
    let mut frozen = Load::new(server.source())?;
    if stalled {
        frozen.join(1, 1, JOINED_WITHIN)?;
        frozen.stall(0)?;
    }
    load.run(Duration::from_secs(1))?;
    let (memory, cpu, files) = (observed.memory()?, observed.cpu()?, observed.files()?);
    let begun = load.tally().live;
    load.measure();
    server.changing().burst(changes, RATE)?;
    let clock = wait::stopwatch();
    let expected = begun + changes * LIVE as u64;
    let until = wait::now() + Duration::from_secs_f64(changes as f64 / RATE) + ARRIVED_WITHIN;
    let mut cut = None;
    while load.tally().live < expected && wait::now() < until {
        load.run(Duration::from_millis(20))?;
        if stalled && cut.is_none() && observed.files()? < files {
            cut = Some(clock());
        }
    }
    let wall = clock();
    load.no_failure()?;
    let mut delays = load.measured();
    delays.sort_unstable();
    Ok(Measured {
        wall,
        cpu: observed.cpu()? - cpu,
        high_delay: percentile(&delays, 0.99).unwrap_or(0) as f64 / 1e6,
        grown: observed.memory()? - memory,
        cut,
        delivered: (load.tally().live - begun) as f64 / (changes * LIVE as u64) as f64,
    })
}
