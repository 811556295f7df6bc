//! The watch that follows a list, asked for until it is accepted.
//!
//! The list is read by then. An API server that has no room for a watch just now has none for the same list once more, so
//! it is asked for the watch again, from the list's version, as a feed does when a watch cannot be reopened.

use std::time::Duration;

use krm_stream_protocol::{BoxFuture, Continuity, ResourceVersion, UpstreamErrorKind};
use tokio::time::Instant;

use crate::request::Ask;
use crate::status::Class;
use crate::transport::{AskError, Body};
use crate::upstream::Requests;

/// A watch that was accepted.
pub(super) struct Accepted {
    pub(super) body: Body,
    /// When the request that was accepted went out.
    pub(super) sent: Instant,
    /// The version of the list, which the watch begins after.
    pub(super) version: ResourceVersion,
}

/// Asks for the watch after `version`: once, and up to three times more where a later attempt may succeed. Fails with the
/// last answer. No attempt begins later than the snapshot's bound after the first.
pub(super) fn accept(
    requests: Requests,
    version: ResourceVersion,
) -> BoxFuture<'static, Result<Accepted, AskError>> {
    Box::pin(async move {
        let deadline = Instant::now() + requests.settings().snapshot_timeout;
        let mut delays = Continuity::RETRY_DELAYS.into_iter();
        loop {
            let sent = Instant::now();
            let ask = Ask::Watch {
                after: &version,
                timeout: requests.timeout,
            };
            let error = match requests.ask(ask).await {
                Ok(response) => {
                    let body = response.into_body();
                    return Ok(Accepted { body, sent, version });
                }
                Err(error) => error,
            };
            let Some((hint, delay)) = hint_of_passing(&error).zip(delays.next()) else {
                return Err(error);
            };
            let again = Instant::now() + requests.spread(delay).max(hint);
            if again > deadline {
                return Err(error);
            }
            tokio::time::sleep_until(again).await;
        }
    })
}

/// How long the API server asked to wait, zero if it did not, where the trouble may pass: a transport that failed, 408, 429
/// and 5xx. `None` where the same request would fare no better.
fn hint_of_passing(error: &AskError) -> Option<Duration> {
    let error = match error {
        AskError::NoAnswer(error) => error,
        AskError::Odd(_) => return None,
        AskError::Refused(refused) => match &refused.class {
            Class::Expired => return None,
            Class::Error(error) => error,
        },
    };
    match error.kind() {
        UpstreamErrorKind::Unavailable => Some(error.retry_after().unwrap_or_default().min(Continuity::LONGEST_HINT)),
        UpstreamErrorKind::Forbidden { .. }
        | UpstreamErrorKind::Unauthenticated
        | UpstreamErrorKind::NotFound
        // Such a version is to be left aside.
        | UpstreamErrorKind::VersionTooLarge
        | UpstreamErrorKind::Rejected
        | UpstreamErrorKind::LineTooLong { .. }
        | UpstreamErrorKind::Unreadable
        | UpstreamErrorKind::OutOfScope => None,
    }
}
