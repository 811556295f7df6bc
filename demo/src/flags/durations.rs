//! Durations: how they are written, and how long they may be.

use std::time::Duration;

use jiff::fmt::friendly::SpanParser;

/// A shorter one is no wait, and would keep a processor busy.
const SHORTEST: Duration = Duration::from_millis(1);
/// A longer wait than this is none. The gateway and its upstreams take no longer ones either.
const LONGEST: Duration = Duration::from_hours(24);
/// The longest that the gateway lets changes wait.
const LONGEST_DELIVERY_INTERVAL: Duration = Duration::from_mins(1);

const NOT_A_DURATION: &str =
    "write a number with its unit, for example 500ms, 30s, 5m or 1m30s; without a unit it is seconds";

/// `500ms`, `30s`, `1m30s`; a number without a unit is seconds. Nothing, or from a millisecond to a day.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    // The parser takes `1:00:00` too, which has no unit that could be missing.
    if text.contains(':') {
        return Err(NOT_A_DURATION.to_owned());
    }
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let duration = if is_number {
        Duration::from_secs(text.parse().unwrap_or(u64::MAX))
    } else {
        SpanParser::new()
            .parse_unsigned_duration(text)
            .map_err(|_| NOT_A_DURATION)?
    };
    if duration > LONGEST {
        return Err("must be at most a day, 24h".to_owned());
    }
    if !duration.is_zero() && duration < SHORTEST {
        return Err("must be at least a millisecond, 1ms".to_owned());
    }
    Ok(duration)
}

/// As [`duration`], and longer than nothing.
pub(super) fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("must be longer than nothing, for example 30s".to_owned()),
        duration => Ok(duration),
    }
}

/// As [`duration`], and at most a minute.
pub(super) fn delivery_interval(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        duration if duration > LONGEST_DELIVERY_INTERVAL => {
            Err("must be at most a minute, 1m: a page that hears of changes later is not live".to_owned())
        }
        duration => Ok(duration),
    }
}

/// As [`positive_duration`], in whole seconds.
pub(super) fn whole_seconds(text: &str) -> Result<Duration, String> {
    match positive_duration(text)? {
        duration if duration.subsec_nanos() != 0 => Err(
            "must be whole seconds, for example 90s or 5m: the API server is asked for nothing else"
                .to_owned(),
        ),
        duration => Ok(duration),
    }
}

/// As [`duration`], with its unit: without one it could be meant in seconds as well as in milliseconds.
pub(super) fn with_unit(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    if !duration.is_zero() && !text.contains(|character: char| character.is_ascii_alphabetic()) {
        return Err(format!("say in which unit: {text}ms or {text}s"));
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_seconds_unless_they_say_otherwise() {
        for (text, milliseconds) in [
            ("20", 20_000),
            ("20s", 20_000),
            ("500ms", 500),
            ("1.5s", 1_500),
            ("1m30s", 90_000),
            ("5m", 300_000),
            ("5 minutes", 300_000),
            ("24h", 86_400_000),
            ("86400", 86_400_000),
            ("0", 0),
            ("0s", 0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_told_with_examples() {
        for wrong in [
            "", " ", "s", "-1", "-1s", "1.5", "1s ago", "1d", "1M", "5x", "0x5", "1e3", "PT5M", "00:00:01",
            "1:00:00",
        ] {
            let told = duration(wrong).unwrap_err();
            assert!(told.contains("500ms, 30s, 5m"), "{wrong:?}: {told}");
        }
    }

    #[test]
    fn durations_have_bounds_and_name_them() {
        for (told, bound) in [
            (duration("24h1ms"), "24h"),
            (duration("99999999999999999999"), "24h"),
            (duration("999us"), "1ms"),
            (positive_duration("0ms"), "longer than nothing"),
            (delivery_interval("61s"), "1m"),
            (whole_seconds("1500ms"), "whole seconds"),
            (whole_seconds("0"), "longer than nothing"),
            (with_unit("50"), "50ms or 50s"),
        ] {
            let told = told.unwrap_err();
            assert!(told.contains(bound), "{told}");
        }
        assert_eq!(duration("1ms"), Ok(Duration::from_millis(1)));
        assert_eq!(delivery_interval("60"), Ok(Duration::from_mins(1)));
        assert_eq!(whole_seconds("90"), Ok(Duration::from_secs(90)));
        assert_eq!(with_unit("50ms"), Ok(Duration::from_millis(50)));
        assert_eq!(with_unit("0"), Ok(Duration::ZERO));
    }
}
