//! Fuzzes parsing a scope request.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| krm_stream_tests::fuzzing::scope_parse(input));
