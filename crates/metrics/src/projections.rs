//! A counter for each granted projection, of which there cannot be too many.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use krm_stream_protocol::ProjectionName;
use prometheus_client::encoding::{EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

/// How many projections have a series of their own. A policy grants from the list that its host defined, so more of them
/// are a mistake; what comes after is counted as `other`.
pub const MOST_PROJECTIONS: usize = 32;

/// The label of the projections that came after.
const OTHER: &str = "other";

pub(crate) type PerProjection = Family<[(&'static str, Name); 1], Counter>;

/// A granted name as a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Name(Arc<str>);

/// The counters that were made so far.
#[derive(Debug, Default)]
pub(crate) struct Projections {
    family: PerProjection,
    known: Mutex<BTreeMap<ProjectionName, Counter>>,
}

impl Projections {
    pub(crate) fn family(&self) -> PerProjection {
        self.family.clone()
    }

    pub(crate) fn count(&self, projection: &ProjectionName) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counter) = known.get(projection) {
            counter.inc();
        } else if known.len() < MOST_PROJECTIONS {
            let counter = self.series(projection.as_str());
            counter.inc();
            known.insert(projection.clone(), counter);
        } else {
            self.series(OTHER).inc();
        }
    }

    fn series(&self, name: &str) -> Counter {
        self.family
            .get_or_create_owned(&[("projection", Name(name.into()))])
    }
}

impl EncodeLabelValue for Name {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        (&*self.0).encode(encoder)
    }
}
