//! What a stream costs in memory that has its snapshot and waits.

use std::time::Duration;

use crate::bench::BenchError;
use crate::bench::figures::{Bar, Figure};
use crate::bench::load::Load;
use crate::bench::load::http2::Http2Streams;
use crate::bench::servers::{Kind, Server, Size};

use super::{Settings, size};

/// How many readers join at a time: what a crowd needs for a moment stays with the allocator, and is the storm's
/// figure.
const AT_ONCE: usize = 50;
const JOINED_WITHIN: Duration = Duration::from_mins(3);
/// What was needed for the snapshots alone is given back by the gateway by then; the limit gives nothing back.
const SETTLED_AFTER: Duration = Duration::from_secs(8);

/// A crowd of idle readers.
#[derive(Clone, Copy, Debug)]
struct Crowd {
    streams: usize,
    size: Size,
    settled_after: Duration,
}

pub(super) fn run(settings: &Settings, scenario: &'static str) -> Result<Vec<Figure>, BenchError> {
    let effort = settings.effort;
    let settled_after = effort.pick(SETTLED_AFTER, SETTLED_AFTER, Duration::from_millis(200));
    let crowd = |streams, objects| Crowd {
        streams,
        size: size(objects),
        settled_after,
    };
    let crowds: &[usize] = effort.pick(&[100, 1_000, 5_000], &[100, 300], &[5]);
    let mut crowds: Vec<Crowd> = crowds
        .iter()
        .map(|streams| crowd(*streams, effort.pick(1_000, 1_000, 100)))
        .collect();
    let over_http2 = crowds.clone();
    // 20,000 objects for thousands of readers would be an hour of snapshots.
    crowds.extend(effort.pick(Some(crowd(200, 20_000)), None, None));

    // A megabyte that the allocator holds back is 10 KiB for each of a hundred streams: these are measured more often.
    let runs = |crowd: Crowd| {
        if crowd.streams <= 100 {
            settings.runs
        } else {
            settings.runs.min(2)
        }
    };
    let mut figures = Vec::new();
    for crowd in crowds {
        let mut figure = figure(scenario, "HTTP/1.1", crowd).bar(Bar::AtMost(16.0));
        for _ in 0..runs(crowd) {
            figure.gateway.push(http1(&settings.gateway(&[]), crowd)?);
            figure.limit.push(http1(&Kind::Limit, crowd)?);
        }
        figures.push(figure);
    }
    // The limit speaks HTTP/1.1 alone.
    for crowd in over_http2 {
        let mut figure = figure(scenario, "HTTP/2", crowd);
        for _ in 0..runs(crowd) {
            figure.gateway.push(http2(settings, crowd)?);
        }
        figures.push(figure);
    }
    Ok(figures)
}

fn figure(scenario: &'static str, protocol: &str, crowd: Crowd) -> Figure {
    let name = format!(
        "{protocol}, {} streams, {} objects",
        crowd.streams, crowd.size.objects
    );
    Figure::new(scenario, name, "KiB a stream")
}

fn http1(kind: &Kind, crowd: Crowd) -> Result<f64, BenchError> {
    let server = Server::start(kind, crowd.size)?;
    let mut load = Load::new(server.source())?;
    let settled_after = match kind {
        Kind::Gateway { .. } => crowd.settled_after,
        Kind::Limit => crowd.settled_after / 8,
    };
    let at_once = AT_ONCE.min(crowd.streams);
    // The feed itself, and what joins need for a moment and leave with the allocator, is no stream's: first of a feed that
    // is filled meanwhile, then of one that is warm.
    for _ in 0..2 {
        load.join(at_once, at_once, JOINED_WITHIN)?;
        settle(&mut load, settled_after)?;
    }
    let before = server.observed().memory()?;
    load.join(crowd.streams, at_once, JOINED_WITHIN)?;
    settle(&mut load, settled_after)?;
    load.no_failure()?;
    Ok((server.observed().memory()? - before) / crowd.streams as f64)
}

/// Waits until what was needed for the snapshots alone is given back. An allocator looks after what it has to give back
/// when it is used: one reader comes and goes.
fn settle(load: &mut Load, time: Duration) -> Result<(), BenchError> {
    load.run(time / 2)?;
    let there = load.open_readers();
    load.join(1, 1, JOINED_WITHIN)?;
    for reader in load.open_readers() {
        if !there.contains(&reader) {
            load.leave(reader);
        }
    }
    load.run(time / 2)
}

/// As [`http1`].
fn http2(settings: &Settings, crowd: Crowd) -> Result<f64, BenchError> {
    let server = Server::start(&settings.gateway(&[]), crowd.size)?;
    let at_once = AT_ONCE.min(crowd.streams);
    let join = |count| {
        let mut streams = Http2Streams::open(&server.source(), count, JOINED_WITHIN)?;
        streams.run(crowd.settled_after / 2);
        drop(Http2Streams::open(&server.source(), 1, JOINED_WITHIN)?);
        streams.run(crowd.settled_after / 2);
        Ok::<_, BenchError>(streams)
    };
    let _cold = join(at_once)?;
    let _warm = join(at_once)?;
    let before = server.observed().memory()?;
    let _crowd = join(crowd.streams)?;
    Ok((server.observed().memory()? - before) / crowd.streams as f64)
}
