//! What the tests that cross crates share: a scripted upstream, a gateway on it, and connections that read it.
//!
//! ```
//! use krm_stream_tests::{GatewayUnderTest, ScriptedUpstream, config_map};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let (upstream, mut script) = ScriptedUpstream::new();
//! let gateway = GatewayUnderTest::on(upstream);
//! let mut connection = gateway.connect("version=v1&resource=configmaps&namespace=app");
//!
//! // A stream goes on as it is read, so both sides run at once.
//! let api_server = async {
//!     let mut session = script.next_open().await.accept();
//!     session.added(config_map("a", "1"));
//!     session.boundary("1");
//!     session
//! };
//! let (types, _session) = tokio::join!(connection.types(3), api_server);
//! assert_eq!(types, ["reset", "added", "synced"]);
//! # }
//! ```

mod connection;
mod consumer_client;
pub mod fuzzing;
mod gateway;
mod inputs;
mod objects;
mod recorder;
mod schedule;
mod scripted;
mod server;

pub use connection::Connection;
pub use consumer_client::{ConsumerClient, ConsumerClientError, ReceivedEvent};
pub use gateway::GatewayUnderTest;
pub use inputs::{long_mode, shared_inputs};
pub use objects::{config_map, config_map_with, object, secret};
pub use recorder::Recorder;
pub use schedule::Schedule;
pub use scripted::{OpenRequest, Script, ScriptedSession, ScriptedUpstream};
pub use server::{FeedView, ModelServer, Trouble, UpstreamKind};
