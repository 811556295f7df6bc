//! Finding members in JSON text without reading it into a tree, so that text which no parser would keep is kept.
//!
//! The text is taken as it is: duplicate keys (the last one counts, as it does for a browser), lone surrogates and
//! any depth are fine. Nothing here recurses.

use std::ops::Range;

use bytes::Bytes;

/// The span of the value of the last member `key` of the object at `object`.
pub(crate) fn member(text: &[u8], object: Range<usize>, key: &str) -> Option<Range<usize>> {
    let mut found = None;
    let mut at = skip_space(text, object.start);
    if text.get(at) != Some(&b'{') {
        return None;
    }
    at = skip_space(text, at + 1);
    while at < object.end && text.get(at) == Some(&b'"') {
        let name = at..string_end(text, at)?;
        at = skip_space(text, name.end);
        if text.get(at) != Some(&b':') {
            return None;
        }
        at = skip_space(text, at + 1);
        let value = at..value_end(text, at)?;
        if serde_json::from_slice::<String>(text.get(name)?).is_ok_and(|name| name == key) {
            found = Some(value.clone());
        }
        at = skip_space(text, value.end);
        if text.get(at) == Some(&b',') {
            at = skip_space(text, at + 1);
        }
    }
    found
}

/// The span of `metadata.KEY` of an object's text.
pub(crate) fn metadata_member(text: &[u8], key: &str) -> Option<Range<usize>> {
    let metadata = member(text, 0..text.len(), "metadata")?;
    member(text, metadata, key)
}

/// `metadata.KEY` as a string, where it is one.
pub(crate) fn metadata_string(text: &[u8], key: &str) -> Option<String> {
    serde_json::from_slice(text.get(metadata_member(text, key)?)?).ok()
}

/// The same object with another `metadata.resourceVersion`; unchanged where it has none.
pub(crate) fn with_resource_version(object: &Bytes, version: &str) -> Bytes {
    let Some(span) = metadata_member(object, "resourceVersion") else {
        return object.clone();
    };
    let mut out = Vec::with_capacity(object.len() + version.len());
    out.extend_from_slice(object.get(..span.start).unwrap_or_default());
    crate::encode::write_string(&mut out, version);
    out.extend_from_slice(object.get(span.end..).unwrap_or_default());
    out.into()
}

fn skip_space(text: &[u8], mut at: usize) -> usize {
    while text
        .get(at)
        .is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
    {
        at += 1;
    }
    at
}

/// The end of the string that starts at `start`.
fn string_end(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match text.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// The end of the value that starts at `start`.
fn value_end(text: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = start;
    loop {
        match text.get(at)? {
            b'"' => at = string_end(text, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            b' ' | b'\t' | b'\r' | b'\n' | b',' | b':' => at += 1,
            _ => {
                at += text
                    .get(at..)?
                    .iter()
                    .take_while(|byte| {
                        !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b',' | b':' | b'}' | b']')
                    })
                    .count();
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::*;

    #[test]
    fn the_last_of_duplicate_members_counts() {
        let text =
            br#" { "metadata" : {"name":"a"} , "metadata":{"n\u0061me":"b", "resourceVersion" : "7" } }"#;
        assert_eq!(metadata_string(text, "name").as_deref(), Some("b"));
        let replaced = with_resource_version(&Bytes::from_static(text), "9");
        assert_eq!(
            std::str::from_utf8(&replaced).unwrap(),
            r#" { "metadata" : {"name":"a"} , "metadata":{"n\u0061me":"b", "resourceVersion" : "9" } }"#
        );
    }

    #[test]
    fn deep_nesting_and_lone_surrogates_are_skipped_over() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        let text = format!(r#"{{"a":{deep},"b":"\ud800\"}}","metadata":{{"uid":"u"}}}}"#);
        assert_eq!(metadata_string(text.as_bytes(), "uid").as_deref(), Some("u"));
    }

    #[test]
    fn text_that_is_not_an_object_has_no_members() {
        for text in [
            "",
            "[]",
            "{",
            "{\"metadata\"",
            "{\"metadata\":{\"uid\":\"",
            "}",
            "{\"a\":1e5}",
        ] {
            assert_eq!(metadata_string(text.as_bytes(), "uid"), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn members_are_found_where_a_parser_finds_them(object in json_object(), key in "[a-c]") {
            let value = Value::Object(object);
            for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                let found = member(text.as_bytes(), 0..text.len(), &key);
                let found = found.map(|span| serde_json::from_str::<Value>(&text[span]).unwrap());
                prop_assert_eq!(found.as_ref(), value.get(&key));
            }
        }

        #[test]
        fn no_text_makes_the_search_panic(text in "[{}\\[\\]\",:ab\\\\1 ]{0,40}") {
            let _ = member(text.as_bytes(), 0..text.len(), "a");
        }
    }

    fn json_object() -> impl Strategy<Value = Map<String, Value>> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-c\"\\\\{}é]{0,6}".prop_map(Value::from),
        ];
        let value = leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::hash_map("[a-c\"]{1,2}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        });
        proptest::collection::hash_map("[a-c\"]{1,2}", value, 0..5).prop_map(|map| map.into_iter().collect())
    }
}
