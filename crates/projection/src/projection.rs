//! Projections: named, fixed sets of rules.

mod builder;
mod registry;

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use krm_stream_protocol::{Object, ProjectionName, Scope, json};

pub use builder::{ProjectionBuilder, ProjectionError};
pub use registry::Projections;

use crate::digest::DigestKey;
use crate::projected::{BEFORE_OBJECT, NOTHING_REDACTED, Projected};
use crate::rules::{Action, Applies, GroupResource, Node, Pointer, Rule, SECRET, SECRETS};
use crate::splice::Splice;

/// The annotation in which `kubectl apply` keeps a copy of the manifest, secret values included.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The first letters of the names that this crate keeps for itself.
const RESERVED_PREFIX: &str = "krm-";

/// A named, fixed set of rules about what is removed from an object and what of it is withheld.
///
/// Everything else of an object is carried byte for byte. Three are built in, and a host
/// [defines](Self::define) more under names of its own. A projection is data: nothing of a request can become a rule.
#[derive(Clone, Debug)]
pub struct Projection {
    name: ProjectionName,
    rules: Vec<Rule>,
    /// For resources that rules name.
    by_resource: Vec<(GroupResource, Trees)>,
    /// For all other resources.
    elsewhere: Trees,
}

/// The rules for objects of one resource.
#[derive(Clone, Debug)]
struct Trees {
    secret: Node,
    other: Node,
}

/// Why an object cannot be projected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProjectError {
    /// It has no uid or no name, or is metadata only. It is never forwarded; a new cycle begins in its place.
    #[error("the object is partial: it has no uid or no name, or is metadata only")]
    Partial,
}

impl Projection {
    /// `krm-raw/v1`: removes `metadata.managedFields` and the annotation
    /// `kubectl.kubernetes.io/last-applied-configuration`. **It carries the values of Secrets.** No default policy
    /// grants it.
    pub fn raw() -> Arc<Self> {
        Arc::clone(&BUILT_IN.raw)
    }

    /// `krm-full/v1`, the default: what [`raw`](Self::raw) removes, and every value under a Secret's `data`,
    /// `stringData` and `binaryData` is withheld.
    pub fn full() -> Arc<Self> {
        Arc::clone(&BUILT_IN.full)
    }

    /// `krm-spec/v1`: as [`full`](Self::full), and `status` is removed.
    pub fn spec() -> Arc<Self> {
        Arc::clone(&BUILT_IN.spec)
    }

    /// Begins a projection of a host's own, based on [`full`](Self::full) unless it says otherwise.
    pub fn define(name: impl Into<ProjectionName>) -> ProjectionBuilder {
        ProjectionBuilder::new(name.into())
    }

    /// The name, which stands on every `reset`.
    pub const fn name(&self) -> &ProjectionName {
        &self.name
    }

    /// Projects an object of `scope`.
    ///
    /// It is a Secret if the scope's resource is the core group's `secrets`, or if any `kind` of the object says so.
    ///
    /// # Errors
    /// [`ProjectError::Partial`] if the object has no identity.
    pub fn project(
        &self,
        scope: &Scope,
        object: &Object,
        digest_key: &DigestKey,
    ) -> Result<Projected, ProjectError> {
        let identity = object.identity().ok_or(ProjectError::Partial)?;
        let text = object.json().trim_ascii();
        let members: Vec<_> = json::members(text).collect();
        let says_secret = || {
            members.iter().any(|member| {
                member.key_is("kind") && json::string(member.value).is_some_and(|kind| kind == SECRET)
            })
        };
        let rules = self.rules_for(scope, says_secret);
        let splice = Splice::object(text, &members, rules, digest_key);
        let after_object: &[u8] = if splice.withholds() { b"" } else { NOTHING_REDACTED };
        let kept = text.len() - splice.cut_bytes();
        let mut tail = Vec::with_capacity(BEFORE_OBJECT.len() + kept + after_object.len());
        tail.extend_from_slice(BEFORE_OBJECT);
        let (state, redactions) = splice.finish(&mut tail);
        tail.extend_from_slice(after_object);
        Ok(Projected::new(
            Arc::clone(identity),
            object.resource_version().cloned(),
            Bytes::from(tail),
            state,
            redactions,
        ))
    }

    /// The rules for objects of `scope`; `says_secret` tells whether the object at hand calls itself a Secret.
    pub(crate) fn rules_for(&self, scope: &Scope, says_secret: impl FnOnce() -> bool) -> &Node {
        let named = self
            .by_resource
            .iter()
            .find(|(resource, _)| resource.is_of(scope));
        let trees = named.map_or(&self.elsewhere, |(_, trees)| trees);
        if is_secrets(scope) || says_secret() {
            &trees.secret
        } else {
            &trees.other
        }
    }

    fn from_rules(name: ProjectionName, mut rules: Vec<Rule>) -> Self {
        for rule in &mut rules {
            if rule.applies == Applies::To(GroupResource::core(SECRETS)) {
                rule.applies = Applies::ToSecrets;
            }
        }
        let mut resources: Vec<_> = rules
            .iter()
            .filter_map(|rule| match &rule.applies {
                Applies::To(resource) => Some(resource.clone()),
                Applies::ToAll | Applies::ToSecrets => None,
            })
            .collect();
        resources.sort_unstable();
        resources.dedup();
        Self {
            name,
            by_resource: resources
                .into_iter()
                .map(|resource| {
                    let trees = Trees::of(&rules, Some(&resource));
                    (resource, trees)
                })
                .collect(),
            elsewhere: Trees::of(&rules, None),
            rules,
        }
    }
}

impl Trees {
    fn of(rules: &[Rule], resource: Option<&GroupResource>) -> Self {
        let tree = |is_secret: bool| {
            let branches: Vec<_> = rules
                .iter()
                .filter(|rule| match &rule.applies {
                    Applies::ToAll => true,
                    Applies::ToSecrets => is_secret,
                    Applies::To(named) => resource == Some(named),
                })
                .map(|rule| (rule.pointer.tokens(), rule.action))
                .collect();
            Node::build(&branches)
        };
        Self {
            secret: tree(true),
            other: tree(false),
        }
    }
}

fn is_secrets(scope: &Scope) -> bool {
    scope.group().is_none() && scope.resource() == SECRETS
}

struct BuiltIn {
    raw: Arc<Projection>,
    full: Arc<Projection>,
    spec: Arc<Projection>,
}

static BUILT_IN: LazyLock<BuiltIn> = LazyLock::new(|| {
    let rule = |applies, names: &[&str], action| Rule {
        applies,
        pointer: Pointer::of(names),
        action,
    };
    let raw = vec![
        rule(Applies::ToAll, &["metadata", "managedFields"], Action::Remove),
        rule(
            Applies::ToAll,
            &["metadata", "annotations", LAST_APPLIED],
            Action::Remove,
        ),
        rule(Applies::ToAll, &["metadata", "resourceVersion"], Action::Version),
    ];
    let mut full = raw.clone();
    full.extend(
        ["data", "stringData", "binaryData"]
            .map(|field| rule(Applies::ToSecrets, &[field], Action::RedactValues)),
    );
    let mut spec = full.clone();
    spec.push(rule(Applies::ToAll, &["status"], Action::Remove));
    let built_in = |name: &str, rules| Arc::new(Projection::from_rules(name.into(), rules));
    BuiltIn {
        raw: built_in("krm-raw/v1", raw),
        full: built_in("krm-full/v1", full),
        spec: built_in("krm-spec/v1", spec),
    }
});
