//! Which metrics a query asks for: enough of [PromQL] for the queries of this repository.
//!
//! [PromQL]: https://prometheus.io/docs/prometheus/latest/querying/basics/

use std::collections::BTreeSet;

/// A metric in a query, with the labels that it must have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Selector {
    pub(crate) metric: String,
    /// What stands within the braces.
    pub(crate) matchers: BTreeSet<String>,
}

/// Words that name no metric.
const OPERATORS: [&str; 6] = ["and", "or", "unless", "bool", "inf", "nan"];
/// Words with a list of labels behind them.
const GROUPINGS: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];

/// The metrics of a query.
pub(crate) fn selectors(query: &str) -> BTreeSet<Selector> {
    let mut found = BTreeSet::new();
    let mut rest = query;
    while let Some(first) = rest.chars().next() {
        if first == '"' {
            rest = behind(&rest[1..], '"');
        } else if first == '[' {
            rest = behind(rest, ']');
        } else if first.is_ascii_digit() {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '.');
        } else if first.is_ascii_alphabetic() || first == '_' || first == ':' {
            let end = rest
                .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'))
                .unwrap_or(rest.len());
            let word = &rest[..end];
            rest = rest[end..].trim_start();
            if GROUPINGS.contains(&word) {
                rest = behind(rest, ')');
            } else if rest.starts_with('(') || OPERATORS.contains(&word) {
                // A function, or an aggregation.
            } else if is_aggregation(word) {
                // `sum by (le) (…)`: the labels come before the parenthesis.
            } else {
                let matchers = match rest.strip_prefix('{') {
                    Some(inside) => {
                        let end = inside.find('}').expect("the braces of a selector are closed");
                        rest = &inside[end + 1..];
                        inside[..end]
                            .split(',')
                            .map(|matcher| matcher.trim().to_owned())
                            .collect()
                    }
                    None => BTreeSet::new(),
                };
                found.insert(Selector {
                    metric: word.to_owned(),
                    matchers,
                });
            }
        } else {
            rest = &rest[first.len_utf8()..];
        }
    }
    found
}

fn is_aggregation(word: &str) -> bool {
    ["sum", "count", "avg", "min", "max", "topk", "quantile"].contains(&word)
}

/// What comes behind the next `end`.
fn behind(text: &str, end: char) -> &str {
    let at = text
        .find(end)
        .unwrap_or_else(|| panic!("no {end} follows in {text}"));
    &text[at + end.len_utf8()..]
}

#[test]
fn metrics_are_told_from_functions_labels_and_numbers() {
    let found = selectors(
        r#"histogram_quantile(0.99, sum by (le, up) (rate(a_bucket{job=~"$job",x="y"}[5m]))) > 1e3
             and on (instance) b == 0 or sum without (c) (increase(d_total[30m])) > 4.2 * avg_over_time(e[$__rate_interval])"#,
    );
    let found: Vec<(&str, usize)> = found
        .iter()
        .map(|selector| (selector.metric.as_str(), selector.matchers.len()))
        .collect();
    assert_eq!(found, [("a_bucket", 2), ("b", 0), ("d_total", 0), ("e", 0)]);
}
