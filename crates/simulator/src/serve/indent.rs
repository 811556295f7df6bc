//! JSON indented by two spaces, as Go's `json.Indent` does, without reading it into a tree.

use bytes::Bytes;

/// The same JSON text, indented. Text that is not JSON comes out in pieces, but never fails.
pub(crate) fn indent(text: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(text.len() * 2);
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    let mut opened = false;
    for &byte in text {
        if in_string {
            out.push(byte);
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        if opened && !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'}' | b']') {
            new_line(&mut out, depth);
            opened = false;
        }
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b'{' | b'[' => {
                out.push(byte);
                depth += 1;
                opened = true;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if !opened {
                    new_line(&mut out, depth);
                }
                opened = false;
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                new_line(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            _ => {
                in_string = byte == b'"';
                out.push(byte);
            }
        }
    }
    out.push(b'\n');
    out.into()
}

fn new_line(out: &mut Vec<u8>, depth: usize) {
    out.push(b'\n');
    out.extend(std::iter::repeat_n(b' ', depth * 2));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_items_stand_on_lines_of_their_own() {
        let text = br#"{"a":[1,{"b":"x,\"{"}],"c":{},"d":[]}"#;
        let expected = "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"x,\\\"{\"\n    }\n  ],\n  \"c\": {},\n  \"d\": []\n}\n";
        assert_eq!(std::str::from_utf8(&indent(text)).unwrap(), expected);
    }
}
