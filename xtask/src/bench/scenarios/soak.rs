//! Minutes of readers that come, go and stall, while the watch is recycled again and again.

use std::time::Duration;

use crate::bench::BenchError;
use crate::bench::figures::{Bar, Figure};
use crate::bench::load::{Load, Tally};
use crate::bench::servers::Server;
use crate::bench::statistics::median;
use crate::wait;

use super::{Settings, size};

const RATE: f64 = 10.0;
/// Longer than any reader is stalled, in seconds, so that the server ends none.
const WRITE_TIMEOUT: &str = "120";
const JOINED_WITHIN: Duration = Duration::from_mins(3);
const CONVERGED_WITHIN: Duration = Duration::from_mins(1);

/// What is done. In each round some leave, some stall, those that stalled long enough go on, and as many as are missing
/// join.
#[derive(Clone, Copy, Debug)]
struct Plan {
    streams: usize,
    objects: usize,
    /// How often the API server is asked for another watch, in seconds.
    watch_timeout: &'static str,
    round: Duration,
    leaving: usize,
    stalling: usize,
    /// The longest time that a reader is stalled, in seconds.
    stalled_within: usize,
    /// What is compared at the beginning and at the end, in seconds.
    compared: f64,
}

const PLAN: Plan = Plan {
    streams: 1_000,
    objects: 1_000,
    watch_timeout: "20",
    round: Duration::from_secs(2),
    leaving: 20,
    stalling: 5,
    stalled_within: 60,
    compared: 60.0,
};

const SMOKE: Plan = Plan {
    streams: 20,
    objects: 100,
    watch_timeout: "1",
    round: Duration::from_millis(250),
    leaving: 2,
    stalling: 1,
    stalled_within: 2,
    compared: 4.0,
};

/// Numbers that are the same in each run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most.max(1)
    }
}

pub(super) fn run(settings: &Settings, scenario: &'static str) -> Result<Vec<Figure>, BenchError> {
    let plan = settings.effort.pick(PLAN, PLAN, SMOKE);
    let flags = [
        "--watch-timeout",
        plan.watch_timeout,
        "--write-timeout",
        WRITE_TIMEOUT,
    ];
    let mut server = Server::start(&settings.gateway(&flags), size(plan.objects))?;
    let observed = server.observed();
    let mut load = Load::new(server.source())?.keep_stamps();
    load.join(plan.streams, plan.streams.min(200), JOINED_WITHIN)?;
    server.changing().rate(RATE)?;

    let mut draw = Draw(1);
    // Who, and until when.
    let mut stalled: Vec<(usize, f64)> = Vec::new();
    let mut memory: Vec<(f64, f64)> = Vec::new();
    let mut joins = 0_u64;
    let clock = wait::stopwatch();
    while clock() < settings.soak.as_secs_f64() {
        let now = clock();
        for (reader, _) in stalled.extract_if(.., |(_, until)| *until <= now) {
            load.wake(reader)?;
        }
        for _ in 0..plan.leaving {
            let open = load.open_readers();
            load.leave(open[draw.below(open.len())]);
        }
        for _ in 0..plan.stalling {
            let open = load.open_readers();
            let reader = open[draw.below(open.len())];
            load.stall(reader)?;
            stalled.push((reader, now + draw.below(plan.stalled_within) as f64));
        }
        while load.open_readers().len() + load.connecting() + stalled.len() < plan.streams {
            load.open()?;
            joins += 1;
        }
        load.run(plan.round)?;
        memory.push((clock(), observed.memory()?));
    }
    for (reader, _) in stalled {
        load.wake(reader)?;
    }
    server.changing().rate(0.0)?;
    let truth = server.changing().digest()?;
    let until = wait::now() + CONVERGED_WITHIN;
    let mut converged = 0;
    while wait::now() < until {
        load.run(Duration::from_millis(500))?;
        converged = load.digests().iter().filter(|digest| **digest == truth).count();
        if converged == plan.streams {
            break;
        }
    }
    let ended = (0..load.places())
        .filter(|reader| load.end_of(*reader).is_some())
        .count();
    let mean = |from: f64, to: f64| {
        let minute = memory.iter().filter(|(at, _)| (from..to).contains(at));
        median(&minute.map(|(_, kib)| kib / 1024.0).collect::<Vec<_>>()).unwrap_or(f64::INFINITY)
    };
    let length = settings.soak.as_secs_f64();
    let seen = Seen {
        first: mean(0.0, plan.compared),
        last: mean(length - plan.compared, f64::INFINITY),
        peak: observed.peak_memory()? / 1024.0,
        joins,
        watches: server.changing().count("watch")?,
        tally: load.tally(),
        ended,
        converged,
    };
    Ok(figures(scenario, &seen, plan.streams))
}

/// What came of it.
#[derive(Debug)]
struct Seen {
    /// The gateway's memory in the first and the last minute, and the most, in MiB.
    first: f64,
    last: f64,
    peak: f64,
    joins: u64,
    /// How often the API server was asked for a watch.
    watches: u64,
    tally: Tally,
    /// How many readers the server ended.
    ended: usize,
    converged: usize,
}

fn figures(scenario: &'static str, seen: &Seen, streams: usize) -> Vec<Figure> {
    let tally = &seen.tally;
    vec![
        Figure::new(scenario, "memory in the first minute", "MiB").of(seen.first),
        Figure::new(scenario, "memory in the last minute", "MiB")
            .of(seen.last)
            .bar(Bar::near(seen.first)),
        Figure::new(scenario, "peak memory", "MiB").of(seen.peak),
        Figure::new(scenario, "joins", "readers").of(seen.joins as f64),
        // The first is no recycled one, and without one that is, the next figure tells nothing.
        Figure::new(scenario, "watches asked upstream", "requests")
            .of(seen.watches as f64)
            .bar(Bar::MoreThan(1.0)),
        Figure::new(scenario, "resets after a connection's first", "resets")
            .of(tally.later_cycles as f64)
            .bar(Bar::Exactly(0.0)),
        Figure::new(scenario, "readers that the server ended", "readers")
            .of(seen.ended as f64)
            .bar(Bar::Exactly(0.0)),
        Figure::new(scenario, "errors told and gaps", "events")
            .of((tally.errors + tally.gaps + tally.unreadable) as f64)
            .bar(Bar::Exactly(0.0)),
        Figure::new(scenario, "converged at the end", "readers")
            .of(seen.converged as f64)
            .bar(Bar::Exactly(streams as f64)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::faults;

    fn seen(watches: u64, later_cycles: u64) -> Seen {
        Seen {
            first: 100.0,
            last: 101.0,
            peak: 110.0,
            joins: 20,
            watches,
            tally: Tally {
                cycles: 20 + later_cycles,
                later_cycles,
                ..Tally::default()
            },
            ended: 0,
            converged: 20,
        }
    }

    #[test]
    fn watches_that_are_recycled_without_a_reset_reach_every_bar() {
        let figures = figures("soak", &seen(2, 0), 20);
        assert!(figures.iter().all(|figure| figure.is_reached() != Some(false)));
        assert_eq!(faults(&figures), [""; 0]);
    }

    #[test]
    fn a_reset_that_a_recycled_watch_costs_misses_its_bar_and_so_does_a_run_without_one() {
        assert_eq!(
            faults(&figures("soak", &seen(5, 20), 20)),
            ["soak: resets after a connection's first: 20 resets, not = 0"]
        );
        assert_eq!(
            faults(&figures("soak", &seen(1, 0), 20)),
            ["soak: watches asked upstream: 1 requests, not > 1"]
        );
    }
}
