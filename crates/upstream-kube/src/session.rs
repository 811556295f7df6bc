//! One session: a streaming list, or a list, and the watch that follows; as items, until exactly one end.
//!
//! Each [`Stage`] owns what it needs, so that dropping the session closes the response it reads.

mod listing;
mod response;

use std::task::{Context, Poll, ready};
use std::time::Duration;

use krm_stream_protocol::{
    Object, Session, SessionEnd, SessionItem, UpstreamError, UpstreamErrorKind, WatchEvent,
};
use tokio::time::Instant;

use listing::{Listing, Step};
use response::{Reading, WatchResponse};

use crate::silence::Silence;
use crate::status::{Class, Status};
use crate::streaming_list::Refusal;
use crate::transport::Body;
use crate::upstream::Requests;

/// A session on a Kubernetes API server.
#[derive(Debug)]
pub(crate) struct KubeSession {
    requests: Requests,
    stage: Stage,
}

/// What the session reads.
#[derive(Debug)]
enum Stage {
    /// The initial events of a streaming list. At the boundary: `Live`. Given up: `Listing`.
    StreamingList { response: WatchResponse, is_empty: bool },
    /// A paged list, and the opening of the watch after it. Once that is open, which is the boundary: `Live`.
    Listing(Box<Listing>),
    /// A watch. Ends the session.
    Live(WatchResponse),
    /// Over.
    Ended,
}

/// What one look at a stage gave: something for the reader, or another stage to look at.
enum Progress {
    Item(SessionItem),
    Again,
}

impl KubeSession {
    /// Reads the answer to a streaming list that was asked for at `sent`.
    pub(crate) fn streaming_list(requests: Requests, body: Body, sent: Instant) -> Self {
        let settings = requests.settings();
        let silence = Silence::snapshot(sent, settings.snapshot_line_timeout, settings.snapshot_timeout);
        let response = WatchResponse::new(body, settings.max_line_bytes, silence);
        Self {
            requests,
            stage: Stage::StreamingList {
                response,
                is_empty: true,
            },
        }
    }

    /// Reads the answer to a watch that was asked for at `sent`.
    pub(crate) fn watch(requests: Requests, body: Body, sent: Instant) -> Self {
        let silence = Silence::live(sent, requests.timeout);
        let response = WatchResponse::new(body, requests.settings().max_line_bytes, silence);
        Self {
            requests,
            stage: Stage::Live(response),
        }
    }

    /// Reads the answer to the first page of a list. `refusal` is remembered once the page has been read.
    pub(crate) fn list(requests: Requests, first_page: Body, refusal: Option<Refusal>) -> Self {
        let listing = Listing::of_answer(requests.clone(), first_page, refusal);
        Self {
            requests,
            stage: Stage::Listing(Box::new(listing)),
        }
    }

    fn poll_stage(&mut self, cx: &mut Context<'_>) -> Poll<Progress> {
        match &mut self.stage {
            Stage::StreamingList { response, .. } => {
                let reading = ready!(response.poll_reading(cx));
                Poll::Ready(self.initial_reading(reading))
            }
            Stage::Listing(listing) => {
                let step = ready!(listing.poll_step(cx));
                Poll::Ready(self.listing_step(step))
            }
            Stage::Live(response) => {
                let reading = ready!(response.poll_reading(cx));
                Poll::Ready(Progress::Item(self.live_reading(reading)))
            }
            Stage::Ended => Poll::Ready(self.end(SessionEnd::Closed)),
        }
    }

    fn initial_reading(&mut self, reading: Reading) -> Progress {
        let Stage::StreamingList { response, is_empty } = &mut self.stage else {
            return Progress::Again;
        };
        match reading {
            Reading::Event(event) => {
                if let WatchEvent::Bookmark {
                    initial_events_end: true,
                    ..
                } = &event
                {
                    response.silence().boundary(self.requests.timeout);
                    if let Stage::StreamingList { response, .. } =
                        std::mem::replace(&mut self.stage, Stage::Ended)
                    {
                        self.stage = Stage::Live(response);
                    }
                    return Progress::Item(SessionItem::Event(event));
                }
                *is_empty = false;
                Progress::Item(self.checked(event))
            }
            // Accepted, and refused within the answer.
            Reading::Refused(status) if *is_empty && refuses_streaming_lists(&status) => {
                self.give_up_streaming_list()
            }
            // Accepted, but no boundary in time.
            Reading::Silent => self.give_up_streaming_list(),
            Reading::Refused(status) => self.end(status.classify(None, None).into()),
            Reading::Failed(error) => self.end(SessionEnd::Failed(error)),
            Reading::Ended => self.end(SessionEnd::Closed),
        }
    }

    fn give_up_streaming_list(&mut self) -> Progress {
        self.stage = Stage::Listing(Box::new(Listing::from_start(
            self.requests.clone(),
            Some(Refusal::Certain),
        )));
        Progress::Item(SessionItem::Event(WatchEvent::SnapshotRestarted))
    }

    fn listing_step(&mut self, step: Step) -> Progress {
        match step {
            Step::Item(object) => Progress::Item(self.checked(WatchEvent::Added(object))),
            Step::Restarted => Progress::Item(SessionItem::Event(WatchEvent::SnapshotRestarted)),
            Step::Watching { body, sent, version } => {
                let silence = Silence::live(sent, self.requests.timeout);
                self.stage = Stage::Live(WatchResponse::new(
                    body,
                    self.requests.settings().max_line_bytes,
                    silence,
                ));
                Progress::Item(SessionItem::Event(WatchEvent::Bookmark {
                    resource_version: Some(version),
                    initial_events_end: true,
                }))
            }
            Step::End(end) => self.end(end),
        }
    }

    fn live_reading(&mut self, reading: Reading) -> SessionItem {
        match reading {
            Reading::Event(WatchEvent::Bookmark { resource_version, .. }) => {
                if let Stage::Live(response) = &mut self.stage {
                    response.silence().bookmark();
                }
                // The boundary comes once, and only to who asked for it.
                SessionItem::Event(WatchEvent::Bookmark {
                    resource_version,
                    initial_events_end: false,
                })
            }
            Reading::Event(event) => self.checked(event),
            Reading::Refused(status) => self.end_item(status.classify(None, None).into()),
            Reading::Failed(error) => self.end_item(SessionEnd::Failed(error)),
            Reading::Silent | Reading::Ended => self.end_item(SessionEnd::Closed),
        }
    }

    /// The event, or the end of the session if its object is not in the scope.
    fn checked(&mut self, event: WatchEvent) -> SessionItem {
        if object_of(&event)
            .and_then(Object::identity)
            .is_none_or(|identity| self.requests.scope.admits(identity))
        {
            return SessionItem::Event(event);
        }
        self.end_item(SessionEnd::Failed(UpstreamError::new(
            UpstreamErrorKind::OutOfScope,
        )))
    }

    fn end(&mut self, end: SessionEnd) -> Progress {
        Progress::Item(self.end_item(end))
    }

    /// Closes what is open.
    fn end_item(&mut self, end: SessionEnd) -> SessionItem {
        self.stage = Stage::Ended;
        SessionItem::End(end)
    }
}

impl Session for KubeSession {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<SessionItem> {
        loop {
            match ready!(self.poll_stage(cx)) {
                Progress::Item(item) => return Poll::Ready(item),
                Progress::Again => {}
            }
        }
    }

    fn asked_timeout(&self) -> Option<Duration> {
        Some(self.requests.timeout)
    }
}

fn object_of(event: &WatchEvent) -> Option<&Object> {
    match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
            Some(object)
        }
        WatchEvent::Bookmark { .. } | WatchEvent::SnapshotRestarted | WatchEvent::Unknown => None,
    }
}

/// Whether an error within the answer to a streaming list is the refusal of it.
fn refuses_streaming_lists(status: &Status) -> bool {
    let is_rejection = match status.classify(None, None) {
        Class::Error(error) => *error.kind() == UpstreamErrorKind::Rejected,
        Class::Expired => false,
    };
    is_rejection && status.names_streaming_list()
}
