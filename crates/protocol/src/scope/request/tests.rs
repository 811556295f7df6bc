//! Tests of the query's parser: every refusal, and what is tolerated.

use proptest::prelude::*;

use super::*;
use crate::{ErrorCode, LabelSelectorError, StreamError};

const CONFIG_MAPS: &str = "version=v1&resource=configmaps";

fn error(query: &str) -> ScopeError {
    match ScopeRequest::parse(query) {
        Ok(request) => panic!("{query:?} was accepted as {request:?}"),
        Err(error) => error,
    }
}

/// The refusal of one more parameter, whose value is percent-encoded as a browser does it.
fn error_with(field: &str, value: &str) -> ScopeError {
    let mut encoded = String::new();
    query::push(&mut encoded, ScopeField::Name, value);
    let encoded = encoded.strip_prefix("name=").unwrap();
    match field {
        "resource" => error(&format!("version=v1&namespace=app&resource={encoded}")),
        _ => error(&format!("{CONFIG_MAPS}&{field}={encoded}")),
    }
}

#[test]
fn a_namespace_that_would_reach_another_path_is_refused() {
    let long = "a".repeat(64);
    for namespace in [
        ".",
        "..",
        "%2e%2e",
        "a/b",
        "a%2Fb",
        "a?watch=1",
        "a#b",
        " a",
        "A",
        &long,
        "a\0",
        "\0",
        "a\r\nX-H: 1",
        "a.b",
        "-a",
        "a-",
        "\u{430}",
    ] {
        assert_eq!(
            error_with("namespace", namespace),
            ScopeError::InvalidNamespace,
            "{namespace:?}"
        );
    }
    assert_eq!(
        error(&format!("{CONFIG_MAPS}&namespace=")),
        ScopeError::Empty(ScopeField::Namespace)
    );
    assert_eq!(
        error(&format!("{CONFIG_MAPS}&namespace")),
        ScopeError::Empty(ScopeField::Namespace)
    );
    // As they stand in a query, without another round of encoding.
    for (raw, expected) in [
        ("%2e%2e", ScopeError::InvalidNamespace),
        ("a%2Fb", ScopeError::InvalidNamespace),
        ("+a", ScopeError::InvalidNamespace),
        ("a%00", ScopeError::InvalidNamespace),
        ("a%0d%0aX-H:%201", ScopeError::InvalidNamespace),
        ("a#b", ScopeError::InvalidNamespace),
        ("a?watch=1", ScopeError::InvalidNamespace),
        ("%61", ScopeError::Disguised(ScopeField::Namespace)),
    ] {
        assert_eq!(
            error(&format!("{CONFIG_MAPS}&namespace={raw}")),
            expected,
            "{raw}"
        );
    }
}

#[test]
fn a_resource_that_is_no_plural_name_is_refused() {
    for (resource, expected) in [
        ("", ScopeError::Empty(ScopeField::Resource)),
        ("secrets/tok", ScopeError::Subresource),
        ("secret/tok", ScopeError::Subresource),
        ("pods/log", ScopeError::Subresource),
        ("%73ecrets", ScopeError::InvalidResource),
        ("Secrets", ScopeError::Kind),
        ("ConfigMap", ScopeError::Kind),
        ("secrets,pods", ScopeError::InvalidResource),
        ("secrets ", ScopeError::InvalidResource),
        ("..", ScopeError::InvalidResource),
        ("pods.v1", ScopeError::InvalidResource),
        ("1pods", ScopeError::InvalidResource),
    ] {
        assert_eq!(error_with("resource", resource), expected, "{resource:?}");
    }
    assert_eq!(
        error("version=v1&namespace=app&resource=%73ecrets"),
        ScopeError::Disguised(ScopeField::Resource)
    );
}

#[test]
fn a_name_must_be_a_legal_path_segment() {
    for name in [".", "..", "a/b", "a%2Fb", "%", "a\0", "a\nb", "a\u{7f}"] {
        assert_eq!(error_with("name", name), ScopeError::InvalidName, "{name:?}");
    }
    assert_eq!(
        error(&format!("{CONFIG_MAPS}&name=")),
        ScopeError::Empty(ScopeField::Name)
    );
    for (name, plain) in [
        ("system:node", "system:node"),
        ("system%3Anode", "system:node"),
        ("a+b", "a b"),
        ("...", "..."),
    ] {
        let request = ScopeRequest::parse(&format!("version=v1&resource=clusterroles&name={name}")).unwrap();
        assert_eq!(request.scope().name(), Some(plain));
    }
}

#[test]
fn group_version_target_and_projection_are_checked() {
    for group in ["apps/v1", "Apps", "a..b", ".", "apps."] {
        assert_eq!(error_with("group", group), ScopeError::InvalidGroup, "{group:?}");
    }
    for target in ["a b", "../x", "https://10.0.0.1", "A", "\u{e9}"] {
        assert_eq!(
            error_with("target", target),
            ScopeError::InvalidTarget,
            "{target:?}"
        );
    }
    for version in ["apps/v1", "V1", "1", "v1/", "v1?x"] {
        assert_eq!(
            error(&format!("resource=pods&version={version}")),
            ScopeError::InvalidVersion,
            "{version:?}"
        );
    }
    for projection in ["a b", "a\u{7}", "\u{e9}", &"x".repeat(254)] {
        assert_eq!(
            error_with("projection", projection),
            ScopeError::InvalidProjection,
            "{projection:?}"
        );
    }
    let request = ScopeRequest::parse(&format!("{CONFIG_MAPS}&projection=krm-spec/v1")).unwrap();
    assert_eq!(request.projection(), Some(&ProjectionName::from("krm-spec/v1")));
    assert_eq!(
        request.canonical_query(),
        format!("{CONFIG_MAPS}&projection=krm-spec%2Fv1")
    );
    assert_eq!(ScopeRequest::parse(CONFIG_MAPS).unwrap().projection(), None);
}

#[test]
fn version_and_resource_are_required() {
    assert_eq!(error("resource=pods"), ScopeError::Missing(ScopeField::Version));
    assert_eq!(error("version=v1"), ScopeError::Missing(ScopeField::Resource));
    assert_eq!(error(""), ScopeError::Missing(ScopeField::Version));
}

#[test]
fn a_parameter_given_twice_is_refused_whatever_its_values() {
    for field in ScopeField::ALL {
        for values in [("v1", "v1"), ("v1", "v2")] {
            let query = format!("{field}={}&{field}={}&{CONFIG_MAPS}", values.0, values.1);
            assert_eq!(error(&query), ScopeError::Repeated(field), "{query}");
        }
    }
    assert!(ScopeRequest::parse(&format!("tab=1&tab=1&tab=2&{CONFIG_MAPS}")).is_ok());
}

#[test]
fn parameters_that_would_choose_an_api_server_or_credential_are_refused_in_any_spelling() {
    for name in REFUSED {
        let capital = name.to_ascii_uppercase();
        let first = format!("%{:02x}{}", name.as_bytes()[0], &name[1..]);
        for spelled in [name, &capital, &first] {
            for value in ["=x", "=", "", "=%zz"] {
                assert_eq!(
                    error(&format!("{CONFIG_MAPS}&{spelled}{value}")),
                    ScopeError::Address(name)
                );
            }
        }
    }
    for name in [
        "fieldSelector",
        "fieldselector",
        "FIELDSELECTOR",
        "field%53elector",
    ] {
        assert_eq!(
            error(&format!("{CONFIG_MAPS}&{name}=metadata.name%3Dx")),
            ScopeError::FieldSelector
        );
    }
}

#[test]
fn a_known_name_in_another_case_is_refused_since_ignoring_it_would_widen_the_scope() {
    assert_eq!(
        error(&format!("{CONFIG_MAPS}&Namespace=app")),
        ScopeError::Misspelled(ScopeField::Namespace)
    );
    assert_eq!(
        error(&format!("{CONFIG_MAPS}&labelselector=a")),
        ScopeError::Misspelled(ScopeField::LabelSelector)
    );
    assert_eq!(
        error(&format!("{CONFIG_MAPS}&%6eamespace=app")),
        ScopeError::Disguised(ScopeField::Namespace)
    );
}

#[test]
fn what_cannot_be_decoded_is_refused() {
    for value in ["%", "%2", "%zz", "a%", "%ff", "%c3", "%+1"] {
        assert_eq!(
            error(&format!("{CONFIG_MAPS}&name={value}")),
            ScopeError::Undecodable(ScopeField::Name),
            "{value}"
        );
    }
    for name in ["%", "%zz", "%ff=1"] {
        assert_eq!(
            error(&format!("{CONFIG_MAPS}&{name}")),
            ScopeError::UndecodableName,
            "{name}"
        );
    }
    // The value of a parameter of the host's is the host's to read.
    for tolerated in ["tab=%zz", "=x", "", "x=%ff", "%6bey=1", "cache-buster"] {
        assert!(
            ScopeRequest::parse(&format!("{CONFIG_MAPS}&{tolerated}&")).is_ok(),
            "{tolerated}"
        );
    }
}

#[test]
fn a_plus_is_a_space_in_a_selector() {
    let request = ScopeRequest::parse(&format!(
        "{CONFIG_MAPS}&labelSelector=tier+in+(web,+db)&namespace=app"
    ))
    .unwrap();
    assert_eq!(
        request.scope().label_selector().unwrap().as_str(),
        "tier in (db,web)"
    );
    assert_eq!(
        request.scope().canonical_query(),
        format!("{CONFIG_MAPS}&namespace=app&labelSelector=tier%20in%20%28db%2Cweb%29")
    );
    assert_eq!(
        error(&format!("{CONFIG_MAPS}&labelSelector=a=(")),
        ScopeError::LabelSelector(LabelSelectorError::Unexpected {
            position: 2,
            expected: "a label value"
        })
    );
}

#[test]
fn a_refusal_for_a_browser_is_short_and_repeats_nothing() {
    let canary = "canary".repeat(2000);
    for query in [
        format!("version=v1&resource={canary}/"),
        format!("{CONFIG_MAPS}&namespace={canary}"),
        format!("{CONFIG_MAPS}&labelSelector={canary}"),
        format!("{CONFIG_MAPS}&server={canary}"),
        format!("{CONFIG_MAPS}&{canary}%zz=1"),
    ] {
        let refusal = StreamError::from(error(&query));
        assert_eq!(refusal.code(), ErrorCode::ScopeInvalid);
        assert!(refusal.is_terminal());
        assert!(refusal.message().len() < 300, "{}", refusal.message());
        assert!(!refusal.message().contains("canary"));
    }
}

proptest! {
    #[test]
    fn a_scope_that_is_accepted_comes_back_from_its_canonical_query(
        group in proptest::option::of("[a-z][a-z0-9]{0,5}(\\.[a-z]{1,3}){0,2}"),
        namespace in proptest::option::of("[a-z0-9]([a-z0-9-]{0,5}[a-z0-9])?"),
        name in proptest::option::of("[^/%\\p{Cc}]{1,12}"),
        selector in proptest::option::of("[a-z]{1,3}(=[a-z]{0,3}| in \\([a-z]{0,2},[a-z]{1,2}\\)|),[a-z]{1,3}"),
        target in proptest::option::of("[a-z]{1,6}"),
    ) {
        prop_assume!(name.as_deref() != Some(".") && name.as_deref() != Some(".."));
        let mut builder = Scope::builder("v1", "things");
        if let Some(group) = group { builder = builder.group(group); }
        if let Some(namespace) = namespace { builder = builder.namespace(namespace); }
        if let Some(name) = name { builder = builder.name(name); }
        if let Some(selector) = selector { builder = builder.label_selector(selector); }
        if let Some(target) = target { builder = builder.target(&*target); }
        let scope = builder.build().unwrap();
        let canonical = scope.canonical_query();
        let request = ScopeRequest::parse(&canonical).unwrap();
        prop_assert_eq!(request.scope(), &scope);
        prop_assert_eq!(request.canonical_query(), canonical);
    }

    #[test]
    fn any_query_is_refused_or_accepted_without_a_panic(query in "\\PC{0,80}") {
        let _ = ScopeRequest::parse(&query);
        let _ = ScopeRequest::parse(&format!("{CONFIG_MAPS}&{query}"));
    }

    #[test]
    fn an_accepted_path_never_leaves_its_resource(value in "[a-z./%?#\\\\ \0-]{1,10}") {
        let mut encoded = String::new();
        query::push(&mut encoded, ScopeField::Namespace, &value);
        if let Ok(request) = ScopeRequest::parse(&format!("{CONFIG_MAPS}&{encoded}")) {
            let path = request.scope().api_path();
            prop_assert_eq!(path.split('/').count(), 6);
            prop_assert!(path.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"/-".contains(&byte)));
        }
    }
}
