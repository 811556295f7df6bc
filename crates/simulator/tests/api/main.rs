//! The simulator as a client sees it, over real HTTP.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod access;
mod client;
mod crud;
mod discovery;
mod fault_list;
mod faults;
mod golden;
mod lifecycle;
mod list;
mod watch;
