//! What is withheld from a consumer: where it stood, and a digest.

use std::sync::Arc;

use crate::digest::{DigestKey, ValueDigest};
use crate::rules::push_escaped;

/// One withheld value of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redaction {
    path_json: Box<str>,
    digest: ValueDigest,
}

impl Redaction {
    /// Where the value stood: an RFC 6901 pointer as a JSON string, quotes included. A lone surrogate of a key is
    /// written as its escape, since it can be written in no other way.
    pub fn path_json(&self) -> &str {
        &self.path_json
    }

    /// The digest of the value as the API server spelled it; of all values where a key came more than once.
    pub const fn digest(&self) -> &ValueDigest {
        &self.digest
    }
}

/// The withheld values of an object, sorted by path, each path once. Never empty, and cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redactions(Arc<[Redaction]>);

impl Redactions {
    /// Sorts what was withheld; `None` if that is nothing.
    pub(crate) fn collect(key: &DigestKey, mut withheld: Vec<Withheld>) -> Option<Self> {
        if withheld.is_empty() {
            return None;
        }
        withheld.sort_by(|left, right| left.path.cmp(&right.path));
        withheld.dedup_by(|next, kept| {
            let same = next.path == kept.path;
            if same {
                kept.digest = kept.digest.and(key, next.digest);
            }
            same
        });
        Some(Self(
            withheld
                .into_iter()
                .map(|value| Redaction {
                    path_json: json_string(&value.path),
                    digest: value.digest,
                })
                .collect(),
        ))
    }

    /// The redactions, sorted by path.
    pub fn as_slice(&self) -> &[Redaction] {
        &self.0
    }

    pub(crate) fn is_same_allocation(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A value that was withheld, while an object is projected.
#[derive(Debug)]
pub(crate) struct Withheld {
    /// The pointer with its keys unescaped: UTF-8, in which a lone surrogate is three bytes.
    path: Vec<u8>,
    digest: ValueDigest,
}

impl Withheld {
    /// Takes the digest of a value whose place is named by `tokens`, and nothing else of it.
    pub(crate) fn new<'a>(
        key: &DigestKey,
        tokens: impl Iterator<Item = std::borrow::Cow<'a, [u8]>>,
        value: &[u8],
    ) -> Self {
        let mut path = Vec::new();
        for token in tokens {
            path.push(b'/');
            push_escaped(&mut path, &token);
        }
        Self {
            path,
            digest: ValueDigest::of(key, value),
        }
    }
}

/// Writes a text as a JSON string, surrogates in their three-byte form as escapes.
fn json_string(plain: &[u8]) -> Box<str> {
    let mut json = Vec::with_capacity(plain.len() + 2);
    json.push(b'"');
    let mut rest = plain;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after) {
            (b'"' | b'\\', _) => json.extend_from_slice(&[b'\\', byte]),
            (0..0x20, _) => push_escape(&mut json, u32::from(byte)),
            (0xED, [high @ 0xA0..=0xBF, low, after @ ..]) => {
                push_escape(
                    &mut json,
                    0xD000 | (u32::from(high & 0x3F) << 6) | u32::from(low & 0x3F),
                );
                rest = after;
            }
            (byte, _) => json.push(byte),
        }
    }
    json.push(b'"');
    String::from_utf8_lossy(&json).into()
}

fn push_escape(json: &mut Vec<u8>, code_unit: u32) {
    json.extend_from_slice(format!("\\u{code_unit:04x}").as_bytes());
}

#[cfg(test)]
mod tests {
    use krm_stream_protocol::json::unescape;

    use super::*;

    #[test]
    fn a_path_is_a_json_string_whatever_its_keys_hold() {
        for (key, expected) in [
            ("a", r#""a""#),
            (r"\u0061\/\u007e", r#""a/~""#),
            (r#"\"\\\n\u0000"#, r#""\"\\\u000a\u0000""#),
            (r"x\ud83dy", r#""x\ud83dy""#),
            (r"\udc00", r#""\udc00""#),
            (r"\ud83d\ude00\ud83d", "\"\u{1F600}\\ud83d\""),
            ("\u{D7FF}\u{E000}\u{E9}", "\"\u{D7FF}\u{E000}\u{E9}\""),
        ] {
            let json = json_string(&unescape(key.as_bytes()));
            assert_eq!(&*json, expected, "{key}");
            krm_stream_protocol::json::validate(json.as_bytes()).unwrap();
        }
    }

    #[test]
    fn redactions_are_sorted_and_duplicates_are_one_path_of_both_values() {
        let key = DigestKey::new([7; 32]);
        let withheld = |name: &'static str, value: &[u8]| {
            Withheld::new(
                &key,
                ["data", name].iter().map(|token| token.as_bytes().into()),
                value,
            )
        };
        let one = Redactions::collect(
            &key,
            vec![withheld("b", b"1"), withheld("a/b~", b"2"), withheld("b", b"3")],
        )
        .unwrap();
        let paths: Vec<_> = one.as_slice().iter().map(Redaction::path_json).collect();
        assert_eq!(paths, [r#""/data/a~1b~0""#, r#""/data/b""#]);
        let first_changed =
            Redactions::collect(&key, vec![withheld("b", b"9"), withheld("b", b"3")]).unwrap();
        let last_changed = Redactions::collect(&key, vec![withheld("b", b"1"), withheld("b", b"9")]).unwrap();
        let digests = [
            &one.as_slice()[1],
            &first_changed.as_slice()[0],
            &last_changed.as_slice()[0],
        ];
        assert_ne!(digests[0], digests[1]);
        assert_ne!(digests[0], digests[2]);
        assert!(Redactions::collect(&key, Vec::new()).is_none());
        assert!(!format!("{one:?}").contains(&format!("{:?}", [7_u8; 4])));
    }
}
