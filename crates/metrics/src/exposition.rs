//! A registry as the text that Prometheus reads.

use prometheus_client::registry::Registry;

/// The media type of [`encode`]'s text: [OpenMetrics].
///
/// [OpenMetrics]: https://prometheus.io/docs/specs/om/open_metrics_spec/#overall-structure
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A metric of the registry could not be written.
#[derive(Debug, thiserror::Error)]
#[error("a metric of the registry cannot be written")]
pub struct EncodeError(#[from] std::fmt::Error);

/// Everything in the registry, the host's own metrics included, in the text format of [`CONTENT_TYPE`].
///
/// # Errors
/// [`EncodeError`] if a collector that the host registered fails; the metrics of this crate do not.
pub fn encode(registry: &Registry) -> Result<String, EncodeError> {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry)?;
    Ok(text)
}
