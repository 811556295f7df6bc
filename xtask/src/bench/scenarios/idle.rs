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
/// What was needed for the snapshots alone is given back by then.
const SETTLED_AFTER: Duration = Duration::from_secs(8);

pub(super) fn run(settings: &Settings, scenario: &'static str) -> Result<Vec<Figure>, BenchError> {
    let streams = if settings.quick { 300 } else { 1_000 };
    let mut figures = Vec::new();
    let sizes = if settings.quick {
        vec![size(1_000)]
    } else {
        vec![size(1_000), size(20_000)]
    };
    for size in sizes {
        // 20,000 objects for a thousand readers would be an hour of snapshots.
        let streams = if size.objects > 1_000 {
            streams / 5
        } else {
            streams
        };
        let name = format!("HTTP/1.1, {} objects", size.objects);
        let mut figure = Figure::new(scenario, name, "KiB a stream").bar(Bar::AtMost(16.0));
        for _ in 0..settings.runs.min(2) {
            figure.gateway.push(http1(&settings.gateway(&[]), size, streams)?);
            figure.limit.push(http1(&Kind::Limit, size, streams)?);
        }
        figures.push(figure);
    }
    let mut figure = Figure::new(scenario, "HTTP/2, 1000 objects", "KiB a stream");
    for _ in 0..settings.runs.min(2) {
        figure.gateway.push(http2(settings, size(1_000), streams)?);
    }
    figures.push(figure);
    Ok(figures)
}

fn http1(kind: &Kind, size: Size, streams: usize) -> Result<f64, BenchError> {
    let server = Server::start(kind, size)?;
    let mut load = Load::new(server.source())?;
    // The feed itself, and what its first readers leave with the allocator, is no stream's.
    load.join(AT_ONCE, AT_ONCE, JOINED_WITHIN)?;
    load.run(SETTLED_AFTER)?;
    let before = server.observed().memory()?;
    load.join(streams, AT_ONCE, JOINED_WITHIN)?;
    load.run(SETTLED_AFTER)?;
    load.no_failure()?;
    Ok((server.observed().memory()? - before) / streams as f64)
}

fn http2(settings: &Settings, size: Size, streams: usize) -> Result<f64, BenchError> {
    let server = Server::start(&settings.gateway(&[]), size)?;
    let mut first = Http2Streams::open(&server.source(), AT_ONCE, JOINED_WITHIN)?;
    first.run(SETTLED_AFTER);
    let before = server.observed().memory()?;
    let mut rest = Http2Streams::open(&server.source(), streams, JOINED_WITHIN)?;
    rest.run(SETTLED_AFTER);
    Ok((server.observed().memory()? - before) / streams as f64)
}
