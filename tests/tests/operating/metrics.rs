//! Alerts and dashboards ask for metrics that a gateway has.

#[path = "../../../crates/metrics/src/observer/tests/each_observation.rs"]
mod each_observation;

use std::collections::BTreeSet;

use krm_stream_metrics::{
    DeclaredStates, MetricsObserver, Registry, encode, register_declared_streams, register_open_feeds,
};
use krm_stream_protocol::Observer;
use serde_json::Value;

use self::each_observation::each_observation;
use crate::files::{document, documents, text};
use crate::queries::{Selector, selectors};

/// The text of `/metrics` after one of each observation.
pub(crate) fn exposition() -> String {
    let mut registry = Registry::default();
    let observer = MetricsObserver::new(&mut registry);
    register_open_feeds(&mut registry, || 1);
    register_declared_streams(&mut registry, DeclaredStates::default);
    for observation in each_observation() {
        observer.observe(&observation);
    }
    encode(&registry).expect("the registry can be written")
}

/// The metrics of the text, as queries name them: without the parts of a histogram.
pub(crate) fn names(exposition: &str) -> BTreeSet<String> {
    let types = exposition.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types
        .map(|line| {
            let (family, kind) = line.split_once(' ').expect("a type has a name");
            match kind {
                "counter" => format!("{family}_total"),
                "info" => format!("{family}_info"),
                _ => family.to_owned(),
            }
        })
        .collect()
}

#[track_caller]
fn assert_is_there(exposition: &str, selector: &Selector, query: &str) {
    let series: Vec<&str> = exposition
        .lines()
        .filter(|line| line.split(['{', ' ']).next() == Some(selector.metric.as_str()))
        .collect();
    assert!(!series.is_empty(), "{} is no metric: {query}", selector.metric);
    for matcher in &selector.matchers {
        // Labels that Prometheus puts on what it scrapes.
        let is_of_the_scrape = matcher.starts_with("job") || matcher.starts_with("instance");
        assert!(
            is_of_the_scrape || series.iter().any(|line| line.contains(matcher.as_str())),
            "no {} has {matcher}: {query}",
            selector.metric
        );
    }
}

/// The rules of the alerts.
pub(crate) fn alerts() -> Vec<Value> {
    let file = document("deploy/monitoring/alerts.yaml");
    let groups = file["groups"].as_array().expect("the file has groups").clone();
    groups
        .iter()
        .flat_map(|group| group["rules"].as_array().expect("a group has rules").clone())
        .collect()
}

#[test]
fn every_alert_asks_for_metrics_that_are_there() {
    let exposition = exposition();
    let alerts = alerts();
    assert!(alerts.len() >= 10);
    for alert in &alerts {
        let query = alert["expr"].as_str().expect("an alert has a query");
        let selectors = selectors(query);
        assert!(!selectors.is_empty(), "{query}");
        for selector in &selectors {
            assert_is_there(&exposition, selector, query);
        }
    }
}

#[test]
fn every_alert_says_what_to_do_first() {
    for alert in alerts() {
        let name = alert["alert"].as_str().expect("an alert has a name");
        assert!(name.starts_with("KrmStream"), "{name}");
        for annotation in ["summary", "description", "do_first"] {
            let text = alert["annotations"][annotation].as_str().unwrap_or_default();
            assert!(text.len() > 20, "{name} has no {annotation}");
        }
        let severity = alert["labels"]["severity"].as_str();
        assert!(matches!(severity, Some("warning" | "critical")), "{name}");
    }
}

#[test]
fn a_hot_flap_is_told_by_the_ends_of_watches_for_each_that_is_open() {
    let flap = alerts()
        .into_iter()
        .find(|alert| alert["alert"] == "KrmStreamHotFlap")
        .expect("there is an alert for a hot flap");
    let query = flap["expr"].as_str().expect("an alert has a query");
    let metrics: Vec<String> = selectors(query)
        .into_iter()
        .map(|selector| selector.metric)
        .collect();
    assert_eq!(
        metrics,
        ["krm_stream_upstream_sessions_open", "watch_sessions_ended_total"]
    );
    assert!(query.contains(r#"reason="closed""#));
}

#[test]
fn the_alerts_are_tested_by_names_that_are_theirs() {
    let names: BTreeSet<String> = alerts()
        .iter()
        .map(|alert| alert["alert"].as_str().unwrap_or_default().to_owned())
        .collect();
    let file = "deploy/monitoring/alerts.test.yaml";
    assert_eq!(documents(file)[0]["rule_files"][0], "alerts.yaml");
    for word in text(file).split(|c: char| !c.is_ascii_alphanumeric()) {
        if word.starts_with("KrmStream") {
            assert!(names.contains(word), "{word}");
        }
    }
}

#[test]
fn each_alert_is_seen_to_fire_and_what_it_says_then_is_read() {
    let file = documents("deploy/monitoring/alerts.test.yaml").remove(0);
    let mut seen = BTreeSet::new();
    for test in file["tests"].as_array().expect("the file has tests") {
        for expected in test["alert_rule_test"].as_array().into_iter().flatten() {
            for alert in expected["exp_alerts"].as_array().into_iter().flatten() {
                let name = expected["alertname"].as_str().expect("an alert has a name");
                assert!(alert["exp_annotations"]["description"].is_string(), "{name}");
                seen.insert(name.to_owned());
            }
        }
    }
    for alert in alerts() {
        let name = alert["alert"].as_str().expect("an alert has a name");
        assert!(
            seen.contains(name),
            "{name} never fires in alerts.test.yaml; add a test with exp_alerts"
        );
    }
}

#[test]
fn every_panel_asks_for_metrics_that_are_there_and_each_metric_has_a_panel() {
    let exposition = exposition();
    let dashboard: Value = serde_json::from_str(&text("deploy/monitoring/dashboard.json"))
        .unwrap_or_else(|error| panic!("{error}"));
    let mut asked = BTreeSet::new();
    let mut identifiers = BTreeSet::new();
    for panel in dashboard["panels"].as_array().expect("the dashboard has panels") {
        assert!(
            identifiers.insert(panel["id"].to_string()),
            "two panels have one id"
        );
        let targets = panel["targets"].as_array().cloned().unwrap_or_default();
        assert_eq!(
            targets.is_empty(),
            panel["type"] == "row",
            "{}: a panel asks for something",
            panel["title"]
        );
        for target in targets {
            let query = target["expr"].as_str().expect("a target has a query");
            for selector in selectors(query) {
                assert_is_there(&exposition, &selector, query);
                asked.insert(selector.metric);
            }
        }
    }
    for variable in dashboard["templating"]["list"]
        .as_array()
        .expect("the dashboard has variables")
    {
        if variable["type"] == "query" {
            let query = variable["definition"].as_str().expect("a variable has a query");
            assert!(query.contains("krm_stream_build_info"), "{query}");
        }
    }
    for name in names(&exposition) {
        let shown = asked
            .iter()
            .any(|metric| *metric == name || metric.strip_suffix("_bucket") == Some(name.as_str()));
        assert!(shown, "no panel shows {name}");
    }
}
