//! The codec: frames of objects written, and read back as a browser reads them. `cargo bench -p krm-stream-protocol`.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use krm_stream_protocol::{EventType, Object, SseDecoder, frame};

fn main() {
    divan::main();
}

/// An object of this size, on one line or pretty-printed.
fn object(size: usize, line_break: &str) -> Vec<u8> {
    let mut json = format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"a","uid":"u","resourceVersion":"7"}},{line_break}"data":{{"#
    );
    while json.len() < size {
        json.push_str(line_break);
        json.push_str(r#""a-key":"some text of a usual length, with \"escapes\" and all","#);
    }
    json.push_str(r#""last":"one"}}"#);
    json.into_bytes()
}

fn write(seq: u64, object: &[u8], out: &mut Vec<u8>) {
    frame::begin(out, seq, EventType::Added);
    out.extend_from_slice(br#","object":"#);
    frame::put_json(out, object);
    out.extend_from_slice(br#","redacted":[]"#);
    frame::end(out);
}

#[divan::bench(args = ["", "\n    "])]
fn encode(bencher: Bencher<'_, '_>, line_break: &str) {
    let object = object(2_300, line_break);
    let mut out = Vec::with_capacity(4_096);
    bencher.counter(BytesCount::new(object.len())).bench_local(|| {
        out.clear();
        write(black_box(7), &object, &mut out);
        black_box(out.len())
    });
}

/// The beginning of a frame alone: all that a stream adds to the bytes that it shares.
#[divan::bench]
fn prefix(bencher: Bencher<'_, '_>) {
    let mut out = Vec::with_capacity(frame::LONGEST_BEGIN);
    bencher.bench_local(|| {
        out.clear();
        frame::begin(&mut out, black_box(123_456), EventType::Modified);
        black_box(out.len())
    });
}

#[divan::bench(args = [2_300, 200_000])]
fn decode(bencher: Bencher<'_, '_>, size: usize) {
    let object = object(size, "");
    let mut wire = Vec::new();
    for seq in 1..=10 {
        write(seq, &object, &mut wire);
    }
    bencher.counter(BytesCount::new(wire.len())).bench_local(|| {
        let mut decoder = SseDecoder::new(8 << 20);
        let events: usize = wire
            .chunks(16 * 1024)
            .map(|chunk| decoder.push(chunk).unwrap().len())
            .sum();
        assert_eq!(events, 10);
    });
}

/// An object as it comes from the API server: checked, and its identity and version read.
#[divan::bench(args = [2_300, 200_000])]
fn parse_object(bencher: Bencher<'_, '_>, size: usize) {
    let json = bytes::Bytes::from(object(size, ""));
    bencher
        .counter(BytesCount::new(json.len()))
        .bench_local(|| Object::parse(json.clone()).unwrap());
}
