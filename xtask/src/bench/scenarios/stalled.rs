//! 20,000 changes to 50 live readers, a thousand a second, with and without one that takes nothing.

use std::time::Duration;

use crate::bench::BenchError;
use crate::bench::figures::{Bar, Figure};
use crate::bench::load::{Load, Receipt};
use crate::bench::servers::{self, Server};
use crate::bench::statistics::{median, percentile};
use crate::wait;

use super::{Settings, size};

const JOINED_WITHIN: Duration = Duration::from_mins(1);
/// How long what was sent may be on its way; what takes longer never came.
const ARRIVED_WITHIN: Duration = Duration::from_secs(20);
/// How long what is delivered at all may follow the last change.
const REST_WITHIN: Duration = Duration::from_secs(2);
/// How much later than its deadline a stalled reader may be cut, in seconds, and how much later is looked at.
const CUT_LATE: f64 = 2.0;
const CUT_WATCHED: f64 = 5.0;
/// Differences of times below this are the scheduler's, in milliseconds.
const TIME_NOISE: f64 = 2.0;
/// Differences of memory below this are the allocator's, in KiB.
const MEMORY_NOISE: f64 = 2_048.0;

/// What is done.
#[derive(Clone, Copy, Debug)]
struct Plan {
    readers: usize,
    /// Several, so that one pause of the machine is not the whole figure.
    bursts: u64,
    /// Changes of each burst.
    changes: u64,
    /// Changes a second.
    rate: f64,
    /// How long a stalled reader is let be, in seconds; `None` if the gateway has no such deadline.
    write_timeout: Option<u32>,
    /// How long changes are awaited before anything is measured.
    settle: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    /// Milliseconds from the write of a burst's last change until all live readers have it, the median; infinite if they
    /// never had.
    arrival: f64,
    cpu: f64,
    /// From write to receipt, the 99th of 100, in milliseconds: of a burst, the median, and of all.
    high_delay: f64,
    highest_delay: f64,
    /// What the memory grew by, in KiB.
    grown: f64,
    /// After how many seconds the stalled one's connection was gone on the server's side; infinite if it never was.
    cut: f64,
    /// The share of changes times live readers that was delivered.
    delivered: f64,
}

pub(super) fn run(settings: &Settings, scenario: &'static str) -> Result<Vec<Figure>, BenchError> {
    let pick = |full: u32, quick, smoke| settings.effort.pick(full, quick, smoke);
    let has_deadline = servers::knows_flag(&settings.gateway, "--write-timeout")?;
    let plan = Plan {
        readers: pick(50, 50, 5) as usize,
        bursts: u64::from(pick(20, 4, 2)),
        changes: u64::from(pick(1_000, 1_000, 500)),
        rate: f64::from(pick(1_000, 1_000, 500)),
        write_timeout: has_deadline.then(|| pick(5, 5, 1)),
        settle: Duration::from_millis(u64::from(pick(1_000, 1_000, 200))),
    };
    let mut runs = Vec::new();
    for _ in 0..settings.runs {
        let without = measure(settings, plan, false)?;
        let with = measure(settings, plan, true)?;
        runs.push((without, with));
    }
    Ok(figures(scenario, plan, &runs))
}

/// Of runs without the stalled reader, and with it.
fn figures(scenario: &'static str, plan: Plan, runs: &[(Measured, Measured)]) -> Vec<Figure> {
    let with = |name: &str, unit, of: fn(&Measured) -> f64| {
        let mut figure = Figure::new(scenario, name, unit);
        figure.gateway = runs.iter().map(|(_, with)| of(with)).collect();
        figure
    };
    let without = |name: &str, unit, of: fn(&Measured) -> f64| {
        let mut figure = Figure::new(scenario, format!("{name}, without the stalled one"), unit);
        figure.gateway = runs.iter().map(|(without, _)| of(without)).collect();
        figure
    };
    let base = |of: fn(&Measured) -> f64| {
        let values: Vec<f64> = runs.iter().map(|(without, _)| of(without)).collect();
        median(&values).unwrap_or(f64::INFINITY)
    };
    // Being faster beside a stalled one is chance, and no fault.
    let as_fast = |of: fn(&Measured) -> f64| Bar::NoMoreThan {
        value: base(of),
        noise: TIME_NOISE,
    };
    let arrival = "a burst's last change to receipt by all live readers";
    let high_delay = "write to receipt of the live readers, p99 of a burst";
    let highest_delay = "write to receipt of the live readers, p99 of all";
    let grown = "memory grown";
    let delivered = "delivered of changes × live readers";
    let cut = plan.write_timeout.map_or_else(
        || "cut after".to_owned(),
        |timeout| format!("cut after (--write-timeout {timeout})"),
    );
    let latest = plan
        .write_timeout
        .map_or(0.0, |timeout| f64::from(timeout) + CUT_LATE);
    vec![
        with(arrival, "ms", |run| run.arrival).bar(as_fast(|run| run.arrival)),
        without(arrival, "ms", |run| run.arrival),
        with(high_delay, "ms", |run| run.high_delay).bar(as_fast(|run| run.high_delay)),
        without(high_delay, "ms", |run| run.high_delay),
        // One pause of the machine is in it.
        with(highest_delay, "ms", |run| run.highest_delay),
        without(highest_delay, "ms", |run| run.highest_delay),
        with("CPU", "s", |run| run.cpu).bar(Bar::NoMoreThan {
            value: base(|run| run.cpu),
            noise: 0.0,
        }),
        without("CPU", "s", |run| run.cpu),
        with(delivered, "share", |run| run.delivered).bar(Bar::Exactly(1.0)),
        without(delivered, "share", |run| run.delivered).bar(Bar::Exactly(1.0)),
        with(grown, "KiB", |run| run.grown).bar(Bar::NoMoreThan {
            // What it shrank by is no measure.
            value: base(|run| run.grown).max(0.0),
            noise: MEMORY_NOISE,
        }),
        without(grown, "KiB", |run| run.grown),
        with(&cut, "s", |run| run.cut).bar(Bar::AtMost(latest)),
    ]
}

fn measure(settings: &Settings, plan: Plan, stalled: bool) -> Result<Measured, BenchError> {
    let deadline = plan.write_timeout.map(|timeout| timeout.to_string());
    let flags: Vec<&str> = deadline
        .iter()
        .flat_map(|timeout| ["--write-timeout", timeout])
        .collect();
    let mut server = Server::start(&settings.gateway(&flags), size(1_000))?;
    let observed = server.observed();
    let mut load = Load::new(server.source())?;
    load.join(plan.readers, plan.readers, JOINED_WITHIN)?;
    // A burst that is not measured: what joins need for a moment is given back.
    burst(&mut server, &mut load, plan, &mut Load::run)?;
    // With hardly a buffer of its own it is felt as soon as it stalls.
    let mut frozen = Load::new(server.source())?.small_buffers();
    if stalled {
        frozen.join(1, 1, JOINED_WITHIN)?;
        frozen.stall(0)?;
    }
    load.run(plan.settle)?;
    let (memory, cpu, files) = (observed.memory()?, observed.cpu()?, observed.files()?);
    let begun = load.tally().live;
    let clock = wait::stopwatch();
    let mut cut = f64::INFINITY;
    let mut watch = |load: &mut Load, time: Duration| {
        load.run(time)?;
        if stalled && cut.is_infinite() && observed.files()? < files {
            cut = clock();
        }
        Ok::<(), BenchError>(())
    };

    let (mut arrivals, mut high_delays, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.bursts {
        load.measure();
        let arrival = burst(&mut server, &mut load, plan, &mut watch)?;
        let mut delays = load.measured();
        arrivals.push(arrival.unwrap_or(f64::INFINITY));
        high_delays.push(high(&mut delays));
        all.append(&mut delays);
        if arrival.is_none() {
            break;
        }
    }
    let deliveries = plan.bursts * plan.changes * plan.readers as u64;
    let expected = begun + deliveries;
    let until = wait::now() + REST_WITHIN;
    while load.tally().live < expected && wait::now() < until {
        watch(&mut load, Duration::from_millis(20))?;
    }
    let (cpu, grown) = (observed.cpu()? - cpu, observed.memory()? - memory);
    let delivered = load.tally().live - begun;
    // The changes may be over before its deadline is.
    let watched = f64::from(plan.write_timeout.unwrap_or(0)) + CUT_WATCHED;
    while stalled && clock() < watched && observed.files()? >= files {
        watch(&mut load, Duration::from_millis(20))?;
    }
    watch(&mut load, Duration::ZERO)?;
    load.no_failure()?;
    Ok(Measured {
        arrival: usual(&arrivals),
        cpu,
        high_delay: usual(&high_delays),
        highest_delay: high(&mut all),
        grown,
        cut,
        delivered: delivered as f64 / deliveries as f64,
    })
}

/// Makes the changes of a burst; how many milliseconds after the last one all readers had it, if they ever had.
fn burst(
    server: &mut Server,
    load: &mut Load,
    plan: Plan,
    watch: &mut impl FnMut(&mut Load, Duration) -> Result<(), BenchError>,
) -> Result<Option<f64>, BenchError> {
    let changing = server.changing();
    let made = changing.changes()? + plan.changes;
    changing.burst(plan.changes, plan.rate)?;
    let clock = wait::stopwatch();
    let time = plan.changes as f64 / plan.rate;
    let mut last = None;
    while clock() < time + ARRIVED_WITHIN.as_secs_f64() {
        watch(load, Duration::from_millis(20))?;
        // While changes are made, nothing is asked.
        if last.is_none() && clock() >= time && changing.changes()? >= made {
            last = Some(changing.count("newest")?);
        }
        let arrived = last.and_then(|last| milliseconds_until_all_have(last, load.newest_of_all()));
        if arrived.is_some() {
            return Ok(arrived);
        }
    }
    Ok(None)
}

/// The 99th of 100, in milliseconds; infinite if nothing came.
fn high(delays: &mut [u64]) -> f64 {
    delays.sort_unstable();
    percentile(delays, 0.99).map_or(f64::INFINITY, |delay| delay as f64 / 1e6)
}

/// The median of the bursts; infinite if one never arrived.
fn usual(arrivals: &[f64]) -> f64 {
    let never = arrivals.iter().any(|arrival| arrival.is_infinite());
    median(arrivals).filter(|_| !never).unwrap_or(f64::INFINITY)
}

/// From the stamp of the last change to its receipt by all readers, if all have it.
fn milliseconds_until_all_have(last: u64, receipt: Option<Receipt>) -> Option<f64> {
    let receipt = receipt?;
    (receipt.stamp >= last).then(|| receipt.at.saturating_sub(last) as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINE: Measured = Measured {
        arrival: 3.0,
        cpu: 4.0,
        high_delay: 5.0,
        highest_delay: 40.0,
        grown: 300.0,
        cut: 5.2,
        delivered: 1.0,
    };

    const PLAN: Plan = Plan {
        readers: 50,
        bursts: 20,
        changes: 1_000,
        rate: 1_000.0,
        write_timeout: Some(5),
        settle: Duration::ZERO,
    };

    fn missed(without: Measured, with: Measured) -> Vec<String> {
        let figures = figures("stalled", PLAN, &[(without, with)]);
        let missed = figures
            .into_iter()
            .filter(|figure| figure.is_reached() == Some(false));
        missed.map(|figure| figure.name).collect()
    }

    #[test]
    fn whatever_the_stalled_reader_costs_the_others_is_missed() {
        assert_eq!(missed(FINE, FINE), [""; 0]);
        let arrival = "a burst's last change to receipt by all live readers";
        let cases = [
            (Measured { arrival: 5.1, ..FINE }, arrival),
            (
                Measured {
                    arrival: f64::INFINITY,
                    ..FINE
                },
                arrival,
            ),
            (Measured { cpu: 4.9, ..FINE }, "CPU"),
            (
                Measured {
                    high_delay: 7.1,
                    ..FINE
                },
                "write to receipt of the live readers, p99 of a burst",
            ),
            (
                Measured {
                    delivered: 0.999,
                    ..FINE
                },
                "delivered of changes × live readers",
            ),
            (
                Measured {
                    grown: 2_400.0,
                    ..FINE
                },
                "memory grown",
            ),
            (Measured { cut: 7.1, ..FINE }, "cut after (--write-timeout 5)"),
            (
                Measured {
                    cut: f64::INFINITY,
                    ..FINE
                },
                "cut after (--write-timeout 5)",
            ),
        ];
        for (with, name) in cases {
            assert_eq!(missed(FINE, with), [name], "{with:?}");
        }
    }

    #[test]
    fn two_runs_that_never_arrive_are_not_as_fast_as_each_other() {
        let never = Measured {
            arrival: f64::INFINITY,
            ..FINE
        };
        assert_eq!(
            missed(never, never),
            ["a burst's last change to receipt by all live readers"]
        );
    }

    #[test]
    fn a_burst_that_never_arrives_is_not_outvoted() {
        assert_eq!(usual(&[3.0, 90.0, 1.0]).to_string(), "3");
        for arrivals in [&[3.0, f64::INFINITY, 1.0][..], &[]] {
            assert!(usual(arrivals).is_infinite());
        }
    }

    #[test]
    fn arrival_is_that_of_the_last_reader() {
        let receipt = |stamp, at| Some(Receipt { stamp, at });
        assert_eq!(milliseconds_until_all_have(9, None), None);
        assert_eq!(milliseconds_until_all_have(9, receipt(8, 5_000_000)), None);
        assert_eq!(
            milliseconds_until_all_have(1_000_000, receipt(1_000_000, 3_500_000)),
            Some(2.5)
        );
    }
}
