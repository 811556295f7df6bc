//! What the projections do to whole objects, case by case and by generated input.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what a test's own readers cannot read fails the test"
)]

mod host_defined;
mod properties;
mod recordings;
mod secrets;
mod support;
mod verbatim;
