//! The same changes to many streams: live delivery, warm and cold joins, delays; gateway and limit in turn.

use std::time::Duration;

use crate::bench::BenchError;
use crate::bench::figures::{Bar, Figure};
use crate::bench::load::Load;
use crate::bench::servers::{Kind, Server, Size};
use crate::bench::statistics::percentile;
use crate::wait;

use super::{Effort, Settings};

/// The name of the figure that is compared from size to size.
pub(super) const LIVE: &str = "live delivery";
/// Changes times streams, in each second.
const DELIVERIES_A_SECOND: f64 = 5_000.0;
/// How many readers are on their way to their first `synced` at a time.
const AT_ONCE: usize = 200;
/// How long all readers of a round may take to join.
const JOINED_WITHIN: Duration = Duration::from_mins(3);
/// How long what was sent may be on its way.
const ARRIVED_WITHIN: Duration = Duration::from_secs(10);

/// What one run measured.
#[derive(Clone, Copy, Debug)]
struct Measured {
    live: f64,
    warm: f64,
    cold: f64,
    median_delay: f64,
    high_delay: f64,
    /// The share of changes times streams that was delivered.
    delivered: f64,
    gaps: f64,
}

pub(super) fn run(
    settings: &Settings,
    scenario: &'static str,
    streams: usize,
    size: Size,
) -> Result<Vec<Figure>, BenchError> {
    let (streams, size) = match settings.effort {
        Effort::Full | Effort::Quick => (streams, size),
        Effort::Smoke => (10, super::size(200)),
    };
    let figure = |name: &str, unit| Figure::new(scenario, name, unit);
    let mut live = figure(LIVE, "CPU s per million deliveries").bar(Bar::Times(1.5));
    let mut warm = figure("warm join", "CPU s per million objects").bar(Bar::Times(2.0));
    let mut cold = figure("cold join", "CPU s per million objects");
    let mut median_delay = figure("write to receipt, p50", "ms");
    let mut high_delay = figure("write to receipt, p99", "ms").bar(Bar::Times(2.0));
    let mut delivered = figure("delivered of changes × streams", "share").bar(Bar::Exactly(1.0));
    let mut gaps = figure("gaps in seq", "events").bar(Bar::Exactly(0.0));
    for _ in 0..settings.runs {
        for (kind, is_limit) in [(settings.gateway(&[]), false), (Kind::Limit, true)] {
            let measured = measure(settings, &kind, streams, size)?;
            let pairs = [
                (&mut live, measured.live),
                (&mut warm, measured.warm),
                (&mut cold, measured.cold),
                (&mut median_delay, measured.median_delay),
                (&mut high_delay, measured.high_delay),
                (&mut delivered, measured.delivered),
                (&mut gaps, measured.gaps),
            ];
            for (figure, value) in pairs {
                let values = if is_limit {
                    &mut figure.limit
                } else {
                    &mut figure.gateway
                };
                values.push(value);
            }
        }
    }
    Ok(vec![live, warm, cold, median_delay, high_delay, delivered, gaps])
}

fn measure(settings: &Settings, kind: &Kind, streams: usize, size: Size) -> Result<Measured, BenchError> {
    let mut server = Server::start(kind, size)?;
    let observed = server.observed();
    let mut load = Load::new(server.source())?;

    let (before, begun) = (observed.cpu()?, load.tally());
    load.join(streams, streams, JOINED_WITHIN)?;
    let objects = (load.tally().snapshot - begun.snapshot) as f64;
    let cold = (observed.cpu()? - before) / objects * 1e6;

    let deliveries_a_second = settings
        .effort
        .pick(DELIVERIES_A_SECOND, DELIVERIES_A_SECOND, 500.0);
    let rate = deliveries_a_second / streams as f64;
    // Changes that are made before anything is measured.
    let two_seconds = Duration::from_secs(2);
    let warm_up = settings
        .effort
        .pick(two_seconds, two_seconds, Duration::from_millis(300));
    server.changing().rate(rate)?;
    load.run(warm_up)?;
    server.changing().rate(0.0)?;
    let made = server.changing().changes()?;
    arrive(&mut load, made * streams as u64)?;

    load.measure();
    let (before, begun) = (observed.cpu()?, load.tally());
    let changes = (settings.live.as_secs_f64() * rate).ceil().max(1.0) as u64;
    server.changing().burst(changes, rate)?;
    let expected = begun.live + changes * streams as u64;
    load.run(settings.live)?;
    arrive(&mut load, expected)?;
    let used = observed.cpu()? - before;
    let after = load.tally();
    let deliveries = after.live - begun.live;
    let mut delays = load.measured();
    delays.sort_unstable();
    load.no_failure()?;
    let milliseconds = |share| percentile(&delays, share).unwrap_or(0) as f64 / 1e6;

    load.leave_all();
    let warm = warm_join(settings, &mut load, &server, streams)?;
    Ok(Measured {
        live: used / deliveries.max(1) as f64 * 1e6,
        warm,
        cold,
        median_delay: milliseconds(0.5),
        high_delay: milliseconds(0.99),
        delivered: deliveries as f64 / (changes * streams as u64) as f64,
        gaps: (after.gaps + after.unreadable) as f64,
    })
}

/// Joins, leaves and joins again, while one reader stays.
fn warm_join(
    settings: &Settings,
    load: &mut Load,
    server: &Server,
    streams: usize,
) -> Result<f64, BenchError> {
    load.join(1, 1, JOINED_WITHIN)?;
    let stays = load.open_readers();
    let (before, begun) = (server.observed().cpu()?, load.tally());
    loop {
        load.join(streams, AT_ONCE, JOINED_WITHIN)?;
        for reader in load.open_readers() {
            if !stays.contains(&reader) {
                load.leave(reader);
            }
        }
        if load.tally().snapshot - begun.snapshot >= settings.join_objects {
            break;
        }
    }
    let objects = (load.tally().snapshot - begun.snapshot) as f64;
    Ok((server.observed().cpu()? - before) / objects * 1e6)
}

/// Reads until so many live objects were received, or no more come.
fn arrive(load: &mut Load, live: u64) -> Result<(), BenchError> {
    let until = wait::now() + ARRIVED_WITHIN;
    while load.tally().live < live {
        if wait::now() > until {
            // What was coalesced does not come; the report says how much that is.
            return Ok(());
        }
        load.run(Duration::from_millis(50))?;
    }
    Ok(())
}
