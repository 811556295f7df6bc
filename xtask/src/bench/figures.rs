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
    Exactly(f64),
    /// Within ± 20 % of this.
    Near(f64),
}

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

    pub(crate) fn gateway_value(&self) -> Option<f64> {
        median(&self.gateway)
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

    /// Whether the bar is reached, if there is one.
    pub(crate) fn is_reached(&self) -> Option<bool> {
        match self.bar? {
            Bar::Times(most) => Some(self.ratio()? <= most),
            Bar::AtMost(most) => Some(self.gateway_value()? <= most),
            Bar::Exactly(value) => Some((self.gateway_value()? - value).abs() < 1e-9),
            Bar::Near(value) => Some((self.gateway_value()? - value).abs() <= 0.2 * value.abs()),
        }
    }

    pub(crate) fn bar_text(&self) -> String {
        match self.bar {
            None => String::new(),
            Some(Bar::Times(most)) => format!("≤ {most} × limit"),
            Some(Bar::AtMost(most)) => format!("≤ {most}"),
            Some(Bar::Exactly(value)) => format!("= {value}"),
            Some(Bar::Near(value)) => format!("{} ± 20 %", number(value)),
        }
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "scenario": self.scenario,
            "name": self.name,
            "unit": self.unit,
            "gateway": self.gateway_value(),
            "limit": self.limit_value(),
            "ratio": self.ratio(),
            "bar": self.bar.map(|_| self.bar_text()),
            "reached": self.is_reached(),
            "runs": {"gateway": self.gateway, "limit": self.limit},
        })
    }
}

/// Three significant digits, or all of a whole number.
pub(crate) fn number(value: f64) -> String {
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

    #[test]
    fn a_ratio_is_the_median_of_the_runs_that_were_side_by_side() {
        let mut figure = Figure::new("x", "y", "s").bar(Bar::Times(1.5));
        assert_eq!((figure.ratio(), figure.is_reached()), (None, None));
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
        let with = |value: f64, bar| Figure::new("x", "y", "s").of(value).bar(bar).is_reached();
        assert_eq!(with(16.0, Bar::AtMost(16.0)), Some(true));
        assert_eq!(with(16.1, Bar::AtMost(16.0)), Some(false));
        assert_eq!(with(1.0, Bar::Exactly(1.0)), Some(true));
        assert_eq!(with(2.0, Bar::Exactly(1.0)), Some(false));
        assert_eq!(with(85.0, Bar::Near(100.0)), Some(true));
        assert_eq!(with(121.0, Bar::Near(100.0)), Some(false));
    }

    #[test]
    fn numbers_have_three_digits() {
        let texts = [0.1234, 1.234, 12.34, 123.4, 5.0].map(number);
        assert_eq!(texts, ["0.123", "1.23", "12.3", "123", "5"]);
    }
}
