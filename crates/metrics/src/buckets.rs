//! The buckets of the histograms: each spans what is usual and what is alarming.

/// From a warm join on loopback to the 5 minutes that a snapshot may take, in seconds.
pub(crate) const SNAPSHOT_SECONDS: [f64; 13] = [
    0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 30.0, 60.0, 300.0,
];

/// From a named object to more than a browser should hold.
pub(crate) const SNAPSHOT_OBJECTS: [f64; 10] = [
    0.0, 1.0, 10.0, 50.0, 100.0, 500.0, 1_000.0, 5_000.0, 10_000.0, 50_000.0,
];

/// From an empty scope to 256 MiB, by factors of four.
pub(crate) const SNAPSHOT_BYTES: [f64; 10] = [
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
    268_435_456.0,
];

/// From an answer in the process to the 10 s that a check may take, in seconds.
pub(crate) const AUTHORIZATION_SECONDS: [f64; 11] =
    [0.000_1, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];
