//! Decoding the body of a watch: any split gives the same events, and they are those that a plain reading finds.

use bytes::Bytes;
use krm_stream_protocol::{Object, SessionEnd, UpstreamErrorKind, WatchEvent};
use krm_stream_upstream_kube::decode_watch;

use super::document::{Document, is_valid};
use super::splits::splits;

/// The limits that each input is read with: one that no input reaches, and one that many do.
const LIMITS: [usize; 2] = [1 << 24, 48];

/// An event, to be compared.
#[derive(Clone, Debug, PartialEq)]
enum Event {
    /// Its type, its object without white space, and whether it can be told who it is.
    Change(&'static str, Option<String>, bool),
    Bookmark {
        version: Option<String>,
        is_boundary: bool,
    },
    Unknown,
}

/// Checks [`decode_watch`].
///
/// # Panics
/// When a rule does not hold.
pub fn watch_lines(input: &[u8]) {
    for limit in LIMITS {
        let whole = decode(&[input], limit);
        for pieces in splits(input) {
            assert_eq!(decode(&pieces, limit), whole, "the same for every split");
        }
    }
    let (events, end) = decode_watch([Bytes::copy_from_slice(input)], LIMITS[0]);
    objects(&events, input);
    let events: Vec<Event> = events.iter().map(Event::of).collect();
    let (expected, reading) = by_lines(input);
    let is_expected = match reading {
        Reading::Whole => events == expected && matches!(end, SessionEnd::Closed),
        Reading::UpToAnError => {
            events == expected && !matches!(end, SessionEnd::Closed | SessionEnd::Teardown)
        }
        Reading::UpToWhatIsCut => events == expected,
        Reading::TooDeep => events.starts_with(&expected),
    };
    assert!(is_expected, "{events:?}\n{expected:?}\n{reading:?} {end:?}");
}

/// The events as text, and the end.
fn decode(pieces: &[&[u8]], limit: usize) -> (Vec<String>, String) {
    let (events, end) = decode_watch(pieces.iter().map(|piece| Bytes::copy_from_slice(piece)), limit);
    for event in &events {
        let longest = object_of(event).map_or(0, |object| object.json().len());
        assert!(
            longest <= limit,
            "an object of {longest} bytes at a limit of {limit}"
        );
    }
    if let SessionEnd::Failed(error) = &end
        && let UpstreamErrorKind::LineTooLong { limit: named } = error.kind()
    {
        assert_eq!(*named, limit);
    }
    let text = |event: &WatchEvent| {
        let json = object_of(event).map(|object| String::from_utf8_lossy(object.json()).into_owned());
        format!("{event:?} {json:?}")
    };
    let end = match end {
        SessionEnd::Failed(error) => format!("{:?} {:?}", error.kind(), error.retry_after()),
        SessionEnd::Closed | SessionEnd::Expired | SessionEnd::Teardown => format!("{end:?}"),
    };
    (events.iter().map(text).collect(), end)
}

fn object_of(event: &WatchEvent) -> Option<&Object> {
    match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
            Some(object)
        }
        WatchEvent::Bookmark { .. } | WatchEvent::SnapshotRestarted | WatchEvent::Unknown => None,
    }
}

/// Objects are the bytes that were sent.
fn objects(events: &[WatchEvent], input: &[u8]) {
    let mut rest = input;
    for object in events.iter().filter_map(object_of) {
        let json = object.json();
        assert!(is_valid(json) && json.starts_with(b"{") && json.ends_with(b"}"));
        let found = memchr::memmem::find(rest, json);
        assert!(found.is_some(), "an object is not what was sent");
        rest = &rest[found.unwrap_or_default()..];
    }
}

impl Event {
    fn of(event: &WatchEvent) -> Self {
        let change = |name, object: &Object| {
            let json = Document::parse(object.json()).map(|json| json.compact());
            Self::Change(name, json, object.identity().is_some())
        };
        match event {
            WatchEvent::Added(object) => change("ADDED", object),
            WatchEvent::Modified(object) => change("MODIFIED", object),
            WatchEvent::Deleted(object) => change("DELETED", object),
            WatchEvent::Bookmark {
                resource_version,
                initial_events_end,
            } => Self::Bookmark {
                version: resource_version
                    .as_ref()
                    .map(|version| version.as_str().to_owned()),
                is_boundary: *initial_events_end,
            },
            WatchEvent::Unknown | WatchEvent::SnapshotRestarted => Self::Unknown,
        }
    }
}

/// How far a plain reading came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// To the end.
    Whole,
    /// To something that ends the session.
    UpToAnError,
    /// To a line that is no JSON, which may be half a line, or the first of an answer over several lines.
    UpToWhatIsCut,
    /// To a line that is too deep for it.
    TooDeep,
}

/// The events of a body, line by line.
fn by_lines(input: &[u8]) -> (Vec<Event>, Reading) {
    let mut events = Vec::new();
    for line in input.split(|byte| *byte == b'\n') {
        if line.trim_ascii().is_empty() {
            continue;
        }
        if !is_valid(line) {
            return (events, Reading::UpToWhatIsCut);
        }
        let Some(line) = Document::parse(line) else {
            return (events, Reading::TooDeep);
        };
        match by_line(&line) {
            Some(event) => events.push(event),
            None => return (events, Reading::UpToAnError),
        }
    }
    (events, Reading::Whole)
}

/// One line, which is valid; `None` where it ends the session.
fn by_line(line: &Document) -> Option<Event> {
    let Document::Object(_) = line else { return None };
    let null = Document::Scalar("null".to_owned());
    let (event_type, object) = (line.last("type"), line.last("object"));
    if event_type.is_none() && object.is_none() && line.last("kind").is_some_and(|kind| kind.is("Status")) {
        return None;
    }
    let Some(object) = object.filter(|object| **object != null) else {
        return Some(Event::Unknown);
    };
    match event_type.and_then(Document::text).as_deref() {
        Some("ADDED") => change("ADDED", object),
        Some("MODIFIED") => change("MODIFIED", object),
        Some("DELETED") => change("DELETED", object),
        Some("BOOKMARK") => Some(bookmark(object)),
        Some("ERROR") => None,
        _ => Some(Event::Unknown),
    }
}

fn change(name: &'static str, object: &Document) -> Option<Event> {
    let Document::Object(_) = object else { return None };
    let metadata = object.last("metadata");
    let has = |field: &str| filled(metadata.and_then(|metadata| metadata.last(field))).is_some();
    let is_metadata_only = object
        .last("kind")
        .is_some_and(|kind| kind.is("PartialObjectMetadata"));
    let is_someone = has("uid") && has("name") && !is_metadata_only;
    Some(Event::Change(name, Some(object.compact()), is_someone))
}

fn bookmark(object: &Document) -> Event {
    let metadata = object.last("metadata");
    let mark = metadata
        .and_then(|metadata| metadata.last("annotations"))
        .and_then(|annotations| annotations.last("k8s.io/initial-events-end"));
    Event::Bookmark {
        version: filled(metadata.and_then(|metadata| metadata.last("resourceVersion"))),
        is_boundary: mark.is_some_and(|mark| mark.is("true")),
    }
}

fn filled(value: Option<&Document>) -> Option<String> {
    value.and_then(Document::text).filter(|text| !text.is_empty())
}
