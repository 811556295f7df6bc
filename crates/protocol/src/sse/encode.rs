//! Writing JSON into one data line.

use bytes::BufMut;

/// Appends JSON text so that it fits into one `data:` line: white space that holds a CR or LF is dropped, and nothing
/// else changes. Inside its strings valid JSON has no raw CR or LF, so whatever is dropped stands between tokens.
///
/// Text that is not valid JSON is not checked; a CR or LF is never written even then.
///
/// ```
/// let mut line = Vec::new();
/// krm_stream_protocol::frame::put_json(&mut line, b"{\"kind\": \"ConfigMap\",\r\n  \"n\": 1E5}");
/// assert_eq!(line, br#"{"kind": "ConfigMap","n": 1E5}"#);
/// ```
pub fn put_json(out: &mut impl BufMut, json: &[u8]) {
    let mut copied = 0;
    while let Some(length) = memchr::memchr2(b'\r', b'\n', &json[copied..]) {
        let line_end = copied + length;
        let kept = json[copied..line_end].trim_ascii_end();
        out.put_slice(kept);
        copied = json[line_end..]
            .iter()
            .position(|byte| !is_space(*byte))
            .map_or(json.len(), |spaces| line_end + spaces);
    }
    out.put_slice(&json[copied..]);
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(json: &str) -> String {
        let mut out = Vec::new();
        put_json(&mut out, json.as_bytes());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_white_space_that_holds_a_line_end_is_dropped() {
        for (json, expected) in [
            (
                "{\"kind\":\"ConfigMap\",\r\"n\":1}",
                r#"{"kind":"ConfigMap","n":1}"#,
            ),
            ("{\"a\":1,\r\n\"b\":2}", r#"{"a":1,"b":2}"#),
            ("{\n  \"a\" : [ 1 ,\t2 ]\n}\n", "{\"a\" : [ 1 ,\t2 ]}"),
            ("\r", ""),
            (" \n ", ""),
            ("{ }", "{ }"),
            (r#"{"a":"\r\n"}"#, r#"{"a":"\r\n"}"#),
            ("[1 \n\r\n\t ,2]", "[1,2]"),
            ("", ""),
        ] {
            assert_eq!(line(json), expected, "{json:?}");
        }
    }

    proptest! {
        #[test]
        fn tokens_are_kept_and_no_line_end_is_written(parts in proptest::collection::vec(
            prop_oneof![Just("\"a b\""), Just("1E5"), Just(","), Just("["), Just(" "), Just("\t"), Just("\n"), Just("\r"), Just("\u{e9}")],
            0..24,
        )) {
            let text = parts.concat();
            let written = line(&text);
            prop_assert!(!written.contains(['\r', '\n']));
            let tokens = |text: &str| text.replace([' ', '\t', '\r', '\n'], "");
            prop_assert_eq!(tokens(&written), tokens(&text));
            let mut naive = String::new();
            let mut space = String::new();
            for character in text.chars().chain(['\0']) {
                if character.is_ascii_whitespace() {
                    space.push(character);
                } else {
                    if !space.contains(['\r', '\n']) {
                        naive.push_str(&space);
                    }
                    space.clear();
                    naive.push(character);
                }
            }
            prop_assert_eq!(written, naive.trim_end_matches('\0'));
        }
    }
}
