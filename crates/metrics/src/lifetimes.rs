//! What is opened and closed again: how many there were, and how many there are.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Things that are opened and closed.
#[derive(Debug, Default)]
pub(crate) struct Lifetimes {
    opened: Counter,
    open: Gauge,
}

impl Lifetimes {
    /// Registers `{name}_opened_total` and `{name}_open`.
    pub(crate) fn register(registry: &mut Registry, name: &str, what: &str) -> Self {
        let lifetimes = Self::default();
        registry.register(
            format!("{name}_opened"),
            format!("{what} opened since start"),
            lifetimes.opened.clone(),
        );
        registry.register(
            format!("{name}_open"),
            format!("{what} open now"),
            lifetimes.open.clone(),
        );
        lifetimes
    }

    pub(crate) fn opened(&self) {
        self.opened.inc();
        self.open.inc();
    }

    pub(crate) fn closed(&self) {
        self.open.dec();
    }

    /// How many were opened since start.
    pub(crate) fn total(&self) -> u64 {
        self.opened.get()
    }

    /// How many are open now.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.open.get()).unwrap_or_default()
    }
}
