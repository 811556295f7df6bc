//! Building a scope in code, by the same checks that a request's query goes through.

use super::syntax::{is_dns_1035_label, is_dns_label, is_dns_subdomain, is_path_segment_name};
use super::{LabelSelector, Parts, Scope, ScopeError, ScopeField, Target};

/// Builds a [`Scope`]; see [`Scope::builder`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct ScopeBuilder {
    target: Target,
    group: Option<Box<str>>,
    version: Box<str>,
    resource: Box<str>,
    namespace: Option<Box<str>>,
    name: Option<Box<str>>,
    label_selector: Option<Box<str>>,
}

impl Scope {
    /// Begins a scope of all objects of a resource; `resource` is the plural name.
    ///
    /// ```
    /// use krm_stream_protocol::Scope;
    ///
    /// let scope = Scope::builder("v1", "deployments").group("apps").namespace("shop").build()?;
    /// assert_eq!(scope.api_path(), "/apis/apps/v1/namespaces/shop/deployments");
    /// # Ok::<(), krm_stream_protocol::ScopeError>(())
    /// ```
    pub fn builder(version: impl Into<Box<str>>, resource: impl Into<Box<str>>) -> ScopeBuilder {
        ScopeBuilder {
            target: Target::default(),
            group: None,
            version: version.into(),
            resource: resource.into(),
            namespace: None,
            name: None,
            label_selector: None,
        }
    }
}

impl ScopeBuilder {
    /// The target; without it, the default one.
    pub fn target(mut self, target: impl Into<Target>) -> Self {
        self.target = target.into();
        self
    }

    /// The API group; without it, the core group.
    pub fn group(mut self, group: impl Into<Box<str>>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// The namespace; without it, all of them, or none for a cluster-scoped resource.
    pub fn namespace(mut self, namespace: impl Into<Box<str>>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// The name of one object.
    pub fn name(mut self, name: impl Into<Box<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// A label selector in any spelling.
    pub fn label_selector(mut self, selector: impl Into<Box<str>>) -> Self {
        self.label_selector = Some(selector.into());
        self
    }

    /// Checks every part and makes the scope.
    ///
    /// # Errors
    /// The first part that is not legal, in canonical order, as a [`ScopeError`].
    pub fn build(self) -> Result<Scope, ScopeError> {
        check_target(&self.target)?;
        check_given(
            self.group.as_deref(),
            ScopeField::Group,
            is_dns_subdomain,
            ScopeError::InvalidGroup,
        )?;
        check_given(
            Some(&self.version),
            ScopeField::Version,
            is_dns_1035_label,
            ScopeError::InvalidVersion,
        )?;
        check_resource(&self.resource)?;
        check_given(
            self.namespace.as_deref(),
            ScopeField::Namespace,
            is_dns_label,
            ScopeError::InvalidNamespace,
        )?;
        check_given(
            self.name.as_deref(),
            ScopeField::Name,
            is_path_segment_name,
            ScopeError::InvalidName,
        )?;
        let label_selector = match self.label_selector.as_deref() {
            Some("") => return Err(ScopeError::Empty(ScopeField::LabelSelector)),
            Some(text) => Some(LabelSelector::parse(text)?),
            None => None,
        };
        Ok(Scope::from_parts(Parts {
            target: self.target,
            group: self.group,
            version: self.version,
            resource: self.resource,
            namespace: self.namespace,
            name: self.name,
            label_selector,
        }))
    }
}

fn check_target(target: &Target) -> Result<(), ScopeError> {
    if target.is_default() || is_dns_subdomain(target.as_str()) {
        Ok(())
    } else {
        Err(ScopeError::InvalidTarget)
    }
}

fn check_given(
    given: Option<&str>,
    field: ScopeField,
    is_legal: fn(&str) -> bool,
    refusal: ScopeError,
) -> Result<(), ScopeError> {
    match given {
        None => Ok(()),
        Some("") => Err(ScopeError::Empty(field)),
        Some(text) if is_legal(text) => Ok(()),
        Some(_) => Err(refusal),
    }
}

/// A plural name; the two usual mistakes have an answer of their own.
fn check_resource(resource: &str) -> Result<(), ScopeError> {
    if resource.is_empty() {
        Err(ScopeError::Empty(ScopeField::Resource))
    } else if is_dns_1035_label(resource) {
        Ok(())
    } else if resource.contains('/') {
        Err(ScopeError::Subresource)
    } else if resource.chars().all(|letter| letter.is_ascii_alphanumeric())
        && resource.contains(|letter: char| letter.is_ascii_uppercase())
    {
        Err(ScopeError::Kind)
    } else {
        Err(ScopeError::InvalidResource)
    }
}
