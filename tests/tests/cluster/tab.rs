//! A browser's tab: it reads all the time, and comes back as the stream tells it.

use std::sync::Arc;
use std::time::Duration;

use krm_stream_protocol::{ReportedError, Scope};
use krm_stream_tests::ReceivedEvent;
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

use crate::gateway::Gateway;
use crate::objects::has_value;
use crate::viewer::Viewer;
use crate::wait::WITHIN;

/// How long the reader keeps the lock.
const TURN: Duration = Duration::from_millis(20);
/// What a consumer waits that was not told how long to.
const UNTOLD: Duration = Duration::from_secs(1);

/// Reads a scope in the background, over as many connections as it takes. Dropping it closes the tab.
pub(crate) struct Tab {
    viewer: Arc<Mutex<Viewer>>,
    reader: AbortHandle,
}

impl Tab {
    pub(crate) async fn open(gateway: &Arc<Gateway>, scope: &Scope) -> Self {
        let viewer = Arc::new(Mutex::new(gateway.open(scope).await));
        let reader = tokio::spawn(read(Arc::clone(&viewer), Arc::clone(gateway)));
        Self {
            viewer,
            reader: reader.abort_handle(),
        }
    }

    /// What it has seen, on all its connections; it reads nothing while this is held.
    pub(crate) async fn viewer(&self) -> MutexGuard<'_, Viewer> {
        self.viewer.lock().await
    }

    /// Waits until it has seen what is wanted.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Viewer) -> bool) {
        let deadline = Instant::now() + WITHIN;
        loop {
            let viewer = self.viewer().await;
            if holds(&viewer) {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "not within {WITHIN:?}: {what}; came: {}",
                viewer.summary()
            );
            drop(viewer);
            sleep(TURN).await;
        }
    }

    /// Waits until it shows this object with this `data.value`.
    pub(crate) async fn until_shows(&self, name: &str, value: &str) {
        let what = format!("{name} is shown as wanted");
        self.until(&what, |viewer| {
            let object = viewer.object(name);
            viewer.is_synced() && object.is_some_and(|object| has_value(value)(&object))
        })
        .await;
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

async fn read(viewer: Arc<Mutex<Viewer>>, gateway: Arc<Gateway>) {
    loop {
        let is_over = viewer.lock().await.take_in_until(Instant::now() + TURN).await;
        if !is_over {
            // The lock is fair, so whoever waits for it has its turn.
            continue;
        }
        let pause = {
            let viewer = viewer.lock().await;
            let error = viewer.events().last().and_then(ReceivedEvent::error);
            if error.is_some_and(ReportedError::is_terminal) {
                return;
            }
            error.and_then(ReportedError::retry_after).unwrap_or(UNTOLD)
        };
        sleep(pause).await;
        gateway.reopen(&mut *viewer.lock().await).await;
    }
}
