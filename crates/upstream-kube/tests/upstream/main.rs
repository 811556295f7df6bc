//! Sessions against scripted API servers, sockets and the simulator.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot be set up has failed"
)]

mod access_review;
mod checks;
mod errors;
mod identity;
mod lines;
mod listing;
mod recordings;
mod requests;
mod simulated;
mod streaming_list;
mod support;
mod time;
mod transport;
mod turns;
mod watch_after_list;
