//! Asks the API server whether a caller may read a scope: [`SubjectAccessReview`].
//!
//! [`SubjectAccessReview`]: https://kubernetes.io/docs/reference/kubernetes-api/authorization-resources/subject-access-review-v1/

mod review;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use krm_stream_protocol::{
    Authorizer, BoxFuture, Diagnostic, Diagnostics, Principal, Scope, StreamError, Subject, Target,
    UpstreamError, UpstreamErrorKind,
};

use crate::status::Class;
use crate::transport::{AskError, Body};
use crate::upstream::KubeUpstream;
use review::{Decision, Review};

/// Allows what the API server's own authorizer allows: a caller must have `list` and `watch` on the scope.
///
/// The API server is asked as the identity of the configuration, which needs the right to create
/// `subjectaccessreviews` (the cluster role `system:auth-delegator` has it). Nothing is cached: each check is asked.
#[derive(Clone)]
pub struct SubjectAccessReviewAuthorizer {
    targets: BTreeMap<Target, KubeUpstream>,
    diagnostics: Option<Arc<dyn Diagnostics>>,
}

/// Both are needed to read a snapshot and to follow it.
const VERBS: [&str; 2] = ["list", "watch"];
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
            targets: BTreeMap::from([(target, upstream)]),
            diagnostics: None,
        }
    }

    /// Asks `upstream` about the scopes of one more target. One cluster's rules never decide about another's objects.
    #[must_use]
    pub fn with_target(mut self, target: Target, upstream: KubeUpstream) -> Self {
        self.targets.insert(target, upstream);
        self
    }

    /// Reports why a review was denied or failed: the reasons name roles and bindings, so a browser never sees them.
    #[must_use]
    pub fn with_diagnostics(mut self, diagnostics: Arc<dyn Diagnostics>) -> Self {
        self.diagnostics = Some(diagnostics);
        self
    }

    async fn check(&self, subject: &Subject, scope: &Scope) -> Result<(), StreamError> {
        let Some(upstream) = self.targets.get(scope.target()) else {
            return Err(self.refuse(scope, &ReviewError::UnknownTarget));
        };
        for verb in VERBS {
            match review(upstream, subject, verb, scope).await {
                Ok(Decision::Allowed) => {}
                Ok(Decision::Denied { reason }) => {
                    return Err(self.refuse(scope, &ReviewError::Denied { verb, reason }));
                }
                Ok(Decision::Incomplete { reason }) => {
                    return Err(self.refuse(scope, &ReviewError::Incomplete { verb, reason }));
                }
                Err(error) => return Err(self.refuse(scope, &error)),
            }
        }
        Ok(())
    }

    fn refuse(&self, scope: &Scope, cause: &ReviewError) -> StreamError {
        if let Some(diagnostics) = &self.diagnostics {
            diagnostics.report(&Diagnostic {
                operation: OPERATION,
                scope: Some(scope),
                cause,
            });
        }
        cause.to_stream_error()
    }
}

impl fmt::Debug for SubjectAccessReviewAuthorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubjectAccessReviewAuthorizer")
            .field("targets", &self.targets)
            .finish_non_exhaustive()
    }
}

impl Authorizer for SubjectAccessReviewAuthorizer {
    fn authorize<'a>(
        &'a self,
        principal: &'a Principal,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        Box::pin(self.check(principal.subject(), scope))
    }
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
