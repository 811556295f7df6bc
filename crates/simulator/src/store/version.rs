//! The counter behind `resourceVersion`, and the texts that stand for some of its values.

use std::collections::{BTreeMap, HashMap};

/// The global counter. A change that was given a version text of its own (too large for the counter, or not a number
/// at all) is known by that text.
#[derive(Debug)]
pub(crate) struct Versions {
    current: u64,
    compacted: u64,
    texts: BTreeMap<u64, String>,
    by_text: HashMap<String, u64>,
}

/// A `resourceVersion` that is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: {problem}")]
pub(crate) struct BadVersion {
    text: String,
    problem: &'static str,
}

impl Versions {
    pub(super) fn new(first: u64) -> Self {
        Self {
            current: first,
            compacted: 0,
            texts: BTreeMap::new(),
            by_text: HashMap::new(),
        }
    }

    pub(crate) fn current(&self) -> u64 {
        self.current
    }

    pub(super) fn next(&self) -> u64 {
        self.current.saturating_add(1)
    }

    pub(crate) fn advance_to(&mut self, sequence: u64) {
        self.current = self.current.max(sequence);
    }

    pub(super) fn compact(&mut self) {
        self.compacted = self.current;
    }

    /// Versions below this one cannot be read or watched from.
    pub(crate) fn compacted(&self) -> u64 {
        self.compacted
    }

    /// Lets `text` stand for `sequence`.
    pub(super) fn alias(&mut self, sequence: u64, text: &str) {
        self.texts.insert(sequence, text.to_owned());
        self.by_text.insert(text.to_owned(), sequence);
    }

    /// How a version is written.
    pub(crate) fn text(&self, sequence: u64) -> String {
        self.texts
            .get(&sequence)
            .cloned()
            .unwrap_or_else(|| sequence.to_string())
    }

    /// Reads a version.
    pub(crate) fn parse(&self, text: &str) -> Result<u64, BadVersion> {
        if let Some(sequence) = self.by_text.get(text) {
            return Ok(*sequence);
        }
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| digits).ok_or_else(|| BadVersion {
            text: text.to_owned(),
            problem: if digits {
                "value out of range"
            } else {
                "invalid syntax"
            },
        })
    }
}
