//! A controller in memory over the public interface: the cases that its users meet, and properties over random ones.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod cases;
mod controller;
mod kstatus;
mod properties;
mod store;
