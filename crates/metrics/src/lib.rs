//! An [`Observer`](krm_stream_protocol::Observer) that feeds Prometheus with what a krm-stream gateway does.
//!
//! [`MetricsObserver::new`] registers its metrics in a registry of the host's, and counts from then on; the host serves
//! the registry in whatever way it does already, or with [`encode`] and [`CONTENT_TYPE`].
//!
//! Labels are bounded by construction: they are the names of enum variants, and the names of granted projections, of
//! which at most [`MOST_PROJECTIONS`] have a series of their own. No object name, uid, principal, scope value or error
//! text can become a label, since no observation holds one.
//!
//! This crate opens no port, spawns nothing and reads no clock.
//!
//! ```
//! use std::sync::Arc;
//!
//! use krm_stream_metrics::{MetricsObserver, Registry, encode};
//! use krm_stream_protocol::{EventType, Observation, Observer};
//!
//! let mut registry = Registry::default();
//! let observer: Arc<dyn Observer> = Arc::new(MetricsObserver::new(&mut registry));
//!
//! // A gateway is given the observer; here it is told by hand what a gateway would tell it.
//! observer.observe(&Observation::StreamOpened);
//! observer.observe(&Observation::EventEmitted { event_type: EventType::Reset, count: 1 });
//!
//! let text = encode(&registry)?;
//! assert!(text.contains("krm_stream_streams_open 1\n"));
//! assert!(text.contains("krm_stream_events_emitted_total{type=\"reset\"} 1\n"));
//! # Ok::<(), krm_stream_metrics::EncodeError>(())
//! ```

mod buckets;
mod declared;
mod exposition;
mod feeds;
mod lifetimes;
mod observer;
mod projections;
mod series;
mod totals;

pub use declared::{DeclaredStates, register_declared_streams};
pub use exposition::{CONTENT_TYPE, EncodeError, encode};
pub use feeds::register_open_feeds;
pub use observer::MetricsObserver;
pub use projections::MOST_PROJECTIONS;
pub use prometheus_client::registry::Registry;
pub use totals::Totals;
