//! The observer: what each observation does to the text that Prometheus reads.

mod each_observation;

use std::collections::BTreeSet;
use std::time::Duration;

use krm_stream_protocol::{
    AuthorizationOutcome, ErrorCode, EventType, Observation, Observer, ProjectionName, SessionEndReason,
};

use self::each_observation::each_observation;
use crate::{
    DeclaredStates, MOST_PROJECTIONS, MetricsObserver, Registry, Totals, encode, register_declared_streams,
    register_open_feeds,
};

fn observed(observations: &[Observation]) -> (String, Totals) {
    let mut registry = Registry::default();
    let observer = MetricsObserver::new(&mut registry);
    for observation in observations {
        observer.observe(observation);
    }
    (encode(&registry).unwrap(), observer.totals())
}

#[track_caller]
fn assert_line(text: &str, line: &str) {
    assert!(
        text.lines().any(|found| found == line),
        "no line {line:?} in:\n{text}"
    );
}

#[test]
fn what_is_opened_and_closed_is_a_total_and_a_gauge() {
    let (text, totals) = observed(&[
        Observation::StreamOpened,
        Observation::StreamOpened,
        Observation::StreamClosed,
        Observation::SharedSubscriptionOpened,
        Observation::UpstreamSessionOpened,
        Observation::UpstreamSessionEnded {
            reason: SessionEndReason::Expired,
        },
        Observation::SharedSubscriptionClosed,
    ]);
    for line in [
        "krm_stream_streams_open 1",
        "krm_stream_streams_opened_total 2",
        "krm_stream_subscriptions_open 0",
        "krm_stream_subscriptions_opened_total 1",
        "krm_stream_upstream_sessions_open 0",
        "krm_stream_upstream_sessions_opened_total 1",
        "watch_sessions_ended_total{reason=\"expired\"} 1",
        "watch_sessions_ended_total{reason=\"closed\"} 0",
    ] {
        assert_line(&text, line);
    }
    assert_eq!((totals.streams_open, totals.streams_opened), (1, 2));
    assert_eq!(
        (totals.upstream_sessions_open, totals.upstream_sessions_opened),
        (0, 1)
    );
}

#[test]
fn counters_have_the_labels_of_the_wire() {
    let (text, totals) = observed(&[
        Observation::EventEmitted {
            event_type: EventType::Modified,
            count: 2,
        },
        Observation::EventEmitted {
            event_type: EventType::Synced,
            count: 1,
        },
        Observation::EventSuppressed,
        Observation::ConsumerResync,
        Observation::SharedOverflow,
        Observation::HttpTransportRejected,
        Observation::DeliveryTimeout,
        Observation::RetryableError {
            code: ErrorCode::UpstreamUnavailable,
        },
        Observation::TerminalError {
            code: ErrorCode::Forbidden,
        },
        Observation::CycleStarted {
            projection: "krm-full/v1".into(),
        },
        Observation::BytesDelivered { bytes: 41 },
        Observation::BytesDelivered { bytes: 1 },
    ]);
    for line in [
        "krm_stream_events_emitted_total{type=\"modified\"} 2",
        "krm_stream_events_emitted_total{type=\"synced\"} 1",
        "krm_stream_events_suppressed_total 1",
        "krm_stream_consumer_resyncs_total 1",
        "krm_stream_shared_overflows_total 1",
        "krm_stream_http_transports_rejected_total 1",
        "krm_stream_delivery_timeouts_total 1",
        "krm_stream_retryable_errors_total{code=\"UPSTREAM_UNAVAILABLE\"} 1",
        "krm_stream_terminal_errors_total{code=\"FORBIDDEN\"} 1",
        "krm_stream_cycles_started_total{projection=\"krm-full/v1\"} 1",
        "krm_stream_delivered_bytes_total 42",
    ] {
        assert_line(&text, line);
    }
    assert_eq!((totals.events_emitted, totals.bytes_delivered), (3, 42));
}

#[test]
fn snapshots_and_checks_are_histograms_in_base_units() {
    let (text, totals) = observed(&[
        Observation::SnapshotDelivered {
            objects: 700,
            bytes: 2_000_000,
            duration: Duration::from_millis(300),
        },
        Observation::AuthorizationChecked {
            outcome: AuthorizationOutcome::Denied,
            duration: Duration::from_millis(2),
        },
    ]);
    for line in [
        "krm_stream_snapshot_duration_seconds_bucket{le=\"0.25\"} 0",
        "krm_stream_snapshot_duration_seconds_bucket{le=\"0.5\"} 1",
        "krm_stream_snapshot_objects_bucket{le=\"500.0\"} 0",
        "krm_stream_snapshot_objects_bucket{le=\"1000.0\"} 1",
        "krm_stream_snapshot_size_bytes_sum 2000000.0",
        "krm_stream_authorization_duration_seconds_count{outcome=\"denied\"} 1",
        "krm_stream_authorization_duration_seconds_count{outcome=\"failed\"} 0",
        "krm_stream_authorization_duration_seconds_bucket{le=\"0.001\",outcome=\"denied\"} 0",
        "krm_stream_authorization_duration_seconds_bucket{le=\"0.005\",outcome=\"denied\"} 1",
    ] {
        assert_line(&text, line);
    }
    assert_eq!(totals.snapshots_delivered, 1);
}

#[test]
fn every_series_is_there_before_anything_happens() {
    let (text, totals) = observed(&[]);
    for code in ErrorCode::ALL {
        assert_line(
            &text,
            &format!("krm_stream_terminal_errors_total{{code=\"{code}\"}} 0"),
        );
        assert_line(
            &text,
            &format!("krm_stream_retryable_errors_total{{code=\"{code}\"}} 0"),
        );
    }
    assert_line(
        &text,
        &format!(
            "krm_stream_build_info{{version=\"{}\"}} 1",
            env!("CARGO_PKG_VERSION")
        ),
    );
    assert!(text.ends_with("# EOF\n"));
    assert_eq!(totals, Totals::default());
}

#[test]
fn names_are_ours_and_each_is_described_once() {
    let (text, _) = observed(&[]);
    let described: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# HELP ")?.split_whitespace().next())
        .collect();
    let distinct: BTreeSet<&str> = described.iter().copied().collect();
    assert_eq!(described.len(), distinct.len());
    for name in distinct {
        assert!(
            name.starts_with("krm_stream_") || name == "watch_sessions_ended",
            "{name}"
        );
    }
}

#[test]
fn a_policy_that_grants_endless_names_does_not_make_endless_series() {
    let names = (0..MOST_PROJECTIONS + 40).map(|number| Observation::CycleStarted {
        projection: ProjectionName::new(format!("example.io/{number}/v1")),
    });
    let (text, _) = observed(&names.collect::<Vec<_>>());
    let series = text
        .lines()
        .filter(|line| line.starts_with("krm_stream_cycles_started_total"))
        .count();
    assert_eq!(series, MOST_PROJECTIONS + 1);
    assert_line(&text, "krm_stream_cycles_started_total{projection=\"other\"} 40");
    assert_line(
        &text,
        "krm_stream_cycles_started_total{projection=\"example.io/0/v1\"} 1",
    );
}

#[test]
fn a_name_with_a_quote_stays_one_label() {
    let (text, _) = observed(&[Observation::CycleStarted {
        projection: ProjectionName::new("a\"} 7\nkrm_stream_streams_open 9"),
    }]);
    assert!(!text.lines().any(|line| line == "krm_stream_streams_open 9"));
}

/// Every metric: its name as a query writes it, its kind, and its labels.
const METRICS: &[(&str, &str, &[&str])] = &[
    (
        "krm_stream_authorization_duration_seconds",
        "histogram",
        &["outcome"],
    ),
    ("krm_stream_build_info", "info", &["version"]),
    ("krm_stream_consumer_resyncs_total", "counter", &[]),
    ("krm_stream_cycles_started_total", "counter", &["projection"]),
    ("krm_stream_declared_publishing", "gauge", &[]),
    ("krm_stream_declared_statuses_unwritten", "gauge", &[]),
    ("krm_stream_declared_streams", "gauge", &["state"]),
    ("krm_stream_delivered_bytes_total", "counter", &[]),
    ("krm_stream_delivery_timeouts_total", "counter", &[]),
    ("krm_stream_events_emitted_total", "counter", &["type"]),
    ("krm_stream_events_suppressed_total", "counter", &[]),
    ("krm_stream_feeds_open", "gauge", &[]),
    ("krm_stream_http_transports_rejected_total", "counter", &[]),
    ("krm_stream_retryable_errors_total", "counter", &["code"]),
    ("krm_stream_shared_overflows_total", "counter", &[]),
    ("krm_stream_snapshot_duration_seconds", "histogram", &[]),
    ("krm_stream_snapshot_objects", "histogram", &[]),
    ("krm_stream_snapshot_size_bytes", "histogram", &[]),
    ("krm_stream_streams_open", "gauge", &[]),
    ("krm_stream_streams_opened_total", "counter", &[]),
    ("krm_stream_subscriptions_open", "gauge", &[]),
    ("krm_stream_subscriptions_opened_total", "counter", &[]),
    ("krm_stream_terminal_errors_total", "counter", &["code"]),
    ("krm_stream_upstream_sessions_open", "gauge", &[]),
    ("krm_stream_upstream_sessions_opened_total", "counter", &[]),
    ("watch_sessions_ended_total", "counter", &["reason"]),
];

/// The metrics of a text with their kinds and labels; `le`, which every histogram has, is left out.
fn metrics_in(text: &str) -> Vec<(String, String, BTreeSet<String>)> {
    let kinds = text.lines().filter_map(|line| {
        let mut words = line.strip_prefix("# TYPE ")?.split_whitespace();
        Some((words.next()?, words.next()?))
    });
    let mut found: Vec<_> = kinds
        .map(|(family, kind)| {
            let series = match kind {
                "counter" => format!("{family}_total"),
                "info" => format!("{family}_info"),
                "histogram" => format!("{family}_bucket"),
                _ => family.to_owned(),
            };
            let lines = text
                .lines()
                .filter(|line| line.split(['{', ' ']).next() == Some(series.as_str()));
            let labels = lines
                .filter_map(|line| Some(line.split_once('{')?.1.split_once('}')?.0))
                .flat_map(|labels| labels.split(','))
                .filter_map(|label| Some(label.split_once('=')?.0.to_owned()))
                .filter(|label| label != "le");
            let name = series.strip_suffix("_bucket").unwrap_or(&series);
            (name.to_owned(), kind.to_owned(), labels.collect())
        })
        .collect();
    found.sort();
    found
}

#[test]
fn these_are_all_the_metrics_and_all_their_labels() {
    let mut registry = Registry::default();
    let observer = MetricsObserver::new(&mut registry);
    register_open_feeds(&mut registry, || 3);
    register_declared_streams(&mut registry, DeclaredStates::default);
    for observation in &each_observation() {
        observer.observe(observation);
    }
    let text = encode(&registry).unwrap();
    let expected: Vec<_> = METRICS
        .iter()
        .map(|(name, kind, labels)| {
            let labels = labels.iter().map(|&label| label.to_owned()).collect();
            ((*name).to_owned(), (*kind).to_owned(), labels)
        })
        .collect();
    assert_eq!(metrics_in(&text), expected, "{text}");
    assert_line(&text, "krm_stream_feeds_open 3");
}

#[test]
fn the_readme_tells_of_each_metric_and_of_no_other() {
    let readme = include_str!("../../README.md");
    let rows = readme.lines().filter(|line| line.starts_with("| `"));
    let told: BTreeSet<&str> = rows
        .filter_map(|row| row.split('|').nth(1))
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    let there: BTreeSet<&str> = METRICS.iter().map(|(name, _, _)| *name).collect();
    assert_eq!(told, there);
}

#[test]
fn open_feeds_are_counted_anew_at_each_scrape() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    let feeds = Arc::new(AtomicUsize::new(1));
    let counted = Arc::clone(&feeds);
    let mut registry = Registry::default();
    register_open_feeds(&mut registry, move || counted.load(Ordering::Relaxed));
    assert_line(&encode(&registry).unwrap(), "krm_stream_feeds_open 1");
    feeds.store(0, Ordering::Relaxed);
    assert_line(&encode(&registry).unwrap(), "krm_stream_feeds_open 0");
}
