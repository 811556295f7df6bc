//! What the simulated API server serves: resources, built in or registered by the host.

mod built_in;

use std::borrow::Cow;

pub(crate) use built_in::built_in;

/// A resource of the API: `configmaps`, `deployments.apps`, or a custom one.
///
/// A resource is served at one version. Registering the same group and plural again under another version serves
/// the same objects' name space from a separate collection, as no conversion takes place.
///
/// ```
/// use krm_stream_simulator::Resource;
///
/// let widgets = Resource::custom("example.com", "v1", "widgets", "Widget");
/// assert_eq!(widgets.qualified_name(), "widgets.example.com");
/// assert!(widgets.is_namespaced());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    pub(crate) group: Cow<'static, str>,
    pub(crate) version: Cow<'static, str>,
    pub(crate) plural: Cow<'static, str>,
    pub(crate) kind: Cow<'static, str>,
    pub(crate) namespaced: bool,
    pub(crate) status: bool,
    pub(crate) generation: bool,
    pub(crate) style: Style,
}

/// How objects of a resource are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Style {
    /// As a Go struct: `kind`, `apiVersion` and `metadata` first, then these fields, then any others as they came.
    Typed {
        /// The order of the fields that follow `metadata`.
        fields: &'static [&'static str],
        /// What the zero value of the kind has after `metadata`, as bookmarks carry it: text of JSON members.
        zero: &'static str,
    },
    /// As an unstructured object: all keys sorted.
    Custom,
}

impl Resource {
    /// A namespaced custom resource with a `status` subresource.
    pub fn custom(
        group: impl Into<String>,
        version: impl Into<String>,
        plural: impl Into<String>,
        kind: impl Into<String>,
    ) -> Self {
        Self {
            group: Cow::Owned(group.into()),
            version: Cow::Owned(version.into()),
            plural: Cow::Owned(plural.into()),
            kind: Cow::Owned(kind.into()),
            namespaced: true,
            status: true,
            generation: true,
            style: Style::Custom,
        }
    }

    /// The same resource, cluster-scoped.
    #[must_use]
    pub fn cluster_scoped(mut self) -> Self {
        self.namespaced = false;
        self
    }

    /// The same resource without a `status` subresource: `status` is a field like any other.
    #[must_use]
    pub fn without_status(mut self) -> Self {
        self.status = false;
        self
    }

    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The version at which it is served.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The plural name in paths.
    pub fn plural(&self) -> &str {
        &self.plural
    }

    /// The kind of its objects.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Whether its objects live in namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.namespaced
    }

    /// `plural.group`, or the plural alone in the core group, as Kubernetes names resources in messages.
    pub fn qualified_name(&self) -> String {
        qualified(&self.plural, &self.group)
    }

    /// The `apiVersion` of its objects.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    pub(crate) fn is_custom(&self) -> bool {
        match &self.style {
            Style::Custom => true,
            Style::Typed { .. } => false,
        }
    }

    pub(crate) fn key(&self) -> ResourceKey {
        ResourceKey {
            group: self.group.to_string(),
            version: self.version.to_string(),
            plural: self.plural.to_string(),
        }
    }
}

/// `plural.group`, or the plural alone in the core group.
pub(crate) fn qualified(plural: &str, group: &str) -> String {
    if group.is_empty() {
        plural.to_owned()
    } else {
        format!("{plural}.{group}")
    }
}

/// Group, version and plural: what a path names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ResourceKey {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
}
