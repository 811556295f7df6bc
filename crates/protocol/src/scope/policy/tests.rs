//! Tests of the allow-list.

use super::*;
use crate::ScopeBuilder;

fn policy() -> ScopePolicy {
    ScopePolicy::deny_all()
        .allow_target("")
        .allow(ResourceRule::namespaced("", "configmaps"))
        .allow(ResourceRule::namespaced("apps", "deployments").allow_all_namespaces(true))
        .allow(ResourceRule::namespaced("", "pods").allow_label_selector(true))
        .allow(ResourceRule::cluster_scoped("", "nodes"))
}

fn check(policy: &ScopePolicy, builder: ScopeBuilder) -> Result<(), ScopeError> {
    policy.check(&builder.build().unwrap())
}

#[test]
fn nothing_is_allowed_that_is_not_named() {
    let deny = ScopePolicy::deny_all();
    let configmaps = || Scope::builder("v1", "configmaps").namespace("app");
    assert_eq!(check(&deny, configmaps()), Err(ScopeError::TargetNotAllowed));
    assert_eq!(
        check(&deny.allow_target(""), configmaps()),
        Err(ScopeError::ResourceNotAllowed)
    );
    assert_eq!(check(&policy(), configmaps()), Ok(()));
    assert_eq!(
        check(&policy(), configmaps().target("other")),
        Err(ScopeError::TargetNotAllowed)
    );
    assert_eq!(
        check(&policy(), configmaps().group("apps")),
        Err(ScopeError::ResourceNotAllowed)
    );
}

#[test]
fn a_rule_holds_for_every_version() {
    for version in ["v1", "v1beta1", "v2"] {
        assert_eq!(
            check(
                &policy(),
                Scope::builder(version, "deployments")
                    .group("apps")
                    .namespace("app")
            ),
            Ok(())
        );
    }
}

#[test]
fn all_namespaces_need_a_right_of_their_own() {
    let configmaps = || Scope::builder("v1", "configmaps");
    assert_eq!(
        check(&policy(), configmaps()),
        Err(ScopeError::AllNamespacesNotAllowed)
    );
    assert_eq!(
        check(&policy(), configmaps().name("one")),
        Err(ScopeError::AllNamespacesNotAllowed)
    );
    assert_eq!(check(&policy().allow_all_namespaces(true), configmaps()), Ok(()));
    assert_eq!(
        check(&policy(), Scope::builder("v1", "deployments").group("apps")),
        Ok(())
    );
}

#[test]
fn a_cluster_scoped_resource_has_no_namespace() {
    let nodes = || Scope::builder("v1", "nodes");
    assert_eq!(check(&policy(), nodes()), Ok(()));
    for policy in [policy(), policy().any_resource().allow_all_namespaces(true)] {
        assert_eq!(
            check(&policy, nodes().namespace("app")),
            Err(ScopeError::ClusterScoped)
        );
    }
}

#[test]
fn a_label_selector_needs_a_right_of_its_own() {
    let labelled = |resource| {
        Scope::builder("v1", resource)
            .namespace("app")
            .label_selector("a=b")
    };
    assert_eq!(
        check(&policy(), labelled("configmaps")),
        Err(ScopeError::LabelSelectorNotAllowed)
    );
    assert_eq!(check(&policy(), labelled("pods")), Ok(()));
    assert_eq!(
        check(&policy().allow_label_selector(true), labelled("configmaps")),
        Ok(())
    );
}

#[test]
fn any_resource_still_keeps_targets_namespaces_and_selectors() {
    let any = ScopePolicy::deny_all().allow_target("demo").any_resource();
    assert!(any.is_any_resource());
    assert!(!policy().is_any_resource());
    let flunders = || {
        Scope::builder("v1alpha1", "flunders")
            .group("wardle.example.com")
            .target("demo")
    };
    assert_eq!(check(&any, flunders().namespace("app")), Ok(()));
    assert_eq!(check(&any, flunders()), Err(ScopeError::AllNamespacesNotAllowed));
    assert_eq!(
        check(&any, flunders().namespace("app").label_selector("a")),
        Err(ScopeError::LabelSelectorNotAllowed)
    );
    assert_eq!(
        check(&any, Scope::builder("v1", "pods").namespace("app")),
        Err(ScopeError::TargetNotAllowed)
    );
    let cluster = any.allow(ResourceRule::cluster_scoped("", "nodes"));
    assert_eq!(
        check(&cluster, Scope::builder("v1", "nodes").target("demo")),
        Ok(())
    );
}
