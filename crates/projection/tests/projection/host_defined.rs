//! Projections of a host's own.

use std::sync::Arc;

use krm_stream_projection::{
    Applies, GroupResource, PointerError, Projection, ProjectionBuilder, ProjectionError, Projections,
};
use krm_stream_protocol::ProjectionName;
use proptest::prelude::*;

use crate::properties::object;
use crate::support::*;

fn define() -> ProjectionBuilder {
    Projection::define("example.io/v1")
}

fn of_widgets() -> GroupResource {
    GroupResource::new("example.io", "widgets")
}

fn widget(rest: &str) -> String {
    format!(r#"{{"kind":"Widget","metadata":{{"uid":"u","name":"n"}}{rest}}}"#)
}

#[test]
fn rules_are_for_the_resource_they_name() {
    let projection = define()
        .remove_path(of_widgets(), "/spec/cache")
        .redact_path(of_widgets(), "/spec/password")
        .remove_path(Applies::ToAll, "/spec/noise")
        .build()
        .unwrap();
    let text = widget(r#","spec":{"cache":{"a":1},"password":"x1","keep":1.0,"noise":[]}"#);
    let frame = first_frame(&projection, &widgets(), &text);
    assert!(frame.contains(&widget(r#","spec":{"keep":1.0}"#)), "{frame}");
    assert_eq!(redacted_of(&frame), r#"[{"path":"/spec/password","rev":1}]"#);
    for elsewhere in [
        scope_of("example.com", "v1", "widgets"),
        scope_of("example.io", "v1", "gadgets"),
        scope_of("", "v1", "widgets"),
    ] {
        assert_eq!(
            projected_text(&projection, &elsewhere, &text),
            widget(r#","spec":{"cache":{"a":1},"password":"x1","keep":1.0}"#)
        );
    }
    assert_eq!(
        projected_text(&projection, &scope_of("example.io", "v2beta1", "widgets"), &text),
        widget(r#","spec":{"keep":1.0}"#),
        "whatever the version"
    );
}

#[test]
fn wildcards_and_indexes_reach_into_arrays() {
    let projection = define()
        .redact_path(of_widgets(), "/spec/users/*/password")
        .remove_path(of_widgets(), "/spec/hosts/1")
        .remove_path(of_widgets(), "/spec/only/*")
        .redact_values(of_widgets(), "/spec/keys/*")
        .build()
        .unwrap();
    let text = widget(
        r#","spec":{"users":[{"name":"a","password":"x1"},{"password":"x2"},{"name":"c"}],"hosts":["h0","h1","h2"],"only":[1,2],"keys":{"k":{"p":"x3"},"l":"x4","m":null}}"#,
    );
    let frame = first_frame(&projection, &widgets(), &text);
    assert!(
        frame.contains(&widget(
            r#","spec":{"users":[{"name":"a"},{"name":"c"}],"hosts":["h0","h2"],"keys":{"m":null}}"#
        )),
        "{frame}"
    );
    assert_eq!(
        redacted_of(&frame),
        r#"[{"path":"/spec/keys/k/p","rev":1},{"path":"/spec/keys/l","rev":1},{"path":"/spec/users/0/password","rev":1},{"path":"/spec/users/1/password","rev":1}]"#
    );
}

#[test]
fn what_is_both_removed_and_redacted_is_removed() {
    let projection = define()
        .redact_path(Applies::ToAll, "/spec/a")
        .remove_path(Applies::ToAll, "/spec/a")
        .remove_path(Applies::ToSecrets, "/data/hidden")
        .build()
        .unwrap();
    let text = widget(r#","spec":{"a":"x1"},"kind":"Secret","data":{"hidden":"x2","shown":"x3"}"#);
    let frame = first_frame(&projection, &widgets(), text);
    assert!(!frame.contains("x1") && !frame.contains("x2") && !frame.contains("x3"));
    assert_eq!(redacted_of(&frame), r#"[{"path":"/data/shown","rev":1}]"#);
}

#[test]
fn a_projection_withholds_secrets_unless_it_is_based_on_raw_by_name() {
    let text = r#"{"kind":"Secret","metadata":{"uid":"u","name":"n"},"data":{"a":"x1"},"status":1}"#;
    let of = |builder: ProjectionBuilder| projected_text(&builder.build().unwrap(), &secrets(), text);
    assert!(!of(define()).contains("x1"));
    assert!(!of(define().based_on(Projection::spec())).contains("status"));
    assert!(of(define().based_on(Projection::raw())).contains("x1"));
    let first = Arc::new(define().remove_path(Applies::ToAll, "/status").build().unwrap());
    let second = Projection::define("example.io/v2").based_on(first);
    assert!(!of(second).contains("status"), "a base may be a host's own");
}

#[test]
fn what_identifies_an_object_cannot_be_taken_out() {
    for path in [
        "/kind",
        "/apiVersion",
        "/metadata",
        "/*",
        "/metadata/*",
        "/*/name",
        "/metadata/uid",
        "/metadata/namespace",
        "/metadata/resourceVersion",
    ] {
        for builder in [
            define().remove_path(Applies::ToAll, path),
            define().redact_path(of_widgets(), path),
            define().redact_values(Applies::ToSecrets, path),
        ] {
            let error = builder.build().unwrap_err();
            assert!(
                matches!(&error, ProjectionError::Identity { .. }),
                "{path}: {error}"
            );
        }
    }
    for path in [
        "/metadata/labels",
        "/*/labels",
        "/*/*/x",
        "/spec/*",
        "/spec/name",
        "/kinds",
    ] {
        define().remove_path(Applies::ToAll, path).build().unwrap();
    }
}

#[test]
fn bad_paths_and_names_are_refused_with_what_to_do() {
    let error = define().remove_path(Applies::ToAll, "spec").build().unwrap_err();
    let ProjectionError::Path { source, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(*source, PointerError::NoSlash);
    for name in ["", "a b", "a\"b", "a\nb", "é", &"a".repeat(129)] {
        assert_eq!(
            Projection::define(name).build().unwrap_err(),
            ProjectionError::Name,
            "{name:?}"
        );
    }
    for name in ["krm-raw/v1", "krm-full/v1", "krm-full/v2", "krm-mine"] {
        let error = Projection::define(name).build().unwrap_err();
        assert!(matches!(error, ProjectionError::Reserved { .. }), "{name}");
    }
}

#[test]
fn the_registry_knows_the_built_in_ones_and_takes_each_name_once() {
    let projections = Projections::default();
    let names: Vec<_> = projections.names().map(ProjectionName::as_str).collect();
    assert_eq!(names, ["krm-full/v1", "krm-raw/v1", "krm-spec/v1"]);
    for name in &names {
        assert_eq!(projections.get(&(*name).into()).unwrap().name().as_str(), *name);
    }
    assert!(projections.get(&"krm-full/v9".into()).is_none());
    let more = projections.clone().with(define().build().unwrap()).unwrap();
    assert!(more.get(&"example.io/v1".into()).is_some());
    let error = more.with(define().build().unwrap()).unwrap_err();
    assert!(matches!(error, ProjectionError::Duplicate { .. }));
}

/// What a rule does, as the property test says it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    Remove,
    Redact,
    RedactValues,
}

/// The same rules over a tree, one name at a time and with every rule carried along: `None` if the value goes.
fn apply(tree: &Tree, rules: &[(Vec<&str>, Act)], path: &str, withheld: &mut Vec<String>) -> Option<Tree> {
    let here = |act| rules.iter().any(|(path, other)| path.is_empty() && *other == act);
    if here(Act::Remove) {
        return None;
    }
    let is_withheld = here(Act::Redact)
        || here(Act::RedactValues)
            && !matches!(tree, Tree::Object(_))
            && *tree != Tree::Scalar("null".to_owned());
    if is_withheld {
        withheld.push(path.to_owned());
        return None;
    }
    let mut rules = rules.to_vec();
    if here(Act::RedactValues) {
        rules.push((vec!["*"], Act::Redact));
    }
    let below = |name: &str| -> Vec<(Vec<&str>, Act)> {
        let of_name = rules
            .iter()
            .filter(|(path, _)| path.first().is_some_and(|first| *first == "*" || *first == name));
        of_name.map(|(path, act)| (path[1..].to_vec(), *act)).collect()
    };
    match tree {
        Tree::Scalar(_) => Some(tree.clone()),
        Tree::Object(members) => {
            let mut kept = Vec::new();
            for (key, value) in members {
                let name = key_means(key);
                let at = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
                kept.extend(apply(value, &below(&name), &at, withheld).map(|value| (key.clone(), value)));
            }
            (members.is_empty() || !kept.is_empty()).then_some(Tree::Object(kept))
        }
        Tree::Array(elements) => {
            let mut kept = Vec::new();
            for (index, value) in elements.iter().enumerate() {
                let name = index.to_string();
                kept.extend(apply(value, &below(&name), &format!("{path}/{name}"), withheld));
            }
            (elements.is_empty() || !kept.is_empty()).then_some(Tree::Array(kept))
        }
    }
}

fn rule() -> impl Strategy<Value = (Vec<&'static str>, Act)> {
    let name = prop::sample::select(vec![
        "data", "status", "labels", "a", "b~c", "d/e", "", "*", "0", "1",
    ]);
    let act = prop::sample::select(vec![Act::Remove, Act::Redact, Act::RedactValues]);
    (prop::collection::vec(name, 1..4), act)
        .prop_filter("it would take out metadata", |(path, _)| path[0] != "*")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_rules_do_what_a_walk_over_a_tree_does(
        text in object(),
        rules in prop::collection::vec(rule(), 0..6),
    ) {
        let mut builder = define().based_on(Projection::raw());
        for (path, act) in &rules {
            let names: Vec<_> = path
                .iter()
                .map(|name| name.replace('~', "~0").replace('/', "~1"))
                .collect();
            let path = format!("/{}", names.join("/"));
            builder = match act {
                Act::Remove => builder.remove_path(of_widgets(), &path),
                Act::Redact => builder.redact_path(of_widgets(), &path),
                Act::RedactValues => builder.redact_values(of_widgets(), &path),
            };
        }
        let mut all = rules;
        all.push((vec!["metadata", "managedFields"], Act::Remove));
        all.push((vec!["metadata", "annotations", LAST_APPLIED], Act::Remove));
        let mut withheld = Vec::new();
        let expected = apply(&Tree::read(&text), &all, "", &mut withheld).unwrap();
        withheld.sort();
        withheld.dedup();
        let mut expected_text = String::new();
        expected.write(&mut expected_text);

        let projected = project(&builder.build().unwrap(), &widgets(), &text);
        let kept = std::str::from_utf8(projected.object()).unwrap();
        prop_assert_eq!(tokens(kept).concat(), expected_text);
        prop_assert!(is_subsequence(&tokens(kept), &tokens(&text)));
        let named: Vec<String> = projected.redactions().iter().flat_map(|all| all.as_slice())
            .map(|redaction| key_means(redaction.path_json())).collect();
        // A key with a lone surrogate has no meaning as text.
        if !text.contains("\\ud") {
            prop_assert_eq!(named, withheld);
        }
    }
}
