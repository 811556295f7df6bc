//! What a check can find.

use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, Response, StatusCode};

use super::Probe;
use crate::service::PROTOCOL_HEADER;

/// What stands in the way of bounded delivery.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryProblem {
    /// Something else answered.
    #[error(
        "the request did not reach a gateway, the answer was {0}: check its path and the headers that your middleware wants"
    )]
    NotReached(StatusCode),
    /// The gateway does not bound delivery.
    #[error("the gateway has no write timeout: set write_timeout on its builder")]
    NoWriteTimeout,
    /// The capability was lost.
    #[error(
        "the gateway did not find its connection's capability: some middleware builds a new request; it must keep the old one's extensions"
    )]
    CapabilityLost,
    /// The request was aborted, most likely as the capability was lost.
    #[error(
        "the request was aborted before its answer: some middleware builds a new request without the old one's extensions, or fails"
    )]
    Aborted(#[source] hyper::Error),
    /// No head came.
    #[error("no head of an answer came: some middleware collects the answer first, or waits")]
    NoHead,
    /// The answer is encoded.
    #[error("the answer is encoded as {0}: leave text/event-stream out of compression")]
    Compressed(String),
    /// The answer's head was changed.
    #[error("the answer is no event stream any more: some middleware changes its {0}")]
    Head(&'static str),
    /// A chunk did not arrive.
    #[error(
        "an event did not come while the stream went on: some middleware collects the body before it passes it on"
    )]
    Held,
    /// Something else arrived.
    #[error("what came is not what was sent: some middleware changes the body")]
    Altered,
    /// The stream ended.
    #[error(
        "the stream ended by itself: some middleware has a timeout for the whole answer or for a quiet one; leave the stream's route out of it"
    )]
    Ended,
    /// A chunk that arrived is not known to have been taken.
    #[error(
        "the body is not asked for more after a chunk has arrived, so every stream would be cut: some middleware merges frames"
    )]
    NeverTaken,
    /// A chunk that did not arrive counts as taken.
    #[error(
        "the body is read ahead of the reader, so a stalled one is never noticed: some middleware reads it in a task of its own, or collects frames"
    )]
    RunsAhead,
    /// A stalled stream lives on.
    #[error("a stream that nobody reads was not ended: some middleware keeps the body")]
    NotCut,
    /// The stream outlives its reader.
    #[error("the stream goes on after its reader has left: some middleware keeps the body")]
    NotReleased,
}

/// Looks at the head of an answer.
pub(super) fn of_head<B>(response: &Response<B>, probe: &Probe) -> Result<(), DeliveryProblem> {
    let headers = response.headers();
    if !probe.is_reached() {
        return Err(if headers.contains_key(PROTOCOL_HEADER) {
            DeliveryProblem::CapabilityLost
        } else {
            DeliveryProblem::NotReached(response.status())
        });
    }
    if !probe.has_write_timeout() {
        return Err(DeliveryProblem::NoWriteTimeout);
    }
    if let Some(coding) = text(headers, &CONTENT_ENCODING)
        && coding != "identity"
    {
        return Err(DeliveryProblem::Compressed(coding));
    }
    if headers.contains_key(CONTENT_LENGTH) {
        return Err(DeliveryProblem::Head("Content-Length"));
    }
    if !text(headers, &CONTENT_TYPE).is_some_and(|content_type| content_type.starts_with("text/event-stream"))
    {
        return Err(DeliveryProblem::Head("Content-Type"));
    }
    if response.status() != StatusCode::OK {
        return Err(DeliveryProblem::Head("status"));
    }
    Ok(())
}

fn text(headers: &HeaderMap, name: &http::HeaderName) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.to_owned())
}
