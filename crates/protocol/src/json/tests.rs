//! Tests of the borrowed readers.

use super::*;

fn keys(text: &str) -> Vec<String> {
    members(text.as_bytes())
        .map(|member| String::from_utf8_lossy(member.key).into_owned())
        .collect()
}

#[test]
fn members_come_in_order_with_duplicates_and_their_own_spelling() {
    let text = r#" { "a" : 1e400 , "b\u0061" :{"x":[1,"}"]}, "a":"\"" ,"e":[] } "#;
    validate(text.as_bytes()).unwrap();
    assert_eq!(keys(text), ["a", "b\\u0061", "a", "e"]);
    let values: Vec<_> = members(text.as_bytes())
        .map(|member| std::str::from_utf8(member.value).unwrap())
        .collect();
    assert_eq!(values, ["1e400", r#"{"x":[1,"}"]}"#, r#""\"""#, "[]"]);
    for member in members(text.as_bytes()) {
        assert_eq!(&text.as_bytes()[member.value_range.clone()], member.value);
    }
}

#[test]
fn elements_come_in_order_with_their_places() {
    let text = br#"[ {"a":[1,2]} , "x,]" ,3, [] ]"#;
    let found: Vec<_> = elements(text)
        .map(|(value, _)| std::str::from_utf8(value).unwrap())
        .collect();
    assert_eq!(found, [r#"{"a":[1,2]}"#, r#""x,]""#, "3", "[]"]);
    assert_eq!(elements(b"[]").count(), 0);
    assert_eq!(elements(b"{}").count(), 0);
}

#[test]
fn an_escaped_key_is_the_key_it_spells() {
    let text = br#"{"d\u0061ta":1,"kubernetes.io\/x":2,"\ud83d\ude00":3,"\ud83d":4}"#;
    let found: Vec<_> = members(text).collect();
    assert!(found[0].key_is("data"));
    assert!(found[1].key_is("kubernetes.io/x"));
    assert!(found[2].key_is("\u{1F600}"));
    assert_ne!(unescape(found[3].key), unescape(found[2].key));
}

#[test]
fn the_last_of_duplicates_is_what_a_browser_sees() {
    assert_eq!(last_member(br#"{"k":1,"\u006b":2}"#, "k"), Some(&b"2"[..]));
}

#[test]
fn lone_surrogates_and_deep_nesting_are_valid() {
    validate(br#""\ud800""#).unwrap();
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    validate(deep.as_bytes()).unwrap();
    assert_eq!(elements(deep.as_bytes()).count(), 1);
    assert!(validate(b"{").is_err());
    assert!(validate(b"{} {}").is_err());
    assert!(validate(&[b'"', 0xFF, b'"']).is_err());
}

#[test]
fn readers_stop_on_text_that_is_not_json() {
    for text in [
        "{\"", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":{", "[", "[\"", "[1", "{\"\\", "}", "", "{\"a\":}", "[,",
        "[}",
    ] {
        assert!(members(text.as_bytes()).take(100).count() < 100);
        assert!(elements(text.as_bytes()).take(100).count() < 100);
    }
}

#[test]
fn debug_shows_no_content() {
    let text = br#"{"token":"canary","list":["canary"]}"#;
    let list = last_member(text, "list").unwrap();
    for shown in [
        format!("{:?}", members(text)),
        format!("{:?}", members(text).collect::<Vec<_>>()),
        format!("{:?}", elements(list)),
    ] {
        // A slice is shown as its numbers.
        assert!(
            !shown.contains("canary") && !shown.contains("99, 97, 110"),
            "{shown}"
        );
    }
}
