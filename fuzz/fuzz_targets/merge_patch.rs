//! Fuzzes the guard for merge patches.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| krm_stream_tests::fuzzing::merge_patch(input));
