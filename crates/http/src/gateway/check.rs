//! Asking a host's seams, with a bound in time.

use std::sync::OnceLock;
use std::time::Duration;

use krm_stream_protocol::{AuthorizationOutcome, Check, ErrorCode, Observation, ProjectionName, StreamError};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::Host;
use super::streams::Request;

/// How long a check may take.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    /// `reauthorization_timeout` from when it is sent: it may have to wait for its turn.
    FromSent,
    /// Until then, wherever it waits.
    Until(Instant),
}

/// A check that has not got its turn after this many timeouts is given up: its authorizer does not move, or never says
/// that it does.
const TIMEOUTS_IN_QUEUE: u32 = 30;
/// When to come back after a check that was not answered.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// A seam that did not answer.
#[derive(Debug, thiserror::Error)]
#[error("there was no answer in time")]
struct NotInTime;

/// When a check was sent. It may have joined one that was sent before; the time it has runs from when that is known.
#[derive(Default)]
struct Sent {
    at: OnceLock<Instant>,
    told: Notify,
}

impl Sent {
    fn mark(&self, at: Option<std::time::Instant>) {
        self.at
            .get_or_init(|| at.map_or_else(Instant::now, Instant::from_std));
        self.told.notify_one();
    }
}

impl Host {
    /// Asks the authorizer about a stream's caller. Resolves to when that was sent; an authorizer that does not say when is
    /// taken to have been asked at `asked`, which is to be before `trigger` was looked for.
    ///
    /// # Errors
    /// What the stream ends with.
    pub(super) async fn ask(
        &self,
        request: &Request,
        asked: Instant,
        trigger: Option<Instant>,
        bound: Bound,
    ) -> Result<Instant, StreamError> {
        let sent = Sent::default();
        let mark = |at| sent.mark(at);
        let check = Check::new(&request.principal, &request.scope)
            .triggered_at(trigger.map(Instant::into_std))
            .on_sent(&mark);
        let (limit, retry_after) = match bound {
            Bound::FromSent => (
                asked + self.settings.check_timeout * TIMEOUTS_IN_QUEUE,
                RETRY_AFTER,
            ),
            Bound::Until(deadline) => (deadline, self.spread_retry()),
        };
        let out_of_time = async {
            match bound {
                Bound::FromSent => tokio::select! {
                    () = sent.told.notified() => sleep(self.settings.check_timeout).await,
                    () = sleep_until(limit) => {}
                },
                Bound::Until(deadline) => sleep_until(deadline).await,
            }
        };
        let answer = tokio::select! {
            biased;
            answer = self.authorizer.authorize_check(check) => answer,
            () = out_of_time => Err(self.not_in_time("checking access", retry_after)),
        };
        let outcome = match &answer {
            Ok(()) => AuthorizationOutcome::Allowed,
            Err(error) if error.code() == ErrorCode::UpstreamUnavailable => AuthorizationOutcome::Failed,
            Err(_) => AuthorizationOutcome::Denied,
        };
        self.observing.observe(&Observation::AuthorizationChecked {
            outcome,
            duration: asked.elapsed(),
        });
        answer.map(|()| sent.at.get().copied().unwrap_or(asked))
    }

    /// Which projection is granted now.
    pub(super) async fn select_projection(&self, request: &Request) -> Result<ProjectionName, StreamError> {
        self.projection_policy
            .select(&request.principal, &request.scope, request.projection.as_ref())
            .await
    }

    /// Bounds a seam's answer in time.
    pub(super) async fn bounded<T>(
        &self,
        operation: &'static str,
        answer: impl Future<Output = Result<T, StreamError>>,
    ) -> Result<T, StreamError> {
        timeout(self.settings.check_timeout, answer)
            .await
            .unwrap_or_else(|_| Err(self.not_in_time(operation, RETRY_AFTER)))
    }

    pub(super) fn not_in_time(&self, operation: &'static str, retry_after: Duration) -> StreamError {
        self.diagnosing.report(operation, None, &NotInTime);
        StreamError::unavailable(
            "a check of this request was not answered in time",
            Some(retry_after),
        )
    }

    /// Streams that are checked together and get no answer must not come back together.
    pub(super) fn spread_retry(&self) -> Duration {
        RETRY_AFTER + self.streams.jitter().within(RETRY_AFTER)
    }
}
