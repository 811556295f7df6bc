//! Fuzzes reading an event stream.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| krm_stream_tests::fuzzing::sse_decode(input));
