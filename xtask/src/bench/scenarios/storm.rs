//! Thousands join within a second, leave at once, and join again.

use std::time::Duration;

use crate::bench::BenchError;
use crate::bench::figures::{Bar, Figure};
use crate::bench::load::Load;
use crate::bench::servers::Server;
use crate::wait;

use super::{Settings, size};

/// A listener's queue of connections that wait to be accepted has about this many places.
const AT_ONCE: usize = 900;
const JOINED_WITHIN: Duration = Duration::from_mins(3);
/// What the readers that left had open is given back by then.
const SETTLED_WITHIN: Duration = Duration::from_secs(30);

pub(super) fn run(settings: &Settings, scenario: &'static str) -> Result<Vec<Figure>, BenchError> {
    let streams = if settings.quick { 1_000 } else { 5_000 };
    let mut server = Server::start(&settings.gateway(&[]), size(1_000))?;
    let observed = server.observed();
    let mut load = Load::new(server.source())?;
    let (files, threads) = (observed.files()?, observed.threads()?);

    let opened = open_within(&mut load, streams)?;
    load.leave_all();
    let clock = wait::stopwatch();
    load.join(streams, AT_ONCE, JOINED_WITHIN)?;
    let joined = clock();
    let (memory, peak) = (observed.memory()?, observed.peak_memory()?);
    let watches = server.changing().count("watch")?;
    let lists = server.changing().count("list")?;
    load.leave_all();

    // The feed lingers for some seconds; then its watch and its connection go too.
    let settled = wait::until(SETTLED_WITHIN, || {
        let open = observed.files().ok()?;
        (open <= files + 1).then_some(open)
    });
    let open = match settled {
        Some(open) => open,
        None => observed.files()?,
    };
    Ok(vec![
        Figure::new(scenario, format!("{streams} connections opened within"), "s").of(opened),
        Figure::new(scenario, "left and joined again: all `synced` after", "s").of(joined),
        Figure::new(scenario, "watches asked upstream", "requests")
            .of(watches as f64)
            .bar(Bar::Exactly(1.0)),
        Figure::new(scenario, "lists asked upstream", "requests")
            .of(lists as f64)
            .bar(Bar::Exactly(0.0)),
        Figure::new(scenario, "files left open after all left", "files")
            .of(open as f64 - files as f64)
            .bar(Bar::AtMost(1.0)),
        Figure::new(scenario, "threads more than before", "threads")
            .of(observed.threads()? as f64 - threads as f64),
        Figure::new(scenario, "memory with all joined", "MiB").of(memory / 1024.0),
        Figure::new(scenario, "peak memory", "MiB").of(peak / 1024.0),
        Figure::new(scenario, "memory after all left", "MiB").of(observed.memory()? / 1024.0),
    ])
}

/// Opens so many connections and sends their requests, as fast as they are accepted, and reads nothing; how many
/// seconds that took.
fn open_within(load: &mut Load, streams: usize) -> Result<f64, BenchError> {
    load.read(false);
    let clock = wait::stopwatch();
    let until = wait::now() + JOINED_WITHIN;
    let mut begun = 0;
    while begun < streams {
        let asked = load.asked();
        while begun < streams && begun - asked < AT_ONCE {
            load.open()?;
            begun += 1;
        }
        load.step(Duration::from_millis(10))?;
        if wait::now() > until {
            return Err(BenchError::Late(format!(
                "{asked} of {streams} readers could connect"
            )));
        }
    }
    load.run_until(until, |load| load.asked() >= streams)?;
    load.read(true);
    Ok(clock())
}
