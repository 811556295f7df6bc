//! The events that carry no object, typed, and how they stand on the wire.

pub mod frame;

use std::time::Duration;

use bytes::BufMut;

use crate::{EventType, Identity, ProjectionName, Scope, StreamError};

/// The longest wait that is asked of a consumer: what a browser's timer can hold, some 24 days. A greater number would
/// overflow its timer to zero and make it come back at once.
const LONGEST_RETRY: u64 = i32::MAX as u64;

/// An event without an object. Events with one, `added` and `modified`, are built where objects are projected, from the
/// pieces in [`frame`].
///
/// ```
/// use krm_stream_protocol::{Event, StreamError};
///
/// let mut wire = Vec::new();
/// Event::Synced.encode(3, &mut wire);
/// Event::Error(&StreamError::resync("the history was compacted")).encode(4, &mut wire);
/// assert_eq!(
///     String::from_utf8(wire).unwrap(),
///     concat!(
///         "data: {\"seq\":3,\"type\":\"synced\"}\n\n",
///         "data: {\"seq\":4,\"type\":\"error\",\"code\":\"RESYNC_REQUIRED\",",
///         "\"message\":\"the history was compacted\",\"terminal\":false}\n\n",
///     ),
/// );
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A cycle begins: the consumer marks all it holds as unseen and prunes nothing yet.
    Reset {
        /// The scope of the stream.
        scope: &'a Scope,
        /// The granted projection.
        projection: &'a ProjectionName,
    },
    /// The object left the scope: the consumer drops its uid.
    Deleted(&'a Identity),
    /// The snapshot is complete: the consumer prunes what is still unseen.
    Synced,
    /// Trouble: the consumer shows it; on a terminal one it closes and does not come back.
    Error(&'a StreamError),
}

impl Event<'_> {
    /// The type on the wire.
    pub const fn event_type(&self) -> EventType {
        match self {
            Self::Reset { .. } => EventType::Reset,
            Self::Deleted(_) => EventType::Deleted,
            Self::Synced => EventType::Synced,
            Self::Error(_) => EventType::Error,
        }
    }

    /// Appends the whole frame, blank line included. `seq` counts the events of a connection from 1.
    pub fn encode(&self, seq: u64, out: &mut impl BufMut) {
        if let Self::Error(error) = self {
            begin_error(out, error);
        }
        frame::begin(out, seq, self.event_type());
        match self {
            Self::Reset { scope, projection } => put_reset(out, scope, projection),
            Self::Deleted(identity) => put_identity(out, identity),
            Self::Synced => {}
            Self::Error(error) => put_error(out, error),
        }
        frame::end(out);
    }
}

fn put_reset(out: &mut impl BufMut, scope: &Scope, projection: &ProjectionName) {
    if !scope.target().is_default() {
        put_member(out, b",\"target\":", scope.target().as_str());
    }
    put_member(out, b",\"scope\":{\"target\":", scope.target().as_str());
    put_optional(out, b",\"group\":", scope.group());
    put_member(out, b",\"version\":", scope.version());
    put_member(out, b",\"resource\":", scope.resource());
    put_optional(out, b",\"namespace\":", scope.namespace());
    put_optional(out, b",\"name\":", scope.name());
    put_optional(
        out,
        b",\"labelSelector\":",
        scope.label_selector().map(crate::LabelSelector::as_str),
    );
    put_member(out, b"},\"projection\":", projection.as_str());
}

fn put_identity(out: &mut impl BufMut, identity: &Identity) {
    put_member(out, b",\"identity\":{\"uid\":", &identity.uid);
    put_member(out, b",\"apiVersion\":", &identity.api_version);
    put_member(out, b",\"kind\":", &identity.kind);
    put_optional(out, b",\"namespace\":", identity.namespace.as_deref());
    put_member(out, b",\"name\":", &identity.name);
    out.put_slice(b"}");
}

/// A bare `EventSource` comes back by itself, whatever the JSON says; the `retry` field is what it listens to.
/// See <https://html.spec.whatwg.org/multipage/server-sent-events.html#concept-event-stream-reconnection-time>.
fn begin_error(out: &mut impl BufMut, error: &StreamError) {
    if let Some(wait) = error.retry_after() {
        out.put_slice(b"retry: ");
        frame::put_integer(out, retry_milliseconds(wait));
        out.put_slice(b"\n");
    }
}

fn put_error(out: &mut impl BufMut, error: &StreamError) {
    put_member(out, b",\"code\":", error.code().as_str());
    put_member(out, b",\"message\":", error.message());
    out.put_slice(if error.is_terminal() {
        b",\"terminal\":true"
    } else {
        b",\"terminal\":false"
    });
    if let Some(wait) = error.retry_after() {
        out.put_slice(b",\"retryAfterMs\":");
        frame::put_integer(out, retry_milliseconds(wait));
    }
}

/// Whole milliseconds, rounded up, so that nobody comes back early.
fn retry_milliseconds(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(1_000_000)).map_or(LONGEST_RETRY, |wait| wait.min(LONGEST_RETRY))
}

fn put_optional(out: &mut impl BufMut, before: &[u8], text: Option<&str>) {
    if let Some(text) = text {
        put_member(out, before, text);
    }
}

fn put_member(out: &mut impl BufMut, before: &[u8], text: &str) {
    out.put_slice(before);
    frame::put_string(out, text);
}

#[cfg(test)]
mod tests;
