//! What the tests share: a gateway on a scripted upstream, connections in memory with and without TLS, and slow readers.

#[path = "../gateway/support/asked.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod asked;
#[path = "../gateway/support/connection.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod connection;
#[path = "../gateway/support/recorder.rs"]
mod recorder;
#[path = "../gateway/support/scripted.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod scripted;
#[path = "../gateway/support/seams.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod seams;
mod throttled;
mod watched;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use krm_stream_http::{Gateway, GatewayBuilder};
use krm_stream_protocol::{Object, Observation};
use tokio::time::Instant;

pub(crate) use asked::AskedAuthorizer;
pub(crate) use connection::{Connection, type_of};
pub(crate) use recorder::{Recorder, Reports};
pub(crate) use scripted::{Script, ScriptedUpstream};
pub(crate) use seams::{Seam, builder};
pub(crate) use throttled::{Rate, Throttled};
pub(crate) use watched::{Seen, Watched};
pub(crate) use wire::{Client, Guarded, Kind, Sizes, Stream, request, tls_acceptor, tls_connector};

/// The scope that the tests ask for.
pub(crate) const PATH: &str = "/resource-stream/v1?version=v1&resource=configmaps&namespace=app";
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// A config map of namespace `app` whose uid and name are `uid`.
pub(crate) fn config_map(uid: &str, version: u64, value: &str) -> Object {
    let text = format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{uid}","namespace":"app","uid":"{uid}","resourceVersion":"{version}"}},"data":{{"value":"{value}"}}}}"#
    );
    Object::parse(Bytes::from(text)).unwrap()
}

/// A gateway and what can be seen of it.
pub(crate) struct Host {
    pub(crate) gateway: Gateway,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) reports: Arc<Reports>,
    pub(crate) script: Script,
}

impl Host {
    /// With a write timeout, and no heartbeat that anybody would wait for.
    pub(crate) fn new() -> Self {
        Self::with(|builder| builder)
    }

    pub(crate) fn with(set: impl FnOnce(GatewayBuilder) -> GatewayBuilder) -> Self {
        let (upstream, script) = ScriptedUpstream::new();
        let recorder = Arc::new(Recorder::default());
        let reports = Arc::new(Reports::default());
        let builder = builder(&upstream)
            .observer(recorder.clone())
            .diagnostics(reports.clone())
            .heartbeat_interval(Duration::from_hours(1))
            .write_timeout(WRITE_TIMEOUT);
        Self {
            gateway: set(builder).build().unwrap(),
            recorder,
            reports,
            script,
        }
    }

    pub(crate) fn timeouts(&self) -> usize {
        self.recorder.count(|seen| *seen == Observation::DeliveryTimeout)
    }

    pub(crate) fn bytes_handed_out(&self) -> u64 {
        let bytes = self.recorder.all().into_iter().map(|seen| match seen {
            Observation::BytesDelivered { bytes } => bytes,
            _ => 0,
        });
        bytes.sum()
    }

    /// Waits until somebody is cut, and says how long that took.
    pub(crate) async fn cut(&self) -> Duration {
        let began = Instant::now();
        eventually("a reader that takes nothing is cut", || self.timeouts() > 0).await;
        began.elapsed()
    }

    /// Nothing is left of any stream.
    pub(crate) async fn is_left_alone(&self) {
        eventually("every stream is released", || {
            self.recorder.still_open() == [0, 0, 0]
        })
        .await;
        assert_eq!(self.script.open_sessions(), 0);
        assert_eq!(self.gateway.feeds().count(), 0);
    }
}

/// Waits, in the test's time, until this holds.
pub(crate) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(
        tokio::time::timeout(Duration::from_mins(1), wait).await.is_ok(),
        "{what}"
    );
}

/// A cut came when the write timeout was over, and not later.
pub(crate) fn is_in_time(took: Duration) {
    let slack = Duration::from_millis(200);
    assert!(took.abs_diff(WRITE_TIMEOUT) <= slack, "cut after {took:?}");
}
