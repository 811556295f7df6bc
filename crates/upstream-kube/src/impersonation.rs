//! Acting as a caller: [user impersonation] as headers of each request, on the one pool of the upstream.
//!
//! [user impersonation]: https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/

use http::{HeaderMap, HeaderName, HeaderValue};
use krm_stream_protocol::Subject;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Why a caller cannot be acted as. The caller is refused: leaving a part of a subject out would act as another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImpersonationError {
    /// The user name cannot be carried in a header.
    #[error("the user name cannot be carried in a header")]
    User,
    /// The uid cannot be carried in a header.
    #[error("the uid of the user cannot be carried in a header")]
    Uid,
    /// A group cannot be carried in a header.
    #[error("a group of the user cannot be carried in a header")]
    Group,
    /// An extra key or one of its values cannot be carried in a header.
    #[error("an extra field of the user cannot be carried in a header")]
    Extra,
}

/// Every header that begins so says who to act as.
const PREFIX: &str = "impersonate-";
/// What a header name may hold besides letters and digits. `%` is the escape, and upper-case letters are escaped too,
/// since a header name has no case: so a key arrives as it is.
const EXTRA_KEY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'*')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

/// The headers that act as `subject`, complete.
pub(crate) fn headers(subject: &Subject) -> Result<HeaderMap, ImpersonationError> {
    let mut headers = HeaderMap::new();
    headers.insert(
        HeaderName::from_static("impersonate-user"),
        value(subject.user_name()).ok_or(ImpersonationError::User)?,
    );
    if let Some(uid) = subject.user_uid() {
        headers.insert(
            HeaderName::from_static("impersonate-uid"),
            value(uid).ok_or(ImpersonationError::Uid)?,
        );
    }
    for group in subject.groups() {
        headers.append(
            HeaderName::from_static("impersonate-group"),
            value(group).ok_or(ImpersonationError::Group)?,
        );
    }
    for (key, values) in subject.extras() {
        let name = extra_name(key).ok_or(ImpersonationError::Extra)?;
        for text in values {
            headers.append(&name, value(text).ok_or(ImpersonationError::Extra)?);
        }
    }
    Ok(headers)
}

/// Whether a header says who to act as.
pub(crate) fn is_impersonation(name: &HeaderName) -> bool {
    name.as_str().starts_with(PREFIX)
}

/// A value that arrives as it is. White space at its ends would be cut off on the way (RFC 9110, 5.5), and an empty
/// one is as good as none: both would name somebody else.
fn value(text: &str) -> Option<HeaderValue> {
    if text.is_empty() || text.trim_ascii().len() != text.len() {
        return None;
    }
    HeaderValue::from_bytes(text.as_bytes()).ok()
}

fn extra_name(key: &str) -> Option<HeaderName> {
    use std::fmt::Write as _;
    if key.is_empty() {
        return None;
    }
    let mut name = format!("{PREFIX}extra-");
    for character in key.chars() {
        // Writing to a `String` cannot fail.
        let _ = if character.is_ascii_uppercase() {
            write!(name, "%{:02x}", u32::from(character))
        } else {
            write!(
                name,
                "{}",
                utf8_percent_encode(character.encode_utf8(&mut [0; 4]), EXTRA_KEY)
            )
        };
    }
    HeaderName::try_from(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(user: &str) -> Subject {
        Subject::new(user).unwrap()
    }

    #[test]
    fn a_complete_subject_becomes_headers() {
        let subject = subject("jürgen")
            .uid("42")
            .group("b")
            .group("a")
            .extra("example.org/Scope%", "x")
            .extra("example.org/Scope%", "y");
        let headers = headers(&subject).unwrap();
        assert_eq!(headers["impersonate-user"].as_bytes(), "jürgen".as_bytes());
        assert_eq!(headers["impersonate-uid"], "42");
        let all = |name: &str| headers.get_all(name).iter().collect::<Vec<_>>();
        assert_eq!(all("impersonate-group"), ["a", "b"]);
        assert_eq!(all("impersonate-extra-example.org%2f%53cope%25"), ["x", "y"]);
        assert_eq!(headers.len(), 6);
    }

    #[test]
    fn every_extra_key_arrives_as_it_is() {
        for code in 1..0x250 {
            let key = char::from_u32(code).unwrap().to_string();
            let name = extra_name(&key).unwrap();
            let escaped = name.as_str().strip_prefix("impersonate-extra-").unwrap();
            let arrived = percent_encoding::percent_decode_str(escaped)
                .decode_utf8()
                .unwrap();
            assert_eq!(arrived, key);
        }
    }

    #[test]
    fn a_value_that_would_arrive_as_another_refuses_the_caller() {
        for odd in [
            " admin",
            "admin ",
            "admin\t",
            "a\r\nImpersonate-Group: system:masters",
            "a\0",
            "a\u{7f}",
        ] {
            assert_eq!(headers(&subject(odd)), Err(ImpersonationError::User), "{odd:?}");
            let other = subject("ada");
            assert_eq!(headers(&other.clone().uid(odd)), Err(ImpersonationError::Uid));
            assert_eq!(headers(&other.clone().group(odd)), Err(ImpersonationError::Group));
            assert_eq!(headers(&other.extra("k", odd)), Err(ImpersonationError::Extra));
        }
        let ada = subject("ada");
        assert_eq!(headers(&ada.clone().uid("")), Err(ImpersonationError::Uid));
        assert_eq!(headers(&ada.clone().group("")), Err(ImpersonationError::Group));
        assert_eq!(headers(&ada.extra("", "x")), Err(ImpersonationError::Extra));
    }
}
