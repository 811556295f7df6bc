//! What an operator sees: observations and reports, remembered.

use std::error::Error;
use std::fmt::Write as _;
use std::sync::Mutex;

use krm_stream_protocol::{Diagnostic, Diagnostics, Observation, Observer};

#[derive(Debug, Default)]
pub(crate) struct Recorder(Mutex<Vec<Observation>>);

impl Recorder {
    pub(crate) fn count(&self, is_meant: impl Fn(&Observation) -> bool) -> usize {
        self.0
            .lock()
            .unwrap()
            .iter()
            .filter(|seen| is_meant(seen))
            .count()
    }

    pub(crate) fn has(&self, wanted: &Observation) -> bool {
        self.count(|seen| seen == wanted) > 0
    }

    pub(crate) fn all(&self) -> Vec<Observation> {
        self.0.lock().unwrap().clone()
    }

    /// How many streams, subscriptions and sessions were opened and not closed, in this order.
    pub(crate) fn still_open(&self) -> [usize; 3] {
        let open = |opened: &Observation, is_closed: fn(&Observation) -> bool| {
            self.count(|seen| seen == opened) - self.count(is_closed)
        };
        [
            open(&Observation::StreamOpened, |seen| {
                *seen == Observation::StreamClosed
            }),
            open(&Observation::SharedSubscriptionOpened, |seen| {
                *seen == Observation::SharedSubscriptionClosed
            }),
            open(&Observation::UpstreamSessionOpened, |seen| {
                matches!(seen, Observation::UpstreamSessionEnded { .. })
            }),
        ]
    }
}

impl Observer for Recorder {
    fn observe(&self, observation: &Observation) {
        self.0.lock().unwrap().push(observation.clone());
    }
}

/// Remembers each report: its operation, and the texts of its causes.
#[derive(Debug, Default)]
pub(crate) struct Reports(Mutex<Vec<String>>);

impl Reports {
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Diagnostics for Reports {
    fn report(&self, diagnostic: &Diagnostic<'_>) {
        let mut text = diagnostic.operation.to_owned();
        let mut cause: Option<&dyn Error> = Some(diagnostic.cause);
        while let Some(error) = cause {
            let _ = write!(text, ": {error}");
            cause = error.source();
        }
        self.0.lock().unwrap().push(text);
    }
}
