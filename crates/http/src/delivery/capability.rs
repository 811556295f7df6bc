//! What a request brings from a connection that can bound delivery.

use std::sync::Arc;
use std::time::Duration;

use http::Version;
use krm_stream_protocol::Observing;

use super::leaving::LastEvent;
use super::{CheckChunks, Connection, Probe, StreamSlot, TransportRejected};

/// Stands in a request's extensions. Middleware that builds a request anew loses it.
#[derive(Clone, Debug)]
pub(crate) struct Capability {
    pub(super) connection: Arc<Connection>,
    pub(super) slot: Arc<StreamSlot>,
    /// Whether the connection's transport was guarded when the request came; by now it may be gone.
    pub(super) is_io_guarded: bool,
    /// Whether the request is a check's own.
    pub(super) probe: Option<Arc<Probe>>,
}

impl Capability {
    /// Whether a check sent the request.
    pub(crate) const fn is_of_a_check(&self) -> bool {
        self.probe.is_some()
    }

    /// Tells the check that its request has come; what it will send, the first time.
    pub(crate) fn reach_probe(&self, has_write_timeout: bool) -> Option<CheckChunks> {
        self.probe.as_ref()?.reached(has_write_timeout)
    }

    /// Bounds what is written from here on.
    ///
    /// # Errors
    /// [`TransportRejected`] where a part of the connection is not guarded.
    pub(crate) fn bind(
        self,
        version: Version,
        write_timeout: Duration,
        observing: Observing,
    ) -> Result<Bound, TransportRejected> {
        if !self.is_io_guarded {
            return Err(TransportRejected::Io);
        }
        self.slot.begin(observing);
        self.connection.bound(write_timeout, &self.slot);
        Ok(Bound {
            connection: self.connection,
            slot: self.slot,
            write_timeout,
            is_multiplexed: version >= Version::HTTP_2,
        })
    }
}

/// The bounds of one stream.
#[derive(Debug)]
pub(crate) struct Bound {
    connection: Arc<Connection>,
    pub(super) slot: Arc<StreamSlot>,
    pub(super) write_timeout: Duration,
    /// Whether it shares its connection with other streams.
    pub(super) is_multiplexed: bool,
}

impl Bound {
    /// The stream has handed out its last event. Its place outlives the body until that is written.
    pub(super) fn leave(self, stream: impl Send + 'static) {
        self.connection.hold(LastEvent::new(self.slot, stream));
    }
}
