//! The gateway from a request to the last byte of its answer, on upstreams that do what a test says.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod backoff;
mod build;
mod disconnect;
mod events;
mod examples;
mod headers;
mod heartbeats;
mod later_cycles;
mod observing;
mod random;
mod refusals;
mod sharing;
mod sockets;
mod support;
mod waits;
