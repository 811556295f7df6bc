//! Tests of scopes built in code.

use super::*;

fn scope(build: impl FnOnce(ScopeBuilder) -> ScopeBuilder) -> Result<Scope, ScopeError> {
    build(Scope::builder("v1", "configmaps")).build()
}

#[test]
fn the_path_follows_group_and_namespace() {
    let path = |build: fn(ScopeBuilder) -> ScopeBuilder| scope(build).unwrap().api_path();
    assert_eq!(path(|b| b), "/api/v1/configmaps");
    assert_eq!(path(|b| b.namespace("app")), "/api/v1/namespaces/app/configmaps");
    assert_eq!(path(|b| b.group("apps")), "/apis/apps/v1/configmaps");
    assert_eq!(
        path(|b| b.group("a.example.com").namespace("app").name("n")),
        "/apis/a.example.com/v1/namespaces/app/configmaps"
    );
}

#[test]
fn a_name_cannot_add_a_term_to_the_field_selector() {
    let selector = |name: &str| scope(|b| b.name(name)).unwrap().field_selector().unwrap();
    assert_eq!(
        selector("x,metadata.name=y"),
        r"metadata.name=x\,metadata.name\=y"
    );
    assert_eq!(selector(r"a\"), r"metadata.name=a\\");
    assert_eq!(selector("system:node"), "metadata.name=system:node");
    assert_eq!(scope(|b| b).unwrap().field_selector(), None);
}

#[test]
fn the_builder_runs_the_checks_of_a_request() {
    assert_eq!(
        scope(|b| b.namespace("")),
        Err(ScopeError::Empty(ScopeField::Namespace))
    );
    assert_eq!(scope(|b| b.namespace("..")), Err(ScopeError::InvalidNamespace));
    assert_eq!(scope(|b| b.group("")), Err(ScopeError::Empty(ScopeField::Group)));
    assert_eq!(scope(|b| b.group("apps/v1")), Err(ScopeError::InvalidGroup));
    assert_eq!(scope(|b| b.target("a b")), Err(ScopeError::InvalidTarget));
    assert_eq!(scope(|b| b.name("a/b")), Err(ScopeError::InvalidName));
    assert_eq!(
        scope(|b| b.label_selector(" ")),
        Err(ScopeError::LabelSelector(LabelSelectorError::NoRequirement))
    );
    assert_eq!(
        Scope::builder("1", "pods").build(),
        Err(ScopeError::InvalidVersion)
    );
    assert_eq!(Scope::builder("v1", "Pod").build(), Err(ScopeError::Kind));
    assert!(scope(|b| b.target("")).unwrap().target().is_default());
}

#[test]
fn a_scope_is_written_with_its_target_and_only_what_it_has() {
    let json = |scope: &Scope| serde_json::to_string(scope).unwrap();
    assert_eq!(
        json(&scope(|b| b).unwrap()),
        r#"{"target":"","version":"v1","resource":"configmaps"}"#
    );
    let full = scope(|b| {
        b.label_selector("b,a == c")
            .name("n")
            .namespace("app")
            .group("apps")
            .target("demo")
    });
    assert_eq!(
        json(&full.unwrap()),
        concat!(
            r#"{"target":"demo","group":"apps","version":"v1","resource":"configmaps","namespace":"app","name":"n","#,
            r#""labelSelector":"a=c,b"}"#
        )
    );
}

#[test]
fn a_scope_admits_its_own_name_and_namespace_alone() {
    let identity = |namespace: Option<&str>, name: &str| Identity {
        uid: "u".into(),
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        namespace: namespace.map(Into::into),
        name: name.into(),
    };
    let named = scope(|b| b.namespace("app").name("n")).unwrap();
    assert!(named.admits(&identity(Some("app"), "n")));
    assert!(!named.admits(&identity(Some("app"), "m")));
    assert!(!named.admits(&identity(Some("other"), "n")));
    assert!(!named.admits(&identity(None, "n")));
}
