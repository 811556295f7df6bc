//! Fuzzes decoding the body of a watch.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| krm_stream_tests::fuzzing::watch_lines(input));
