//! A paged list, then the opening of the watch that follows it.
//!
//! The boundary comes once that watch is accepted: until then nobody knows whether what follows the list will be told, and to
//! whoever may list but not watch it never is.

mod accepting;

use std::fmt;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::BytesMut;
use http_body_util::BodyExt as _;
use krm_stream_protocol::{BoxFuture, Object, ResourceVersion, SessionEnd, UpstreamError, UpstreamErrorKind};
use tokio::time::Instant;

use accepting::{Accepted, accept};

use crate::page::{ListBody, Page};
use crate::request::Ask;
use crate::settings::Settings;
use crate::status::Class;
use crate::streaming_list::Refusal;
use crate::transport::{AskError, Body};
use crate::upstream::Requests;

/// How often a list that expires midway is started again within one session.
const RESTARTS: u32 = 3;
/// The wait before the second restart; doubled for the next.
const RESTART_DELAY: Duration = Duration::from_secs(1);
/// By how much a page that is too large is made smaller.
const SMALLER_BY: u32 = 8;

/// A list in progress.
pub(super) struct Listing {
    requests: Requests,
    stage: Stage,
    /// `limit` of the pages; less than the setting after a page was too large.
    limit: u32,
    /// The version of the list, known from its first page on. It is the cursor, whatever the items' versions are.
    version: Option<ResourceVersion>,
    restarts: u32,
    /// Remembered once a page was served: only then was it the streaming list that was refused.
    refusal: Option<Refusal>,
}

enum Stage {
    /// A page is asked for and read; `token` is its `continue`.
    Reading {
        token: Option<Box<str>>,
        page: BoxFuture<'static, Result<ListBody, PageFailure>>,
    },
    /// Its items are handed out; `token` is its own `continue`, to notice a list that does not advance.
    Page { token: Option<Box<str>>, page: Page },
    /// All items have been handed out; the watch is asked for.
    Accepting(BoxFuture<'static, Result<Accepted, AskError>>),
}

/// What a look at a listing gave.
pub(super) enum Step {
    /// An item of the list.
    Item(Object),
    /// The list was started again.
    Restarted,
    /// The watch after the list is accepted: here is the boundary.
    Watching {
        body: Body,
        sent: Instant,
        version: ResourceVersion,
    },
    /// The session is over.
    End(SessionEnd),
}

/// Why there is no page.
enum PageFailure {
    /// The transport ended, or was silent.
    Closed,
    /// 410: the list must be started again.
    Expired,
    /// The page is larger than its limit.
    TooLarge,
    /// What the server said, or what cannot be read.
    Failed(UpstreamError),
}

#[derive(Debug, thiserror::Error)]
enum OddList {
    #[error("a list has no resourceVersion, so no watch can follow it without a gap")]
    NoVersion,
    #[error("a page of a list continues with its own token: the list does not advance")]
    DoesNotAdvance,
    #[error("a page of a list with a limit of one object is larger than {0} bytes")]
    PageTooLarge(usize),
}

impl Listing {
    /// Starts with an answer to the first page.
    pub(super) fn of_answer(requests: Requests, body: Body, refusal: Option<Refusal>) -> Self {
        let settings = requests.settings().clone();
        let page = Box::pin(async move { read_page(body, &settings).await });
        Self::new(requests, page, refusal)
    }

    /// Asks for the first page.
    pub(super) fn from_start(requests: Requests, refusal: Option<Refusal>) -> Self {
        let limit = requests.settings().page_limit;
        let page = ask_page(requests.clone(), limit, None, Duration::ZERO);
        Self::new(requests, page, refusal)
    }

    fn new(
        requests: Requests,
        page: BoxFuture<'static, Result<ListBody, PageFailure>>,
        refusal: Option<Refusal>,
    ) -> Self {
        Self {
            limit: requests.settings().page_limit,
            requests,
            stage: Stage::Reading { token: None, page },
            version: None,
            restarts: 0,
            refusal,
        }
    }

    pub(super) fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        loop {
            match &mut self.stage {
                Stage::Reading { token, page } => {
                    let answer = ready!(page.as_mut().poll(cx));
                    let token = token.take();
                    if let Some(step) = self.answered(token, answer) {
                        return Poll::Ready(step);
                    }
                }
                Stage::Page { page, .. } => match page.next_item() {
                    Some(item) => return Poll::Ready(self.item(item.map_err(unreadable))),
                    None => {
                        if let Some(step) = self.page_done() {
                            return Poll::Ready(step);
                        }
                    }
                },
                Stage::Accepting(watch) => {
                    let answer = ready!(watch.as_mut().poll(cx));
                    return Poll::Ready(self.watch_answered(answer));
                }
            }
        }
    }

    fn answered(&mut self, token: Option<Box<str>>, answer: Result<ListBody, PageFailure>) -> Option<Step> {
        match answer {
            Ok(ListBody::Page(page)) => {
                if let Some(refusal) = self.refusal.take() {
                    self.requests.streaming_list_refused(refusal);
                }
                if self.version.is_none() {
                    self.version.clone_from(&page.resource_version);
                }
                self.stage = Stage::Page { token, page };
                None
            }
            Ok(ListBody::Status(status)) => match status.classify(None, None) {
                Class::Expired => Some(self.page_expired(token.as_deref())),
                Class::Error(error) => Some(Step::End(SessionEnd::Failed(error))),
            },
            Err(PageFailure::Closed) => Some(Step::End(SessionEnd::Closed)),
            Err(PageFailure::Failed(error)) => Some(Step::End(SessionEnd::Failed(error))),
            Err(PageFailure::Expired) => Some(self.page_expired(token.as_deref())),
            Err(PageFailure::TooLarge) => self.too_large(token),
        }
    }

    /// 410 for a page. A list that expired at its start is over: it asked for no version that could have.
    fn page_expired(&mut self, token: Option<&str>) -> Step {
        if token.is_none() {
            return Step::End(SessionEnd::Expired);
        }
        self.start_again()
    }

    /// The last answer to the watch. A list whose version is forgotten by now expired midway too.
    fn watch_answered(&mut self, answer: Result<Accepted, AskError>) -> Step {
        match answer {
            Ok(Accepted { body, sent, version }) => Step::Watching { body, sent, version },
            Err(error) => match SessionEnd::from(error) {
                SessionEnd::Expired => self.start_again(),
                end @ (SessionEnd::Closed | SessionEnd::Failed(_) | SessionEnd::Teardown) => Step::End(end),
            },
        }
    }

    /// Starts the list again, unless that was done too often.
    fn start_again(&mut self) -> Step {
        if self.restarts == RESTARTS {
            return Step::End(SessionEnd::Expired);
        }
        let delay = match self.restarts {
            0 => Duration::ZERO,
            again => RESTART_DELAY * 2_u32.saturating_pow(again - 1),
        };
        self.restarts += 1;
        self.version = None;
        self.ask(None, delay);
        Step::Restarted
    }

    /// The same page again, with fewer objects.
    fn too_large(&mut self, token: Option<Box<str>>) -> Option<Step> {
        if self.limit == 1 {
            let settings = self.requests.settings();
            let error = UpstreamError::new(UpstreamErrorKind::LineTooLong {
                limit: settings.max_line_bytes,
            });
            return Some(Step::End(SessionEnd::Failed(
                error.with_cause(OddList::PageTooLarge(settings.max_page_bytes())),
            )));
        }
        self.limit = (self.limit / SMALLER_BY).max(1);
        self.ask(token, Duration::ZERO);
        None
    }

    fn ask(&mut self, token: Option<Box<str>>, delay: Duration) {
        let page = ask_page(self.requests.clone(), self.limit, token.clone(), delay);
        self.stage = Stage::Reading { token, page };
    }

    fn item(&self, item: Result<Object, UpstreamError>) -> Step {
        let limit = self.requests.settings().max_line_bytes;
        match item {
            Ok(object) if object.json().len() > limit => Step::End(SessionEnd::Failed(UpstreamError::new(
                UpstreamErrorKind::LineTooLong { limit },
            ))),
            Ok(object) => Step::Item(object),
            Err(error) => Step::End(SessionEnd::Failed(error)),
        }
    }

    /// Goes on to the next page, or to the watch.
    fn page_done(&mut self) -> Option<Step> {
        let Stage::Page { token, page } = &mut self.stage else {
            return None;
        };
        if let Some(next) = page.next.take() {
            if token.as_deref() == Some(&*next) {
                return Some(Step::End(SessionEnd::Failed(unreadable(OddList::DoesNotAdvance))));
            }
            self.ask(Some(next), Duration::ZERO);
            return None;
        }
        let Some(version) = self.version.clone() else {
            return Some(Step::End(SessionEnd::Failed(unreadable(OddList::NoVersion))));
        };
        self.stage = Stage::Accepting(accept(self.requests.clone(), version));
        None
    }
}

impl From<AskError> for PageFailure {
    fn from(error: AskError) -> Self {
        match SessionEnd::from(error) {
            SessionEnd::Closed | SessionEnd::Teardown => Self::Closed,
            SessionEnd::Expired => Self::Expired,
            SessionEnd::Failed(error) => Self::Failed(error),
        }
    }
}

impl fmt::Debug for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listing")
            .field("limit", &self.limit)
            .field("version", &self.version)
            .field("restarts", &self.restarts)
            .finish_non_exhaustive()
    }
}

fn ask_page(
    requests: Requests,
    limit: u32,
    token: Option<Box<str>>,
    delay: Duration,
) -> BoxFuture<'static, Result<ListBody, PageFailure>> {
    Box::pin(async move {
        tokio::time::sleep(delay).await;
        let ask = Ask::Page {
            limit,
            next: token.as_deref(),
        };
        let response = requests.ask(ask).await?;
        read_page(response.into_body(), requests.settings()).await
    })
}

/// Reads a page whole: within the snapshot's bounds of time, and not larger than a page may be.
async fn read_page(mut body: Body, settings: &Settings) -> Result<ListBody, PageFailure> {
    let end = Instant::now() + settings.snapshot_timeout;
    let mut text = BytesMut::new();
    loop {
        let deadline = end.min(Instant::now() + settings.snapshot_line_timeout);
        match tokio::time::timeout_at(deadline, body.frame()).await {
            Ok(Some(Ok(frame))) => {
                let Ok(data) = frame.into_data() else { continue };
                if text.len() + data.len() > settings.max_page_bytes() {
                    return Err(PageFailure::TooLarge);
                }
                text.extend_from_slice(&data);
            }
            Ok(None) => break,
            Ok(Some(Err(_))) | Err(_) => return Err(PageFailure::Closed),
        }
    }
    Page::read(text.freeze()).map_err(|error| PageFailure::Failed(unreadable(error)))
}

fn unreadable(cause: impl std::error::Error + Send + Sync + 'static) -> UpstreamError {
    UpstreamError::new(UpstreamErrorKind::Unreadable).with_cause(cause)
}
