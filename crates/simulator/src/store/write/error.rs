//! Why a write fails, and how the API server says it.

use crate::{resource::Resource, status::Status};

/// Why an object was not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The resource is not served: register it first.
    #[error("resource {0:?} is not served; register it, or name it `plural.group`")]
    UnknownResource(String),
    /// There is no such object.
    #[error("{qualified_resource} {name:?} not found")]
    NotFound {
        /// `plural.group`.
        qualified_resource: String,
        /// Its name.
        name: String,
    },
    /// There is such an object already.
    #[error("{qualified_resource} {name:?} already exists")]
    AlreadyExists {
        /// `plural.group`.
        qualified_resource: String,
        /// Its name.
        name: String,
    },
    /// The object is not the one that the caller read.
    #[error("Operation cannot be fulfilled on {qualified_resource} {name:?}: {problem}")]
    Conflict {
        /// `plural.group`.
        qualified_resource: String,
        /// Its name.
        name: String,
        /// What differs.
        problem: String,
    },
    /// The object is not acceptable.
    #[error("{0}")]
    Invalid(String),
    /// The request does not fit the object.
    #[error("{0}")]
    BadRequest(String),
    /// A raw object whose place is neither given nor in its text.
    #[error("a raw object without metadata.name needs a place: call `at(namespace, name)`")]
    NamelessRawObject,
    /// A raw object that cannot be read as JSON can only be replaced or deleted.
    #[error("{0:?} was put in as raw text that cannot be patched; replace it")]
    Opaque(String),
}

impl WriteError {
    pub(in crate::store) fn not_found(resource: &Resource, name: &str) -> Self {
        Self::NotFound {
            qualified_resource: resource.qualified_name(),
            name: name.to_owned(),
        }
    }

    pub(super) fn conflict(resource: &Resource, name: &str, problem: impl Into<String>) -> Self {
        Self::Conflict {
            qualified_resource: resource.qualified_name(),
            name: name.to_owned(),
            problem: problem.into(),
        }
    }

    /// How the API server says it.
    pub(crate) fn to_status(&self, resource: &Resource) -> Status {
        let (group, plural) = (resource.group(), resource.plural());
        let message = self.to_string();
        match self {
            Self::UnknownResource(_) => Status::unknown_resource(),
            Self::NotFound { name, .. } => Status::not_found(resource, name),
            Self::AlreadyExists { name, .. } => Status::new(409, message)
                .reason("AlreadyExists")
                .about(group, plural, name),
            Self::Conflict { name, .. } => Status::new(409, message)
                .reason("Conflict")
                .about(group, plural, name),
            Self::Invalid(_) => Status::new(422, message)
                .reason("Invalid")
                .about(group, resource.kind(), ""),
            Self::BadRequest(_) | Self::NamelessRawObject => Status::bad_request(message),
            Self::Opaque(_) => Status::new(500, message).reason("InternalError"),
        }
    }
}
