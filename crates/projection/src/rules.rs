//! Rules: what a projection takes out of which objects.

mod pointer;
mod tree;

use krm_stream_protocol::Scope;

pub use pointer::PointerError;
pub(crate) use pointer::{Pointer, WILDCARD, push_escaped};
pub(crate) use tree::Node;

/// An API group and a resource (the plural name), whatever the version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupResource {
    group: Box<str>,
    resource: Box<str>,
}

impl GroupResource {
    /// A resource of the core group, for example `configmaps`.
    pub fn core(resource: &str) -> Self {
        Self::new("", resource)
    }

    /// A resource of a group, for example `apps`, `deployments`. An empty group is the core group.
    pub fn new(group: &str, resource: &str) -> Self {
        Self {
            group: group.into(),
            resource: resource.into(),
        }
    }

    /// The group; empty for the core group.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The plural name of the resource.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    pub(crate) fn is_of(&self, scope: &Scope) -> bool {
        *self.group == *scope.group().unwrap_or_default() && *self.resource == *scope.resource()
    }
}

/// Which objects a rule is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Applies {
    /// Every object.
    ToAll,
    /// Objects of this resource. For the core group's `secrets` it is the same as [`ToSecrets`](Self::ToSecrets).
    To(GroupResource),
    /// Secrets: objects whose scope is the core group's `secrets`, or that say `Secret` in any `kind` of theirs.
    ToSecrets,
}

impl From<GroupResource> for Applies {
    fn from(resource: GroupResource) -> Self {
        Self::To(resource)
    }
}

/// The resource of the core group whose values are withheld.
pub(crate) const SECRETS: &str = "secrets";

/// The kind whose values are withheld.
pub(crate) const SECRET: &str = "Secret";

/// What happens to a value at a rule's path. The stronger comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Action {
    /// It is absent, and nothing tells of it.
    Remove,
    /// It is absent, and named in `redacted`.
    Redact,
    /// Each value of the object it is is redacted; what is neither an object nor null is redacted as a whole.
    RedactValues,
    /// It is carried, and left aside when two states are compared.
    Version,
}

/// One rule.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) applies: Applies,
    pub(crate) pointer: Pointer,
    pub(crate) action: Action,
}
