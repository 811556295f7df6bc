//! The gateway from a request to the last byte of its answer, on upstreams that do what a test says.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod backoff;
mod build;
mod checks;
mod checks_on_time;
mod disconnect;
mod drain;
mod events;
mod examples;
mod headers;
mod heartbeats;
mod later_cycles;
mod limits;
mod observed;
mod observing;
mod pacing;
mod random;
mod recheck;
mod recheck_cut;
mod recheck_drain;
mod recheck_projection;
mod refusals;
mod reviews;
mod sharing;
mod sockets;
mod support;
mod waits;
