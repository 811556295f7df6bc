//! Rules, and what they are asked about.

use std::collections::BTreeSet;

use crate::{resource::qualified, status::Status};

use super::User;

/// One rule. A part that is not set matches everything; `*` does too.
///
/// ```
/// use krm_stream_simulator::Rule;
///
/// let rule = Rule::allow().group("auditors").verbs(["get", "list", "watch"]).resource("apps", "deployments");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    effect: Effect,
    users: BTreeSet<String>,
    groups: BTreeSet<String>,
    verbs: BTreeSet<String>,
    resources: BTreeSet<(String, String)>,
    namespaces: BTreeSet<String>,
    names: BTreeSet<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Allow,
    Deny,
}

impl Rule {
    /// A rule that allows what it matches.
    pub fn allow() -> Self {
        Self::of(Effect::Allow)
    }

    /// A rule that denies what it matches, whatever others allow. RBAC has none; a webhook authorizer may.
    pub fn deny() -> Self {
        Self::of(Effect::Deny)
    }

    fn of(effect: Effect) -> Self {
        Self {
            effect,
            users: BTreeSet::new(),
            groups: BTreeSet::new(),
            verbs: BTreeSet::new(),
            resources: BTreeSet::new(),
            namespaces: BTreeSet::new(),
            names: BTreeSet::new(),
        }
    }

    /// For this user; together with other users and groups, for any of them.
    #[must_use]
    pub fn user(mut self, name: impl Into<String>) -> Self {
        self.users.insert(name.into());
        self
    }

    /// For members of this group.
    #[must_use]
    pub fn group(mut self, name: impl Into<String>) -> Self {
        self.groups.insert(name.into());
        self
    }

    /// For these verbs: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, `impersonate`.
    #[must_use]
    pub fn verbs<V: Into<String>>(mut self, verbs: impl IntoIterator<Item = V>) -> Self {
        self.verbs.extend(verbs.into_iter().map(Into::into));
        self
    }

    /// For this resource of this API group, `deployments/status` for a subresource; together with others, for any of
    /// them.
    #[must_use]
    pub fn resource(mut self, api_group: impl Into<String>, plural: impl Into<String>) -> Self {
        self.resources.insert((api_group.into(), plural.into()));
        self
    }

    /// In this namespace only: neither in others, nor across all of them.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespaces.insert(namespace.into());
        self
    }

    /// For objects of this name only.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.names.insert(name.into());
        self
    }

    fn matches(&self, user: &User, attributes: &Attributes) -> bool {
        let anybody = self.users.is_empty() && self.groups.is_empty();
        let subject = anybody || self.users.contains(&user.name) || !self.groups.is_disjoint(&user.groups);
        let resource = attributes.resource_with_subresource();
        let resources = self.resources.is_empty()
            || self.resources.iter().any(|(group, plural)| {
                (group == "*" || *group == attributes.group) && (plural == "*" || *plural == resource)
            });
        let holds =
            |set: &BTreeSet<String>, value: &str| set.is_empty() || set.contains("*") || set.contains(value);
        subject
            && resources
            && holds(&self.verbs, &attributes.verb)
            && holds(&self.namespaces, &attributes.namespace)
            && holds(&self.names, &attributes.name)
    }
}

/// What the rules say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// A rule allows it.
    Allowed,
    /// A rule denies it.
    Denied,
    /// No rule says anything, which is a no.
    NoOpinion,
}

pub(super) fn decide(rules: &[Rule], user: &User, attributes: &Attributes) -> Decision {
    let mut decision = Decision::NoOpinion;
    for rule in rules.iter().filter(|rule| rule.matches(user, attributes)) {
        match rule.effect {
            Effect::Deny => return Decision::Denied,
            Effect::Allow => decision = Decision::Allowed,
        }
    }
    decision
}

/// What is to be done to what.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Attributes {
    pub(crate) verb: String,
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Attributes {
    /// What it takes to act as another user.
    pub(super) fn impersonation(group: &str, resource: &str, subresource: &str, name: &str) -> Self {
        Self {
            verb: "impersonate".to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: String::new(),
            name: name.to_owned(),
        }
    }

    fn resource_with_subresource(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }

    /// The refusal, in Kubernetes' words
    /// (`k8s.io/apiserver/pkg/endpoints/handlers/responsewriters`, `ForbiddenStatus`).
    pub(crate) fn forbidden(&self, user: &User) -> Status {
        let what = qualified(&self.resource, &self.group);
        let named = if self.name.is_empty() {
            what
        } else {
            format!("{what} {:?}", self.name)
        };
        let place = if self.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {:?}", self.namespace)
        };
        let message = format!(
            "{named} is forbidden: User {:?} cannot {} resource {:?} in API group {:?} {place}",
            user.name,
            self.verb,
            self.resource_with_subresource(),
            self.group
        );
        Status::new(403, message)
            .reason("Forbidden")
            .about(&self.group, &self.resource, &self.name)
    }
}
