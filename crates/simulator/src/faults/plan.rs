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
    pub(crate) refuse_streaming_list: bool,
    pub(crate) ignore_streaming_list: bool,
    pub(crate) no_bookmarks: bool,
    pub(crate) no_initial_events_end: bool,
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
            Fault::RefuseStreamingList => !self.refuse_streaming_list,
            Fault::IgnoreStreamingList => !self.ignore_streaming_list,
            Fault::NoBookmarks => !self.no_bookmarks,
            Fault::NoInitialEventsEnd => !self.no_initial_events_end,
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
            Fault::RefuseStreamingList => self.refuse_streaming_list = true,
            Fault::IgnoreStreamingList => self.ignore_streaming_list = true,
            Fault::NoBookmarks => self.no_bookmarks = true,
            Fault::NoInitialEventsEnd => self.no_initial_events_end = true,
        }
    }
}
