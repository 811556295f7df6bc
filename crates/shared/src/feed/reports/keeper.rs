//! Keeps a feed warm without reading it.

use std::sync::Arc;
use std::time::Duration;

use krm_stream_projection::Projection;
use krm_stream_protocol::{Scope, StreamError, Upstream, UpstreamError, UpstreamErrorKind};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::{FeedReport, FeedReports, Queue};
use crate::feed::{Attachment, Waiter};

/// The pause before a feed that is over is opened again, doubled up to the longest while it does not last.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A feed that lasted this long begins a new row of pauses.
const LASTED: Duration = Duration::from_mins(1);

/// A feed to keep warm.
#[derive(Clone, Debug)]
pub struct Keep<'a> {
    /// What is watched.
    pub scope: &'a Scope,
    /// Under which projection.
    pub projection: &'a Arc<Projection>,
    /// Where the feed is opened if nobody has yet.
    pub upstream: Arc<dyn Upstream>,
    /// The name of the [shared](krm_stream_protocol::Partition::Shared) partition. Only streams of this partition join the
    /// feed.
    pub partition: Arc<str>,
}

/// Keeps a feed open until it is dropped, and tells what happens to it. Made by [`Feeds::keep`](crate::Feeds::keep).
///
/// It is no stream: it reads nothing and is in no count or observation of streams. A feed that is over, for whatever reason,
/// is opened again after its backoff, or after 1 s doubling to 30 s where the API server refused it. One whose scope is in
/// backoff from the start, for what befell another feed of it, is told of as one that could not be opened.
#[derive(Debug)]
pub struct Keeper {
    reports: FeedReports,
    task: JoinHandle<()>,
}

impl Keeper {
    /// Keeps the feed that `attach` attaches to, on the current tokio runtime.
    pub(crate) fn start(
        seed: u64,
        attach: impl FnMut() -> Result<(Attachment, Option<Waiter>), StreamError> + Send + 'static,
    ) -> Self {
        let queue = Arc::<Queue>::default();
        let task = tokio::spawn(keep(Arc::clone(&queue), Spread(seed), attach));
        Self {
            reports: FeedReports(queue),
            task,
        }
    }

    /// What happens to the feed, and to those that are opened after it.
    pub const fn reports(&mut self) -> &mut FeedReports {
        &mut self.reports
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn keep(
    queue: Arc<Queue>,
    mut spread: Spread,
    mut attach: impl FnMut() -> Result<(Attachment, Option<Waiter>), StreamError>,
) {
    let mut pause = FIRST_PAUSE;
    // From the first feed on, which tells all that happens to it, its end included.
    let mut is_told = false;
    loop {
        let wait = match attach() {
            // The answer to who waits for the opening is also told as a report.
            Ok((attachment, _waiter)) => {
                is_told = true;
                let since = Instant::now();
                attachment.feed().reports().add(&queue);
                queue.until_over().await;
                drop(attachment);
                if since.elapsed() >= LASTED {
                    pause = FIRST_PAUSE;
                }
                let wait = pause;
                pause = (pause * 2).min(LONGEST_PAUSE);
                wait
            }
            // It is in backoff.
            Err(refusal) => {
                if !std::mem::replace(&mut is_told, true) {
                    queue.push(FeedReport::OpenFailed {
                        error: UpstreamError::new(UpstreamErrorKind::Unavailable).into(),
                        retries_left: false,
                    });
                }
                refusal.retry_after().unwrap_or(FIRST_PAUSE)
            }
        };
        sleep(spread.lengthen(wait)).await;
    }
}

/// Spreads pauses, so that many feeds of one API server do not come back at once.
struct Spread(u64);

impl Spread {
    /// By up to a quarter.
    fn lengthen(&mut self, pause: Duration) -> Duration {
        // Knuth's MMIX generator; its upper bits are good enough for this.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let thousandths = u32::try_from((self.0 >> 33) % 250).unwrap_or_default();
        pause + pause * thousandths / 1000
    }
}
