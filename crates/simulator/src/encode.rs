//! JSON text as Go's encoder writes it: `<`, `>` and `&` escaped, and numbers of custom resources normalised.

use serde_json::{Map, Number, Value};

/// How members and numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    /// In the order of the map; numbers as they are.
    AsGiven,
    /// Sorted, as Go writes a map; numbers as Go writes an `int64` or a `float64`.
    Sorted,
}

/// Appends `value` to `out`.
pub(crate) fn write_value(out: &mut Vec<u8>, value: &Value, keys: Keys) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(out, number, keys),
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_value(out, item, keys);
            }
            out.push(b']');
        }
        Value::Object(map) => write_object(out, map, keys),
    }
}

fn write_object(out: &mut Vec<u8>, map: &Map<String, Value>, keys: Keys) {
    out.push(b'{');
    let mut members: Vec<(&String, &Value)> = map.iter().collect();
    match keys {
        Keys::AsGiven => {}
        Keys::Sorted => members.sort_by_key(|(key, _)| *key),
    }
    for (index, (key, value)) in members.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(out, key);
        out.push(b':');
        write_value(out, value, keys);
    }
    out.push(b'}');
}

/// Appends `text` as a JSON string, escaped as `encoding/json` does with HTML escaping on, its default
/// (<https://pkg.go.dev/encoding/json#HTMLEscape>).
pub(crate) fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for character in text.chars() {
        match character {
            '"' => out.extend_from_slice(br#"\""#),
            '\\' => out.extend_from_slice(br"\\"),
            '\n' => out.extend_from_slice(br"\n"),
            '\r' => out.extend_from_slice(br"\r"),
            '\t' => out.extend_from_slice(br"\t"),
            '\u{8}' => out.extend_from_slice(br"\b"),
            '\u{c}' => out.extend_from_slice(br"\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                out.extend_from_slice(format!("\\u{:04x}", u32::from(character)).as_bytes());
            }
            other => {
                let mut buffer = [0; 4];
                out.extend_from_slice(other.encode_utf8(&mut buffer).as_bytes());
            }
        }
    }
    out.push(b'"');
}

/// The text of `text` as a JSON string.
pub(crate) fn string(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    write_string(&mut out, text);
    String::from_utf8_lossy(&out).into_owned()
}

fn write_number(out: &mut Vec<u8>, number: &Number, keys: Keys) {
    match keys {
        Keys::AsGiven => out.extend_from_slice(number.to_string().as_bytes()),
        Keys::Sorted => out.extend_from_slice(go_number(number).as_bytes()),
    }
}

/// A number as it comes back from a custom resource: an `int64` where it fits one, a `float64` otherwise.
fn go_number(number: &Number) -> String {
    if let Some(integer) = number.as_i64() {
        return integer.to_string();
    }
    let Some(float) = number.as_f64() else {
        return number.to_string();
    };
    if float == 0.0 {
        return if float.is_sign_negative() {
            "-0".to_owned()
        } else {
            "0".to_owned()
        };
    }
    // The limits of `floatEncoder` in encoding/json, which follow ES6.
    let magnitude = float.abs();
    if !(1e-6..1e21).contains(&magnitude) {
        let text = format!("{float:e}");
        return match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
            Some(_) | None => text,
        };
    }
    format!("{float}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn encoded(value: &Value, keys: Keys) -> String {
        let mut out = Vec::new();
        write_value(&mut out, value, keys);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn html_and_line_separators_are_escaped_like_go_does() {
        let value = json!("<b>&\u{2028}\t\"\\é\u{1}\u{8}");
        assert_eq!(
            encoded(&value, Keys::AsGiven),
            r#""\u003cb\u003e\u0026\u2028\t\"\\é\u0001\b""#
        );
    }

    #[test]
    fn keys_of_custom_resources_are_sorted_at_every_depth() {
        let value = json!({"b": {"z": 1, "a": [ {"y": 1, "x": 2} ]}, "a": null});
        assert_eq!(
            encoded(&value, Keys::Sorted),
            r#"{"a":null,"b":{"a":[{"x":2,"y":1}],"z":1}}"#
        );
        assert_eq!(
            encoded(&value, Keys::AsGiven),
            r#"{"b":{"z":1,"a":[{"y":1,"x":2}]},"a":null}"#
        );
    }

    #[test]
    fn numbers_of_custom_resources_come_back_as_go_writes_them() {
        for (sent, back) in [
            ("1E3", "1000"),
            ("1.0", "1"),
            ("12345678901234567890", "12345678901234567000"),
            ("123456789012345678", "123456789012345678"),
            ("0.0000001", "1e-7"),
            ("1.5e21", "1.5e+21"),
            ("1.10", "1.1"),
            ("-5", "-5"),
        ] {
            let value: Value = serde_json::from_str(sent).unwrap();
            assert_eq!(encoded(&value, Keys::Sorted), back, "{sent}");
        }
    }
}
