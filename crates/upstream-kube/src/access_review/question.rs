//! What makes two checks equal.

use krm_stream_protocol::{Scope, Subject, Target};

/// Who asks for what, where: everything that a review is made of, and the target. The verbs are no part of it, since
/// every check asks about all of them; nor is a selector, which no review mentions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question {
    subject: Subject,
    target: Target,
    group: Option<Box<str>>,
    version: Box<str>,
    resource: Box<str>,
    namespace: Option<Box<str>>,
    name: Option<Box<str>>,
}

impl Question {
    pub(super) fn new(subject: &Subject, scope: &Scope) -> Self {
        Self {
            subject: subject.clone(),
            target: scope.target().clone(),
            group: scope.group().map(Box::from),
            version: scope.version().into(),
            resource: scope.resource().into(),
            namespace: scope.namespace().map(Box::from),
            name: scope.name().map(Box::from),
        }
    }

    pub(super) fn subject(&self) -> &Subject {
        &self.subject
    }
}
