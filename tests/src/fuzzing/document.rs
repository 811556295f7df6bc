//! JSON as a plain tree of the tokens that were sent: a slow reading to compare the fast ones with. It keeps the order
//! of keys, duplicates, the text of numbers and the spelling of escapes; only white space is lost.

use serde_json::Value;
use serde_json::value::RawValue;

/// Deeper documents are not read: this reading is recursive.
const DEEPEST: usize = 200;

/// A value. Tokens are as they were sent; keys and strings have their quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Document {
    Scalar(String),
    Array(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl Document {
    /// Reads exactly one value; `None` if it is not valid, or too deep for this.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        if !is_valid(text) {
            return None;
        }
        let mut reader = Reader {
            rest: std::str::from_utf8(text).ok()?,
        };
        reader.value(DEEPEST)
    }

    /// The members of an object; none of anything else.
    pub(super) fn members(&self) -> &[(String, Self)] {
        match self {
            Self::Object(members) => members,
            Self::Array(_) | Self::Scalar(_) => &[],
        }
    }

    /// The members of an object, to be changed; none of anything else.
    pub(super) fn members_mut(&mut self) -> &mut [(String, Self)] {
        match self {
            Self::Object(members) => members,
            Self::Array(_) | Self::Scalar(_) => &mut [],
        }
    }

    /// The values of all members of this name.
    pub(super) fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Self> {
        self.members()
            .iter()
            .filter(move |(key, _)| is_text(key, name))
            .map(|(_, value)| value)
    }

    /// The value of the last member of this name, which is the one that a browser sees.
    pub(super) fn last(&self, name: &str) -> Option<&Self> {
        self.all(name).last()
    }

    /// Whether it is this string, however it is spelled.
    pub(super) fn is(&self, text: &str) -> bool {
        matches!(self, Self::Scalar(token) if is_text(token, text))
    }

    /// The text of a string; `None` for anything else, and where a lone surrogate has no place in a text.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Self::Scalar(token) if token.starts_with('"') => String::from_utf16(&units(token)).ok(),
            Self::Scalar(_) | Self::Array(_) | Self::Object(_) => None,
        }
    }

    /// Whether any object in it has a key twice.
    pub(super) fn has_duplicates(&self) -> bool {
        match self {
            Self::Scalar(_) => false,
            Self::Array(elements) => elements.iter().any(Self::has_duplicates),
            Self::Object(members) => {
                let mut keys: Vec<_> = members.iter().map(|(key, _)| units(key)).collect();
                keys.sort_unstable();
                keys.windows(2).any(|pair| pair[0] == pair[1])
                    || members.iter().any(|(_, value)| value.has_duplicates())
            }
        }
    }

    /// As a `serde_json` value, where that loses no more than the order of keys and the spelling of numbers.
    pub(super) fn to_value(&self) -> Option<Value> {
        if self.has_duplicates() {
            return None;
        }
        serde_json::from_str(&self.compact()).ok()
    }

    /// Its text without white space.
    pub(super) fn compact(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Scalar(token) => out.push_str(token),
            Self::Array(elements) => {
                out.push('[');
                for (index, element) in elements.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    element.write(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (index, (key, value)) in members.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    out.push_str(key);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

/// Whether a text is exactly one JSON value in UTF-8.
pub(super) fn is_valid(text: &[u8]) -> bool {
    serde_json::from_slice::<&RawValue>(text).is_ok()
}

/// The UTF-16 code units of a string token, which has its quotes: what a browser's string holds, lone surrogates too.
pub(super) fn units(token: &str) -> Vec<u16> {
    let mut units = Vec::new();
    let mut characters = token[1..token.len() - 1].chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            units.extend_from_slice(character.encode_utf16(&mut [0; 2]));
            continue;
        }
        units.push(match characters.next() {
            Some('b') => 0x08,
            Some('t') => 0x09,
            Some('n') => 0x0A,
            Some('f') => 0x0C,
            Some('r') => 0x0D,
            Some('u') => (0..4).fold(0, |unit, _| {
                let digit = characters.next().and_then(|digit| digit.to_digit(16));
                unit << 4 | u16::try_from(digit.unwrap_or_default()).unwrap_or_default()
            }),
            other => other.map_or(0, |character| {
                u16::try_from(u32::from(character)).unwrap_or_default()
            }),
        });
    }
    units
}

fn is_text(token: &str, text: &str) -> bool {
    token.starts_with('"') && units(token).into_iter().eq(text.encode_utf16())
}

/// Reads a text that is known to be valid.
struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
    }

    fn take(&mut self, length: usize) -> String {
        let (token, rest) = self.rest.split_at(length);
        self.rest = rest;
        token.to_owned()
    }

    /// Whether the next token is this one, which is then taken.
    fn is_next(&mut self, token: char) -> bool {
        self.skip_space();
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn string(&mut self) -> String {
        let mut is_escaped = true;
        let end = self.rest.find(|character| {
            let ends = character == '"' && !is_escaped;
            // The quote that opens it is passed as if it were escaped.
            is_escaped = character == '\\' && !is_escaped;
            ends
        });
        self.take(end.map_or(self.rest.len(), |end| end + 1))
    }

    fn value(&mut self, depth: usize) -> Option<Document> {
        let depth = depth.checked_sub(1)?;
        self.skip_space();
        if self.is_next('{') {
            let mut members = Vec::new();
            while !self.is_next('}') {
                let _comma = self.is_next(',');
                self.skip_space();
                let key = self.string();
                let _colon = self.is_next(':');
                members.push((key, self.value(depth)?));
            }
            return Some(Document::Object(members));
        }
        if self.is_next('[') {
            let mut elements = Vec::new();
            while !self.is_next(']') {
                let _comma = self.is_next(',');
                elements.push(self.value(depth)?);
            }
            return Some(Document::Array(elements));
        }
        if self.rest.starts_with('"') {
            return Some(Document::Scalar(self.string()));
        }
        let end = self.rest.find([',', ']', '}', ' ', '\t', '\r', '\n']);
        Some(Document::Scalar(self.take(end.unwrap_or(self.rest.len()))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_keeps_every_token() {
        let text = r#" { "a" : [ 1E5 , -0.0, "\"\\" , [ ] , {} ] ,"a":null, "\u0061\ud800" : "é\/" } "#;
        let document = Document::parse(text.as_bytes()).unwrap();
        assert_eq!(
            document.compact(),
            r#"{"a":[1E5,-0.0,"\"\\",[],{}],"a":null,"\u0061\ud800":"é\/"}"#
        );
        assert!(document.has_duplicates() && document.to_value().is_none());
        assert_eq!(document.last("a"), Some(&Document::Scalar("null".to_owned())));
        assert_eq!(units(&document.members()[2].0), [0x61, 0xD800]);
        assert!(Document::parse(b"{").is_none() && Document::parse(b"{} {}").is_none());
        let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
        assert!(Document::parse(deep.as_bytes()).is_none() && is_valid(deep.as_bytes()));
    }
}
