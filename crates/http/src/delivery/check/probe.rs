//! The stream that a check controls.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

/// The check's side: one connection's.
#[derive(Debug)]
pub(crate) struct Probe {
    is_reached: AtomicBool,
    has_write_timeout: AtomicBool,
    chunks: UnboundedSender<Bytes>,
    stream: Mutex<Option<UnboundedReceiver<Bytes>>>,
    progress: watch::Sender<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    sent: usize,
    taken: usize,
    is_dropped: bool,
}

/// The gateway's side: the chunks of a check's stream.
#[derive(Debug)]
pub(crate) struct CheckChunks {
    probe: Arc<Probe>,
    chunks: UnboundedReceiver<Bytes>,
    handed_out: usize,
}

impl Default for Probe {
    fn default() -> Self {
        let (chunks, stream) = unbounded_channel();
        Self {
            is_reached: AtomicBool::new(false),
            has_write_timeout: AtomicBool::new(false),
            chunks,
            stream: Mutex::new(Some(stream)),
            progress: watch::Sender::default(),
        }
    }
}

impl Probe {
    /// The gateway has the request. `None` where it has had one of this connection before.
    pub(crate) fn reached(self: &Arc<Self>, has_write_timeout: bool) -> Option<CheckChunks> {
        self.is_reached.store(true, Ordering::Release);
        self.has_write_timeout.store(has_write_timeout, Ordering::Release);
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        Some(CheckChunks {
            probe: Arc::clone(self),
            chunks: stream.take()?,
            handed_out: 0,
        })
    }

    pub(super) fn is_reached(&self) -> bool {
        self.is_reached.load(Ordering::Acquire)
    }

    pub(super) fn has_write_timeout(&self) -> bool {
        self.has_write_timeout.load(Ordering::Acquire)
    }

    pub(super) fn send(&self, chunk: Bytes) {
        self.progress.send_modify(|progress| progress.sent += 1);
        // Nobody receives it where the stream has gone, which shows.
        let _ = self.chunks.send(chunk);
    }

    /// Resolves when the body was polled again after the last chunk.
    pub(super) async fn all_taken(&self) {
        let mut progress = self.progress.subscribe();
        let _ = progress
            .wait_for(|progress| progress.taken == progress.sent)
            .await;
    }

    /// Resolves when the stream was dropped.
    pub(super) async fn dropped(&self) {
        let _ = self
            .progress
            .subscribe()
            .wait_for(|progress| progress.is_dropped)
            .await;
    }
}

impl CheckChunks {
    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.probe.progress.send_if_modified(|progress| {
            let has_changed = progress.taken != self.handed_out;
            progress.taken = self.handed_out;
            has_changed
        });
        let chunk = std::task::ready!(self.chunks.poll_recv(cx));
        self.handed_out += 1;
        Poll::Ready(chunk)
    }

    #[expect(
        clippy::unused_self,
        reason = "a check's stream ends by being dropped, as its probe holds the sender"
    )]
    pub(crate) const fn is_over(&self) -> bool {
        false
    }
}

impl Drop for CheckChunks {
    fn drop(&mut self) {
        self.probe
            .progress
            .send_modify(|progress| progress.is_dropped = true);
    }
}
