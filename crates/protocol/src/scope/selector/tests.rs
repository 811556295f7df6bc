//! Tests of the selector's grammar, against what Kubernetes' `labels.Parse` takes and refuses.

use proptest::prelude::*;

use super::*;

#[test]
fn selectors_are_brought_into_canonical_form() {
    for (text, canonical) in [
        ("a", "a"),
        ("!a", "!a"),
        ("! a", "!a"),
        ("a=b", "a=b"),
        ("a==b", "a=b"),
        (" a \t= \r\n b ", "a=b"),
        ("a!=b", "a!=b"),
        ("a=", "a="),
        ("a!=", "a!="),
        ("a=,b", "a=,b"),
        ("a in (b)", "a in (b)"),
        ("a in(c,b , b)", "a in (b,c)"),
        ("a notin (c,b)", "a notin (b,c)"),
        ("a in ()", "a in ()"),
        ("a in (,)", "a in ()"),
        ("a in (,b)", "a in (,b)"),
        ("a in (b,)", "a in (,b)"),
        ("a in (b,,c)", "a in (,b,c)"),
        ("a>1", "a>1"),
        ("a < 007", "a<007"),
        ("a>9223372036854775807", "a>9223372036854775807"),
        ("b,a", "a,b"),
        ("a=b,a=b", "a=b"),
        ("a=c,a=b", "a=b,a=c"),
        ("b=1,a in (z,y),!c", "a in (y,z),b=1,!c"),
        ("in in (in,notin)", "in in (in,notin)"),
        ("notin notin (in)", "notin notin (in)"),
        ("in", "in"),
        ("in=in", "in=in"),
        (
            "kubernetes.io/metadata.name=app",
            "kubernetes.io/metadata.name=app",
        ),
        ("A_b.c-D=X_y.z-0", "A_b.c-D=X_y.z-0"),
    ] {
        assert_eq!(
            LabelSelector::parse(text).map(|selector| selector.as_str().to_owned()),
            Ok(canonical.to_owned()),
            "{text:?}"
        );
    }
}

#[test]
fn what_is_not_by_the_grammar_is_refused_with_its_place() {
    use LabelSelectorError::{InvalidKey, InvalidValue, NoRequirement, NotAnInteger};
    let unexpected = |position, expected| LabelSelectorError::Unexpected { position, expected };
    let key = "a label key or `!`";
    let operator = "`,`, the end, or one of `=`, `!=`, `in`, `notin`, `<`, `>`";
    for (text, error) in [
        ("", NoRequirement),
        (" \t\r\n", NoRequirement),
        (",", unexpected(0, key)),
        ("a,", unexpected(2, key)),
        ("a,,b", unexpected(2, key)),
        ("=b", unexpected(0, key)),
        ("!", unexpected(1, key)),
        ("!!a", unexpected(1, key)),
        ("!a=b", unexpected(2, "`,` or the end")),
        ("!a in (b)", unexpected(3, "`,` or the end")),
        ("a b", unexpected(2, operator)),
        ("a!b", unexpected(1, operator)),
        ("a(b)", unexpected(1, operator)),
        ("a=b c", unexpected(4, "`,` or the end")),
        ("a===b", unexpected(3, "a label value")),
        ("a=!b", unexpected(2, "a label value")),
        ("a=(b)", unexpected(2, "a label value")),
        ("a in", unexpected(4, "`(`")),
        ("a in b", unexpected(5, "`(`")),
        ("a in (", unexpected(6, "a label value or `,`")),
        ("a in (b", unexpected(7, "`,` or `)`")),
        ("a in (b c)", unexpected(8, "`,` or `)`")),
        ("a in (b,,)", unexpected(9, "a label value or `,`")),
        ("a in (,,)", unexpected(8, "a label value or `,`")),
        ("a in (!b)", unexpected(6, "a label value or `,`")),
        ("a in (b))", unexpected(8, "`,` or the end")),
        ("-a", InvalidKey { position: 0 }),
        ("/a", InvalidKey { position: 0 }),
        ("x/", InvalidKey { position: 0 }),
        ("x/y/z", InvalidKey { position: 0 }),
        ("X.io/y", InvalidKey { position: 0 }),
        ("ä", InvalidKey { position: 0 }),
        ("a\0b", InvalidKey { position: 0 }),
        ("a=-b", InvalidValue { position: 2 }),
        ("a=b/c", InvalidValue { position: 2 }),
        ("a in (ok,no_)", InvalidValue { position: 9 }),
        ("a=b\0,c", InvalidValue { position: 2 }),
        ("a>", NotAnInteger { position: 2 }),
        ("a>b", NotAnInteger { position: 2 }),
        ("a<1.5", NotAnInteger { position: 2 }),
        ("a>9223372036854775808", NotAnInteger { position: 2 }),
        ("a>-1", InvalidValue { position: 2 }),
    ] {
        assert_eq!(LabelSelector::parse(text), Err(error), "{text:?}");
    }
}

#[test]
fn keys_and_values_end_at_63_characters_and_prefixes_at_253() {
    let (fits, too_long) = ("a".repeat(63), "a".repeat(64));
    let prefix = |length| "p".repeat(length);
    assert!(LabelSelector::parse(&format!("{}/{fits}={fits}", prefix(253))).is_ok());
    assert!(LabelSelector::parse(&format!("{fits}={too_long}")).is_err());
    assert!(LabelSelector::parse(&too_long).is_err());
    assert!(LabelSelector::parse(&format!("{}/a", prefix(254))).is_err());
}

/// A requirement in some spelling.
fn requirement() -> impl Strategy<Value = String> {
    let key = "([a-z]{1,4}\\.io/)?[a-zA-Z]([a-z_.-]{0,4}[a-z0-9])?";
    let value = "([a-zA-Z0-9]([a-z_.-]{0,3}[a-z0-9])?)?";
    let space = "[ \t]{0,2}";
    prop_oneof![
        (key, "!? ?").prop_map(|(key, not)| format!("{not}{key}")),
        (key, space, "=|==|!=", space, value).prop_map(|(k, s, op, t, v)| format!("{k}{s}{op}{t}{v}")),
        (key, "in|notin", space, proptest::collection::vec(value, 1..4)).prop_map(|(k, op, s, values)| {
            // Two commas in a row must be followed by a value, so a list ends with one here.
            format!("{k} {op}{s}({},z)", values.join(&format!("{s},")))
        }),
        (key, "[<>]", any::<u32>()).prop_map(|(k, op, n)| format!("{k}{op}{n}")),
    ]
}

proptest! {
    #[test]
    fn the_canonical_form_is_stable_and_no_matter_of_order(
        (one, other) in proptest::collection::vec(requirement(), 1..6)
            .prop_flat_map(|list| (Just(list.clone()), Just(list).prop_shuffle()))
    ) {
        // A list such as `a in (,,z)` begins with two commas, which the grammar takes since a value follows.
        let one = LabelSelector::parse(&one.join(",")).unwrap();
        let other = LabelSelector::parse(&other.join(" , ")).unwrap();
        prop_assert_eq!(&one, &other);
        prop_assert_eq!(LabelSelector::parse(one.as_str()), Ok(one));
    }

    #[test]
    fn any_text_is_refused_or_canonicalised_without_a_panic(text in "[a-c=!<>(), inot\u{e9}\0/.-]{0,24}") {
        if let Ok(selector) = LabelSelector::parse(&text) {
            prop_assert_eq!(LabelSelector::parse(selector.as_str()), Ok(selector));
        }
    }
}
