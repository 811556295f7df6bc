//! Which scopes a gateway serves at all, decided before anyone is asked anything.

use std::collections::{BTreeMap, BTreeSet};

use super::{Scope, ScopeError, Target};

/// The allow-list of scopes. It denies whatever it does not name.
///
/// Rules are per group and resource, whatever the version. Two narrowing rights are off unless given, for one resource
/// or for the whole policy: to watch all namespaces at once, and to choose a label selector (which, with an API server's
/// label index or without, decides how many upstream watches callers can cause).
///
/// ```
/// use krm_stream_protocol::{ResourceRule, Scope, ScopePolicy, Target};
///
/// let policy = ScopePolicy::deny_all()
///     .allow_target(Target::default())
///     .allow(ResourceRule::namespaced("apps", "deployments").allow_label_selector(true))
///     .allow(ResourceRule::cluster_scoped("", "nodes"));
/// let scope = Scope::builder("v1", "deployments").group("apps").build()?;
/// assert!(policy.check(&scope).is_err(), "all namespaces at once were not allowed");
/// # Ok::<(), krm_stream_protocol::ScopeError>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a policy does nothing until it is given to a gateway"]
pub struct ScopePolicy {
    targets: BTreeSet<Target>,
    rules: BTreeMap<(Box<str>, Box<str>), ResourceRule>,
    any_resource: bool,
    allow_all_namespaces: bool,
    allow_label_selector: bool,
}

/// What is allowed of one group and resource.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a rule does nothing until it is given to a policy"]
pub struct ResourceRule {
    group: Box<str>,
    resource: Box<str>,
    reach: Reach,
    allow_label_selector: bool,
}

/// Where objects of a resource live, and how much of that may be watched at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    ClusterScoped,
    Namespaced { all_at_once: bool },
}

impl ResourceRule {
    /// Allows a namespaced resource, one namespace at a time. The core group is `""`, as in RBAC's rules.
    pub fn namespaced(group: impl Into<Box<str>>, resource: impl Into<Box<str>>) -> Self {
        Self {
            group: group.into(),
            resource: resource.into(),
            reach: Reach::Namespaced { all_at_once: false },
            allow_label_selector: false,
        }
    }

    /// Allows a cluster-scoped resource. The core group is `""`, as in RBAC's rules.
    pub fn cluster_scoped(group: impl Into<Box<str>>, resource: impl Into<Box<str>>) -> Self {
        Self {
            group: group.into(),
            resource: resource.into(),
            reach: Reach::ClusterScoped,
            allow_label_selector: false,
        }
    }

    /// Whether all namespaces may be watched at once. It means nothing for a cluster-scoped resource.
    pub fn allow_all_namespaces(mut self, allow: bool) -> Self {
        self.reach = match self.reach {
            Reach::ClusterScoped => Reach::ClusterScoped,
            Reach::Namespaced { .. } => Reach::Namespaced { all_at_once: allow },
        };
        self
    }

    /// Whether a caller may narrow by label.
    pub fn allow_label_selector(mut self, allow: bool) -> Self {
        self.allow_label_selector = allow;
        self
    }
}

impl ScopePolicy {
    /// A policy that allows nothing, not even the default target.
    pub fn deny_all() -> Self {
        Self::default()
    }

    /// Allows a target. The default one, [`Target::default`], is named like any other.
    pub fn allow_target(mut self, target: impl Into<Target>) -> Self {
        self.targets.insert(target.into());
        self
    }

    /// Allows a group and resource; a later rule for the same ones replaces an earlier one.
    pub fn allow(mut self, rule: ResourceRule) -> Self {
        self.rules
            .insert((rule.group.clone(), rule.resource.clone()), rule);
        self
    }

    /// Allows every resource on the allowed targets and leaves admission to the API server's RBAC. Only for hosts whose
    /// upstream acts as the caller; a gateway refuses it together with a shared partition.
    ///
    /// Of a resource without a rule of its own nobody knows here whether it is cluster-scoped, so a scope without a
    /// namespace counts as all namespaces and needs [`allow_all_namespaces`](Self::allow_all_namespaces).
    pub fn any_resource(mut self) -> Self {
        self.any_resource = true;
        self
    }

    /// Whether all namespaces of any allowed resource may be watched at once. A rule can allow it for its resource alone.
    pub fn allow_all_namespaces(mut self, allow: bool) -> Self {
        self.allow_all_namespaces = allow;
        self
    }

    /// Whether a caller may narrow any allowed resource by label. A rule can allow it for its resource alone.
    pub fn allow_label_selector(mut self, allow: bool) -> Self {
        self.allow_label_selector = allow;
        self
    }

    /// Whether every resource is allowed.
    pub const fn is_any_resource(&self) -> bool {
        self.any_resource
    }

    /// The targets that are allowed, in order.
    pub fn targets(&self) -> impl Iterator<Item = &Target> {
        self.targets.iter()
    }

    /// Checks a scope against the allow-list.
    ///
    /// # Errors
    /// [`ScopeError`] that says which part is not allowed.
    pub fn check(&self, scope: &Scope) -> Result<(), ScopeError> {
        if !self.targets.contains(scope.target()) {
            return Err(ScopeError::TargetNotAllowed);
        }
        let rule = self.rule(scope);
        if rule.is_none() && !self.any_resource {
            return Err(ScopeError::ResourceNotAllowed);
        }
        let reach = rule.map_or(Reach::Namespaced { all_at_once: false }, |rule| rule.reach);
        match (reach, scope.namespace()) {
            (Reach::ClusterScoped, None) | (Reach::Namespaced { .. }, Some(_)) => {}
            (Reach::ClusterScoped, Some(_)) => return Err(ScopeError::ClusterScoped),
            (Reach::Namespaced { all_at_once }, None) => {
                if !all_at_once && !self.allow_all_namespaces {
                    return Err(ScopeError::AllNamespacesNotAllowed);
                }
            }
        }
        let is_label_selector_allowed =
            self.allow_label_selector || rule.is_some_and(|rule| rule.allow_label_selector);
        if scope.label_selector().is_some() && !is_label_selector_allowed {
            return Err(ScopeError::LabelSelectorNotAllowed);
        }
        Ok(())
    }

    fn rule(&self, scope: &Scope) -> Option<&ResourceRule> {
        let group = scope.group().unwrap_or_default();
        self.rules.get(&(group.into(), scope.resource().into()))
    }
}

#[cfg(test)]
mod tests;
