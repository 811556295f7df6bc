//! A Kubernetes [`Status`] as it really arrives, and the class of error that it is.
//!
//! [`Status`]: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/

use std::time::Duration;

use krm_stream_protocol::json;
use krm_stream_protocol::{UpstreamError, UpstreamErrorKind};

/// The parts of a `Status` that matter, each absent where it is missing or of another type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) code: Option<u16>,
    pub(crate) reason: Option<Box<str>>,
    pub(crate) message: Option<Box<str>>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) causes: Vec<Cause>,
    /// `details.kind`: the resource that a refusal is about.
    pub(crate) about: Option<Box<str>>,
}

/// One entry of `details.causes`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cause {
    pub(crate) reason: Option<Box<str>>,
    pub(crate) message: Option<Box<str>>,
    pub(crate) field: Option<Box<str>>,
}

/// What an answer that is no success means for a session.
#[derive(Debug)]
pub(crate) enum Class {
    /// 410 in any form.
    Expired,
    /// Everything else.
    Error(UpstreamError),
}

/// What the API server said, for diagnostics.
#[derive(Debug, thiserror::Error)]
#[error("the api server answered {code} {reason}: {message}")]
struct ServerSaid {
    code: u16,
    reason: Box<str>,
    message: Box<str>,
}

/// The most of a message that is kept, in bytes.
const MESSAGE_BYTES: usize = 1024;
/// The parameters of a streaming list that an API server may refuse.
const STREAMING_LIST_PARAMETERS: [&str; 2] = ["sendInitialEvents", "resourceVersionMatch"];

impl Status {
    /// Reads what can be read of `text`; a text that is no `Status` gives an empty one.
    pub(crate) fn read(text: &[u8]) -> Self {
        let mut status = Self::default();
        for member in json::members(text) {
            if member.key_is("code") {
                status.code = number(member.value);
            } else if member.key_is("reason") {
                status.reason = text_of(member.value);
            } else if member.key_is("message") {
                status.message = text_of(member.value);
            } else if member.key_is("details") {
                status.read_details(member.value);
            }
        }
        status
    }

    fn read_details(&mut self, details: &[u8]) {
        for member in json::members(details) {
            if member.key_is("retryAfterSeconds") {
                self.retry_after = number(member.value).map(Duration::from_secs);
            } else if member.key_is("kind") {
                self.about = text_of(member.value);
            } else if member.key_is("causes") {
                self.causes = json::elements(member.value)
                    .map(|(cause, _)| Cause::read(cause))
                    .collect();
            }
        }
    }

    /// Whether `text` is an object whose kind is `Status`.
    pub(crate) fn is_status(text: &[u8]) -> bool {
        json::last_member(text, "kind")
            .and_then(json::string)
            .is_some_and(|kind| kind == "Status")
    }

    /// Whether it names a parameter that only a streaming list has.
    pub(crate) fn names_streaming_list(&self) -> bool {
        let texts = self
            .causes
            .iter()
            .flat_map(|cause| [&cause.field, &cause.message, &cause.reason])
            .chain([&self.message]);
        texts.flatten().any(|text| {
            STREAMING_LIST_PARAMETERS
                .iter()
                .any(|parameter| text.contains(parameter))
        })
    }

    fn has_reason(&self, reasons: &[&str]) -> bool {
        self.reason
            .as_deref()
            .is_some_and(|reason| reasons.contains(&reason))
    }

    /// 410 in any form: by code or by reason.
    fn is_expired(&self, code: Option<u16>) -> bool {
        code == Some(410) || self.has_reason(&["Expired", "Gone"])
    }

    /// client-go's [`IsTooLargeResourceVersion`]: the cause, or the message of servers that do not send it.
    ///
    /// [`IsTooLargeResourceVersion`]: https://pkg.go.dev/k8s.io/apimachinery/pkg/api/errors#HasStatusCause
    fn is_version_too_large(&self) -> bool {
        self.causes
            .iter()
            .any(|cause| cause.reason.as_deref() == Some("ResourceVersionTooLarge"))
            || self
                .message
                .as_deref()
                .is_some_and(|message| message.contains("Too large resource version"))
    }

    /// Whether a 403 refuses the gateway the right to [act as] the caller: it is about what is impersonated, and not
    /// about what was asked for. Service accounts are a resource that can be asked for as well.
    ///
    /// [act as]: https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/
    fn is_refused_impersonation(&self) -> bool {
        let says_so = || {
            self.message
                .as_deref()
                .is_some_and(|message| message.contains("cannot impersonate"))
        };
        match self.about.as_deref() {
            Some("users" | "groups" | "uids") => true,
            Some("serviceaccounts") => says_so(),
            Some(about) => about.starts_with("userextras"),
            None => false,
        }
    }

    /// The class of this answer. `http` is the status code of the response where that was no success, and outranks
    /// the body's; `hint` is what its `Retry-After` header said: the longer of the two hints counts.
    pub(crate) fn classify(&self, http: Option<u16>, hint: Option<Duration>) -> Class {
        let code = http.or(self.code).or_else(|| self.code_of_reason());
        if self.is_expired(code) {
            return Class::Expired;
        }
        let error = match code {
            Some(401) => UpstreamError::new(UpstreamErrorKind::Unauthenticated),
            // The operator's mistake: the caller is not to be blamed, and the text would name the gateway's identity.
            Some(403) if self.is_refused_impersonation() => UpstreamError::new(UpstreamErrorKind::Rejected),
            Some(403) => UpstreamError::forbidden(self.message.as_deref()),
            Some(404) => UpstreamError::new(UpstreamErrorKind::NotFound),
            Some(504) | None if self.is_version_too_large() => {
                UpstreamError::new(UpstreamErrorKind::VersionTooLarge)
            }
            Some(408 | 429 | 500..) | None => UpstreamError::new(UpstreamErrorKind::Unavailable),
            Some(_) => UpstreamError::new(UpstreamErrorKind::Rejected),
        };
        let said = ServerSaid {
            code: code.unwrap_or_default(),
            reason: self.reason.clone().unwrap_or_default(),
            message: self.message.clone().unwrap_or_default(),
        };
        Class::Error(
            error
                .with_retry_after(hint.max(self.retry_after))
                .with_cause(said),
        )
    }

    /// The status code that a [reason] stands for, where a `Status` came without one.
    ///
    /// [reason]: https://pkg.go.dev/k8s.io/apimachinery/pkg/apis/meta/v1#StatusReason
    fn code_of_reason(&self) -> Option<u16> {
        Some(match self.reason.as_deref()? {
            "Unauthorized" => 401,
            "Forbidden" => 403,
            "NotFound" => 404,
            "BadRequest" => 400,
            "MethodNotAllowed" => 405,
            "NotAcceptable" => 406,
            "Invalid" => 422,
            "TooManyRequests" => 429,
            "InternalError" => 500,
            "ServiceUnavailable" => 503,
            "Timeout" | "ServerTimeout" => 504,
            _ => return None,
        })
    }
}

impl Cause {
    fn read(text: &[u8]) -> Self {
        let mut cause = Self::default();
        for member in json::members(text) {
            if member.key_is("reason") {
                cause.reason = text_of(member.value);
            } else if member.key_is("message") {
                cause.message = text_of(member.value);
            } else if member.key_is("field") {
                cause.field = text_of(member.value);
            }
        }
        cause
    }
}

fn text_of(value: &[u8]) -> Option<Box<str>> {
    json::string(value).map(|text| text[..text.floor_char_boundary(MESSAGE_BYTES)].into())
}

fn number<T: std::str::FromStr>(value: &[u8]) -> Option<T> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
