//! The seam to an API server: sessions, what they yield, and how they end.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::{BoxFuture, Object, ResourceVersion, Scope, SessionEndReason, StreamError};

/// One API server, as one identity. Opens watch sessions.
pub trait Upstream: Send + Sync + fmt::Debug {
    /// Opens one session on `scope`. Resolves when the response headers are there.
    ///
    /// # Errors
    /// [`OpenError::Expired`] where the version is too old, [`OpenError::Failed`] for all else.
    ///
    /// # Cancel safety
    /// Dropping the future abandons the request.
    fn open<'a>(
        &'a self,
        scope: &'a Scope,
        start: Start,
    ) -> BoxFuture<'a, Result<Box<dyn Session>, OpenError>>;
}

/// Where a session starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// With a complete snapshot.
    Fresh,
    /// After this version, without a snapshot.
    After(ResourceVersion),
}

/// One open watch session: items until exactly one [`SessionItem::End`]. Dropping it closes the connection's stream.
pub trait Session: Send {
    /// Polls for the next item. After the end it must not be polled again.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<SessionItem>;

    /// The `timeoutSeconds` that the watch request asked for: an end at that age is routine.
    fn asked_timeout(&self) -> Option<Duration>;
}

/// What a session yields.
#[derive(Debug)]
pub enum SessionItem {
    /// Something arrived.
    Event(WatchEvent),
    /// The session is over.
    End(SessionEnd),
}

/// What arrived on a session.
#[derive(Clone, Debug)]
pub enum WatchEvent {
    /// An object is in the scope.
    Added(Object),
    /// An object changed.
    Modified(Object),
    /// An object left the scope; its last state.
    Deleted(Object),
    /// The API server vouches for everything up to this version.
    Bookmark {
        /// `metadata.resourceVersion` of the bookmark.
        resource_version: Option<ResourceVersion>,
        /// Whether it is the boundary: the snapshot is complete. See [KEP-3157].
        ///
        /// [KEP-3157]: https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/3157-watch-list
        initial_events_end: bool,
    },
    /// The snapshot is being read again from its start: what earlier attempts had and this one lacks is gone.
    SnapshotRestarted,
    /// A line of an unknown type or without an object: alive, and nothing more.
    Unknown,
}

/// How a session ended.
#[derive(Clone, Debug)]
pub enum SessionEnd {
    /// Every end of transport, clean or not: timeout, EOF, reset, GOAWAY, our own silence timer.
    Closed,
    /// 410 in any form.
    Expired,
    /// What the server said, or what could not be read.
    Failed(UpstreamError),
    /// Our own wish.
    Teardown,
}

impl SessionEnd {
    /// The end as an observation's label.
    pub const fn reason(&self) -> SessionEndReason {
        match self {
            Self::Closed => SessionEndReason::Closed,
            Self::Expired => SessionEndReason::Expired,
            Self::Failed(_) => SessionEndReason::Error,
            Self::Teardown => SessionEndReason::Teardown,
        }
    }
}

/// Why a session could not be opened.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpenError {
    /// The version is too old: 410.
    #[error("the resource version has expired")]
    Expired,
    /// Everything else.
    #[error(transparent)]
    Failed(#[from] UpstreamError),
}

/// What an API server said, or why it cannot be understood or reached.
///
/// The cause is for [`Diagnostics`](crate::Diagnostics) alone.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{kind}")]
pub struct UpstreamError {
    kind: UpstreamErrorKind,
    retry_after: Option<Duration>,
    #[source]
    cause: Option<Arc<dyn Error + Send + Sync>>,
}

/// The class of an [`UpstreamError`], by status code and reason, never by text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamErrorKind {
    /// 403. The message is Kubernetes' own.
    Forbidden {
        /// Kubernetes' own text, at most 1 KiB.
        message: Option<Box<str>>,
    },
    /// 401.
    Unauthenticated,
    /// 404: the resource, its group or its version does not exist.
    NotFound,
    /// 408, 429, 5xx, unreachable, TLS failure, timeout.
    Unavailable,
    /// 504 `ResourceVersionTooLarge`: the API server has not seen the version yet. It must be left aside.
    VersionTooLarge,
    /// 400, 422 and any other refusal of our own request.
    Rejected,
    /// A line over the limit of bytes.
    LineTooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// What arrived is not the JSON of a watch or a list.
    Unreadable,
    /// An object that is not in the scope was sent.
    OutOfScope,
}

impl fmt::Display for UpstreamErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forbidden { .. } => f.write_str("the api server refused: forbidden"),
            Self::Unauthenticated => f.write_str("the api server rejected the credential"),
            Self::NotFound => f.write_str("the api server does not serve this resource"),
            Self::Unavailable => f.write_str("the api server is unavailable"),
            Self::VersionTooLarge => f.write_str("the api server has not seen this resource version yet"),
            Self::Rejected => f.write_str("the api server rejected the request"),
            Self::LineTooLong { limit } => {
                write!(f, "a watch line is longer than the limit of {limit} bytes")
            }
            Self::Unreadable => f.write_str("the api server sent what cannot be read"),
            Self::OutOfScope => f.write_str("the api server sent an object outside the scope"),
        }
    }
}

/// Whose identity was refused when an API server refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActsAs {
    /// The caller's: Kubernetes' text is about them and may be shown.
    Caller,
    /// A service's: the text would name that identity and blame the caller.
    Service,
}

/// The most of Kubernetes' own text of a 403 that is passed on, in bytes.
const FORBIDDEN_MESSAGE_BYTES: usize = 1024;

impl UpstreamError {
    /// An error of this kind, without a cause.
    pub fn new(kind: UpstreamErrorKind) -> Self {
        Self {
            kind,
            retry_after: None,
            cause: None,
        }
    }

    /// A 403 with Kubernetes' own text, cut to 1 KiB at a character boundary.
    pub fn forbidden(message: Option<&str>) -> Self {
        let message = message.map(|text| text[..text.floor_char_boundary(FORBIDDEN_MESSAGE_BYTES)].into());
        Self::new(UpstreamErrorKind::Forbidden { message })
    }

    /// Adds how long the API server asked to wait.
    #[must_use]
    pub fn with_retry_after(mut self, retry_after: Option<Duration>) -> Self {
        self.retry_after = retry_after;
        self
    }

    /// Adds the raw cause, for diagnostics.
    #[must_use]
    pub fn with_cause(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.cause = Some(Arc::from(cause.into()));
        self
    }

    /// The class.
    pub const fn kind(&self) -> &UpstreamErrorKind {
        &self.kind
    }

    /// How long the API server asked to wait.
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The error that a browser is shown.
    pub fn to_stream_error(&self, acts_as: ActsAs) -> StreamError {
        match (&self.kind, acts_as) {
            (
                UpstreamErrorKind::Forbidden {
                    message: Some(message),
                },
                ActsAs::Caller,
            ) => StreamError::forbidden(message.to_string()),
            (UpstreamErrorKind::Forbidden { .. }, ActsAs::Caller) => {
                StreamError::forbidden("the API server does not allow you to list and watch this")
            }
            (UpstreamErrorKind::Forbidden { .. }, ActsAs::Service) => {
                StreamError::forbidden("the gateway is not allowed to read this scope; ask its operator")
            }
            (UpstreamErrorKind::Unauthenticated, ActsAs::Caller) => {
                StreamError::unauthenticated("the API server rejected your credential; sign in again")
            }
            (UpstreamErrorKind::Unauthenticated, ActsAs::Service) => StreamError::unauthenticated(
                "the API server rejected the gateway's credential; ask its operator",
            ),
            (UpstreamErrorKind::NotFound, _) => {
                StreamError::scope_invalid("the API server does not serve this group, version and resource")
            }
            (UpstreamErrorKind::Unavailable | UpstreamErrorKind::VersionTooLarge, _) => {
                StreamError::unavailable("the API server cannot be reached right now", self.retry_after)
            }
            (UpstreamErrorKind::Rejected, _) => {
                StreamError::internal("the API server rejected the gateway's request")
            }
            (UpstreamErrorKind::LineTooLong { limit }, _) => StreamError::internal(format!(
                "an object of this scope is larger than the gateway's limit max_line_bytes = {limit}"
            )),
            (UpstreamErrorKind::Unreadable, _) => {
                StreamError::internal("the API server sent something that the gateway cannot read")
            }
            (UpstreamErrorKind::OutOfScope, _) => {
                StreamError::internal("the API server sent an object outside the scope")
            }
        }
    }
}
