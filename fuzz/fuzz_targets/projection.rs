//! Fuzzes projecting an object.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| krm_stream_tests::fuzzing::projection(input));
