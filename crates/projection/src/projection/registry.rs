//! The projections that a gateway knows.

use std::collections::BTreeMap;
use std::sync::Arc;

use krm_stream_protocol::ProjectionName;

use super::{Projection, ProjectionError};

/// The projections that a gateway knows, by name: the three built-in ones, and those that the host adds.
///
/// Knowing a projection grants it to nobody; that is the host's
/// [`ProjectionPolicy`](krm_stream_protocol::ProjectionPolicy)'s decision.
#[derive(Clone, Debug)]
pub struct Projections(BTreeMap<ProjectionName, Arc<Projection>>);

impl Projections {
    /// Adds a projection of the host's own.
    ///
    /// # Errors
    /// [`ProjectionError::Duplicate`] if its name is taken.
    pub fn with(mut self, projection: Projection) -> Result<Self, ProjectionError> {
        let name = projection.name().clone();
        if self.0.contains_key(&name) {
            return Err(ProjectionError::Duplicate { name });
        }
        self.0.insert(name, Arc::new(projection));
        Ok(self)
    }

    /// The projection of this name.
    pub fn get(&self, name: &ProjectionName) -> Option<&Arc<Projection>> {
        self.0.get(name)
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &ProjectionName> {
        self.0.keys()
    }
}

impl Default for Projections {
    /// The built-in ones.
    fn default() -> Self {
        let built_in = [Projection::raw(), Projection::full(), Projection::spec()];
        Self(
            built_in
                .into_iter()
                .map(|projection| (projection.name().clone(), projection))
                .collect(),
        )
    }
}
