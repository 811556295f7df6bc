//! An observer that remembers, for tests that count.

use std::sync::{Mutex, PoisonError};

use krm_stream_protocol::{Observation, Observer};

/// Remembers every observation.
#[derive(Debug, Default)]
pub struct Recorder(Mutex<Vec<Observation>>);

impl Recorder {
    /// How many observations satisfy `is_meant`.
    pub fn count(&self, is_meant: impl Fn(&Observation) -> bool) -> usize {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .filter(|observation| is_meant(observation))
            .count()
    }
}

impl Observer for Recorder {
    fn observe(&self, observation: &Observation) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(observation.clone());
    }
}
