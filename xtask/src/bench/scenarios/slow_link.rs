//! A reader behind a link that carries 50 KiB a second.

use std::time::Duration;

use crate::bench::BenchError;
use crate::bench::figures::{Bar, Figure};
use crate::bench::load::slow::{Sample, SlowReader};
use crate::bench::servers::Server;

use super::{Settings, size};

const LINK: f64 = 50.0 * 1024.0;
/// Every object has changed by then, so that the snapshot holds old ones and new ones.
const BEFORE: Duration = Duration::from_secs(20);
/// How long a smoke run looks at a link.
const SMOKE: Duration = Duration::from_secs(6);

/// What a link went through.
struct Seen {
    cycles: u64,
    errors: u64,
    synced_at: Option<f64>,
    samples: Vec<Sample>,
}

/// More changes than the link carries: 60 a second, 138 KB/s.
pub(super) fn overloaded(settings: &Settings, scenario: &'static str) -> Result<Vec<Figure>, BenchError> {
    let time = Duration::from_mins(4);
    let seen = watch(settings, 60.0, settings.effort.pick(time, time, SMOKE))?;
    Ok(vec![
        cycles(scenario, &seen),
        errors(scenario, &seen),
        synced(scenario, &seen),
        Figure::new(scenario, "age of the newest object received, most", "s")
            .of(oldest(&seen.samples, |_| true))
            .bar(Bar::AtMost(25.0)),
    ])
}

/// How soon after `synced` a reader has to be at the head, in seconds.
const HEAD_AFTER: f64 = 20.0;

/// Fewer changes than the link carries: 5 a second, 12 KB/s.
pub(super) fn calm(settings: &Settings, scenario: &'static str) -> Result<Vec<Figure>, BenchError> {
    let time = Duration::from_mins(2);
    let seen = watch(settings, 5.0, settings.effort.pick(time, time, SMOKE))?;
    Ok(calm_figures(
        scenario,
        &seen,
        settings.effort.pick(HEAD_AFTER, HEAD_AFTER, 1.0),
    ))
}

fn calm_figures(scenario: &'static str, seen: &Seen, head_after: f64) -> Vec<Figure> {
    let synced_at = seen.synced_at.unwrap_or(f64::INFINITY);
    // At the head: what is received is fresh, from then on.
    let fresh = |sample: &Sample| sample.age.is_some_and(|age| age < 2.0);
    let last_stale = seen.samples.iter().rev().find(|sample| !fresh(sample));
    let at_head = last_stale.map_or(0.0, |sample| sample.at);
    let head_later = if synced_at.is_finite() {
        (at_head - synced_at).max(0.0)
    } else {
        f64::INFINITY
    };
    vec![
        cycles(scenario, seen),
        errors(scenario, seen),
        synced(scenario, seen),
        Figure::new(scenario, "from `synced` until never older than 2 s", "s")
            .of(head_later)
            .bar(Bar::AtMost(HEAD_AFTER)),
        Figure::new(
            scenario,
            "age of the newest object, most, from 20 s after `synced`",
            "s",
        )
        .of(oldest(&seen.samples, |sample| {
            sample.at >= synced_at + head_after
        }))
        .bar(Bar::AtMost(2.0)),
    ]
}

fn watch(settings: &Settings, rate: f64, time: Duration) -> Result<Seen, BenchError> {
    let objects = settings.effort.pick(1_000, 1_000, 10);
    let mut server = Server::start(&settings.gateway(&[]), size(objects))?;
    server.changing().rate(60.0)?;
    wait_for_changes(settings.effort.pick(BEFORE, BEFORE, BEFORE / 40));
    server.changing().rate(rate)?;
    let mut reader = SlowReader::open(&server.source(), LINK)?;
    let samples = reader.run(time)?;
    let tally = reader.reader().tally();
    Ok(Seen {
        cycles: tally.cycles,
        errors: tally.errors + tally.gaps + tally.unreadable,
        synced_at: samples
            .iter()
            .find(|sample| sample.synced)
            .map(|sample| sample.at),
        samples,
    })
}

fn wait_for_changes(time: Duration) {
    crate::wait::pause(time);
}

fn cycles(scenario: &'static str, seen: &Seen) -> Figure {
    Figure::new(scenario, "cycles begun", "cycles")
        .of(seen.cycles as f64)
        .bar(Bar::Exactly(1.0))
}

fn errors(scenario: &'static str, seen: &Seen) -> Figure {
    Figure::new(scenario, "errors", "events")
        .of(seen.errors as f64)
        .bar(Bar::Exactly(0.0))
}

fn synced(scenario: &'static str, seen: &Seen) -> Figure {
    let figure = Figure::new(scenario, "`synced` after", "s").bar(Bar::AtMost(50.0));
    figure.of(seen.synced_at.unwrap_or(f64::INFINITY))
}

/// The greatest age; infinite where nothing was seen.
fn oldest(samples: &[Sample], of: impl Fn(&Sample) -> bool) -> f64 {
    let ages = samples
        .iter()
        .filter(|sample| of(sample))
        .filter_map(|sample| sample.age);
    ages.reduce(f64::max).unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(synced_at: Option<f64>, ages: &[f64]) -> Seen {
        let sample = |(at, age): (usize, &f64)| Sample {
            at: at as f64,
            age: Some(*age),
            synced: synced_at.is_some_and(|synced_at| at as f64 >= synced_at),
        };
        Seen {
            cycles: 1,
            errors: 0,
            synced_at,
            samples: ages.iter().enumerate().map(sample).collect(),
        }
    }

    fn missed(seen: &Seen) -> usize {
        let figures = calm_figures("slow-link-calm", seen, 2.0);
        let missed = figures.iter().filter(|figure| figure.is_reached() == Some(false));
        missed.count()
    }

    #[test]
    fn a_link_at_its_head_reaches_every_bar() {
        assert_eq!(missed(&seen(Some(2.0), &[0.0, 1.0, 5.0, 1.0, 0.5, 0.5, 0.5])), 0);
    }

    #[test]
    fn a_link_that_never_synced_reaches_none_of_what_follows() {
        assert_eq!(missed(&seen(None, &[0.0, 1.0, 1.0])), 3);
        // Nothing was seen at the head.
        assert_eq!(missed(&seen(Some(2.0), &[0.0, 1.0, 1.0])), 1);
    }
}
