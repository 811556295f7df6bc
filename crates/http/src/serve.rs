//! Serving HTTP so that delivery can be bounded: one connection, or a listener until the end is asked for.

mod connection;
mod listener;
mod server;
mod service;
mod socket;
mod version;

pub use connection::{BoxError, Connection, serve_connection};
pub use listener::{Handshaking, Listener, handshaking};
pub use server::{PeerAddress, Serve, serve};
pub use service::HttpService;
pub use socket::prepare_socket;
