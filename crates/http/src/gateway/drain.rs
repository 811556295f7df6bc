//! Shutting down.

use std::time::Duration;

use super::Gateway;

impl Gateway {
    /// Ends all streams, and refuses new ones: each gets `UPSTREAM_UNAVAILABLE` with a time to come back after, drawn for
    /// each between half a second and `spread` more than that. What was written of a stream and has not been taken yet goes
    /// out before, unless there is a reason to check it again: a [`recheck`](Self::recheck) before or after this call, or a
    /// check on time that falls due. Then that is dropped. Calling it again changes nothing.
    ///
    /// [`drained`](Self::drained) tells when the streams are gone. One whose reader takes nothing is there until its
    /// connection is closed.
    pub fn drain(&self, spread: Duration) {
        self.0.streams.begin_drain(spread);
    }

    /// Resolves when [`drain`](Self::drain) was called and all streams are gone.
    ///
    /// With a write timeout a stream is there until its transport has taken its last event, or is cut or closed: a host may end
    /// its connections then. Without one nothing tells what was taken: a stream is gone as soon as its last event was handed to
    /// hyper, or to the reader of [`stream`](Self::stream), so close connections gracefully.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn drained(&self) {
        self.0.streams.drained().await;
    }
}
