//! The operating kit under `deploy/`: manifests that agree with each other, rights that are exactly those that are needed,
//! and alerts and dashboards that ask for metrics there are.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says why and fails"
)]

#[path = "operating/access.rs"]
mod access;
#[path = "operating/documentation.rs"]
mod documentation;
#[path = "operating/files.rs"]
mod files;
#[path = "operating/manifests.rs"]
mod manifests;
#[path = "operating/metrics.rs"]
mod metrics;
#[path = "operating/queries.rs"]
mod queries;
