//! The number of feeds, which no observation tells and a gateway knows.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

const NAME: &str = "krm_stream_feeds_open";
const HELP: &str = "Feeds that are kept now, warm and opening.";

/// Asks for the number at each scrape.
struct OpenFeeds<F>(F);

/// Registers the gauge `krm_stream_feeds_open`. `count` is called at each scrape and must not block; of a gateway it is
/// `move || gateway.feeds().count()`, and of several gateways their sum.
pub fn register_open_feeds(registry: &mut Registry, count: impl Fn() -> usize + Send + Sync + 'static) {
    registry.register_collector(Box::new(OpenFeeds(count)));
}

impl<F> fmt::Debug for OpenFeeds<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OpenFeeds").finish_non_exhaustive()
    }
}

impl<F: Fn() -> usize + Send + Sync + 'static> Collector for OpenFeeds<F> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let gauge = ConstGauge::new(i64::try_from((self.0)()).unwrap_or(i64::MAX));
        gauge.encode(encoder.encode_descriptor(NAME, HELP, None, MetricType::Gauge)?)
    }
}
