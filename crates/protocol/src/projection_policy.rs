//! The seam that grants a projection to a caller.

use std::fmt;
use std::sync::Arc;

use crate::{BoxFuture, Principal, Scope, StreamError};

/// The name of a projection, for example `krm-full/v1`. It stands on every `reset`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProjectionName(Arc<str>);

impl ProjectionName {
    /// Takes the name as it is spelled.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProjectionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for ProjectionName {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

/// Grants a projection. A browser may ask for one by name; only the host grants it.
pub trait ProjectionPolicy: Send + Sync {
    /// Resolves to the granted projection; `requested` is what the browser asked for, if it did.
    ///
    /// # Errors
    /// `FORBIDDEN` where the request is not granted.
    ///
    /// # Cancel safety
    /// The future may be dropped at any time.
    fn select<'a>(
        &'a self,
        principal: &'a Principal,
        scope: &'a Scope,
        requested: Option<&'a ProjectionName>,
    ) -> BoxFuture<'a, Result<ProjectionName, StreamError>>;
}

/// Grants a fixed list of names to every caller; the first is what a caller gets who asks for none.
#[derive(Clone, Debug)]
pub struct GrantNamed {
    first: ProjectionName,
    further: Vec<ProjectionName>,
}

impl GrantNamed {
    /// Grants `first`, also to callers who ask for nothing.
    pub fn new(first: impl Into<ProjectionName>) -> Self {
        Self {
            first: first.into(),
            further: Vec::new(),
        }
    }

    /// Grants a further name to those who ask for it.
    #[must_use]
    pub fn and(mut self, name: impl Into<ProjectionName>) -> Self {
        self.further.push(name.into());
        self
    }
}

impl Default for GrantNamed {
    /// `krm-full/v1`, and `krm-spec/v1` on request. Never `krm-raw/v1`.
    fn default() -> Self {
        Self::new("krm-full/v1").and("krm-spec/v1")
    }
}

impl ProjectionPolicy for GrantNamed {
    fn select<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a Scope,
        requested: Option<&'a ProjectionName>,
    ) -> BoxFuture<'a, Result<ProjectionName, StreamError>> {
        let granted = match requested {
            None => Ok(self.first.clone()),
            Some(name) if *name == self.first || self.further.contains(name) => Ok(name.clone()),
            Some(_) => Err(StreamError::forbidden("this projection is not granted")),
        };
        Box::pin(std::future::ready(granted))
    }
}
