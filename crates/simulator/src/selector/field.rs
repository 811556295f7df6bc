//! Field selectors on `metadata.name` and `metadata.namespace`
//! (<https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/>).

/// A parsed field selector: all of its terms must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    field: Field,
    equal: bool,
    value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Name,
    Namespace,
}

/// Why a field selector was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FieldSelectorError {
    /// It does not parse.
    #[error("{0}")]
    Syntax(String),
    /// The field cannot be selected on.
    #[error("field label not supported: {0}")]
    Unsupported(String),
}

impl FieldSelector {
    /// Parses `text`; `\`, `,` and `=` in a value are escaped by a backslash.
    pub(crate) fn parse(text: &str) -> Result<Self, FieldSelectorError> {
        let mut terms = Vec::new();
        for part in split_terms(text) {
            if part.is_empty() {
                continue;
            }
            let (field, equal, value) = split_term(part).ok_or_else(|| {
                FieldSelectorError::Syntax(format!("invalid selector: '{text}'; can't understand '{part}'"))
            })?;
            let field = match field {
                "metadata.name" => Field::Name,
                "metadata.namespace" => Field::Namespace,
                other => return Err(FieldSelectorError::Unsupported(other.to_owned())),
            };
            terms.push(Term {
                field,
                equal,
                value: unescape(value)?,
            });
        }
        Ok(Self { terms })
    }

    /// The same selector with one more term: the name equals `name`.
    #[must_use]
    pub(crate) fn and_name(mut self, name: &str) -> Self {
        self.terms.push(Term {
            field: Field::Name,
            equal: true,
            value: name.to_owned(),
        });
        self
    }

    /// Whether an object of this namespace and name is selected.
    pub(crate) fn matches(&self, namespace: &str, name: &str) -> bool {
        self.terms.iter().all(|term| {
            let value = match term.field {
                Field::Name => name,
                Field::Namespace => namespace,
            };
            (value == term.value) == term.equal
        })
    }

    /// The one name that it asks for, if it asks for one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.terms
            .iter()
            .find(|term| term.equal && term.field == Field::Name)
            .map(|term| term.value.as_str())
    }
}

/// Splits at commas that are not escaped.
fn split_terms(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if character == ',' {
            parts.push(&text[start..at]);
            start = at + 1;
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Field, whether it must be equal, and value, at the first operator.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    for at in 0..term.len() {
        let Some(rest) = term.get(at..) else { continue };
        let Some(field) = term.get(..at) else { continue };
        for (operator, equal) in [("!=", false), ("==", true), ("=", true)] {
            if let Some(value) = rest.strip_prefix(operator) {
                return Some((field, equal, value));
            }
        }
    }
    None
}

fn unescape(value: &str) -> Result<String, FieldSelectorError> {
    let invalid = || {
        FieldSelectorError::Syntax(format!(
            "invalid field selector: invalid escape sequence in value: {value}"
        ))
    };
    let mut out = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                Some(_) | None => return Err(invalid()),
            },
            '=' => {
                return Err(FieldSelectorError::Syntax(format!(
                    "invalid field selector: unescaped character in value: {value}"
                )));
            }
            other => out.push(other),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_namespaces_are_compared_after_unescaping() {
        let selector = FieldSelector::parse(r"metadata.name=a\,b\=c\\,metadata.namespace!=x").unwrap();
        assert!(selector.matches("y", r"a,b=c\"));
        assert!(!selector.matches("x", r"a,b=c\"));
        assert!(!selector.matches("y", "a"));
        assert_eq!(selector.name(), Some(r"a,b=c\"));
    }

    #[test]
    fn equality_may_be_doubled_and_empty_terms_are_skipped() {
        assert!(
            FieldSelector::parse("metadata.name==a,")
                .unwrap()
                .matches("", "a")
        );
        assert!(FieldSelector::parse("").unwrap().matches("", "a"));
    }

    #[test]
    fn an_injected_second_term_selects_nothing() {
        let selector = FieldSelector::parse("metadata.name=x,metadata.name=y").unwrap();
        assert!(!selector.matches("", "y"));
        assert!(!selector.matches("", "x"));
    }

    #[test]
    fn unknown_fields_and_bad_escapes_are_refused() {
        assert_eq!(
            FieldSelector::parse("spec.nodeName=a").unwrap_err().to_string(),
            "field label not supported: spec.nodeName"
        );
        for text in [
            "metadata.name",
            r"metadata.name=a\b",
            "metadata.name=a=b",
            r"metadata.name=a\",
        ] {
            assert!(FieldSelector::parse(text).is_err(), "{text}");
        }
    }
}
