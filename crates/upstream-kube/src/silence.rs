//! How long a watch may be silent.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// How long after its `timeoutSeconds` a watch may stay silent.
const GRACE: Duration = Duration::from_secs(10);
/// How long a watch may be silent once it has sent a bookmark: an API server sends one about every minute.
const BETWEEN_BOOKMARKS: Duration = Duration::from_mins(3);

/// Watches over one response. No healthy session is ended by it: it has no read timeout, only bounds that a server which
/// keeps its promises stays within.
#[derive(Debug)]
pub(crate) struct Silence {
    sleep: Pin<Box<Sleep>>,
    sent: Instant,
    last_line: Instant,
    phase: Phase,
}

/// What the response owes.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// A complete snapshot.
    Snapshot { line: Duration, all: Duration },
    /// Changes until its timeout.
    Live { asked: Duration, bookmarks: bool },
}

impl Silence {
    /// For a streaming list whose request was sent at `sent`: a line within `line`, the boundary within `all`.
    pub(crate) fn snapshot(sent: Instant, line: Duration, all: Duration) -> Self {
        Self::new(sent, Phase::Snapshot { line, all })
    }

    /// For a watch that was asked to last `asked`.
    pub(crate) fn live(sent: Instant, asked: Duration) -> Self {
        Self::new(
            sent,
            Phase::Live {
                asked,
                bookmarks: false,
            },
        )
    }

    fn new(sent: Instant, phase: Phase) -> Self {
        let mut silence = Self {
            sleep: Box::pin(tokio::time::sleep_until(sent)),
            sent,
            last_line: Instant::now(),
            phase,
        };
        silence.rearm();
        silence
    }

    /// A line came.
    pub(crate) fn line(&mut self) {
        // The sleep is not moved: it looks at the true deadline when it ends.
        self.last_line = Instant::now();
    }

    /// The boundary came: the response is a watch now.
    pub(crate) fn boundary(&mut self, asked: Duration) {
        self.phase = Phase::Live {
            asked,
            bookmarks: false,
        };
        self.rearm();
    }

    /// A bookmark came that is no boundary.
    pub(crate) fn bookmark(&mut self) {
        if let Phase::Live { bookmarks, .. } = &mut self.phase
            && !*bookmarks
        {
            *bookmarks = true;
            self.rearm();
        }
    }

    /// Ready when the response has been silent for too long.
    pub(crate) fn poll_exceeded(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.sleep.as_mut().poll(cx));
            if self.deadline() <= Instant::now() {
                return Poll::Ready(());
            }
            self.rearm();
        }
    }

    fn rearm(&mut self) {
        let deadline = self.deadline();
        self.sleep.as_mut().reset(deadline);
    }

    fn deadline(&self) -> Instant {
        match self.phase {
            Phase::Snapshot { line, all } => (self.last_line + line).min(self.sent + all),
            Phase::Live { asked, bookmarks } => {
                let past_its_timeout = (self.sent + asked).max(self.last_line) + GRACE;
                if bookmarks {
                    past_its_timeout.min(self.last_line + BETWEEN_BOOKMARKS)
                } else {
                    past_its_timeout
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn exceeded(silence: &mut Silence) -> Duration {
        let before = Instant::now();
        std::future::poll_fn(|cx| silence.poll_exceeded(cx)).await;
        before.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_snapshot_may_pause_for_the_first_bound_and_last_for_the_second() {
        let mut silence = Silence::snapshot(Instant::now(), 30 * SECOND, 300 * SECOND);
        for _ in 0..14 {
            tokio::time::advance(20 * SECOND).await;
            silence.line();
        }
        // 280 s after the request.
        assert_eq!(exceeded(&mut silence).await.as_secs(), 20);
        let mut silence = Silence::snapshot(Instant::now(), 30 * SECOND, 300 * SECOND);
        assert_eq!(exceeded(&mut silence).await.as_secs(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_may_be_silent_until_its_timeout_and_some_grace() {
        let mut silence = Silence::live(Instant::now(), 300 * SECOND);
        tokio::time::advance(100 * SECOND).await;
        silence.line();
        assert_eq!(exceeded(&mut silence).await.as_secs(), 210);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_goes_on_past_its_timeout_is_left_alone_while_it_speaks() {
        let mut silence = Silence::live(Instant::now(), 5 * SECOND);
        tokio::time::advance(60 * SECOND).await;
        silence.line();
        assert_eq!(exceeded(&mut silence).await.as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn where_bookmarks_were_seen_three_minutes_of_silence_suffice() {
        let mut silence = Silence::snapshot(Instant::now(), 30 * SECOND, 300 * SECOND);
        silence.boundary(600 * SECOND);
        tokio::time::advance(60 * SECOND).await;
        silence.line();
        silence.bookmark();
        assert_eq!(exceeded(&mut silence).await.as_secs(), 180);
    }
}
