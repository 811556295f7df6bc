//! `resourceVersion`: opaque to consumers, ordered for the gateway.

use std::cmp;
use std::fmt;

/// A `resourceVersion` as the API server spelled it; it is echoed byte for byte.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ResourceVersion(Box<str>);

/// What to do with versions that do not order.
///
/// Kubernetes guarantees comparable versions since 1.35 ([KEP-5504]); some aggregated API servers do not.
///
/// [KEP-5504]: https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/5504-comparable-resource-version
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ordering {
    /// A version that does not order ends the stream: what cannot be ordered cannot be trusted.
    #[default]
    Strict,
    /// Deliver what cannot be ordered, and drop nothing.
    Lenient,
}

impl ResourceVersion {
    /// Takes the version as it was spelled.
    pub fn new(spelling: impl Into<Box<str>>) -> Self {
        Self(spelling.into())
    }

    /// The version as it was spelled.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this version can be compared: a decimal of any length without leading zeros.
    pub fn is_orderable(&self) -> bool {
        let digits = self.0.as_bytes();
        digits.iter().all(u8::is_ascii_digit)
            && digits
                .first()
                .is_some_and(|first| *first != b'0' || digits.len() == 1)
    }

    /// Compares two versions as decimals of any size: the longer one is greater, then the lexicographically greater.
    /// `None` if either does not order.
    pub fn compare(&self, other: &Self) -> Option<cmp::Ordering> {
        (self.is_orderable() && other.is_orderable()).then(|| {
            self.0
                .len()
                .cmp(&other.0.len())
                .then_with(|| self.0.cmp(&other.0))
        })
    }

    /// Whether this version is known to be greater than `other`.
    pub fn is_after(&self, other: &Self) -> bool {
        self.compare(other) == Some(cmp::Ordering::Greater)
    }
}

impl fmt::Debug for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResourceVersion({})", self.0)
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for ResourceVersion {
    fn from(spelling: &str) -> Self {
        Self(spelling.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(left: &str, right: &str) -> Option<cmp::Ordering> {
        ResourceVersion::from(left).compare(&ResourceVersion::from(right))
    }

    #[test]
    fn versions_compare_as_decimals_of_any_size() {
        let forty_digits = "1".repeat(40);
        assert_eq!(compare("9", "10"), Some(cmp::Ordering::Less));
        assert_eq!(compare("0", "1"), Some(cmp::Ordering::Less));
        assert_eq!(
            compare(&forty_digits, "18446744073709551616"),
            Some(cmp::Ordering::Greater)
        );
        assert_eq!(compare(&forty_digits, &forty_digits), Some(cmp::Ordering::Equal));
    }

    #[test]
    fn empty_leading_zero_and_non_digit_versions_do_not_order() {
        for odd in [
            "",
            "01",
            "00",
            "1a",
            "opaque-alpha",
            "-1",
            "+1",
            " 1",
            "1.0",
            "\u{0661}",
        ] {
            assert_eq!(compare(odd, "5"), None, "{odd:?}");
            assert_eq!(compare("5", odd), None, "{odd:?}");
        }
    }
}
