//! A small controller: streams and gates in, a status in a store out.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use krm_stream_protocol::{Identity, ResourceVersion};
use krm_stream_status::{
    AfterWrite, Conditions, Gate, ReadStatus, Readiness, Status, StreamSummary, Timestamp, WatchStream,
    plan_write, publish,
};
use serde::{Deserialize, Serialize};

use crate::kstatus;
use crate::store::{Store, Stored};

/// The status of the controller's resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TestStatus {
    pub(crate) observed_generation: i64,
    pub(crate) conditions: Conditions,
    pub(crate) summary: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) pending_sample: Vec<String>,
}

impl Status for TestStatus {
    fn conditions(&self) -> &Conditions {
        &self.conditions
    }
}

/// Streams, the gates beside them, a clock that is told, and the store.
#[derive(Debug)]
pub(crate) struct Controller {
    pub(crate) streams: Vec<(String, WatchStream)>,
    pub(crate) gates: Vec<Gate>,
    pub(crate) now: i64,
    pub(crate) store: Store,
}

impl Controller {
    /// A controller with this many streams that begin.
    pub(crate) fn new(streams: usize) -> Self {
        Self {
            streams: (0..streams)
                .map(|number| (format!("s{number}"), WatchStream::new()))
                .collect(),
            gates: Vec::new(),
            now: 1_000,
            store: Store::new(),
        }
    }

    /// Reads the object, evaluates, and writes if there is anything to write. Two seconds pass.
    pub(crate) fn reconcile(&mut self) -> Option<AfterWrite> {
        let read = self.store.read();
        self.write(&read)
    }

    /// Evaluates against what was read at some time.
    pub(crate) fn write(&mut self, read: &Stored) -> Option<AfterWrite> {
        self.now += 2;
        let status = status(read);
        let desired = self.evaluate(status.clone().unwrap_or_default());
        let version = read.object["metadata"]["resourceVersion"].as_str().unwrap();
        let read = ReadStatus {
            resource_version: &ResourceVersion::from(version),
            status: status.as_ref(),
        };
        let plan = plan_write(&read, &desired).unwrap()?;
        let object = Identity {
            uid: "u-1".into(),
            api_version: "example.com/v1".into(),
            kind: "Watcher".into(),
            namespace: None,
            name: "w".into(),
        };
        let mut publishing = pin!(publish(&self.store, &object, plan));
        match publishing.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(after) => Some(after.unwrap()),
            Poll::Pending => panic!("a store in memory does not wait"),
        }
    }

    /// What kstatus makes of what is stored.
    pub(crate) fn reading(&self) -> kstatus::Reading {
        kstatus::read(&self.store.read().object)
    }

    /// The stored status.
    pub(crate) fn status(&self) -> TestStatus {
        status(&self.store.read()).unwrap()
    }

    fn evaluate(&self, mut status: TestStatus) -> TestStatus {
        let streams = self
            .streams
            .iter()
            .map(|(name, stream)| (name.as_str(), stream.state()));
        let summary = StreamSummary::of(streams);
        self.gates
            .iter()
            .cloned()
            .fold(Readiness::of(summary.gate()), Readiness::and)
            .publish(&mut status.conditions, 1, Timestamp::from_unix_seconds(self.now));
        status.observed_generation = 1;
        status.summary = summary.to_string();
        status.pending_sample = summary.pending_sample().to_vec();
        status
    }
}

fn status(stored: &Stored) -> Option<TestStatus> {
    let status = stored.object.get("status")?;
    Some(TestStatus::deserialize(status).unwrap())
}
