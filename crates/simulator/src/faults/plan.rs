//! All that one request will suffer.

use std::time::Duration;

use crate::answer::Answer;

use super::{BodyFault, Fault, StreamAction, StreamPoint, StreamStep};

/// The faults of one request, sorted by the place where they act.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    pub(crate) delay: Option<Duration>,
    pub(crate) instead: Option<Instead>,
    pub(crate) body: Option<BodyFault>,
    pub(crate) stream: Vec<StreamStep>,
    pub(crate) one_byte_chunks: bool,
    pub(crate) streaming_list: StreamingList,
    pub(crate) bookmarks: Bookmarks,
}

/// How `sendInitialEvents` is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum StreamingList {
    #[default]
    Served,
    Refused,
    Ignored,
}

/// Which bookmarks are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Bookmarks {
    #[default]
    All,
    AllButInitialEventsEnd,
    None,
}

/// What a request gets instead of an answer of the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Instead {
    Answer(Answer),
    Hang,
    Reset,
}

impl Plan {
    /// Whether no fault of this one's class is in the plan yet.
    pub(super) fn has_room_for(&self, fault: &Fault) -> bool {
        match fault {
            Fault::Answer(_) | Fault::HangBeforeHeaders | Fault::ResetConnection => self.instead.is_none(),
            Fault::HangAfterHeaders => {
                self.instead.is_none() && self.stream.is_empty() && self.body.is_none()
            }
            Fault::Delay(_) => self.delay.is_none(),
            Fault::Body(_) => self.instead.is_none() && self.body.is_none(),
            Fault::Stream(_) => self.instead.is_none() && self.stream.is_empty(),
            Fault::OneByteChunks => !self.one_byte_chunks,
            Fault::RefuseStreamingList | Fault::IgnoreStreamingList => {
                self.streaming_list == StreamingList::Served
            }
            Fault::NoBookmarks | Fault::NoInitialEventsEnd => self.bookmarks == Bookmarks::All,
        }
    }

    /// Adds a fault.
    pub(super) fn include(&mut self, fault: &Fault) {
        match fault {
            Fault::Answer(answer) => self.instead = Some(Instead::Answer(answer.clone())),
            Fault::HangBeforeHeaders => self.instead = Some(Instead::Hang),
            Fault::HangAfterHeaders => {
                self.body = Some(BodyFault::StallAfter(0));
                self.stream = vec![StreamStep {
                    at: StreamPoint::Start,
                    action: StreamAction::Silence,
                }];
            }
            Fault::ResetConnection => self.instead = Some(Instead::Reset),
            Fault::Delay(delay) => self.delay = Some(*delay),
            Fault::Body(fault) => self.body = Some(*fault),
            Fault::Stream(steps) => self.stream.clone_from(steps),
            Fault::OneByteChunks => self.one_byte_chunks = true,
            Fault::RefuseStreamingList => self.streaming_list = StreamingList::Refused,
            Fault::IgnoreStreamingList => self.streaming_list = StreamingList::Ignored,
            Fault::NoBookmarks => self.bookmarks = Bookmarks::None,
            Fault::NoInitialEventsEnd => self.bookmarks = Bookmarks::AllButInitialEventsEnd,
        }
    }
}
