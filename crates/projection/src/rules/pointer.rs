//! Paths of rules: JSON pointers, with a wildcard.

use std::fmt;

/// A path of a rule: a [JSON pointer](https://www.rfc-editor.org/rfc/rfc6901) in which a token `*` stands for every
/// member of an object and every element of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pointer(Vec<Box<str>>);

/// The token that stands for every member and element.
pub(crate) const WILDCARD: &str = "*";

/// The most tokens of a path. Objects nest as deep as they like; only a rule's path is bounded, and with it the depth
/// of every recursion over rules.
const MAX_TOKENS: usize = 64;

/// Why a text is not the path of a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PointerError {
    /// It does not begin with a slash. The empty pointer, which is the whole object, is refused too.
    #[error("a path begins with '/', for example /spec/password")]
    NoSlash,
    /// A tilde stands for itself only as `~0`, a slash inside a token only as `~1`.
    #[error("in a path '~' is written ~0 and a '/' inside a name ~1")]
    Escape,
    /// It has more than 64 tokens.
    #[error("a path has at most 64 names")]
    TooLong,
}

impl Pointer {
    pub(crate) fn parse(text: &str) -> Result<Self, PointerError> {
        let tokens = text.strip_prefix('/').ok_or(PointerError::NoSlash)?;
        let tokens: Vec<_> = tokens.split('/').map(unescape).collect::<Result<_, _>>()?;
        if tokens.len() > MAX_TOKENS {
            return Err(PointerError::TooLong);
        }
        Ok(Self(tokens))
    }

    /// The path of these names, none of which is a wildcard by intention.
    pub(crate) fn of(names: &[&str]) -> Self {
        Self(names.iter().map(|name| Box::from(*name)).collect())
    }

    pub(crate) fn tokens(&self) -> &[Box<str>] {
        &self.0
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        for token in &self.0 {
            text.push(b'/');
            push_escaped(&mut text, token.as_bytes());
        }
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

/// Appends a name to a pointer in the spelling of [RFC 6901, section 3](https://www.rfc-editor.org/rfc/rfc6901#section-3).
pub(crate) fn push_escaped(pointer: &mut Vec<u8>, name: &[u8]) {
    for byte in name {
        match byte {
            b'~' => pointer.extend_from_slice(b"~0"),
            b'/' => pointer.extend_from_slice(b"~1"),
            other => pointer.push(*other),
        }
    }
}

fn unescape(token: &str) -> Result<Box<str>, PointerError> {
    let mut plain = String::with_capacity(token.len());
    let mut characters = token.chars();
    while let Some(character) = characters.next() {
        plain.push(match character {
            '~' => match characters.next() {
                Some('0') => '~',
                Some('1') => '/',
                Some(_) | None => return Err(PointerError::Escape),
            },
            other => other,
        });
    }
    Ok(plain.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_rfc_6901_are_resolved_and_written_again() {
        let pointer = Pointer::parse("/metadata/annotations/example.io~1a~0b~01/").unwrap();
        let tokens: Vec<&str> = pointer.tokens().iter().map(|token| &**token).collect();
        assert_eq!(tokens, ["metadata", "annotations", "example.io/a~b~1", ""]);
        assert_eq!(pointer.to_string(), "/metadata/annotations/example.io~1a~0b~01/");
    }

    #[test]
    fn what_is_no_path_is_refused_with_what_to_do() {
        assert_eq!(Pointer::parse(""), Err(PointerError::NoSlash));
        assert_eq!(Pointer::parse("spec"), Err(PointerError::NoSlash));
        assert_eq!(Pointer::parse("/a~2"), Err(PointerError::Escape));
        assert_eq!(Pointer::parse("/a~"), Err(PointerError::Escape));
        assert_eq!(Pointer::parse(&"/a".repeat(65)), Err(PointerError::TooLong));
        assert!(Pointer::parse(&"/a".repeat(64)).is_ok());
    }
}
