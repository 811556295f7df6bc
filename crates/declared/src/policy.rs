//! What may be declared: the gateway's side of the bargain.

use std::collections::BTreeSet;

use krm_stream_protocol::{ProjectionName, ScopePolicy};

/// Which scopes and projections may be declared.
///
/// A declared feed is read with an identity of the gateway's own, so whoever may create the resource must not be able to
/// make that identity read whatever it can: the scopes are an allow-list, and a policy for
/// [any resource](ScopePolicy::any_resource), which leaves admission to the caller's rights, lets nothing through.
#[derive(Clone, Debug)]
#[must_use = "a policy does nothing until scopes are resolved under it"]
pub struct DeclaredPolicy {
    scopes: ScopePolicy,
    default_projection: ProjectionName,
    projections: BTreeSet<Box<str>>,
}

impl DeclaredPolicy {
    /// Allows what `scopes` allows, under `krm-full/v1` by default and `krm-spec/v1` on request.
    pub fn new(scopes: ScopePolicy) -> Self {
        Self {
            scopes,
            default_projection: "krm-full/v1".into(),
            projections: ["krm-full/v1".into(), "krm-spec/v1".into()].into(),
        }
    }

    /// Allows a further projection. `krm-raw/v1` shows the values of Secrets to everybody who may read the feed.
    pub fn allow_projection(mut self, name: impl Into<Box<str>>) -> Self {
        self.projections.insert(name.into());
        self
    }

    /// Allows a projection, and takes it where none is named.
    pub fn default_projection(mut self, name: impl Into<Box<str>>) -> Self {
        let name = name.into();
        self.default_projection = (&*name).into();
        self.projections.insert(name);
        self
    }

    /// Allows these projections and no others, and takes the first where none is named. Without a name nothing changes.
    pub fn projections<N: Into<Box<str>>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        let names: Vec<Box<str>> = names.into_iter().map(Into::into).collect();
        if let Some(first) = names.first() {
            self.default_projection = (&**first).into();
            self.projections = names.into_iter().collect();
        }
        self
    }

    pub(crate) const fn scopes(&self) -> &ScopePolicy {
        &self.scopes
    }

    /// The projection for what was asked for, if it is allowed.
    pub(crate) fn projection(&self, asked: Option<&str>) -> Option<ProjectionName> {
        match asked {
            None => Some(self.default_projection.clone()),
            Some(name) => self.projections.contains(name).then(|| name.into()),
        }
    }
}
