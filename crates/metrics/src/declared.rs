//! How declared streams are, and whether their status is published: no observation tells that, and their controller knows.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

const NAME: &str = "krm_stream_declared_streams";
const HELP: &str = "Declared streams now, by state.";
const LABEL: &str = "state";
const PUBLISHING: &str = "krm_stream_declared_publishing";
const PUBLISHING_HELP: &str = "1 if this replica publishes the status of declared streams, else 0.";
const UNWRITTEN: &str = "krm_stream_declared_statuses_unwritten";
const UNWRITTEN_HELP: &str = "Resources of declared streams whose latest status could not be written yet.";

/// How many declared streams are in each state, and how the publishing of their status goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeclaredStates {
    /// They have a complete snapshot and follow it.
    pub ready: usize,
    /// They read a snapshot.
    pub replaying: usize,
    /// They do not go on for now.
    pub blocked: usize,
    /// This replica is the one that publishes.
    pub publishes: bool,
    /// The resources whose latest status could not be written yet.
    pub unwritten: usize,
}

/// Asks for the numbers at each scrape.
struct DeclaredStreams<F>(F);

/// Registers the gauge `krm_stream_declared_streams`, with one series for each `state`: `ready`, `replaying`, `blocked`; all
/// three are there from the start. And the gauges `krm_stream_declared_publishing` and
/// `krm_stream_declared_statuses_unwritten`. `states` is called at each scrape and must not block.
pub fn register_declared_streams(
    registry: &mut Registry,
    states: impl Fn() -> DeclaredStates + Send + Sync + 'static,
) {
    registry.register_collector(Box::new(DeclaredStreams(states)));
}

impl<F> fmt::Debug for DeclaredStreams<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("DeclaredStreams").finish_non_exhaustive()
    }
}

impl<F: Fn() -> DeclaredStates + Send + Sync + 'static> Collector for DeclaredStreams<F> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let DeclaredStates {
            ready,
            replaying,
            blocked,
            publishes,
            unwritten,
        } = (self.0)();
        let mut family = encoder.encode_descriptor(NAME, HELP, None, MetricType::Gauge)?;
        for (state, count) in [("ready", ready), ("replaying", replaying), ("blocked", blocked)] {
            gauge(count).encode(family.encode_family(&[(LABEL, state)])?)?;
        }
        for (name, help, value) in [
            (PUBLISHING, PUBLISHING_HELP, usize::from(publishes)),
            (UNWRITTEN, UNWRITTEN_HELP, unwritten),
        ] {
            gauge(value).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
        }
        Ok(())
    }
}

fn gauge(value: usize) -> ConstGauge {
    ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::encode;

    #[test]
    fn each_state_has_a_series_from_the_start_and_is_asked_for_at_each_scrape() {
        let blocked = Arc::new(AtomicUsize::new(0));
        let mut registry = Registry::default();
        let counted = Arc::clone(&blocked);
        register_declared_streams(&mut registry, move || DeclaredStates {
            ready: 2,
            blocked: counted.load(Ordering::Relaxed),
            publishes: true,
            ..DeclaredStates::default()
        });
        let expected = |blocked: usize| {
            format!(
                "# HELP krm_stream_declared_streams Declared streams now, by state.\n\
                 # TYPE krm_stream_declared_streams gauge\n\
                 krm_stream_declared_streams{{state=\"ready\"}} 2\n\
                 krm_stream_declared_streams{{state=\"replaying\"}} 0\n\
                 krm_stream_declared_streams{{state=\"blocked\"}} {blocked}\n\
                 # HELP krm_stream_declared_publishing 1 if this replica publishes the status of declared streams, else 0.\n\
                 # TYPE krm_stream_declared_publishing gauge\n\
                 krm_stream_declared_publishing 1\n\
                 # HELP krm_stream_declared_statuses_unwritten Resources of declared streams whose latest status could not be \
                 written yet.\n\
                 # TYPE krm_stream_declared_statuses_unwritten gauge\n\
                 krm_stream_declared_statuses_unwritten 0\n\
                 # EOF\n"
            )
        };
        assert_eq!(encode(&registry).unwrap(), expected(0));
        blocked.store(3, Ordering::Relaxed);
        assert_eq!(encode(&registry).unwrap(), expected(3));
    }
}
