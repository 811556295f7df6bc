//! The text of a review, and what its answer decides.

use std::collections::BTreeMap;

use krm_stream_protocol::{Scope, Subject};
use serde::{Deserialize, Serialize};

/// The group of every caller that was authenticated. Impersonation adds it by itself; a review does not.
const AUTHENTICATED: &str = "system:authenticated";
/// Who is not.
const ANONYMOUS: &str = "system:anonymous";
const UNAUTHENTICATED: &str = "system:unauthenticated";

/// A `SubjectAccessReview` to be asked.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Review<'a> {
    api_version: &'static str,
    kind: &'static str,
    spec: Spec<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    resource_attributes: ResourceAttributes<'a>,
    user: &'a str,
    groups: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra: BTreeMap<&'a str, Vec<&'a str>>,
}

/// An absent namespace asks about all namespaces, an absent name about all names.
#[derive(Debug, Serialize)]
struct ResourceAttributes<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    verb: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    version: &'a str,
    resource: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

impl<'a> Review<'a> {
    /// Whether `subject` may `verb` what is in `scope`.
    pub(super) fn question(subject: &'a Subject, verb: &'a str, scope: &'a Scope) -> Self {
        let mut groups: Vec<&str> = subject.groups().collect();
        let is_anonymous = subject.user_name() == ANONYMOUS || groups.contains(&UNAUTHENTICATED);
        if !is_anonymous && !groups.contains(&AUTHENTICATED) {
            groups.push(AUTHENTICATED);
        }
        Self {
            api_version: "authorization.k8s.io/v1",
            kind: "SubjectAccessReview",
            spec: Spec {
                resource_attributes: ResourceAttributes {
                    namespace: scope.namespace(),
                    verb,
                    group: scope.group(),
                    version: scope.version(),
                    resource: scope.resource(),
                    name: scope.name(),
                },
                user: subject.user_name(),
                groups,
                uid: subject.user_uid(),
                extra: subject
                    .extras()
                    .map(|(key, values)| (key, values.collect()))
                    .collect(),
            },
        }
    }
}

/// What an answer decides.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Allowed,
    Denied {
        reason: Box<str>,
    },
    /// Neither allowed nor an answer that says why not.
    Incomplete {
        reason: Box<str>,
    },
}

#[derive(Deserialize)]
struct Answer {
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    allowed: bool,
    #[serde(default)]
    denied: bool,
    #[serde(default)]
    reason: Option<Box<str>>,
    #[serde(default)]
    evaluation_error: Option<Box<str>>,
}

impl Decision {
    /// Reads an answer. `denied` outranks `allowed`; whatever is missing, doubled or of another type is no answer.
    pub(super) fn read(text: &[u8]) -> Self {
        let Ok(Answer { status }) = serde_json::from_slice(text) else {
            return Self::Incomplete {
                reason: "the answer cannot be read as a review".into(),
            };
        };
        if status.allowed && !status.denied {
            return Self::Allowed;
        }
        match (status.reason, status.evaluation_error) {
            (_, Some(error)) if !status.denied && !error.is_empty() => Self::Incomplete { reason: error },
            (reason, _) => Self::Denied {
                reason: reason.unwrap_or_default(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> Scope {
        Scope::builder("v1", "deployments")
            .group("apps")
            .namespace("team-a")
            .name("web")
            .label_selector("a=b")
            .build()
            .unwrap()
    }

    #[test]
    fn a_review_asks_about_the_complete_subject_and_the_scope_without_its_selector() {
        let subject = Subject::new("ada")
            .unwrap()
            .uid("7")
            .group("dev")
            .extra("scopes", "x");
        let scope = scope();
        let text = serde_json::to_string(&Review::question(&subject, "watch", &scope)).unwrap();
        assert_eq!(
            text,
            r#"{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"resourceAttributes":{"namespace":"team-a","verb":"watch","group":"apps","version":"v1","resource":"deployments","name":"web"},"user":"ada","groups":["dev","system:authenticated"],"uid":"7","extra":{"scopes":["x"]}}}"#
        );
    }

    #[test]
    fn an_anonymous_caller_is_not_made_an_authenticated_one() {
        let scope = scope();
        for subject in [
            Subject::new("system:anonymous").unwrap(),
            Subject::new("x").unwrap().group("system:unauthenticated"),
        ] {
            let review = Review::question(&subject, "list", &scope);
            assert!(!review.spec.groups.contains(&AUTHENTICATED));
        }
        let twice = Subject::new("ada").unwrap().group(AUTHENTICATED);
        assert_eq!(
            Review::question(&twice, "list", &scope).spec.groups,
            [AUTHENTICATED]
        );
    }

    #[test]
    fn denied_outranks_allowed_and_what_is_incomplete_does_not_allow() {
        let read = |text: &str| Decision::read(text.as_bytes());
        assert_eq!(read(r#"{"status":{"allowed":true}}"#), Decision::Allowed);
        assert_eq!(
            read(r#"{"status":{"allowed":true,"evaluationError":"one authorizer failed"}}"#),
            Decision::Allowed
        );
        assert!(matches!(
            read(r#"{"status":{"allowed":true,"denied":true,"reason":"r"}}"#),
            Decision::Denied { reason } if &*reason == "r"
        ));
        assert!(matches!(
            read(r#"{"status":{"allowed":false}}"#),
            Decision::Denied { .. }
        ));
        for text in [
            "",
            "{}",
            "<html>",
            r#"{"status":null}"#,
            r#"{"status":{}}"#,
            r#"{"status":{"allowed":"true"}}"#,
            r#"{"status":{"allowed":null}}"#,
            r#"{"status":{"allowed":false,"allowed":true}}"#,
            r#"{"status":{"denied":true},"status":{"allowed":true}}"#,
            r#"{"status":{"allowed":false,"evaluationError":"webhook failed"}}"#,
        ] {
            assert!(matches!(read(text), Decision::Incomplete { .. }), "{text}");
        }
    }
}
