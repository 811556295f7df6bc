//! Values of flags that need a parser of their own.

use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use krm_stream_protocol::{Scope, Target};

/// A target's name, and the context of the kubeconfig that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TargetFlag {
    pub(crate) name: Target,
    pub(crate) context: String,
}

impl FromStr for TargetFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((name, context)) = text.split_once('=') else {
            return Err("write NAME=CONTEXT, for example staging=kind-staging".to_owned());
        };
        if name.is_empty() || context.is_empty() {
            return Err("neither the name nor the context may be empty".to_owned());
        }
        let name = Target::new(name);
        // A name that no request could ask for is a mistake here.
        Scope::builder("v1", "configmaps")
            .target(name.clone())
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self {
            name,
            context: context.to_owned(),
        })
    }
}

/// An address to listen on.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "write an IP address and a port, as 127.0.0.1:8080 or [::1]:0".to_owned())
}

/// `20`, `20s`, `500ms`, `5m`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.len()
        - text
            .trim_start_matches(|character: char| character.is_ascii_digit())
            .len();
    let (number, unit) = text.split_at(digits);
    let milliseconds = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => {
            return Err("write a whole number of seconds, or one with a unit: 500ms, 20s, 5m, 1h".to_owned());
        }
    };
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(milliseconds))
        .map(Duration::from_millis)
        .ok_or_else(|| "write a whole number of seconds, or one with a unit: 500ms, 20s, 5m, 1h".to_owned())
}

/// As [`duration`], and longer than nothing.
pub(super) fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("must be longer than nothing".to_owned()),
        duration => Ok(duration),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_seconds_unless_they_say_otherwise() {
        assert_eq!(duration("20"), Ok(Duration::from_secs(20)));
        assert_eq!(duration("20s"), Ok(Duration::from_secs(20)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("5m"), Ok(Duration::from_mins(5)));
        assert_eq!(duration("1h"), Ok(Duration::from_hours(1)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        for wrong in [
            "",
            "s",
            "-1",
            "1.5s",
            "1 s",
            "5 m",
            "1d",
            "99999999999999999999",
            "18446744073709551615h",
        ] {
            assert!(duration(wrong).is_err(), "{wrong:?}");
        }
        assert!(positive_duration("0ms").is_err());
    }

    #[test]
    fn a_target_is_a_name_and_a_context() {
        assert_eq!(
            "staging=kind-a=b".parse::<TargetFlag>().unwrap(),
            TargetFlag {
                name: Target::new("staging"),
                context: "kind-a=b".to_owned(),
            }
        );
        for wrong in ["staging", "=kind", "staging=", "Not A Name=kind"] {
            assert!(wrong.parse::<TargetFlag>().is_err(), "{wrong:?}");
        }
    }
}
