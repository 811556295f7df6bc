//! Decodes one line of a watch: the envelope's `type` and `object`, borrowed from the line.

use std::error::Error;

use bytes::Bytes;
use krm_stream_protocol::json::{self, JsonError};
use krm_stream_protocol::{Object, ResourceVersion, WatchEvent};

use crate::status::Status;

/// What a line is.
#[derive(Debug)]
pub(crate) enum Line {
    /// White space alone.
    Blank,
    /// Something for the reader of the session.
    Event(WatchEvent),
    /// An `ERROR` event, or a `Status` in place of an event.
    Error(Status),
    /// Valid as far as it goes, but it ends too early.
    Incomplete,
    /// No watch event.
    Unreadable(Unreadable),
}

/// Why a text is no watch event. It never holds content.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("a watch line is not json")]
    NotJson(#[source] JsonError),
    #[error("a watch line is json, but no object")]
    NoObject,
    #[error("the object of a watch event is no json object")]
    OddObject,
}

/// The annotation of the bookmark that ends the initial events, by [KEP-3157].
///
/// [KEP-3157]: https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/3157-watch-list
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Decodes `line`. Objects are slices of it.
pub(crate) fn decode(line: &Bytes) -> Line {
    if line.trim_ascii().is_empty() {
        return Line::Blank;
    }
    if let Err(error) = json::validate(line) {
        return if ends_too_early(line, &error) {
            Line::Incomplete
        } else {
            Line::Unreadable(Unreadable::NotJson(error))
        };
    }
    if !line.trim_ascii_start().starts_with(b"{") {
        return Line::Unreadable(Unreadable::NoObject);
    }
    // Of duplicate keys the last counts, as for a browser.
    let (mut event_type, mut object) = (None, None);
    for member in json::members(line) {
        if member.key_is("type") {
            event_type = Some(member.value);
        } else if member.key_is("object") {
            object = Some(member.value_range);
        }
    }
    if event_type.is_none() && object.is_none() && Status::is_status(line) {
        return Line::Error(Status::read(line));
    }
    let Some(range) = object.filter(|range| &line[range.clone()] != b"null") else {
        return Line::Event(WatchEvent::Unknown);
    };
    let object = line.slice(range);
    let event_type = event_type.and_then(json::string);
    match event_type.as_deref() {
        Some("ADDED") => changed(object, WatchEvent::Added),
        Some("MODIFIED") => changed(object, WatchEvent::Modified),
        Some("DELETED") => changed(object, WatchEvent::Deleted),
        Some("BOOKMARK") => Line::Event(bookmark(&object)),
        Some("ERROR") => Line::Error(Status::read(&object)),
        Some(_) | None => Line::Event(WatchEvent::Unknown),
    }
}

fn changed(object: Bytes, event: fn(Object) -> WatchEvent) -> Line {
    Object::parse_validated(object).map_or(Line::Unreadable(Unreadable::OddObject), |object| {
        Line::Event(event(object))
    })
}

/// Only the version and the mark are read: a bookmark's object is otherwise empty.
fn bookmark(object: &[u8]) -> WatchEvent {
    let metadata = json::last_member(object, "metadata").unwrap_or_default();
    let annotations = json::last_member(metadata, "annotations").unwrap_or_default();
    let text = |value| json::string(value).filter(|text| !text.is_empty());
    WatchEvent::Bookmark {
        resource_version: json::last_member(metadata, "resourceVersion")
            .and_then(text)
            .map(|version| ResourceVersion::new(&*version)),
        initial_events_end: json::last_member(annotations, INITIAL_EVENTS_END)
            .and_then(text)
            .is_some_and(|value| value == "true"),
    }
}

/// Whether the text could go on to be valid. A number that is cut off before a digit is no end of input to `serde_json`,
/// but a number that is not one.
fn ends_too_early(text: &[u8], error: &JsonError) -> bool {
    error
        .source()
        .and_then(|source| source.downcast_ref::<serde_json::Error>())
        .is_some_and(|error| {
            error.is_eof()
                || (matches!(text.last(), Some(b'.' | b'e' | b'E' | b'+' | b'-'))
                    && error.column() >= text.len())
        })
}

#[cfg(test)]
mod tests;
