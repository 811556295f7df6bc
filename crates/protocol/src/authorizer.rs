//! The seam that decides whether a caller may see a scope.

use std::fmt;
use std::time::Instant;

use crate::{BoxFuture, Principal, Scope, StreamError};

/// Decides whether a principal may read a scope. Asked before a feed is joined, at every cycle of a stream, and while it
/// lives if the host wants that.
///
/// A gateway calls it for every check of every stream, equal ones at the same time too, and bounds neither how many run at once
/// nor their order: only an authorizer knows which parts of a principal its answer depends on, and a
/// [host's own value](Principal::host_value) cannot be compared. One that asks a server should ask equal questions that are in
/// flight once, and hold back what is too many; `SubjectAccessReviewAuthorizer` of `krm-stream-upstream-kube` does both.
///
/// An authorizer that wraps another must pass on [`authorize_check`](Self::authorize_check) as well, or what the other
/// knows of triggers is lost.
pub trait Authorizer: Send + Sync {
    /// Resolves to `Ok` if `principal` may list and watch `scope`.
    ///
    /// # Errors
    /// The error the stream ends with: `FORBIDDEN` for a denial, `UPSTREAM_UNAVAILABLE` where the question could not
    /// be put. Its text is shown to a browser.
    ///
    /// # Cancel safety
    /// The future may be dropped at any time; a dropped check has no effect.
    fn authorize<'a>(
        &'a self,
        principal: &'a Principal,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<(), StreamError>>;

    /// As [`authorize`](Self::authorize), for an authorizer that answers from what it knows already, shares answers
    /// or lets checks wait for their turn. This is what a gateway calls.
    ///
    /// An answer that was asked for before [`Check::trigger`] must not be given. [`Check::sent`] must be called once the
    /// question is really put, or [`Check::sent_at`] where that was before: the time that a check may take at a cycle's begin
    /// is counted from when that is said, and what was asked for before a later trigger is asked again.
    ///
    /// By default the question is put at once, by [`authorize`](Self::authorize).
    ///
    /// # Errors
    /// As [`authorize`](Self::authorize).
    ///
    /// # Cancel safety
    /// The future may be dropped at any time; a dropped check has no effect.
    fn authorize_check<'a>(&'a self, check: Check<'a>) -> BoxFuture<'a, Result<(), StreamError>> {
        check.sent();
        self.authorize(check.principal(), check.scope())
    }

    /// Whether this authorizer is a boundary at all. A feed that a service identity opened for everyone is refused
    /// unless it is, or says by name that it is not.
    fn boundary(&self) -> Boundary {
        Boundary::Checked
    }
}

/// One question to an [`Authorizer`], and why it is asked.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use std::time::Instant;
///
/// use krm_stream_protocol::{Check, Principal, Scope, Subject};
///
/// let principal = Principal::new(Subject::new("ada")?);
/// let scope = Scope::builder("v1", "configmaps").namespace("app").build()?;
/// let is_sent = AtomicBool::new(false);
/// let mark = |_at: Option<Instant>| is_sent.store(true, Ordering::Relaxed);
/// let check = Check::new(&principal, &scope)
///     .triggered_at(Some(Instant::now()))
///     .on_sent(&mark);
/// check.sent();
/// assert!(is_sent.into_inner());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct Check<'a> {
    principal: &'a Principal,
    scope: &'a Scope,
    trigger: Option<Instant>,
    on_sent: Option<&'a (dyn Fn(Option<Instant>) + Send + Sync)>,
}

impl<'a> Check<'a> {
    /// Whether `principal` may list and watch `scope`, whenever that was last found out.
    pub const fn new(principal: &'a Principal, scope: &'a Scope) -> Self {
        Self {
            principal,
            scope,
            trigger: None,
            on_sent: None,
        }
    }

    /// Says since when there is a reason to ask.
    #[must_use]
    pub const fn triggered_at(mut self, trigger: Option<Instant>) -> Self {
        self.trigger = trigger;
        self
    }

    /// Says who wants to know that the question is put, and, if that was before, when.
    #[must_use]
    pub const fn on_sent(mut self, on_sent: &'a (dyn Fn(Option<Instant>) + Send + Sync)) -> Self {
        self.on_sent = Some(on_sent);
        self
    }

    /// Who is asked about.
    pub const fn principal(&self) -> &'a Principal {
        self.principal
    }

    /// What is asked about.
    pub const fn scope(&self) -> &'a Scope {
        self.scope
    }

    /// Since when there is a reason to ask: only an answer that was asked for then or later counts. `None` where any
    /// answer does that the authorizer still stands by.
    pub const fn trigger(&self) -> Option<Instant> {
        self.trigger
    }

    /// The question is put now. Whoever listens takes the first of several.
    pub fn sent(&self) {
        self.tell(None);
    }

    /// The question was put before, by another check that this one has joined.
    pub fn sent_at(&self, at: Instant) {
        self.tell(Some(at));
    }

    fn tell(&self, at: Option<Instant>) {
        if let Some(on_sent) = self.on_sent {
            on_sent(at);
        }
    }
}

impl fmt::Debug for Check<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check")
            .field("principal", &self.principal)
            .field("scope", &self.scope)
            .field("trigger", &self.trigger)
            .finish_non_exhaustive()
    }
}

/// What stands between a caller and the objects of a shared feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// The authorizer decides for each caller.
    Checked,
    /// It allows everything: fit only where the upstream acts as the caller.
    AllowsAll,
    /// It allows everything, and the host said that it means that for shared feeds too.
    DangerouslyAllowsAll,
}

/// Allows every caller every scope that the scope policy admits.
#[derive(Clone, Copy, Debug)]
pub struct AllowAll {
    boundary: Boundary,
}

impl AllowAll {
    /// For upstreams that act as the caller, so that the API server's RBAC stays the boundary. Refused together with
    /// a shared partition.
    ///
    /// Whether an upstream acts as the caller is known from its [`Partition`](crate::Partition) alone, and that is the
    /// host's word: nothing can check it. One that does not makes this allow everything the gateway's own identity may read.
    pub const fn where_upstream_acts_as_caller() -> Self {
        Self {
            boundary: Boundary::AllowsAll,
        }
    }

    /// For shared partitions too: **whoever reaches the gateway reads whatever its service identity can read** within
    /// the scope policy.
    pub const fn dangerously_for_shared_feeds() -> Self {
        Self {
            boundary: Boundary::DangerouslyAllowsAll,
        }
    }
}

impl Authorizer for AllowAll {
    fn authorize<'a>(&'a self, _: &'a Principal, _: &'a Scope) -> BoxFuture<'a, Result<(), StreamError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn boundary(&self) -> Boundary {
        self.boundary
    }
}
