//! Why a scope is refused, in words that a browser may be shown.

use std::fmt;

use super::LabelSelectorError;
use crate::StreamError;

/// A parameter of a scope request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScopeField {
    /// `target`
    Target,
    /// `group`
    Group,
    /// `version`
    Version,
    /// `resource`
    Resource,
    /// `namespace`
    Namespace,
    /// `name`
    Name,
    /// `labelSelector`
    LabelSelector,
    /// `projection`
    Projection,
}

impl ScopeField {
    /// Every field, in canonical order.
    pub const ALL: [Self; 8] = [
        Self::Target,
        Self::Group,
        Self::Version,
        Self::Resource,
        Self::Namespace,
        Self::Name,
        Self::LabelSelector,
        Self::Projection,
    ];

    /// The parameter as it is spelled.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Group => "group",
            Self::Version => "version",
            Self::Resource => "resource",
            Self::Namespace => "namespace",
            Self::Name => "name",
            Self::LabelSelector => "labelSelector",
            Self::Projection => "projection",
        }
    }
}

impl fmt::Display for ScopeField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a scope is refused. The text says what to do and repeats no part of the request, so it has a bounded length and
/// may be shown to a browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// A required parameter is not there.
    #[error("the parameter {0} is missing; version and resource are always required")]
    Missing(ScopeField),
    /// A parameter is there without a value.
    #[error("the parameter {0} is empty: give it a value or leave it out")]
    Empty(ScopeField),
    /// A parameter stands more than once.
    #[error("the parameter {0} is given more than once: give it once")]
    Repeated(ScopeField),
    /// A parameter's name differs from a known one by case alone. Ignoring it as unknown would widen the scope.
    #[error("parameter names are case-sensitive: write {0}")]
    Misspelled(ScopeField),
    /// A parameter's name cannot be decoded.
    #[error("a parameter's name is not valid percent-encoded utf-8")]
    UndecodableName,
    /// A parameter's value cannot be decoded.
    #[error("the value of the parameter {0} is not valid percent-encoded utf-8")]
    Undecodable(ScopeField),
    /// A letter or digit is percent-encoded, which no encoder does: it walks past filters that read the query as text.
    #[error("the parameter {0} percent-encodes a letter or digit: write it plainly")]
    Disguised(ScopeField),
    /// A parameter that would name an API server or a credential.
    #[error(
        "the parameter {0} is refused: the gateway alone chooses its api servers and credentials; name a target"
    )]
    Address(&'static str),
    /// A field selector.
    #[error("fieldSelector is refused: use name for one object")]
    FieldSelector,
    /// The target is no token.
    #[error("target must be a dns subdomain: at most 253 lower-case letters, digits, `-` and `.`")]
    InvalidTarget,
    /// The group is no DNS subdomain.
    #[error(
        "group must be a dns subdomain such as apps, without the version; leave it out for the core group"
    )]
    InvalidGroup,
    /// The version is no DNS label.
    #[error("version must be the version of the api group alone, such as v1")]
    InvalidVersion,
    /// The resource has an upper-case letter.
    #[error(
        "resource must be the plural name in lower case, such as configmaps, not a kind such as ConfigMap"
    )]
    Kind,
    /// The resource names a subresource.
    #[error("resource must be a plural name alone: subresources cannot be watched")]
    Subresource,
    /// The resource is no DNS label.
    #[error(
        "resource must be one plural name: at most 63 lower-case letters, digits and `-`, such as configmaps"
    )]
    InvalidResource,
    /// The namespace is no DNS label.
    #[error("namespace must be a dns label: at most 63 lower-case letters, digits and `-`")]
    InvalidNamespace,
    /// The name is no legal path segment.
    #[error("name must be a legal object name: not `.` or `..`, without `/`, `%` and control characters")]
    InvalidName,
    /// The label selector is not by the grammar.
    #[error("labelSelector cannot be read: {0}")]
    LabelSelector(#[from] LabelSelectorError),
    /// The projection cannot be a projection's name.
    #[error("projection must be a projection's name, such as krm-full/v1")]
    InvalidProjection,
    /// The policy does not list the target.
    #[error("this target is not on the gateway's allow-list")]
    TargetNotAllowed,
    /// The policy does not list the resource.
    #[error("this group and resource are not on the gateway's allow-list")]
    ResourceNotAllowed,
    /// A cluster-scoped resource was asked for in a namespace.
    #[error("this resource is cluster-scoped: leave the namespace out")]
    ClusterScoped,
    /// All namespaces were asked for.
    #[error("the gateway does not allow all namespaces at once for this resource: give a namespace")]
    AllNamespacesNotAllowed,
    /// A label selector was given.
    #[error("the gateway does not allow a label selector for this resource: leave labelSelector out")]
    LabelSelectorNotAllowed,
}

impl From<ScopeError> for StreamError {
    fn from(error: ScopeError) -> Self {
        Self::scope_invalid(error.to_string())
    }
}
