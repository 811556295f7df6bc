//! Whether the session that is driven has lived, or worked for as long as it could, so that it is told once.

use krm_stream_protocol::{Continuity, Moment, SessionEnd};
use tokio::time::sleep_until;

use super::Driver;
use crate::feed::reports::FeedReport;

/// How far one session has come.
#[derive(Debug, Default)]
pub(super) enum Living {
    /// It may end at once. When it has lived: `Due`.
    #[default]
    Young,
    /// It has lived, or worked until it ended, and that is to be told after what came before. Told: `Told`.
    Due,
    /// That was told, and nothing more is to be said.
    Told,
}

impl Living {
    /// Takes note of the session as it is at `now`, while it is open.
    pub(super) fn note(&mut self, continuity: &Continuity, now: Moment) {
        match self {
            Self::Young => {
                if continuity.lives_at().is_some_and(|at| at <= now) {
                    *self = Self::Due;
                }
            }
            Self::Due | Self::Told => {}
        }
    }

    /// Takes note of the session as it ends so, before `continuity` is told of that.
    pub(super) fn note_end(&mut self, continuity: &Continuity, now: Moment, end: &SessionEnd) {
        self.note(continuity, now);
        match (&self, end) {
            (Self::Young, SessionEnd::Closed) => {
                if continuity.has_worked(now) {
                    *self = Self::Due;
                }
            }
            // What was said last speaks against it.
            (Self::Young, SessionEnd::Expired | SessionEnd::Failed(_) | SessionEnd::Teardown)
            | (Self::Due | Self::Told, _) => {}
        }
    }

    /// Resolves when there is something to note; never, if there is nothing for now.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub(super) fn until_due(
        &self,
        driver: &Driver,
        continuity: &Continuity,
    ) -> impl Future<Output = ()> + Send + use<> {
        let at = match self {
            Self::Young => continuity.lives_at().map(|at| driver.origin + at.since_origin()),
            Self::Due | Self::Told => None,
        };
        async move {
            match at {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Tells it, if it is to be told.
    pub(super) fn tell(&mut self, driver: &Driver) {
        match self {
            Self::Due => {
                *self = Self::Told;
                driver.tell(&FeedReport::Lived);
            }
            Self::Young | Self::Told => {}
        }
    }
}
