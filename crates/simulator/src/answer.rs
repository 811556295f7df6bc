//! A whole answer to a request: status code, headers, body.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use crate::serve::indent;

/// An HTTP answer that is given instead of, or by, the simulated API server.
///
/// ```
/// use krm_stream_simulator::Answer;
///
/// let answer = Answer::text(502, "<html>bad gateway</html>").header("Retry-After", "7");
/// assert_eq!(answer.status().as_u16(), 502);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    pub(crate) fn new(status: StatusCode, body: impl Into<Bytes>) -> Self {
        Self {
            status,
            headers: HeaderMap::new(),
            body: body.into(),
        }
    }

    /// A body of JSON text, or of what claims to be JSON. A `code` that is no HTTP status becomes 500.
    pub fn json(code: u16, body: impl Into<Bytes>) -> Self {
        Self::of_type(code, body, "application/json")
    }

    /// A body of plain text.
    pub fn text(code: u16, body: impl Into<Bytes>) -> Self {
        Self::of_type(code, body, "text/plain; charset=utf-8")
    }

    /// No body, and no type of one.
    pub fn empty(code: u16) -> Self {
        let mut answer = Self::text(code, Bytes::new());
        answer.headers.remove(header::CONTENT_TYPE);
        answer
    }

    /// A page of HTML, as a proxy in between answers.
    pub fn html(code: u16) -> Self {
        let body = format!("<html>\r\n<body>\r\n<h1>{code}</h1>\r\n</body>\r\n</html>\r\n");
        Self::of_type(code, body, "text/html")
    }

    /// The same with its JSON body over many lines, as an API server prints it for people.
    #[must_use]
    pub fn indented(self) -> Self {
        let body = indent(&self.body);
        self.with_body(body)
    }

    /// The same without this header.
    #[must_use]
    pub fn without_header(mut self, name: &str) -> Self {
        self.headers.remove(name);
        self
    }

    /// A redirect to another place.
    pub fn redirect(code: u16, location: &str) -> Self {
        Self::text(code, Bytes::new()).header("Location", location)
    }

    fn of_type(code: u16, body: impl Into<Bytes>, content_type: &'static str) -> Self {
        let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut answer = Self::new(status, body);
        answer
            .headers
            .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        answer
    }

    /// Sets a header. A name or value that is not legal in HTTP is left out.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            self.headers.insert(name, value);
        }
        self
    }

    pub(crate) fn with_headers(mut self, headers: HeaderMap) -> Self {
        self.headers.extend(headers);
        self
    }

    pub(crate) fn with_body(mut self, body: Bytes) -> Self {
        self.body = body;
        self
    }

    /// The status code.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The body.
    pub fn body(&self) -> &Bytes {
        &self.body
    }
}
