//! Asks the API server whether a caller may read a scope: [`SubjectAccessReview`].
//!
//! [`SubjectAccessReview`]: https://kubernetes.io/docs/reference/kubernetes-api/authorization-resources/subject-access-review-v1/

mod checks;
mod decisions;
mod question;
mod review;

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use krm_stream_protocol::{
    Authorizer, BoxFuture, Check, Diagnosing, Diagnostics, Principal, Scope, StreamError, Subject, Target,
    UpstreamError, UpstreamErrorKind,
};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::status::Class;
use crate::transport::{AskError, Body};
use crate::upstream::KubeUpstream;
use checks::{Answer, Checks, Sent};
use decisions::{Decided, Decisions};
use question::Question;
use review::{Decision, Review};

/// Allows what the API server's own authorizer allows: a caller must have `list` and `watch` on the scope.
///
/// The API server is asked as the identity of the configuration, which needs the right to create
/// `subjectaccessreviews` (the cluster role `system:auth-delegator` has it). Asking for both verbs is one *check*.
///
/// - **Equal checks in flight are asked once**: those of the same complete subject, request and target. Each caller may
///   leave; the last one to leave cancels the check.
/// - **At most 32 checks are in flight per target**, in the order in which they were wanted.
/// - **Nothing is kept** once it is answered, unless the host asks for a
///   [decision cache](Self::with_decision_cache).
///
/// A clone shares the checks in flight and the decisions.
#[derive(Clone)]
pub struct SubjectAccessReviewAuthorizer {
    targets: BTreeMap<Target, Reviewer>,
    diagnosing: Diagnosing,
    checks: Checks,
}

/// The API server that answers for a target.
#[derive(Clone)]
struct Reviewer {
    upstream: KubeUpstream,
    /// First come, first served.
    permits: Arc<Semaphore>,
}

/// Both are needed to read a snapshot and to follow it.
const VERBS: [&str; 2] = ["list", "watch"];
/// How many checks an API server is asked at once: a restart of it must not become a storm of reviews.
const CHECKS_IN_FLIGHT: usize = 32;
const PATH: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
/// The largest answer to a review, in bytes.
const ANSWER_BYTES: usize = 256 * 1024;
/// The longest wait for the body of an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
const OPERATION: &str = "subject access review";

const DENIED: &str = "you are not allowed to list and watch this";
const INCOMPLETE: &str = "whether you may read this could not be established, so it is refused";
const UNREACHABLE: &str = "whether you may read this cannot be checked right now";
const NOT_ENTITLED: &str = "the gateway is not allowed to check access; ask its operator";
const UNKNOWN_TARGET: &str = "access to this target cannot be checked";

/// What the API server said, or did not say. For diagnostics.
#[derive(Debug, thiserror::Error)]
enum ReviewError {
    #[error("the review of {verb} was denied: {reason}")]
    Denied { verb: &'static str, reason: Box<str> },
    #[error("the review of {verb} came back without a decision: {reason}")]
    Incomplete { verb: &'static str, reason: Box<str> },
    #[error("the review could not be written")]
    Unwritable(#[source] serde_json::Error),
    #[error("the answer to the review broke off")]
    BrokeOff,
    #[error("no upstream is known for the target")]
    UnknownTarget,
    #[error(transparent)]
    Upstream(UpstreamError),
    #[error("the review was answered with 410")]
    Gone,
}

impl SubjectAccessReviewAuthorizer {
    /// Asks `upstream` about the scopes of `target`, and refuses those of any other.
    pub fn new(target: Target, upstream: KubeUpstream) -> Self {
        Self {
            targets: BTreeMap::from([(target, Reviewer::new(upstream))]),
            diagnosing: Diagnosing::default(),
            checks: Checks::new(Decisions::none()),
        }
    }

    /// Asks `upstream` about the scopes of one more target. One cluster's rules never decide about another's objects.
    #[must_use]
    pub fn with_target(mut self, target: Target, upstream: KubeUpstream) -> Self {
        self.targets.insert(target, Reviewer::new(upstream));
        self
    }

    /// Reports why a review was denied or failed: the reasons name roles and bindings, so a browser never sees them.
    /// What is asked once is reported once, however many callers waited for it.
    #[must_use]
    pub fn with_diagnostics(mut self, diagnostics: Arc<dyn Diagnostics>) -> Self {
        self.diagnosing = Diagnosing::with(diagnostics);
        self
    }

    /// Keeps what was decided for `lifetime`, counted from when it was asked, and at most `most` decisions, the oldest
    /// given up first. Off unless called; a lifetime of zero turns it off again.
    ///
    /// Only "allowed" and "denied" are kept, under the complete subject (user, uid, groups, extra), the request and the
    /// target; never that a question could not be answered. **A right that is taken away, or given, takes effect that
    /// much later**: with the cache, access is withdrawn within `reauthorization_interval`, this lifetime and
    /// `reauthorization_timeout` together.
    #[must_use]
    pub fn with_decision_cache(mut self, lifetime: Duration, most: NonZeroUsize) -> Self {
        self.checks = Checks::new(Decisions::kept(lifetime, most));
        self
    }

    /// As [`authorize`](Authorizer::authorize), for a reason to ask that arose at `trigger`: it neither joins a check
    /// that was sent before, nor uses a decision that was asked for before, and it makes the cache forget such a one.
    ///
    /// # Errors
    /// As [`authorize`](Authorizer::authorize).
    ///
    /// # Cancel safety
    /// The future may be dropped at any time; a check that others wait for goes on.
    pub async fn authorize_since(
        &self,
        trigger: Instant,
        principal: &Principal,
        scope: &Scope,
    ) -> Result<(), StreamError> {
        let check = Check::new(principal, scope).triggered_at(Some(trigger.into_std()));
        self.check(check).await
    }

    async fn check(&self, check: Check<'_>) -> Result<(), StreamError> {
        let scope = check.scope();
        let Some(reviewer) = self.targets.get(scope.target()) else {
            return Err(refuse(&self.diagnosing, scope, &ReviewError::UnknownTarget));
        };
        let question = Arc::new(Question::new(check.principal().subject(), scope));
        let trigger = check.trigger().map(Instant::from_std);
        let answer = self.checks.answer(&question, trigger, |place| {
            let (reviewer, diagnosing) = (reviewer.clone(), self.diagnosing.clone());
            let (question, scope) = (Arc::clone(&question), scope.clone());
            Box::pin(async move {
                let asked = reviewer.ask(place.sent(), question, scope.clone()).await;
                if let Some(decided) = Decided::by(&asked) {
                    place.keep(decided);
                }
                asked.map_err(|cause| refuse(&diagnosing, &scope, &cause))
            })
        });
        match answer {
            Answer::Decided(Decided::Allowed) => Ok(()),
            Answer::Decided(Decided::Denied) => Err(StreamError::forbidden(DENIED)),
            Answer::InFlight(in_flight) => in_flight.answer(|sent| check.sent_at(sent.into_std())).await,
        }
    }
}

impl Reviewer {
    fn new(upstream: KubeUpstream) -> Self {
        Self {
            upstream,
            permits: Arc::new(Semaphore::new(CHECKS_IN_FLIGHT)),
        }
    }

    /// Asks when it is this check's turn, in a task: a stream that is not polled, since its reader takes nothing, would
    /// keep its place among those in flight for as long as that lasts. Dropping the future ends the task.
    async fn ask(&self, sent: Sent, question: Arc<Question>, scope: Scope) -> Result<(), ReviewError> {
        let reviewer = self.clone();
        let mut task = JoinSet::new();
        task.spawn(
            async move {
                // It is never closed.
                let _permit = reviewer.permits.acquire().await;
                sent.mark();
                ask_all(&reviewer.upstream, question.subject(), &scope).await
            }
            .in_current_span(),
        );
        match task.join_next().await {
            Some(Ok(answer)) => answer,
            // The runtime is going away, or the stack below panicked.
            Some(Err(_)) | None => Err(ReviewError::BrokeOff),
        }
    }
}

fn refuse(diagnosing: &Diagnosing, scope: &Scope, cause: &ReviewError) -> StreamError {
    diagnosing.report(OPERATION, Some(scope), cause);
    cause.to_stream_error()
}

impl fmt::Debug for SubjectAccessReviewAuthorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubjectAccessReviewAuthorizer")
            .field("targets", &self.targets.keys())
            .field("checks", &self.checks)
            .finish_non_exhaustive()
    }
}

impl Authorizer for SubjectAccessReviewAuthorizer {
    fn authorize<'a>(
        &'a self,
        principal: &'a Principal,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        Box::pin(self.check(Check::new(principal, scope)))
    }

    fn authorize_check<'a>(&'a self, check: Check<'a>) -> BoxFuture<'a, Result<(), StreamError>> {
        Box::pin(self.check(check))
    }
}

impl Decided {
    /// What this answer decides. A failure decides nothing, so that the next to ask may have more luck.
    const fn by(answer: &Result<(), ReviewError>) -> Option<Self> {
        match answer {
            Ok(()) => Some(Self::Allowed),
            Err(ReviewError::Denied { .. }) => Some(Self::Denied),
            Err(
                ReviewError::Incomplete { .. }
                | ReviewError::Unwritable(_)
                | ReviewError::BrokeOff
                | ReviewError::UnknownTarget
                | ReviewError::Upstream(_)
                | ReviewError::Gone,
            ) => None,
        }
    }
}

/// One check: whether `subject` has every verb.
async fn ask_all(upstream: &KubeUpstream, subject: &Subject, scope: &Scope) -> Result<(), ReviewError> {
    for verb in VERBS {
        match review(upstream, subject, verb, scope).await? {
            Decision::Allowed => {}
            Decision::Denied { reason } => return Err(ReviewError::Denied { verb, reason }),
            Decision::Incomplete { reason } => return Err(ReviewError::Incomplete { verb, reason }),
        }
    }
    Ok(())
}

async fn review(
    upstream: &KubeUpstream,
    subject: &Subject,
    verb: &'static str,
    scope: &Scope,
) -> Result<Decision, ReviewError> {
    let question =
        serde_json::to_vec(&Review::question(subject, verb, scope)).map_err(ReviewError::Unwritable)?;
    let response = upstream.post_as_itself(PATH, Bytes::from(question)).await?;
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, read_answer(response.into_body())).await;
    let text = answer.ok().flatten().ok_or(ReviewError::BrokeOff)?;
    Ok(Decision::read(&text))
}

/// The whole answer; `None` if it breaks off or is too large.
async fn read_answer(mut body: Body) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.ok()?.into_data() {
            text.extend_from_slice(&data);
        }
        if text.len() > ANSWER_BYTES {
            return None;
        }
    }
    Some(text)
}

impl From<AskError> for ReviewError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::NoAnswer(error) | AskError::Odd(error) => Self::Upstream(error),
            AskError::Refused(refused) => match refused.class {
                Class::Expired => Self::Gone,
                Class::Error(error) => Self::Upstream(error),
            },
        }
    }
}

impl ReviewError {
    /// What a browser is told: fixed sentences, since the cause is about the gateway or names the cluster's rules.
    fn to_stream_error(&self) -> StreamError {
        match self {
            Self::Denied { .. } => StreamError::forbidden(DENIED),
            Self::Incomplete { .. } => StreamError::forbidden(INCOMPLETE),
            Self::UnknownTarget => StreamError::forbidden(UNKNOWN_TARGET),
            Self::Unwritable(_) => StreamError::internal(NOT_ENTITLED),
            Self::BrokeOff | Self::Gone => StreamError::unavailable(UNREACHABLE, None),
            Self::Upstream(error) => match error.kind() {
                UpstreamErrorKind::Unavailable | UpstreamErrorKind::VersionTooLarge => {
                    StreamError::unavailable(UNREACHABLE, error.retry_after())
                }
                UpstreamErrorKind::Forbidden { .. }
                | UpstreamErrorKind::Unauthenticated
                | UpstreamErrorKind::NotFound
                | UpstreamErrorKind::Rejected
                | UpstreamErrorKind::LineTooLong { .. }
                | UpstreamErrorKind::Unreadable
                | UpstreamErrorKind::OutOfScope => StreamError::internal(NOT_ENTITLED),
            },
        }
    }
}
