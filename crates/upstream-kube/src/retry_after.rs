//! The `Retry-After` header ([RFC 9110, 10.2.3](https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3)).

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::RETRY_AFTER;

/// How long the header asks to wait: seconds, or a date, which counts from now. `None` where there is none or it
/// cannot be read.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now()).unwrap_or_default())
}

#[expect(clippy::disallowed_methods, reason = "an HTTP date is on the wall clock")]
fn now() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, value.parse().unwrap());
        retry_after(&headers)
    }

    #[test]
    fn seconds_of_any_size_are_read() {
        assert_eq!(read("7"), Some(Duration::from_secs(7)));
        assert_eq!(read(" 0 "), Some(Duration::ZERO));
        assert_eq!(read("999999"), Some(Duration::from_secs(999_999)));
    }

    #[test]
    fn a_date_counts_from_now_and_one_in_the_past_is_no_wait() {
        let soon = httpdate::fmt_http_date(now() + Duration::from_mins(1));
        let hint = read(&soon).unwrap();
        assert!((Duration::from_secs(50)..=Duration::from_mins(1)).contains(&hint));
        assert_eq!(read("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
    }

    #[test]
    fn what_cannot_be_read_is_no_hint() {
        for value in ["", "soon", "-1", "1.5", "99999999999999999999999"] {
            assert_eq!(read(value), None, "{value}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}
