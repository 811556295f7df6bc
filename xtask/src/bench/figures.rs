//! Figures: what was measured, of the gateway and of the limit, and what it has to be.

use serde_json::{Value, json};

use super::statistics::median;

/// One line of the report.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    pub(crate) scenario: &'static str,
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) gateway: Vec<f64>,
    pub(crate) limit: Vec<f64>,
    pub(crate) bar: Option<Bar>,
}

/// What a figure has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bar {
    /// At most so many times the limit's.
    Times(f64),
    AtMost(f64),
    /// In every run, on any machine.
    MoreThan(f64),
    /// In every run, on any machine.
    Exactly(f64),
    /// Within ± 20 % of this, or within what is noise at this size.
    Near {
        value: f64,
        noise: f64,
    },
    /// At most 20 % more than this, or more by what is noise at this size.
    NoMoreThan {
        value: f64,
        noise: f64,
    },
}

impl Bar {
    /// Within ± 20 % of this, however small the difference is.
    pub(crate) const fn near(value: f64) -> Self {
        Self::Near { value, noise: 0.0 }
    }
}

/// How far from its bar a value may be that has to be near it.
const NEAR: f64 = 0.2;

impl Figure {
    pub(crate) fn new(scenario: &'static str, name: impl Into<String>, unit: &'static str) -> Self {
        Self {
            scenario,
            name: name.into(),
            unit,
            gateway: Vec::new(),
            limit: Vec::new(),
            bar: None,
        }
    }

    pub(crate) fn bar(mut self, bar: Bar) -> Self {
        self.bar = Some(bar);
        self
    }

    /// One value of the gateway alone.
    pub(crate) fn of(mut self, value: f64) -> Self {
        self.gateway.push(value);
        self
    }

    /// The median of the runs. What never came in one run, or was not as it has to be in every run, is not outvoted.
    pub(crate) fn gateway_value(&self) -> Option<f64> {
        let never = self.gateway.iter().find(|value| !value.is_finite());
        let wrong = || match self.bar? {
            Bar::Exactly(value) => self.gateway.iter().find(|one| !is_exactly(**one, value)),
            Bar::MoreThan(least) => self.gateway.iter().find(|one| **one <= least),
            Bar::Times(_) | Bar::AtMost(_) | Bar::Near { .. } | Bar::NoMoreThan { .. } => None,
        };
        never.or_else(wrong).copied().or_else(|| median(&self.gateway))
    }

    pub(crate) fn limit_value(&self) -> Option<f64> {
        median(&self.limit)
    }

    /// How many times the limit's value the gateway's is; the median of runs side by side.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let pairs = self.gateway.iter().zip(&self.limit);
        let ratios: Vec<f64> = pairs
            .filter(|(_, limit)| **limit > 0.0)
            .map(|(gateway, limit)| gateway / limit)
            .collect();
        median(&ratios)
    }

    /// Whether the bar is reached, if there is one; a figure that was not measured does not reach it.
    pub(crate) fn is_reached(&self) -> Option<bool> {
        let bar = self.bar?;
        let measured = if let Bar::Times(_) = bar {
            self.ratio()
        } else {
            self.gateway_value()
        };
        let reaches = |measured: f64| match bar {
            Bar::Times(most) | Bar::AtMost(most) => measured <= most,
            Bar::MoreThan(least) => measured > least,
            Bar::Exactly(value) => is_exactly(measured, value),
            Bar::Near { value, noise } => (measured - value).abs() <= (NEAR * value.abs()).max(noise),
            Bar::NoMoreThan { value, noise } => measured - value <= (NEAR * value.abs()).max(noise),
        };
        // Beside a value that never came nothing is near.
        let is_known = match bar {
            Bar::Near { value, .. } | Bar::NoMoreThan { value, .. } => value.is_finite(),
            Bar::Times(_) | Bar::AtMost(_) | Bar::MoreThan(_) | Bar::Exactly(_) => true,
        };
        Some(is_known && measured.is_some_and(|measured| measured.is_finite() && reaches(measured)))
    }

    pub(crate) fn bar_text(&self) -> String {
        match self.bar {
            None => String::new(),
            Some(Bar::Times(most)) => format!("≤ {most} × limit"),
            Some(Bar::AtMost(most)) => format!("≤ {most}"),
            Some(Bar::MoreThan(least)) => format!("> {least}"),
            Some(Bar::Exactly(value)) => format!("= {value}"),
            Some(Bar::Near { value, noise }) if noise > 0.0 => {
                format!("{} ± 20 %, or ± {noise} {}", number(value), self.unit)
            }
            Some(Bar::Near { value, .. }) => format!("{} ± 20 %", number(value)),
            Some(Bar::NoMoreThan { value, noise }) => {
                format!("≤ {} + 20 %, or + {noise} {}", number(value), self.unit)
            }
        }
    }

    /// Why the figure did not come out, or is not what it has to be whatever the machine: a value is missing or never
    /// came, or one that is the same on any machine is another. How fast something was is not asked.
    pub(crate) fn fault(&self) -> Option<String> {
        let named = |what: String| Some(format!("{}: {}: {what}", self.scenario, self.name));
        let Some(value) = self.gateway_value() else {
            return named("no value".to_owned());
        };
        if !value.is_finite() {
            return named(number(value));
        }
        match self.bar {
            Some(Bar::Exactly(_) | Bar::MoreThan(_)) if self.is_reached() != Some(true) => named(format!(
                "{} {}, not {}",
                number(value),
                self.unit,
                self.bar_text()
            )),
            Some(Bar::Times(_)) if self.limit_value().is_none() => named("no value of the limit".to_owned()),
            Some(
                Bar::Times(_)
                | Bar::AtMost(_)
                | Bar::MoreThan(_)
                | Bar::Exactly(_)
                | Bar::Near { .. }
                | Bar::NoMoreThan { .. },
            )
            | None => None,
        }
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "scenario": self.scenario,
            "name": self.name,
            "unit": self.unit,
            "gateway": self.gateway_value().map(told),
            "limit": self.limit_value().map(told),
            "ratio": self.ratio(),
            "bar": self.bar.map(|_| self.bar_text()),
            "reached": self.is_reached(),
            "runs": {
                "gateway": self.gateway.iter().copied().map(told).collect::<Vec<_>>(),
                "limit": self.limit.iter().copied().map(told).collect::<Vec<_>>(),
            },
        })
    }
}

fn is_exactly(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

/// What stands for a value that never came.
const NEVER: &str = "never";

/// A value in JSON, which has no infinite numbers.
fn told(value: f64) -> Value {
    if value.is_finite() {
        json!(value)
    } else {
        json!(NEVER)
    }
}

/// Three significant digits, or all of a whole number; `never` of what never came.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        return NEVER.to_owned();
    }
    let digits = match value.abs() {
        size if size >= 100.0 || value.fract() == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(value: f64, bar: Bar) -> Figure {
        Figure::new("x", "y", "s").of(value).bar(bar)
    }

    #[test]
    fn a_ratio_is_the_median_of_the_runs_that_were_side_by_side() {
        let mut figure = Figure::new("x", "y", "s").bar(Bar::Times(1.5));
        figure.gateway = vec![10.0, 30.0, 12.0];
        figure.limit = vec![10.0, 20.0, 10.0];
        assert_eq!(figure.ratio(), Some(1.2));
        assert_eq!(figure.gateway_value(), Some(12.0));
        assert_eq!(figure.is_reached(), Some(true));
        figure.limit = vec![5.0, 10.0, 6.0];
        assert_eq!(figure.is_reached(), Some(false));
    }

    #[test]
    fn each_bar_is_checked_as_it_says() {
        let is_reached = |value: f64, bar| with(value, bar).is_reached();
        assert_eq!(is_reached(16.0, Bar::AtMost(16.0)), Some(true));
        assert_eq!(is_reached(16.1, Bar::AtMost(16.0)), Some(false));
        assert_eq!(is_reached(1.0, Bar::Exactly(1.0)), Some(true));
        assert_eq!(is_reached(2.0, Bar::Exactly(1.0)), Some(false));
        assert_eq!(is_reached(85.0, Bar::near(100.0)), Some(true));
        assert_eq!(is_reached(121.0, Bar::near(100.0)), Some(false));
    }

    #[test]
    fn what_is_noise_at_its_size_is_near() {
        let near = Bar::Near {
            value: 5.0,
            noise: 2.0,
        };
        let reached = [2.9, 3.0, 7.0, 7.1].map(|value| with(value, near).is_reached());
        assert_eq!(reached, [false, true, true, false].map(Some));
        // Of a large value the share decides.
        let near = Bar::Near {
            value: 100.0,
            noise: 2.0,
        };
        let reached = [79.0, 80.0, 120.0, 121.0].map(|value| with(value, near).is_reached());
        assert_eq!(reached, [false, true, true, false].map(Some));
        assert_eq!(with(1.0, near).bar_text(), "100 ± 20 %, or ± 2 s");
        let most = |value| Bar::NoMoreThan { value, noise: 2.0 };
        let reached = [-50.0, 3.0, 3.1].map(|value| with(value, most(1.0)).is_reached());
        assert_eq!(reached, [true, true, false].map(Some));
        assert_eq!(with(120.0, most(100.0)).is_reached(), Some(true));
        assert_eq!(with(121.0, most(100.0)).is_reached(), Some(false));
        assert_eq!(with(1.0, most(1.0)).bar_text(), "≤ 1 + 20 %, or + 2 s");
    }

    #[test]
    fn what_was_not_measured_misses_its_bar() {
        assert_eq!(Figure::new("x", "y", "s").is_reached(), None);
        let bars = [
            Bar::Times(1.5),
            Bar::AtMost(1.0),
            Bar::MoreThan(-1.0),
            Bar::Exactly(0.0),
            Bar::near(0.0),
        ];
        for bar in bars {
            let figure = Figure::new("x", "y", "s").bar(bar);
            assert_eq!(
                (figure.is_reached(), figure.fault().is_some()),
                (Some(false), true),
                "{bar:?}"
            );
        }
    }

    #[test]
    fn what_never_came_in_one_run_misses_its_bar_and_is_told_as_never() {
        let mut figure = Figure::new("x", "cut after", "s").bar(Bar::AtMost(7.0));
        figure.gateway = vec![5.0, f64::INFINITY, 5.0];
        assert_eq!(figure.is_reached(), Some(false));
        assert_eq!(figure.gateway_value().map(number).as_deref(), Some("never"));
        assert_eq!(figure.json()["gateway"], "never");
        assert_eq!(figure.json()["runs"]["gateway"], json!([5.0, "never", 5.0]));
        // Beside what never came, nothing is near.
        let never = f64::INFINITY;
        for bar in [
            Bar::near(never),
            Bar::NoMoreThan {
                value: never,
                noise: 1.0,
            },
        ] {
            assert_eq!(with(never, bar).is_reached(), Some(false));
            assert_eq!(with(1.0, bar).is_reached(), Some(false));
        }
    }

    #[test]
    fn what_is_exact_is_exact_in_every_run() {
        let mut figure = Figure::new("x", "gaps", "events").bar(Bar::Exactly(0.0));
        figure.gateway = vec![0.0, 3.0, 0.0];
        assert_eq!(
            (figure.is_reached(), figure.gateway_value()),
            (Some(false), Some(3.0))
        );
        assert_eq!(figure.fault().as_deref(), Some("x: gaps: 3 events, not = 0"));
    }

    #[test]
    fn what_has_to_be_more_is_more_in_every_run_on_any_machine() {
        let more = |values: &[f64]| {
            let mut figure = Figure::new("x", "watches", "requests").bar(Bar::MoreThan(1.0));
            figure.gateway = values.to_vec();
            (figure.is_reached(), figure.fault())
        };
        assert_eq!(more(&[2.0, 9.0]), (Some(true), None));
        let fault = Some("x: watches: 1 requests, not > 1".to_owned());
        assert_eq!(more(&[1.0]), (Some(false), fault.clone()));
        assert_eq!(more(&[9.0, 1.0, 9.0]), (Some(false), fault));
    }

    #[test]
    fn a_slow_figure_is_no_fault_and_one_without_a_value_is() {
        assert_eq!(with(9.0, Bar::AtMost(1.0)).fault(), None);
        assert_eq!(with(9.0, Bar::near(1.0)).fault(), None);
        assert_eq!(with(1.0, Bar::Exactly(1.0)).fault(), None);
        assert_eq!(
            with(f64::INFINITY, Bar::AtMost(1.0)).fault().as_deref(),
            Some("x: y: never")
        );
        let alone = with(1.0, Bar::Times(2.0));
        assert_eq!(alone.fault().as_deref(), Some("x: y: no value of the limit"));
        assert_eq!(
            Figure::new("x", "y", "s").fault().as_deref(),
            Some("x: y: no value")
        );
    }

    #[test]
    fn numbers_have_three_digits() {
        let texts = [0.1234, 1.234, 12.34, 123.4, 5.0].map(number);
        assert_eq!(texts, ["0.123", "1.23", "12.3", "123", "5"]);
    }
}
