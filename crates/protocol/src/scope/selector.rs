//! Label selectors by Kubernetes' grammar, in canonical order.

mod lexer;
mod parser;

use std::fmt;
use std::str::FromStr;

/// A label selector in canonical form: requirements and values sorted and without repetition, `=` for `==`, no
/// white space but around `in` and `notin`.
///
/// The grammar is that of [`labels.Parse`], which is what an API server applies: `a=b`, `a==b`, `a!=b`, `a in (b,c)`,
/// `a notin (b,c)`, `a` (exists), `!a` (does not exist), `a>1`, `a<1`, joined by commas. Selectors that list the same
/// requirements in another order are equal. Nothing else is rewritten: `a in (b)` and `a=b` stay two spellings.
///
/// [`labels.Parse`]: https://pkg.go.dev/k8s.io/apimachinery/pkg/labels#Parse
///
/// ```
/// use krm_stream_protocol::LabelSelector;
///
/// let selector: LabelSelector = "tier in (web, db,web), !legacy,app == shop".parse()?;
/// assert_eq!(selector.as_str(), "app=shop,!legacy,tier in (db,web)");
/// # Ok::<(), krm_stream_protocol::LabelSelectorError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelSelector {
    canonical: Box<str>,
}

/// Why a text is no label selector. Positions are bytes of the decoded text; no part of the text is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelSelectorError {
    /// It requires nothing, so it would select everything.
    #[error("it holds no requirement: leave it out to select everything")]
    NoRequirement,
    /// A part stands where another was due.
    #[error("at byte {position}: expected {expected}")]
    Unexpected {
        /// Where.
        position: usize,
        /// What was due there.
        expected: &'static str,
    },
    /// A key is no qualified name.
    #[error(
        "at byte {position}: a label key is a name of at most 63 letters, digits, `-`, `_` and `.`, optionally after a \
         dns subdomain and `/`"
    )]
    InvalidKey {
        /// Where the key begins.
        position: usize,
    },
    /// A value cannot be the value of a label.
    #[error(
        "at byte {position}: a label value is empty or at most 63 letters, digits, `-`, `_` and `.`, with a letter or \
         digit at both ends"
    )]
    InvalidValue {
        /// Where the value begins.
        position: usize,
    },
    /// `<` or `>` with something else than an integer of 64 bits.
    #[error("at byte {position}: `<` and `>` compare with an integer of 64 bits")]
    NotAnInteger {
        /// Where the value begins.
        position: usize,
    },
}

impl LabelSelector {
    /// Parses a selector and brings it into canonical form.
    ///
    /// # Errors
    /// [`LabelSelectorError`] if it is not by the grammar, or requires nothing.
    pub fn parse(text: &str) -> Result<Self, LabelSelectorError> {
        let requirements = parser::parse(text)?;
        if requirements.is_empty() {
            return Err(LabelSelectorError::NoRequirement);
        }
        let mut canonical = String::with_capacity(text.len());
        for requirement in &requirements {
            if !canonical.is_empty() {
                canonical.push(',');
            }
            requirement.write_to(&mut canonical);
        }
        Ok(Self {
            canonical: canonical.into(),
        })
    }

    /// The canonical spelling. Parsing it again gives the same selector.
    pub fn as_str(&self) -> &str {
        &self.canonical
    }
}

impl FromStr for LabelSelector {
    type Err = LabelSelectorError;

    fn from_str(text: &str) -> Result<Self, LabelSelectorError> {
        Self::parse(text)
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.canonical)
    }
}

#[cfg(test)]
mod tests;
