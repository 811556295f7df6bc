//! What a consumer is told when something went wrong.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// The code of an `error` event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorCode {
    /// Not, or no longer, allowed. Terminal.
    Forbidden,
    /// The credential is missing, expired or rejected. Terminal.
    Unauthenticated,
    /// The scope is malformed, not on the allow-list or cannot be resolved. Terminal.
    ScopeInvalid,
    /// The API server cannot be reached right now. The connection closes and the client retries.
    UpstreamUnavailable,
    /// Continuity was lost; a new cycle follows on this connection.
    ResyncRequired,
    /// This reader cannot be served. Terminal.
    SlowConsumer,
    /// Anything else, terminal or not.
    Internal,
}

impl ErrorCode {
    /// Every code, in the order of the protocol's table.
    pub const ALL: [Self; 7] = [
        Self::Forbidden,
        Self::Unauthenticated,
        Self::ScopeInvalid,
        Self::UpstreamUnavailable,
        Self::ResyncRequired,
        Self::SlowConsumer,
        Self::Internal,
    ];

    /// The code as it stands on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Forbidden => "FORBIDDEN",
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::ScopeInvalid => "SCOPE_INVALID",
            Self::UpstreamUnavailable => "UPSTREAM_UNAVAILABLE",
            Self::ResyncRequired => "RESYNC_REQUIRED",
            Self::SlowConsumer => "SLOW_CONSUMER",
            Self::Internal => "INTERNAL",
        }
    }

    /// Whether an error of this code is terminal unless it says otherwise.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Forbidden
            | Self::Unauthenticated
            | Self::ScopeInvalid
            | Self::SlowConsumer
            | Self::Internal => true,
            Self::UpstreamUnavailable | Self::ResyncRequired => false,
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error as a consumer sees it: a code, a message chosen for a browser, and when to come back.
///
/// The message is shown to people. It never carries addresses, URLs or upstream text (a 403's own text, where the
/// upstream acts as the caller, is the one exception); the raw cause goes to [`Diagnostics`](crate::Diagnostics).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct StreamError {
    code: ErrorCode,
    message: Cow<'static, str>,
    terminal: bool,
    retry_after: Option<Duration>,
}

impl StreamError {
    /// An error of this code; terminal as the code says.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            terminal: code.is_terminal(),
            retry_after: None,
        }
    }

    /// `FORBIDDEN`.
    pub fn forbidden(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::Forbidden, message)
    }

    /// `UNAUTHENTICATED`.
    pub fn unauthenticated(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::Unauthenticated, message)
    }

    /// `SCOPE_INVALID`.
    pub fn scope_invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::ScopeInvalid, message)
    }

    /// `UPSTREAM_UNAVAILABLE`: the client comes back, after `retry_after` if given.
    pub fn unavailable(message: impl Into<Cow<'static, str>>, retry_after: Option<Duration>) -> Self {
        Self {
            retry_after,
            ..Self::new(ErrorCode::UpstreamUnavailable, message)
        }
    }

    /// `RESYNC_REQUIRED`: a new cycle follows on the same connection.
    pub fn resync(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::ResyncRequired, message)
    }

    /// `INTERNAL`, terminal.
    pub fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::Internal, message)
    }

    /// `INTERNAL`, not terminal: the client comes back, after `retry_after` if given.
    pub fn internal_passing(message: impl Into<Cow<'static, str>>, retry_after: Option<Duration>) -> Self {
        Self {
            terminal: false,
            retry_after,
            ..Self::new(ErrorCode::Internal, message)
        }
    }

    /// The code.
    pub const fn code(&self) -> ErrorCode {
        self.code
    }

    /// The sentence for people.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the consumer must not come back.
    pub const fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// How long the consumer waits before it comes back; `None` leaves it to its own backoff.
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}
