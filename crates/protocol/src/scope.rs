//! A scope: one object or one collection of a kind, on one target.

mod builder;
mod error;
mod policy;
mod query;
mod request;
mod selector;
mod syntax;

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

pub use builder::ScopeBuilder;
pub use error::{ScopeError, ScopeField};
pub use policy::{ResourceRule, ScopePolicy};
pub use request::ScopeRequest;
pub use selector::{LabelSelector, LabelSelectorError};

use crate::Identity;

/// The name of one upstream API (a cluster). The default target's name is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target(Arc<str>);

impl Target {
    /// A target of this name; empty for the default one.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name, empty for the default target.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the default target.
    pub fn is_default(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&str> for Target {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a stream is about: a target, a kind by group, version and resource, and what of it.
///
/// Every part is legal by construction, so a scope can be put into a request path. Equal selectors in another order
/// are one scope. Cloning is cheap.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope(Arc<Parts>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Parts {
    pub(crate) target: Target,
    pub(crate) group: Option<Box<str>>,
    pub(crate) version: Box<str>,
    pub(crate) resource: Box<str>,
    pub(crate) namespace: Option<Box<str>>,
    pub(crate) name: Option<Box<str>>,
    pub(crate) label_selector: Option<LabelSelector>,
}

impl Scope {
    pub(crate) fn from_parts(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    /// The target.
    pub fn target(&self) -> &Target {
        &self.0.target
    }

    /// The API group; `None` is the core group.
    pub fn group(&self) -> Option<&str> {
        self.0.group.as_deref()
    }

    /// The version of the API group.
    pub fn version(&self) -> &str {
        &self.0.version
    }

    /// The plural name of the resource.
    pub fn resource(&self) -> &str {
        &self.0.resource
    }

    /// The namespace; `None` is all namespaces, or a cluster-scoped resource.
    pub fn namespace(&self) -> Option<&str> {
        self.0.namespace.as_deref()
    }

    /// The name, where the scope is one object.
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    /// The label selector.
    pub fn label_selector(&self) -> Option<&LabelSelector> {
        self.0.label_selector.as_ref()
    }

    /// `apiVersion` as objects of this scope spell it: `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        match self.group() {
            Some(group) => format!("{group}/{}", self.version()),
            None => self.version().to_owned(),
        }
    }

    /// The path of the resource on its API server: `/api/v1/namespaces/shop/pods`, `/apis/apps/v1/deployments`. Every
    /// segment is a DNS name, so nothing in it needs an escape and nothing in it can reach another path. A name is no
    /// part of it; see [`field_selector`](Self::field_selector).
    pub fn api_path(&self) -> String {
        let (root, group) = match self.group() {
            Some(group) => ("/apis/", group),
            None => ("/api", ""),
        };
        let (infix, namespace) = match self.namespace() {
            Some(namespace) => ("/namespaces/", namespace),
            None => ("", ""),
        };
        format!(
            "{root}{group}/{version}{infix}{namespace}/{resource}",
            version = self.version(),
            resource = self.resource(),
        )
    }

    /// The field selector that narrows the resource to the one named object: `metadata.name=…`, with `\\`, `,` and `=`
    /// of the name [escaped], so that no name can add a second term.
    ///
    /// [escaped]: https://pkg.go.dev/k8s.io/apimachinery/pkg/fields#EscapeValue
    pub fn field_selector(&self) -> Option<String> {
        let name = self.name()?;
        let mut selector = String::with_capacity("metadata.name=".len() + name.len());
        selector.push_str("metadata.name=");
        for character in name.chars() {
            if matches!(character, '\\' | ',' | '=') {
                selector.push('\\');
            }
            selector.push(character);
        }
        Some(selector)
    }

    /// The query of a scope request that asks for this scope: canonical order, everything but unreserved characters
    /// percent-encoded. Equal scopes have equal canonical queries.
    pub fn canonical_query(&self) -> String {
        let mut canonical = String::new();
        let fields = [
            (
                ScopeField::Target,
                Some(self.target().as_str()).filter(|name| !name.is_empty()),
            ),
            (ScopeField::Group, self.group()),
            (ScopeField::Version, Some(self.version())),
            (ScopeField::Resource, Some(self.resource())),
            (ScopeField::Namespace, self.namespace()),
            (ScopeField::Name, self.name()),
            (
                ScopeField::LabelSelector,
                self.label_selector().map(LabelSelector::as_str),
            ),
        ];
        for (field, value) in fields {
            if let Some(value) = value {
                query::push(&mut canonical, field, value);
            }
        }
        canonical
    }

    /// Whether an object of this identity can be in the scope, by name and namespace. One that cannot is never
    /// forwarded.
    pub fn admits(&self, identity: &Identity) -> bool {
        self.name().is_none_or(|name| *name == *identity.name)
            && self
                .namespace()
                .is_none_or(|namespace| identity.namespace.as_deref() == Some(namespace))
    }
}

impl Serialize for Scope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("target", self.target().as_str())?;
        if let Some(group) = self.group() {
            map.serialize_entry("group", group)?;
        }
        map.serialize_entry("version", self.version())?;
        map.serialize_entry("resource", self.resource())?;
        if let Some(namespace) = self.namespace() {
            map.serialize_entry("namespace", namespace)?;
        }
        if let Some(name) = self.name() {
            map.serialize_entry("name", name)?;
        }
        if let Some(selector) = self.label_selector() {
            map.serialize_entry("labelSelector", selector.as_str())?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests;
