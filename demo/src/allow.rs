//! Which resources may be watched: the flag's syntax, the default set, and the policy that follows.

use std::str::FromStr;

use krm_stream_protocol::{ResourceRule, Scope, ScopePolicy, Target};

use crate::flags::ScopeFlags;

/// A resource that may be watched: `[cluster:][group/]resource`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AllowRule {
    group: String,
    resource: String,
    place: Place,
}

/// Where the objects of a resource live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Namespaces,
    Cluster,
}

/// Built-in resources without namespaces, which `--allow` knows as such.
/// See <https://kubernetes.io/docs/reference/kubernetes-api/>.
const CLUSTER_SCOPED: &[(&str, &str)] = &[
    ("", "componentstatuses"),
    ("", "namespaces"),
    ("", "nodes"),
    ("", "persistentvolumes"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicybindings",
    ),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apiregistration.k8s.io", "apiservices"),
    ("certificates.k8s.io", "certificatesigningrequests"),
    ("certificates.k8s.io", "clustertrustbundles"),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
    ("internal.apiserver.k8s.io", "storageversions"),
    ("networking.k8s.io", "ingressclasses"),
    ("networking.k8s.io", "ipaddresses"),
    ("networking.k8s.io", "servicecidrs"),
    ("node.k8s.io", "runtimeclasses"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("resource.k8s.io", "deviceclasses"),
    ("resource.k8s.io", "devicetaintrules"),
    ("resource.k8s.io", "resourceslices"),
    ("scheduling.k8s.io", "priorityclasses"),
    ("storage.k8s.io", "csidrivers"),
    ("storage.k8s.io", "csinodes"),
    ("storage.k8s.io", "storageclasses"),
    ("storage.k8s.io", "volumeattachments"),
    ("storage.k8s.io", "volumeattributesclasses"),
    ("storagemigration.k8s.io", "storageversionmigrations"),
];

/// What may be watched where nothing else is said: what the page offers.
const DEFAULT: &[(&str, &str)] = &[
    ("", "configmaps"),
    ("", "events"),
    ("", "namespaces"),
    ("", "nodes"),
    ("", "persistentvolumeclaims"),
    ("", "pods"),
    ("", "secrets"),
    ("", "serviceaccounts"),
    ("", "services"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("batch", "cronjobs"),
    ("batch", "jobs"),
    ("events.k8s.io", "events"),
    ("networking.k8s.io", "ingresses"),
];

impl AllowRule {
    /// A resource with the place that a built-in one is known to have, or namespaces.
    pub(crate) fn new(group: &str, resource: &str) -> Self {
        let place = if CLUSTER_SCOPED.contains(&(group, resource)) {
            Place::Cluster
        } else {
            Place::Namespaces
        };
        Self {
            group: group.to_owned(),
            resource: resource.to_owned(),
            place,
        }
    }

    /// The default set.
    pub(crate) fn defaults() -> impl Iterator<Item = Self> {
        DEFAULT.iter().map(|(group, resource)| Self::new(group, resource))
    }

    fn rule(&self) -> ResourceRule {
        match self.place {
            Place::Cluster => ResourceRule::cluster_scoped(&*self.group, &*self.resource),
            Place::Namespaces => ResourceRule::namespaced(&*self.group, &*self.resource),
        }
    }
}

impl FromStr for AllowRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (is_cluster_scoped, name) = match text.split_once(':') {
            None => (false, text),
            Some(("cluster", name)) => (true, name),
            Some(_) => {
                return Err(
                    "write [GROUP/]RESOURCE, or cluster:[GROUP/]RESOURCE for a custom resource without namespaces"
                        .to_owned(),
                );
            }
        };
        let (group, resource) = name.split_once('/').unwrap_or(("", name));
        // Whatever a request could not ask for is a mistake here: a Kind, a subresource, a version.
        let scope = Scope::builder("v1", resource);
        let scope = if group.is_empty() {
            scope
        } else {
            scope.group(group)
        };
        if name.starts_with('/') {
            return Err("leave the slash out for the core group: pods".to_owned());
        }
        scope.build().map_err(|error| error.to_string())?;
        let mut rule = Self::new(group, resource);
        if is_cluster_scoped {
            rule.place = Place::Cluster;
        }
        Ok(rule)
    }
}

/// The policy of these flags; `further` are allowed beside the default set.
pub(crate) fn policy<'a>(
    flags: &ScopeFlags,
    targets: impl Iterator<Item = &'a Target>,
    further: impl Iterator<Item = AllowRule>,
) -> ScopePolicy {
    let mut policy = ScopePolicy::deny_all()
        .allow_all_namespaces(flags.allow_all_namespaces)
        .allow_label_selector(flags.allow_label_selector);
    for target in targets {
        policy = policy.allow_target(target.clone());
    }
    if flags.any_resource {
        policy = policy.any_resource();
        // So that it is known of these that they have no namespaces.
        for (group, resource) in CLUSTER_SCOPED {
            policy = policy.allow(AllowRule::new(group, resource).rule());
        }
    }
    if flags.allow.is_empty() {
        AllowRule::defaults()
            .chain(further)
            .fold(policy, |policy, rule| policy.allow(rule.rule()))
    } else {
        flags
            .allow
            .iter()
            .fold(policy, |policy, rule| policy.allow(rule.rule()))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::flags::Flags;

    fn policy_of(arguments: &[&str]) -> ScopePolicy {
        let flags = Flags::try_parse_from([&["krm-stream-demo"], arguments].concat()).unwrap();
        policy(&flags.scopes, [Target::default()].iter(), std::iter::empty())
    }

    fn allows(policy: &ScopePolicy, query: &str) -> bool {
        let request = krm_stream_protocol::ScopeRequest::parse(query).unwrap();
        policy.check(request.scope()).is_ok()
    }

    #[test]
    fn a_rule_is_a_resource_with_or_without_a_group() {
        assert_eq!("pods".parse::<AllowRule>().unwrap(), AllowRule::new("", "pods"));
        assert_eq!(
            "apps/deployments".parse::<AllowRule>().unwrap(),
            AllowRule::new("apps", "deployments")
        );
        let things: AllowRule = "cluster:example.com/things".parse().unwrap();
        assert_eq!(things.place, Place::Cluster);
        assert_eq!("nodes".parse::<AllowRule>().unwrap().place, Place::Cluster);
        assert_eq!(
            "rbac.authorization.k8s.io/clusterroles"
                .parse::<AllowRule>()
                .unwrap()
                .place,
            Place::Cluster
        );
        assert_eq!(
            "example.com/nodes".parse::<AllowRule>().unwrap().place,
            Place::Namespaces
        );
    }

    #[test]
    fn what_no_request_could_ask_for_is_refused() {
        for wrong in [
            "",
            "/pods",
            "apps/",
            "Deployment",
            "apps/v1/deployments",
            "pods/log/x",
            "*",
            "apps/*",
            "namespaced:pods",
            "cluster:",
            "..",
        ] {
            assert!(wrong.parse::<AllowRule>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_default_set_denies_what_it_does_not_name() {
        let policy = policy_of(&[]);
        assert!(allows(&policy, "version=v1&resource=secrets&namespace=shop"));
        assert!(allows(&policy, "version=v1&resource=namespaces"));
        assert!(allows(&policy, "version=v1&resource=nodes&name=a"));
        assert!(!allows(&policy, "version=v1&resource=pods"));
        assert!(!allows(
            &policy,
            "version=v1&resource=pods&namespace=shop&labelSelector=a"
        ));
        assert!(!allows(
            &policy,
            "version=v1&resource=pods&namespace=shop&target=other"
        ));
        assert!(!allows(
            &policy,
            "group=example.com&version=v1&resource=things&namespace=shop"
        ));
    }

    #[test]
    fn given_resources_replace_the_default_set() {
        let policy = policy_of(&[
            "--allow",
            "pods,cluster:example.com/things",
            "--allow",
            "apps/deployments",
        ]);
        assert!(allows(&policy, "version=v1&resource=pods&namespace=shop"));
        assert!(allows(
            &policy,
            "group=apps&version=v1&resource=deployments&namespace=shop"
        ));
        assert!(allows(&policy, "group=example.com&version=v1&resource=things"));
        assert!(!allows(&policy, "version=v1&resource=secrets&namespace=shop"));
    }

    #[test]
    fn the_broader_rights_are_given_one_by_one() {
        let all = policy_of(&["--allow-all-namespaces"]);
        assert!(allows(&all, "version=v1&resource=pods"));
        let labels = policy_of(&["--allow-label-selector"]);
        assert!(allows(
            &labels,
            "version=v1&resource=pods&namespace=shop&labelSelector=a"
        ));
        assert!(!allows(&labels, "version=v1&resource=pods&labelSelector=a"));
    }

    #[test]
    fn any_resource_knows_which_built_in_ones_have_no_namespaces() {
        let policy = policy_of(&["--any-resource"]);
        assert!(allows(
            &policy,
            "group=example.com&version=v1&resource=things&namespace=shop"
        ));
        assert!(allows(
            &policy,
            "group=storage.k8s.io&version=v1&resource=storageclasses"
        ));
        assert!(!allows(&policy, "group=example.com&version=v1&resource=things"));
    }
}
