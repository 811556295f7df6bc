//! Faults that people met in software like this, each sent through the whole gateway.
//!
//! Above a real `KubeUpstream` stands either the simulator over real HTTP ([`simulated`]) or, where waits are long, an API
//! server in virtual time ([`api_server`]). `tests/README.md` says which test proves what.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "cases/api_server.rs"]
mod api_server;
#[path = "cases/codes.rs"]
mod codes;
#[path = "cases/connections.rs"]
mod connections;
#[path = "cases/expiry.rs"]
mod expiry;
#[path = "cases/hints.rs"]
mod hints;
#[path = "cases/lines.rs"]
mod lines;
#[path = "cases/objects.rs"]
mod objects;
#[path = "cases/pages.rs"]
mod pages;
#[path = "cases/sharing.rs"]
mod sharing;
#[path = "cases/simulated.rs"]
mod simulated;
#[path = "cases/stale.rs"]
mod stale;
#[path = "cases/streaming_lists.rs"]
mod streaming_lists;
#[path = "cases/table.rs"]
mod table;
#[path = "cases/versions.rs"]
mod versions;
