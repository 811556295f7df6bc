//! The time of a condition: whole seconds, as Kubernetes writes them.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The first second of the year 1, and the last that can be told in every offset without a year of five digits.
const WRITABLE_SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_207_200;

/// A point in time in whole seconds of UTC, written by [RFC 3339] as `metav1.Time` is: `2026-08-01T09:30:00Z`.
///
/// Nothing in this crate asks a clock: whoever evaluates a status says what time it is.
///
/// ```
/// use krm_stream_status::Timestamp;
///
/// let time: Timestamp = "2026-08-01T11:30:00.75+02:00".parse()?;
/// assert_eq!(time.to_string(), "2026-08-01T09:30:00Z");
/// # Ok::<(), krm_stream_status::TimestampError>(())
/// ```
///
/// [RFC 3339]: https://www.rfc-editor.org/rfc/rfc3339#section-5.6
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(jiff::Timestamp);

/// A text is no timestamp by RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a timestamp by rfc 3339, such as 2026-08-01T09:30:00Z")]
pub struct TimestampError;

impl Timestamp {
    /// This many seconds after the beginning of 1970, UTC; before the year 1, and after 9999-12-30T22:00:00Z, these.
    pub fn from_unix_seconds(seconds: i64) -> Self {
        let seconds = seconds.clamp(*WRITABLE_SECONDS.start(), *WRITABLE_SECONDS.end());
        Self(jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH))
    }

    /// Seconds since the beginning of 1970, UTC.
    pub fn unix_seconds(self) -> i64 {
        self.0.as_second()
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let whole = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX);
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Self::from_unix_seconds(whole(after.as_secs())),
            Err(before) => Self::from_unix_seconds(-whole(before.duration().as_secs())),
        }
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        let parsed: jiff::Timestamp = text.parse().map_err(|_| TimestampError)?;
        Ok(Self::from_unix_seconds(parsed.as_second()))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_spelling_of_a_second_is_written_as_kubernetes_writes_it() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-08-01T09:30:00Z", 1_785_576_600),
            ("2026-08-01T09:30:00.999999Z", 1_785_576_600),
            ("2026-08-01T11:30:00+02:00", 1_785_576_600),
        ] {
            let time: Timestamp = text.parse().unwrap();
            assert_eq!(time.unix_seconds(), seconds, "{text}");
            assert_eq!(time.to_string().len(), "1970-01-01T00:00:00Z".len(), "{time}");
            assert_eq!(time.to_string().parse(), Ok(time));
        }
        for text in ["", "yesterday", "2026-08-01", "2026-08-01T09:30:00"] {
            assert_eq!(text.parse::<Timestamp>(), Err(TimestampError), "{text}");
        }
    }

    #[test]
    fn what_four_digits_cannot_write_is_the_nearest_that_they_can() {
        assert_eq!(
            Timestamp::from_unix_seconds(i64::MIN).to_string(),
            "0001-01-01T00:00:00Z"
        );
        assert_eq!(
            Timestamp::from_unix_seconds(i64::MAX).to_string(),
            "9999-12-30T22:00:00Z"
        );
    }

    #[test]
    fn a_system_time_keeps_its_whole_seconds() {
        let time = UNIX_EPOCH + Duration::from_millis(1_500);
        assert_eq!(Timestamp::from(time).unix_seconds(), 1);
        assert_eq!(
            Timestamp::from(UNIX_EPOCH - Duration::from_secs(3)).unix_seconds(),
            -3
        );
    }
}
