//! Bounded delivery: a chunk that its transport does not take in time ends its stream.
//!
//! A deadline inside a body cannot do it: while a reader takes nothing, hyper does not poll the body. So the guards stand
//! outside of it, one for each thing that can stall. Five facts decide how, all read from hyper 1 and h2 0.4:
//!
//! - A connection stalls at its socket, whatever its version: [`io`] watches what the socket takes.
//! - A stream of an HTTP/2 connection stalls at its own window (RFC 9113, section 5.2) while the socket stays writable:
//!   [`executor`] watches the future that hyper hands to its executor for each stream. Dropping it resets that stream and
//!   no other.
//! - hyper gives a whole frame to h2 once a single byte of the window is free. Only the *last byte* of a chunk, as a frame
//!   of its own, is not given before the window and h2's buffer have room for all that came before it. When the body is
//!   polled after that frame, the chunk was taken; [`pieces`] cuts chunks accordingly.
//! - What is in hyper's and h2's buffers cannot be recalled, so they are kept small; see `ConnectionGuard::builder`.
//! - A body is dropped with its end, before its last event is written; [`leaving`] holds the stream until then.
//!
//! What other routes of an HTTP/2 connection write is cut and watched in the same way; see [`body`].
//!
//! The timeout itself is the gateway's, or the host's own. The gateway's reaches the connection with the first request that
//! the gateway answers on it, through a capability in the request's extensions; see [`capability`].

mod below;
mod body;
mod capability;
mod check;
mod connection;
mod executor;
mod guard;
mod io;
mod leaving;
mod pieces;
mod rejected;
mod slot;

pub use body::{BoundedAnswer, BoundedBody, BoundedData};
pub use check::{DeliveryCheck, DeliveryProblem};
pub use executor::BoundedExecutor;
pub use guard::{BoundedService, ConnectionGuard};
pub use io::BoundedIo;
pub use rejected::TransportRejected;

pub(crate) use capability::{Bound, Capability};
pub(crate) use check::{CHECK_WRITE_TIMEOUT, CheckChunks, Probe};
use connection::GuardedIo;
pub(crate) use connection::{Connection, Work};
pub(crate) use guard::HEAD_TIMEOUT;
pub(crate) use pieces::Pieces;
pub(crate) use slot::StreamSlot;
