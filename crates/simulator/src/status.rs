//! `Status`: how the API server says that a request failed, or that a deletion succeeded.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};

use crate::{answer::Answer, encode::string, resource::Resource};

/// A Kubernetes `Status`, written with the members, and in the order, in which a real API server writes them
/// (<https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/>).
///
/// ```
/// use krm_stream_simulator::Status;
///
/// let status = Status::new(429, "too many requests, please try again later")
///     .reason("TooManyRequests")
///     .retry_after_seconds(1);
/// assert_eq!(
///     status.to_json(),
///     concat!(
///         r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","#,
///         r#""message":"too many requests, please try again later","reason":"TooManyRequests","#,
///         r#""details":{"retryAfterSeconds":1},"code":429}"#
///     )
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    code: u16,
    success: bool,
    message: String,
    reason: String,
    details: Option<Box<Details>>,
    token: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Details {
    name: String,
    group: String,
    kind: String,
    uid: String,
    causes: Vec<Cause>,
    retry_after_seconds: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Cause {
    reason: String,
    message: String,
    field: String,
}

impl Status {
    /// A failure with this HTTP status code and message.
    pub fn new(code: u16, message: impl Into<String>) -> Self {
        Self {
            code,
            success: false,
            message: message.into(),
            reason: String::new(),
            details: None,
            token: None,
        }
    }

    /// Sets the reason, such as `Expired`.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }

    /// Adds an entry to `details.causes`; an empty `field` is left out.
    #[must_use]
    pub fn cause(
        mut self,
        reason: impl Into<String>,
        message: impl Into<String>,
        field: impl Into<String>,
    ) -> Self {
        let cause = Cause {
            reason: reason.into(),
            message: message.into(),
            field: field.into(),
        };
        self.details.get_or_insert_default().causes.push(cause);
        self
    }

    /// Sets `details.retryAfterSeconds`; an answer built from this status carries `Retry-After` too.
    #[must_use]
    pub fn retry_after_seconds(mut self, seconds: u64) -> Self {
        self.details.get_or_insert_default().retry_after_seconds = Some(seconds);
        self
    }

    /// Sets what the failure is about: `details.group`, `details.kind` (the plural) and `details.name`. Empty ones are
    /// left out.
    #[must_use]
    pub fn about(
        mut self,
        group: impl Into<String>,
        kind: impl Into<String>,
        name: impl Into<String>,
    ) -> Self {
        let details = self.details.get_or_insert_default();
        details.group = group.into();
        details.kind = kind.into();
        details.name = name.into();
        self
    }

    /// A token to go on with from the start of an inconsistent list, in `metadata.continue`.
    pub(crate) fn continue_token(mut self, token: String) -> Self {
        self.token = Some(token);
        self
    }

    /// The HTTP status code.
    pub fn code(&self) -> u16 {
        self.code
    }

    /// 410 for a watch whose version is below what is kept.
    pub fn expired(requested: &str, oldest: &str) -> Self {
        Self::new(410, format!("too old resource version: {requested} ({oldest})")).reason("Expired")
    }

    /// 401.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized").reason("Unauthorized")
    }

    /// 404 for a resource that is not served.
    pub fn unknown_resource() -> Self {
        let mut status =
            Self::new(404, "the server could not find the requested resource").reason("NotFound");
        status.details = Some(Box::default());
        status
    }

    /// 404 for an object.
    pub fn not_found(resource: &Resource, name: &str) -> Self {
        Self::new(404, format!("{} \"{name}\" not found", resource.qualified_name()))
            .reason("NotFound")
            .about(resource.group(), resource.plural(), name)
    }

    /// 503 as an API server answers in its first moments.
    pub fn not_ready() -> Self {
        let message =
            "the request has been made before all known HTTP paths have been installed, please try again";
        Self::new(503, message)
            .reason("ServiceUnavailable")
            .retry_after_seconds(5)
    }

    /// 429 with a wait in seconds.
    pub fn too_many_requests(seconds: u64) -> Self {
        Self::new(429, "too many requests, please try again later")
            .reason("TooManyRequests")
            .retry_after_seconds(seconds)
    }

    /// 504 for a version that the server has not reached.
    pub fn too_large_resource_version(requested: &str, current: &str) -> Self {
        Self::new(
            504,
            format!("Timeout: Too large resource version: {requested}, current: {current}"),
        )
        .reason("Timeout")
        .cause("ResourceVersionTooLarge", "Too large resource version", "")
        .retry_after_seconds(1)
    }

    /// 422 as an API server without streaming lists answers `sendInitialEvents`.
    pub fn streaming_list_refused() -> Self {
        Self::invalid_list_options(
            "sendInitialEvents",
            "Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
            "FieldValueForbidden",
        )
    }

    /// 422 about one of the list options.
    pub(crate) fn invalid_list_options(field: &str, message: &str, cause: &str) -> Self {
        Self::new(
            422,
            format!("ListOptions.meta.k8s.io \"\" is invalid: {field}: {message}"),
        )
        .reason("Invalid")
        .about("meta.k8s.io", "ListOptions", "")
        .cause(cause, message, field)
    }

    /// 400 with a message.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, message).reason("BadRequest")
    }

    /// The answer to a deletion.
    pub(crate) fn deleted(resource: &Resource, name: &str, uid: &str) -> Self {
        let mut status = Self::new(200, "").about(resource.group(), resource.plural(), name);
        status.success = true;
        uid.clone_into(&mut status.details.get_or_insert_default().uid);
        status
    }

    /// The JSON text, without a line end.
    pub fn to_json(&self) -> String {
        let metadata = match &self.token {
            Some(token) => format!("{{\"continue\":{}}}", string(token)),
            None => "{}".to_owned(),
        };
        let mut members = vec![
            r#""kind":"Status","apiVersion":"v1""#.to_owned(),
            format!("\"metadata\":{metadata}"),
            format!(
                "\"status\":\"{}\"",
                if self.success { "Success" } else { "Failure" }
            ),
        ];
        for (key, value) in [("message", &self.message), ("reason", &self.reason)] {
            if !value.is_empty() {
                members.push(format!("\"{key}\":{}", string(value)));
            }
        }
        members.extend(
            self.details
                .iter()
                .map(|details| format!("\"details\":{}", details.to_json())),
        );
        if !self.success {
            members.push(format!("\"code\":{}", self.code));
        }
        format!("{{{}}}", members.join(","))
    }

    /// The same line with an object that has neither `kind` nor `apiVersion`.
    pub fn to_error_event_without_kind(&self) -> Bytes {
        let object = self
            .to_json()
            .replacen(r#""kind":"Status","apiVersion":"v1","#, "", 1);
        Bytes::from(format!("{{\"type\":\"ERROR\",\"object\":{object}}}\n"))
    }

    /// The line of a watch that tells of this failure: an `ERROR` event, line end included.
    pub fn to_error_event(&self) -> Bytes {
        Bytes::from(format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", self.to_json()))
    }

    /// The HTTP answer: status code, headers and body.
    pub fn to_answer(&self) -> Answer {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("no-cache, private"),
        );
        if self.code == 403 {
            headers.insert(
                header::X_CONTENT_TYPE_OPTIONS,
                HeaderValue::from_static("nosniff"),
            );
        }
        if let Some(seconds) = self
            .details
            .as_ref()
            .and_then(|details| details.retry_after_seconds)
        {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        let status = StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Answer::new(status, self.to_json() + "\n").with_headers(headers)
    }
}

impl Details {
    fn to_json(&self) -> String {
        let mut members = Vec::new();
        for (key, value) in [
            ("name", &self.name),
            ("group", &self.group),
            ("kind", &self.kind),
            ("uid", &self.uid),
        ] {
            if !value.is_empty() {
                members.push(format!("\"{key}\":{}", string(value)));
            }
        }
        if !self.causes.is_empty() {
            let causes: Vec<String> = self.causes.iter().map(Cause::to_json).collect();
            members.push(format!("\"causes\":[{}]", causes.join(",")));
        }
        if let Some(seconds) = self.retry_after_seconds {
            members.push(format!("\"retryAfterSeconds\":{seconds}"));
        }
        format!("{{{}}}", members.join(","))
    }
}

impl Cause {
    fn to_json(&self) -> String {
        let mut members = vec![
            format!("\"reason\":{}", string(&self.reason)),
            format!("\"message\":{}", string(&self.message)),
        ];
        if !self.field.is_empty() {
            members.push(format!("\"field\":{}", string(&self.field)));
        }
        format!("{{{}}}", members.join(","))
    }
}
