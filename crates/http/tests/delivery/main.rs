//! Delivery over connections: readers that stall, trickle, reset or stay silent, and transports that can and cannot bound
//! them.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod check;
mod connections;
mod draining;
mod guards;
mod heartbeats;
mod last_events;
mod layers;
mod multiplexed;
mod rechecks;
mod rejected;
mod routes;
mod serve;
mod sockets;
mod stalled;
mod support;
mod trickling;
mod writes;
