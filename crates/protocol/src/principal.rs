//! Who is calling.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// The complete subject as Kubernetes knows it: user, uid, groups and extra.
///
/// Groups and extra values are sets: their order and repetition mean nothing, so two spellings of one subject are
/// equal and hash alike.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subject {
    user: Box<str>,
    uid: Option<Box<str>>,
    groups: BTreeSet<Box<str>>,
    extra: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
}

/// Why a [`Subject`] cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubjectError {
    /// The user name is empty; an anonymous caller needs a name of the host's choosing.
    #[error("the user name is empty: give the caller's name, or an explicit one such as system:anonymous")]
    EmptyUser,
}

impl Subject {
    /// A subject with this user name and nothing else.
    ///
    /// # Errors
    /// [`SubjectError::EmptyUser`] if the name is empty: a subject without a user would share a feed with everyone.
    pub fn new(user: impl Into<Box<str>>) -> Result<Self, SubjectError> {
        let user = user.into();
        if user.is_empty() {
            return Err(SubjectError::EmptyUser);
        }
        Ok(Self {
            user,
            uid: None,
            groups: BTreeSet::new(),
            extra: BTreeMap::new(),
        })
    }

    /// Sets the uid of the user.
    #[must_use]
    pub fn uid(mut self, uid: impl Into<Box<str>>) -> Self {
        self.uid = Some(uid.into());
        self
    }

    /// Adds a group.
    #[must_use]
    pub fn group(mut self, group: impl Into<Box<str>>) -> Self {
        self.groups.insert(group.into());
        self
    }

    /// Adds a value under an extra key.
    #[must_use]
    pub fn extra(mut self, key: impl Into<Box<str>>, value: impl Into<Box<str>>) -> Self {
        self.extra.entry(key.into()).or_default().insert(value.into());
        self
    }

    /// The user name, never empty.
    pub fn user_name(&self) -> &str {
        &self.user
    }

    /// The uid of the user, if the host knows one.
    pub fn user_uid(&self) -> Option<&str> {
        self.uid.as_deref()
    }

    /// The groups, in order.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.groups.iter().map(AsRef::as_ref)
    }

    /// The extra keys with their values, in order.
    pub fn extras(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = &str>)> {
        self.extra
            .iter()
            .map(|(key, values)| (key.as_ref(), values.iter().map(AsRef::as_ref)))
    }
}

/// Whoever the host says is calling: a [`Subject`] and a value of the host's own.
#[derive(Clone)]
pub struct Principal {
    subject: Arc<Subject>,
    host: Option<Arc<dyn Any + Send + Sync>>,
}

impl Principal {
    /// A principal of this subject.
    pub fn new(subject: Subject) -> Self {
        Self {
            subject: Arc::new(subject),
            host: None,
        }
    }

    /// Attaches a value of the host's own (a session, a credential), which its seams find again with
    /// [`host_value`](Self::host_value). It takes no part in sharing.
    #[must_use]
    pub fn with_host_value<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.host = Some(Arc::new(value));
        self
    }

    /// The complete subject.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// The host's own value, if one of this type was attached.
    pub fn host_value<T: Any>(&self) -> Option<&T> {
        self.host.as_deref().and_then(|value| value.downcast_ref())
    }
}

impl fmt::Debug for Principal {
    /// Shows no part of the host's value: it may hold a credential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Principal")
            .field("subject", &self.subject)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_without_a_user_cannot_be_built() {
        assert_eq!(Subject::new(""), Err(SubjectError::EmptyUser));
    }

    #[test]
    fn groups_in_another_order_are_the_same_subject() {
        let one = Subject::new("ada").unwrap().group("a").group("b");
        let other = Subject::new("ada").unwrap().group("b").group("a").group("b");
        assert_eq!(one, other);
        assert_ne!(one, Subject::new("ada").unwrap().group("a"));
    }

    #[test]
    fn the_host_value_is_found_by_its_type_and_never_shown() {
        let principal =
            Principal::new(Subject::new("ada").unwrap()).with_host_value(String::from("canary-token"));
        assert_eq!(
            principal.host_value::<String>().map(String::as_str),
            Some("canary-token")
        );
        assert!(principal.host_value::<u8>().is_none());
        assert!(!format!("{principal:?}").contains("canary"));
    }
}
