//! From a declaration to the scopes that are watched.

use std::collections::BTreeSet;

use krm_stream_protocol::{ProjectionName, Scope, ScopeBuilder, ScopeError, ScopeField};
use krm_stream_status::WatchStream;

use crate::{DeclaredPolicy, DeclaredScope, DeclaredStreamError, DeclaredStreamSpec, StreamDeclaration};

/// One declared stream: its name, and the scope to keep warm or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedStream {
    name: String,
    outcome: Result<WarmScope, DeclaredStreamError>,
}

/// A scope to keep warm, and the projection of its feed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WarmScope {
    scope: Scope,
    projection: ProjectionName,
}

impl WarmScope {
    /// The scope, legal and allowed.
    pub const fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The projection, allowed.
    pub const fn projection(&self) -> &ProjectionName {
        &self.projection
    }
}

impl ResolvedStream {
    /// The name that it was declared under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What to watch.
    ///
    /// # Errors
    /// [`DeclaredStreamError`] if it is not watched; its text is for the status.
    pub fn outcome(&self) -> Result<&WarmScope, &DeclaredStreamError> {
        self.outcome.as_ref()
    }

    /// The stream as it begins: replaying, or blocked if it cannot be watched.
    pub fn initial_stream(&self) -> WatchStream {
        match &self.outcome {
            Ok(_) => WatchStream::new(),
            Err(error) => WatchStream::blocked(error.blockage()),
        }
    }
}

impl DeclaredStreamSpec {
    /// Every declared stream, in order, under the gateway's policy. One that is refused does not hold up the others.
    ///
    /// Whether an API server serves the resource is not known here: a stream of a resource that it does not serve is
    /// resolved, and blocked when it is opened.
    pub fn resolve(&self, policy: &DeclaredPolicy) -> Vec<ResolvedStream> {
        let mut names = BTreeSet::new();
        self.streams
            .iter()
            .map(|declared| ResolvedStream {
                name: declared.name.clone(),
                outcome: if names.insert(&declared.name) {
                    resolve(declared, policy)
                } else {
                    Err(DeclaredStreamError::NameRepeated)
                },
            })
            .collect()
    }
}

fn resolve(declared: &StreamDeclaration, policy: &DeclaredPolicy) -> Result<WarmScope, DeclaredStreamError> {
    if policy.scopes().is_any_resource() {
        return Err(DeclaredStreamError::NoAllowList);
    }
    let scope = build(&declared.scope)?;
    policy.scopes().check(&scope)?;
    let projection = policy
        .projection(declared.projection.as_deref())
        .ok_or(DeclaredStreamError::ProjectionNotAllowed)?;
    Ok(WarmScope { scope, projection })
}

/// Sets one optional part of a scope.
type Setter = fn(ScopeBuilder, &str) -> ScopeBuilder;

/// The same checks as for a browser's request: what is left out is absent, what is empty is refused.
fn build(declared: &DeclaredScope) -> Result<Scope, ScopeError> {
    if declared.target.as_deref() == Some("") {
        // A builder takes the empty name for the default target.
        return Err(ScopeError::Empty(ScopeField::Target));
    }
    let given: [(&Option<String>, Setter); 5] = [
        (&declared.target, |builder, text| builder.target(text)),
        (&declared.group, |builder, text| builder.group(text)),
        (&declared.namespace, |builder, text| builder.namespace(text)),
        (&declared.name, |builder, text| builder.name(text)),
        (&declared.label_selector, |builder, text| {
            builder.label_selector(text)
        }),
    ];
    let mut builder = Scope::builder(&*declared.version, &*declared.resource);
    for (value, set) in given {
        if let Some(text) = value {
            builder = set(builder, text);
        }
    }
    builder.build()
}

#[cfg(test)]
mod tests;
