//! Thousands join within a second, leave at once, and join again.

use std::time::Duration;

use crate::bench::BenchError;
use crate::bench::figures::{Bar, Figure};
use crate::bench::load::Load;
use crate::bench::measure::Observed;
use crate::bench::servers::{Open, Server};
use crate::wait;

use super::{Effort, Settings, size};

/// A listener's queue of connections that wait to be accepted has about this many places.
const AT_ONCE: usize = 900;
const JOINED_WITHIN: Duration = Duration::from_mins(3);
/// What the readers that left had open is given back by then; a feed lingers for some seconds.
const SETTLED_WITHIN: Duration = Duration::from_secs(30);
/// How long all may take to open their connections, in seconds.
const OPENED_WITHIN: f64 = 1.0;

/// What is left once all readers left.
#[derive(Clone, Copy, Debug)]
struct Left {
    open: Open,
    /// More than before.
    files: f64,
    threads: f64,
}

pub(super) fn run(settings: &Settings, scenario: &'static str) -> Result<Vec<Figure>, BenchError> {
    let streams = settings.effort.pick(5_000, 1_000, 50);
    let flags: &[&str] = match settings.effort {
        Effort::Full | Effort::Quick => &[],
        Effort::Smoke => &["--linger", "10s"],
    };
    let mut server = Server::start(
        &settings.gateway(flags),
        size(settings.effort.pick(1_000, 1_000, 100)),
    )?;
    let observed = server.observed();
    let mut load = Load::new(server.source())?;
    // What the first reader of all leaves behind, a connection to the API server that is kept, is no storm's.
    load.join(1, 1, JOINED_WITHIN)?;
    load.leave_all();
    let before = Resources::of(observed)?;
    settle(&server, before)?;
    let before = Resources::of(observed)?;
    let (watches, lists) = (
        server.changing().count("watch")?,
        server.changing().count("list")?,
    );

    let opened = open_within(&mut load, streams)?;
    load.leave_all();
    let clock = wait::stopwatch();
    load.join(streams, AT_ONCE, JOINED_WITHIN)?;
    let joined = clock();
    let (memory, peak) = (observed.memory()?, observed.peak_memory()?);
    let watches = server.changing().count("watch")? - watches;
    let lists = server.changing().count("list")? - lists;
    load.leave_all();

    let open = settle(&server, before)?;
    let after = Resources::of(observed)?;
    let left = Left {
        open,
        files: after.files as f64 - before.files as f64,
        threads: after.threads as f64 - before.threads as f64,
    };
    let mut figures = vec![
        Figure::new(scenario, format!("{streams} connections opened within"), "s")
            .of(opened)
            .bar(Bar::AtMost(OPENED_WITHIN)),
        Figure::new(scenario, "left and joined again: all `synced` after", "s").of(joined),
        Figure::new(scenario, "watches asked upstream", "requests")
            .of(watches as f64)
            .bar(Bar::Exactly(1.0)),
        Figure::new(scenario, "lists asked upstream", "requests")
            .of(lists as f64)
            .bar(Bar::Exactly(0.0)),
    ];
    figures.extend(left_open(scenario, left));
    figures.extend([
        Figure::new(scenario, "memory with all joined", "MiB").of(memory / 1024.0),
        Figure::new(scenario, "peak memory", "MiB").of(peak / 1024.0),
        Figure::new(scenario, "memory after all left", "MiB").of(observed.memory()? / 1024.0),
    ]);
    Ok(figures)
}

/// Every task of a gateway belongs to a stream, its place at a feed, a feed, a session upstream, or a connection, which
/// is a file. Threads stay with their pool.
fn left_open(scenario: &'static str, left: Left) -> [Figure; 6] {
    let none = |name: &str, unit, count: u64| {
        Figure::new(scenario, name, unit)
            .of(count as f64)
            .bar(Bar::Exactly(0.0))
    };
    [
        none("streams left after all left", "streams", left.open.streams),
        none(
            "places at feeds left after all left",
            "subscriptions",
            left.open.subscriptions,
        ),
        none("feeds left after all left", "feeds", left.open.feeds),
        none(
            "upstream sessions left after all left",
            "sessions",
            left.open.upstream_sessions,
        ),
        Figure::new(scenario, "files more than before", "files")
            .of(left.files)
            .bar(Bar::AtMost(0.0)),
        Figure::new(scenario, "threads more than before", "threads").of(left.threads),
    ]
}

/// What the operating system counts.
#[derive(Clone, Copy, Debug)]
struct Resources {
    files: usize,
    threads: usize,
}

impl Resources {
    fn of(observed: Observed) -> Result<Self, BenchError> {
        Ok(Self {
            files: observed.files()?,
            threads: observed.threads()?,
        })
    }
}

/// Waits until nothing is open and no more files than before are; what is open then, or once it took too long.
fn settle(server: &Server, before: Resources) -> Result<Open, BenchError> {
    let settled = wait::until(SETTLED_WITHIN, || {
        let open = server.open().ok()?;
        let files = server.observed().files().ok()?;
        (open == Open::default() && files <= before.files).then_some(open)
    });
    settled.map_or_else(|| server.open(), Ok)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_left_is_missed_but_for_threads() {
        let missed = |left: Left| {
            let figures = left_open("storm", left).into_iter();
            let missed = figures.filter(|figure| figure.is_reached() == Some(false));
            missed.map(|figure| figure.unit).collect::<Vec<_>>()
        };
        let nothing = Left {
            open: Open::default(),
            files: -1.0,
            threads: 3.0,
        };
        assert_eq!(missed(nothing), [""; 0]);
        let all = Left {
            open: Open {
                streams: 1,
                subscriptions: 2,
                feeds: 1,
                upstream_sessions: 1,
            },
            files: 1.0,
            threads: 0.0,
        };
        assert_eq!(
            missed(all),
            ["streams", "subscriptions", "feeds", "sessions", "files"]
        );
    }
}
