//! Projections of a host's own.

use std::sync::Arc;

use krm_stream_protocol::ProjectionName;

use super::{Projection, RESERVED_PREFIX};
use crate::rules::{Action, Applies, Pointer, PointerError, Rule, WILDCARD};

/// The most bytes of a name.
const MAX_NAME_BYTES: usize = 128;

/// The fields by which a consumer keeps what it was sent. None of them can be removed or withheld.
const IDENTITY_FIELDS: [&[&str]; 6] = [
    &["apiVersion"],
    &["kind"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "uid"],
    &["metadata", "resourceVersion"],
];

/// Builds a projection of a host's own: a base, and further things that are removed or withheld.
///
/// A path is a [JSON pointer](https://www.rfc-editor.org/rfc/rfc6901): `/spec/password`, with `~1` for a slash inside a
/// name. A name that is `*` stands for every member of an object and every element of an array; a decimal number is also
/// the element of that index, counted from 0 before anything is taken out. A path that an object does not have does
/// nothing there.
///
/// *Removed* is absent without a trace. *Redacted* is absent too, but its path is named to consumers, with a revision
/// that grows when the value changes. Where both are asked for, it is removed. What is emptied that way goes too.
#[derive(Clone, Debug)]
pub struct ProjectionBuilder {
    name: ProjectionName,
    base: Arc<Projection>,
    rules: Vec<Rule>,
    error: Option<ProjectionError>,
}

/// Why a projection cannot be defined or added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProjectionError {
    /// A name has 1 to 128 printable ASCII characters without spaces, quotes and backslashes.
    #[error(
        "a projection's name is 1 to 128 printable ascii characters without spaces, quotes and backslashes"
    )]
    Name,
    /// Names that begin with `krm-` are kept for built-in projections, so that their meaning never differs.
    #[error("the name {name} is reserved: choose one that does not begin with krm-")]
    Reserved {
        /// The name.
        name: ProjectionName,
    },
    /// There is one of this name already.
    #[error(
        "there is a projection {name} already: choose another name, or another version, for example {name}.2"
    )]
    Duplicate {
        /// The name.
        name: ProjectionName,
    },
    /// A path is not legal.
    #[error("the path {path:?} is not legal")]
    Path {
        /// The path as it was given.
        path: Box<str>,
        /// What is wrong with it.
        #[source]
        source: PointerError,
    },
    /// A path would take out what identifies an object.
    #[error(
        "the path {path:?} would take out {field}, without which a consumer cannot keep the object: name a deeper path"
    )]
    Identity {
        /// The path as it was given.
        path: Box<str>,
        /// The field.
        field: Box<str>,
    },
}

impl ProjectionBuilder {
    pub(super) fn new(name: ProjectionName) -> Self {
        Self {
            name,
            base: Projection::full(),
            rules: Vec::new(),
            error: None,
        }
    }

    /// Starts from the rules of `base` instead of `krm-full/v1`. Based on `krm-raw/v1`, a projection carries the values
    /// of Secrets.
    #[must_use]
    pub fn based_on(mut self, base: Arc<Projection>) -> Self {
        self.base = base;
        self
    }

    /// Removes an annotation, by its plain name.
    #[must_use]
    pub fn remove_annotation(mut self, applies: impl Into<Applies>, annotation: &str) -> Self {
        self.rules.push(Rule {
            applies: applies.into(),
            pointer: Pointer::of(&["metadata", "annotations", annotation]),
            action: Action::Remove,
        });
        self
    }

    /// Removes what is at a path.
    #[must_use]
    pub fn remove_path(self, applies: impl Into<Applies>, path: &str) -> Self {
        self.path(applies.into(), path, Action::Remove)
    }

    /// Withholds the value at a path, whatever it is.
    #[must_use]
    pub fn redact_path(self, applies: impl Into<Applies>, path: &str) -> Self {
        self.path(applies.into(), path, Action::Redact)
    }

    /// Withholds each value of the object at a path, so that its keys stay known, as it is done with a Secret's `data`.
    /// What is there and is no object is withheld as a whole; null and an empty object stay.
    #[must_use]
    pub fn redact_values(self, applies: impl Into<Applies>, path: &str) -> Self {
        self.path(applies.into(), path, Action::RedactValues)
    }

    /// Builds the projection.
    ///
    /// # Errors
    /// The first thing that is wrong with its name or its paths.
    pub fn build(self) -> Result<Projection, ProjectionError> {
        let Self {
            name,
            base,
            rules,
            error,
        } = self;
        check_name(&name)?;
        if let Some(error) = error {
            return Err(error);
        }
        let mut all = base.rules.clone();
        all.extend(rules);
        Ok(Projection::from_rules(name, all))
    }

    fn path(mut self, applies: Applies, path: &str, action: Action) -> Self {
        match parse(path) {
            Ok(pointer) => self.rules.push(Rule {
                applies,
                pointer,
                action,
            }),
            Err(error) => {
                self.error.get_or_insert(error);
            }
        }
        self
    }
}

fn parse(path: &str) -> Result<Pointer, ProjectionError> {
    let pointer = Pointer::parse(path).map_err(|source| ProjectionError::Path {
        path: path.into(),
        source,
    })?;
    match IDENTITY_FIELDS.iter().find(|field| covers(&pointer, field)) {
        Some(field) => Err(ProjectionError::Identity {
            path: path.into(),
            field: field.join(".").into(),
        }),
        None => Ok(pointer),
    }
}

/// Whether what is at `pointer` is the field, or holds it, or may be within it.
fn covers(pointer: &Pointer, field: &[&str]) -> bool {
    pointer
        .tokens()
        .iter()
        .zip(field)
        .all(|(token, name)| **token == **name || **token == *WILDCARD)
        && pointer.tokens().len() <= field.len()
}

fn check_name(name: &ProjectionName) -> Result<(), ProjectionError> {
    let text = name.as_str();
    let is_legal = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\' | b'`');
    if text.is_empty() || text.len() > MAX_NAME_BYTES || !text.bytes().all(is_legal) {
        Err(ProjectionError::Name)
    } else if text.starts_with(RESERVED_PREFIX) {
        Err(ProjectionError::Reserved { name: name.clone() })
    } else {
        Ok(())
    }
}
