//! `/metrics` and `/status`: figures, without a scope's value or a caller's name.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use krm_stream_http::Gateway;
use krm_stream_metrics::{CONTENT_TYPE as OPEN_METRICS, MetricsObserver, Registry};
use serde_json::json;
use tokio::time::Instant;

/// What the figures come from.
#[derive(Debug)]
pub(crate) struct Admin {
    registry: Registry,
    observer: Arc<MetricsObserver>,
    gateway: Gateway,
    connections: Arc<Connections>,
    started: Instant,
}

/// Connections to the listeners of this program.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    accepted: AtomicU64,
    closed: AtomicU64,
}

/// One open connection; closed when dropped.
#[derive(Debug)]
pub(crate) struct OpenConnection(Arc<Connections>);

impl Connections {
    pub(crate) fn opened(self: &Arc<Self>) -> OpenConnection {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        OpenConnection(Arc::clone(self))
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.closed.fetch_add(1, Ordering::Relaxed);
    }
}

impl Admin {
    pub(crate) fn new(
        registry: Registry,
        observer: Arc<MetricsObserver>,
        gateway: Gateway,
        connections: Arc<Connections>,
    ) -> Self {
        Self {
            registry,
            observer,
            gateway,
            connections,
            started: Instant::now(),
        }
    }

    /// What stands at a path, if anything does.
    pub(crate) fn answer(&self, path: &str) -> Option<Response<Bytes>> {
        match path {
            "/metrics" => Some(self.metrics()),
            "/status" => Some(response("application/json", self.status())),
            _ => None,
        }
    }

    fn metrics(&self) -> Response<Bytes> {
        match krm_stream_metrics::encode(&self.registry) {
            Ok(text) => response(OPEN_METRICS, text),
            Err(error) => {
                tracing::error!(%error, "metrics");
                let mut response = response("text/plain; charset=utf-8", format!("{error}\n"));
                *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                response
            }
        }
    }

    fn status(&self) -> String {
        let totals = self.observer.totals();
        let closed = self.connections.closed.load(Ordering::Relaxed);
        let accepted = self.connections.accepted.load(Ordering::Relaxed);
        let status = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "uptimeSeconds": self.started.elapsed().as_secs(),
            "connections": {"open": accepted.saturating_sub(closed), "accepted": accepted},
            "streams": {"open": totals.streams_open, "opened": totals.streams_opened},
            "subscriptions": {"open": totals.subscriptions_open, "opened": totals.subscriptions_opened},
            "feeds": {"open": self.gateway.feeds().count()},
            "upstreamSessions": {
                "open": totals.upstream_sessions_open,
                "opened": totals.upstream_sessions_opened,
            },
            "snapshots": {"delivered": totals.snapshots_delivered},
            "events": {"emitted": totals.events_emitted},
            "bytes": {"delivered": totals.bytes_delivered},
        });
        format!("{status:#}\n")
    }
}

fn response(content_type: &'static str, content: String) -> Response<Bytes> {
    let mut response = Response::new(content.into());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
