//! The streams of a gateway: who is there, how many may be, and what each is told from outside.
//!
//! # Policy
//! - A stream registers when it begins, so that nothing that is said to all streams passes it by.
//! - It counts against the limit in all from then on, and against its caller's from when it is known who calls, until it is
//!   gone: one whose last event is not taken yet is still there.
//! - What is said to a stream is left in its [`Member`], and the stream's task is woken.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::time::Duration;

use krm_stream_protocol::{Observation, Principal, ProjectionName, Scope, StreamError, Subject};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::Host;
use super::jitter::Jitter;
use super::limits::Limits;

/// A caller and what for.
pub(crate) struct Request {
    pub(crate) principal: Principal,
    pub(crate) scope: Scope,
    pub(crate) projection: Option<ProjectionName>,
}

/// The streams of a gateway.
pub(crate) struct Streams {
    limits: Limits,
    jitter: Jitter,
    state: Mutex<State>,
    /// Told when the last of them is gone.
    vacated: Notify,
}

#[derive(Default)]
struct State {
    members: HashMap<u64, Arc<Member>>,
    /// How many of each caller are known, where that is limited.
    by_caller: HashMap<Subject, usize>,
    latest_recheck: Option<Instant>,
    drain: Option<Drain>,
}

/// The gateway is shutting down.
#[derive(Clone, Copy)]
struct Drain {
    spread: Duration,
}

/// A stream as others see it.
pub(crate) struct Member {
    id: u64,
    request: OnceLock<Arc<Request>>,
    /// Whether the mailbox holds anything new: looked at more often than the mailbox is.
    has_news: AtomicBool,
    mailbox: Mutex<Mailbox>,
}

#[derive(Default)]
struct Mailbox {
    news: News,
    latest_recheck: Option<Instant>,
    waker: Option<Waker>,
}

/// What a stream is told from outside.
#[derive(Debug, Default)]
pub(crate) enum News {
    /// Nothing.
    #[default]
    None,
    /// Its caller's right is in doubt since then.
    Recheck(Instant),
    /// It is to end.
    End {
        error: StreamError,
        /// Whether its caller's right is in doubt too, since before or after it was told so: what was written before must not
        /// go out unchecked.
        is_in_doubt: bool,
    },
}

impl News {
    /// What there is to find once it is told `more` as well. An end outranks a check, and neither undoes the doubt.
    fn and(self, more: Self) -> Self {
        match (self, more) {
            (known, Self::None) => known,
            (Self::None, more) | (Self::Recheck(_), more @ Self::Recheck(_)) => more,
            (Self::Recheck(_), Self::End { error, .. }) | (Self::End { error, .. }, Self::Recheck(_)) => {
                Self::End {
                    error,
                    is_in_doubt: true,
                }
            }
            (
                Self::End { error, is_in_doubt },
                Self::End {
                    is_in_doubt: is_more, ..
                },
            ) => Self::End {
                error,
                is_in_doubt: is_in_doubt || is_more,
            },
        }
    }
}

/// A stream's place among those of its gateway. Dropping it is being gone.
pub(crate) struct Place {
    host: Arc<Host>,
    member: Arc<Member>,
}

impl Streams {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            jitter: Jitter::new(),
            state: Mutex::default(),
            vacated: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn jitter(&self) -> &Jitter {
        &self.jitter
    }

    /// When streams were last told to be checked, whichever they were: what was asked for before may be out of date.
    pub(super) fn latest_recheck(&self) -> Option<Instant> {
        self.state().latest_recheck
    }

    /// Has streams checked from now on, and returns those that may be meant.
    pub(super) fn begin_recheck(&self) -> (Instant, Vec<Arc<Member>>) {
        let mut state = self.state();
        let now = Instant::now();
        state.latest_recheck = Some(now);
        (now, state.members.values().map(Arc::clone).collect())
    }

    /// Ends all streams and admits no more; the first to call decides how far clients are spread.
    pub(super) fn begin_drain(&self, spread: Duration) {
        let mut state = self.state();
        let drain = *state.drain.get_or_insert(Drain { spread });
        let members: Vec<_> = state.members.values().map(Arc::clone).collect();
        drop(state);
        for member in members {
            member.tell(News::End {
                error: drain.refusal(&self.jitter),
                is_in_doubt: false,
            });
        }
        self.vacated.notify_waiters();
    }

    /// Resolves when no stream is left and none can come.
    pub(super) async fn drained(&self) {
        loop {
            let vacated = self.vacated.notified();
            let is_drained = {
                let state = self.state();
                state.drain.is_some() && state.members.is_empty()
            };
            if is_drained {
                return;
            }
            vacated.await;
        }
    }

    fn enter(&self, request: &Request) -> Result<(), StreamError> {
        let mut state = self.state();
        if let Some(drain) = state.drain {
            return Err(drain.refusal(&self.jitter));
        }
        let caller = request.principal.subject();
        let of_caller = state.by_caller.get(caller).copied().unwrap_or_default();
        self.limits.admit_of_caller(of_caller, &self.jitter)?;
        if self.limits.has_per_caller() {
            match state.by_caller.get_mut(caller) {
                Some(count) => *count += 1,
                None => {
                    state.by_caller.insert(caller.clone(), 1);
                }
            }
        }
        Ok(())
    }

    fn leave(&self, member: &Member) {
        let mut state = self.state();
        state.members.remove(&member.id);
        if let Some(request) = member.request() {
            let caller = request.principal.subject();
            if let Some(count) = state.by_caller.get_mut(caller) {
                *count -= 1;
                if *count == 0 {
                    state.by_caller.remove(caller);
                }
            }
        }
        if state.members.is_empty() {
            state.members.shrink_to_fit();
            drop(state);
            self.vacated.notify_waiters();
        }
    }
}

impl Drain {
    /// Clients that all came back at once would be a storm on whatever takes over.
    fn refusal(self, jitter: &Jitter) -> StreamError {
        const SHORTEST: Duration = Duration::from_millis(500);
        StreamError::unavailable(
            "the gateway is shutting down",
            Some(SHORTEST.saturating_add(jitter.within(self.spread))),
        )
    }
}

impl Member {
    /// Who calls and what for, once that is known.
    pub(super) fn request(&self) -> Option<&Arc<Request>> {
        self.request.get()
    }

    /// Leaves this for the stream to find, besides what it has not found yet, and wakes it.
    pub(super) fn tell(&self, news: News) {
        let waker = {
            let mut mailbox = self.mailbox();
            if let News::Recheck(at) = news {
                mailbox.latest_recheck = Some(at);
            }
            mailbox.news = std::mem::take(&mut mailbox.news).and(news);
            self.has_news.store(true, Ordering::Release);
            mailbox.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// When this stream was last told to be checked.
    pub(super) fn latest_recheck(&self) -> Option<Instant> {
        self.mailbox().latest_recheck
    }

    fn mailbox(&self) -> MutexGuard<'_, Mailbox> {
        self.mailbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Registers a stream.
    ///
    /// # Errors
    /// Where the gateway is shutting down, or there are too many streams.
    pub(crate) fn register(host: &Arc<Host>) -> Result<Self, StreamError> {
        let member = Arc::new(Member {
            id: host.feeds.next_stream(),
            request: OnceLock::new(),
            has_news: AtomicBool::new(false),
            mailbox: Mutex::default(),
        });
        let mut state = host.streams.state();
        if let Some(drain) = state.drain {
            return Err(drain.refusal(&host.streams.jitter));
        }
        host.streams
            .limits
            .admit(state.members.len(), &host.streams.jitter)?;
        state.members.insert(member.id, Arc::clone(&member));
        drop(state);
        Ok(Self {
            host: Arc::clone(host),
            member,
        })
    }

    /// The caller is known: the stream counts as theirs from now on, and is observed.
    ///
    /// # Errors
    /// Where the gateway is shutting down, or the caller has too many streams.
    pub(crate) fn enter(&self, request: Request) -> Result<Arc<Request>, StreamError> {
        self.host.streams.enter(&request)?;
        let request = Arc::clone(self.member.request.get_or_init(|| Arc::new(request)));
        self.host.observing.observe(&Observation::StreamOpened);
        Ok(request)
    }

    pub(crate) fn id(&self) -> u64 {
        self.member.id
    }

    pub(crate) fn member(&self) -> &Arc<Member> {
        &self.member
    }

    pub(crate) fn has_news(&self) -> bool {
        self.member.has_news.load(Ordering::Acquire)
    }

    /// What the stream was told since the last time.
    pub(crate) fn news(&self) -> News {
        if !self.has_news() {
            return News::None;
        }
        let mut mailbox = self.member.mailbox();
        self.member.has_news.store(false, Ordering::Release);
        std::mem::take(&mut mailbox.news)
    }

    /// Has this task woken when there is news. It must look once more after this.
    pub(crate) fn register_waker(&self, waker: &Waker) {
        let mut mailbox = self.member.mailbox();
        match &mut mailbox.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.host.streams.leave(&self.member);
        if self.member.request().is_some() {
            self.host.observing.observe(&Observation::StreamClosed);
        }
    }
}
