//! Decoding and projecting, in this process: what one change costs before any stream is thought of.

use bytes::Bytes;
use krm_stream_projection::{DigestKey, Projection};
use krm_stream_protocol::{Object, Scope, SessionEnd, WatchEvent};
use krm_stream_simulator::Simulator;
use krm_stream_upstream_kube::decode_watch;

use crate::bench::BenchError;
use crate::bench::figures::Figure;
use crate::bench::roles::objects::{NAMESPACE, Objects, RESOURCE};
use crate::wait;

use super::{OBJECT_BYTES, Settings};

const OBJECTS: usize = 1_000;
/// What arrives at once from a socket.
const CHUNK: usize = 64 * 1024;
/// The longest line that is taken, as the gateway has it.
const LONGEST_LINE: usize = 8 * 1024 * 1024;

pub(super) fn run(settings: &Settings, scenario: &'static str) -> Result<Vec<Figure>, BenchError> {
    let body = body()?;
    let rounds = settings.effort.pick(200, 20, 1);
    let mut decoding = Figure::new(scenario, "decoding a watch", "MB/s");
    let mut projecting = Figure::new(scenario, "projecting objects", "MB/s");
    for _ in 0..settings.runs {
        let (rate, objects) = decode(&body, rounds)?;
        decoding.gateway.push(rate);
        projecting.gateway.push(project(&objects, rounds)?);
    }
    Ok(vec![decoding, projecting])
}

/// The body of a watch that tells all objects.
fn body() -> Result<Vec<u8>, BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(BenchError::io("start a runtime"))?;
    let objects = runtime.block_on(async {
        let simulator = Simulator::start().await.map_err(BenchError::io("listen"))?;
        Objects::create(&simulator, OBJECTS, OBJECT_BYTES)
            .map_err(|error| BenchError::Role(error.to_string()))?;
        Ok::<_, BenchError>(simulator.objects(RESOURCE))
    })?;
    let mut body = Vec::new();
    for object in objects {
        body.extend_from_slice(b"{\"type\":\"ADDED\",\"object\":");
        body.extend_from_slice(&object);
        body.extend_from_slice(b"}\n");
    }
    Ok(body)
}

/// Megabytes a second, and the objects.
fn decode(body: &[u8], rounds: u32) -> Result<(f64, Vec<Object>), BenchError> {
    // As a connection hands it over: each chunk an allocation of its own.
    let chunks = || body.chunks(CHUNK).map(Bytes::copy_from_slice).collect::<Vec<_>>();
    let mut busy = 0.0;
    let mut objects = Vec::new();
    for _ in 0..rounds {
        let chunks = chunks();
        let clock = wait::stopwatch();
        let (events, end) = decode_watch(chunks, LONGEST_LINE);
        busy += clock();
        if !matches!(end, SessionEnd::Closed) || events.len() != OBJECTS {
            return Err(BenchError::Role(format!("{} events, then {end:?}", events.len())));
        }
        objects = events
            .into_iter()
            .filter_map(|event| match event {
                WatchEvent::Added(object) => Some(object),
                WatchEvent::Modified(_)
                | WatchEvent::Deleted(_)
                | WatchEvent::Unknown
                | WatchEvent::Bookmark { .. }
                | WatchEvent::SnapshotRestarted => None,
            })
            .collect();
    }
    Ok((body.len() as f64 * f64::from(rounds) / busy / 1e6, objects))
}

fn project(objects: &[Object], rounds: u32) -> Result<f64, BenchError> {
    let refused = |error: String| BenchError::Role(error);
    let scope = Scope::builder("v1", RESOURCE)
        .namespace(NAMESPACE)
        .build()
        .map_err(|error| refused(error.to_string()))?;
    let projection = Projection::full();
    let key = DigestKey::new([7; 32]);
    let clock = wait::stopwatch();
    let mut bytes = 0;
    for _ in 0..rounds {
        for object in objects {
            let projected = projection
                .project(&scope, object, &key)
                .map_err(|error| refused(error.to_string()))?;
            bytes += projected.object().len();
        }
    }
    Ok(bytes as f64 / clock() / 1e6)
}
