//! Decoding a watch: chunks of a body in, events out.
//!
//! `cargo bench -p krm-stream-upstream-kube`. Objects are ConfigMaps of 2.3 KB, and of 200 KB: lines that fit into a chunk, and
//! lines over several.

use bytes::Bytes;
use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use krm_stream_protocol::SessionEnd;
use krm_stream_upstream_kube::decode_watch;

fn main() {
    divan::main();
}

/// What a connection hands over at once.
const CHUNK: usize = 64 * 1024;
const LONGEST_LINE: usize = 8 << 20;

/// A line of a change to an object of about `size` bytes.
fn changed(size: usize, version: usize) -> String {
    let mut line = format!(
        r#"{{"type":"MODIFIED","object":{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"a","namespace":"app","uid":"u-{version}","resourceVersion":"{version}"}},"data":{{"#
    );
    while line.len() < size {
        line.push_str(r#""a-key":"some text of a usual length, with \"escapes\" and all","#);
    }
    line.push_str("\"last\":\"one\"}}}\n");
    line
}

/// The body in pieces of that size, each an allocation of its own, as a connection hands them over.
fn pieces(body: &[u8]) -> Vec<Bytes> {
    body.chunks(CHUNK).map(Bytes::copy_from_slice).collect()
}

fn decode(bencher: Bencher<'_, '_>, body: &[u8], expected: usize) {
    bencher
        .counter(BytesCount::new(body.len()))
        .with_inputs(|| pieces(body))
        .bench_local_values(|pieces| {
            let (events, end) = decode_watch(pieces, LONGEST_LINE);
            assert!(matches!(end, SessionEnd::Closed), "{end:?}");
            assert_eq!(events.len(), expected);
            black_box(events)
        });
}

/// A megabyte of changes.
#[divan::bench(args = [2_300, 200_000])]
fn changes(bencher: Bencher<'_, '_>, size: usize) {
    let lines = 1_000_000_usize.div_ceil(size);
    let body: String = (1..=lines).map(|version| changed(size, version)).collect();
    decode(bencher, body.as_bytes(), lines);
}

/// One change by itself, as most come.
#[divan::bench]
fn one_change(bencher: Bencher<'_, '_>) {
    decode(bencher, changed(2_300, 1).as_bytes(), 1);
}

#[divan::bench]
fn one_bookmark(bencher: Bencher<'_, '_>) {
    let line = r#"{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"12746"}}}"#;
    decode(bencher, format!("{line}\n").as_bytes(), 1);
}
