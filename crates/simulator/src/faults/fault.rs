//! The kinds of faults.

use std::time::Duration;

use bytes::Bytes;

use crate::{answer::Answer, status::Status};

/// What happens to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It gets this answer instead of a real one: a refusal, a redirect, a page of HTML.
    Answer(Answer),
    /// It never gets headers.
    HangBeforeHeaders,
    /// It gets headers and then nothing.
    HangAfterHeaders,
    /// The connection is reset without an answer. Over HTTP/2 that takes all requests of the connection along.
    ResetConnection,
    /// The answer comes later.
    Delay(Duration),
    /// The body of an answer that is not a watch is damaged.
    Body(BodyFault),
    /// A watch does these things, each at its point, in this order.
    Stream(Vec<StreamStep>),
    /// Each byte of the body is a chunk of its own.
    OneByteChunks,
    /// A streaming list is refused with 422, as an API server without the feature does.
    RefuseStreamingList,
    /// `sendInitialEvents` is ignored, as old API servers do: the watch starts as if it had not been asked for.
    IgnoreStreamingList,
    /// No bookmark is sent, the end of the initial events included.
    NoBookmarks,
    /// The bookmark at the end of the initial events is not sent.
    NoInitialEventsEnd,
}

impl Fault {
    /// A watch that does one thing at one point.
    pub fn stream(at: StreamPoint, action: StreamAction) -> Self {
        Self::Stream(vec![StreamStep { at, action }])
    }

    /// The request is sent to another place.
    pub fn redirect(code: u16, location: &str) -> Self {
        Self::Answer(Answer::redirect(code, location))
    }

    /// The request is refused with this status.
    pub fn status(status: &Status) -> Self {
        Self::Answer(status.to_answer())
    }
}

/// A step of a watch that goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamStep {
    /// When.
    pub at: StreamPoint,
    /// What.
    pub action: StreamAction,
}

/// A point in a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamPoint {
    /// Right after the headers.
    Start,
    /// When so many events were sent: added, modified and deleted, the initial ones included, no bookmarks.
    AfterEvents(u64),
    /// When so many lines were sent, bookmarks included.
    AfterLines(u64),
    /// When the bookmark at the end of the initial events is next; of a watch that has none, never.
    BeforeBoundary,
    /// When the bookmark at the end of the initial events was sent.
    AfterBoundary,
    /// So long after the headers.
    Elapsed(Duration),
}

/// What a watch does at a point.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamAction {
    /// It ends.
    End(Ending),
    /// It stays open and never sends anything again, nor ends at its timeout.
    Silence,
    /// Of its next line it sends only so many bytes, and ends.
    CutLine {
        /// How much of the line is sent, line end counted.
        bytes: usize,
        /// How the watch ends then.
        ending: Ending,
    },
    /// Of its next line it sends what comes before the middle of the first character of more than one byte (of a line
    /// without one, half), and ends.
    CutWithinCharacter {
        /// How the watch ends then.
        ending: Ending,
    },
    /// It sends these bytes, whatever they are. A line needs its line end.
    Send(Bytes),
    /// It sends these bytes in the place of its next line.
    Replace(Bytes),
    /// It leaves out its next line.
    Skip,
    /// It sends a bookmark at the version that it has reached.
    Bookmark,
    /// It sends a bookmark at this version, whatever it is: one that goes backwards, one that does not order.
    BookmarkAt(String),
    /// It sends all changes after this version once more, in the order in which they happened, before it goes on. If they
    /// are forgotten by now, it ends.
    Replay {
        /// The version, as the simulator counts.
        after: u64,
    },
    /// It sends nothing for so long, then goes on.
    Wait(Duration),
    /// From now on it waits so long after each line.
    Pace(Duration),
}

impl StreamAction {
    /// It tells of this failure by an `ERROR` event, and goes on.
    pub fn error(status: &Status) -> Self {
        Self::Send(status.to_error_event())
    }

    /// The same with an object that has neither `kind` nor `apiVersion`.
    pub fn error_without_kind(status: &Status) -> Self {
        Self::Send(status.to_error_event_without_kind())
    }
}

/// How a body ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// As a complete body does.
    Close,
    /// Without its end: the connection is closed (HTTP/1.1) or the stream is reset (HTTP/2).
    Abort,
    /// The connection is reset (TCP RST).
    Reset,
    /// The connection falls silent for ever, with neither FIN nor RST, as that of a host which lost its power. Over
    /// HTTP/2 that takes all requests of the connection along.
    Vanish,
}

/// How the body of an answer is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BodyFault {
    /// After so many bytes nothing follows.
    StallAfter(usize),
    /// After so many bytes it ends.
    CutAfter {
        /// How much of the body is sent.
        bytes: usize,
        /// How it ends then. [`Ending::Close`] gives a complete, shorter body.
        ending: Ending,
    },
}
