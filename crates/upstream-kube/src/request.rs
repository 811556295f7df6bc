//! The paths and queries of list and watch requests.

use std::fmt::Write as _;
use std::time::Duration;

use krm_stream_protocol::{ResourceVersion, Scope};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What [RFC 3986](https://www.rfc-editor.org/rfc/rfc3986#section-2.3) leaves unescaped.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// What is asked of a scope.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ask<'a> {
    /// A streaming list, and the watch that follows it on the same response ([KEP-3157]).
    ///
    /// [KEP-3157]: https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/3157-watch-list
    StreamingList { timeout: Duration },
    /// A watch of what follows a version.
    Watch {
        after: &'a ResourceVersion,
        timeout: Duration,
    },
    /// A page of a list.
    Page { limit: u32, next: Option<&'a str> },
}

impl Ask<'_> {
    /// The path and query of this request on `scope`.
    pub(crate) fn path_and_query(self, scope: &Scope) -> String {
        let mut text = scope.api_path();
        let mut separator = '?';
        let mut add = |name: &str, value: &str| {
            // Writing to a `String` cannot fail.
            let _ = write!(text, "{separator}{name}={}", utf8_percent_encode(value, QUERY));
            separator = '&';
        };
        if let Some(selector) = scope.field_selector() {
            add("fieldSelector", &selector);
        }
        if let Some(selector) = scope.label_selector() {
            add("labelSelector", selector.as_str());
        }
        match self {
            Self::StreamingList { timeout } => {
                add("watch", "1");
                add("sendInitialEvents", "true");
                add("resourceVersionMatch", "NotOlderThan");
                add("allowWatchBookmarks", "true");
                add("timeoutSeconds", &timeout.as_secs().to_string());
            }
            Self::Watch { after, timeout } => {
                add("watch", "1");
                add("resourceVersion", after.as_str());
                add("allowWatchBookmarks", "true");
                add("timeoutSeconds", &timeout.as_secs().to_string());
            }
            Self::Page { limit, next } => {
                add("limit", &limit.to_string());
                if let Some(token) = next {
                    add("continue", token);
                }
            }
        }
        text
    }
}
