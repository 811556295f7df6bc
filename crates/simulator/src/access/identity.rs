//! Users, and the headers by which a request asks to act as another one.

use std::collections::{BTreeMap, BTreeSet};

use http::{HeaderMap, HeaderName};
use percent_encoding::percent_decode_str;

use crate::status::Status;

use super::Attributes;

const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";

/// A user as Kubernetes knows it: name, uid, groups and extra.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) groups: BTreeSet<String>,
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user without groups of its own.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            uid: String::new(),
            groups: BTreeSet::new(),
            extra: BTreeMap::new(),
        }
    }

    /// Sets the uid.
    #[must_use]
    pub fn uid(mut self, uid: impl Into<String>) -> Self {
        self.uid = uid.into();
        self
    }

    /// Adds a group.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.groups.insert(group.into());
        self
    }

    pub(super) fn anonymous() -> Self {
        Self::new("system:anonymous").group(UNAUTHENTICATED)
    }

    /// With the group that every authenticated user is in.
    pub(super) fn authenticated(self) -> Self {
        self.group(AUTHENTICATED)
    }
}

/// Another user that a request wants to act as, and what the caller must be allowed for it.
pub(super) struct Impersonated {
    pub(super) user: User,
    pub(super) checks: Vec<Attributes>,
}

/// Reads the impersonation headers
/// (<https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/>).
pub(super) fn impersonated(headers: &HeaderMap) -> Result<Option<Impersonated>, Status> {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned()
    };
    let name = text("impersonate-user");
    let uid = text("impersonate-uid");
    let groups: Vec<String> = headers
        .get_all("impersonate-group")
        .iter()
        .filter_map(|value| value.to_str().ok().map(str::to_owned))
        .collect();
    let extra = extra(headers);
    if name.is_empty() {
        if groups.is_empty() && extra.is_empty() && uid.is_empty() {
            return Ok(None);
        }
        let message = "requested impersonation of groups, a uid or extra without impersonating a user";
        return Err(Status::new(500, format!("Internal Server Error: {message}")).reason("InternalError"));
    }
    let mut checks = vec![Attributes::impersonation("", "users", "", &name)];
    checks.extend(
        groups
            .iter()
            .map(|group| Attributes::impersonation("", "groups", "", group)),
    );
    if !uid.is_empty() {
        checks.push(Attributes::impersonation(
            "authentication.k8s.io",
            "uids",
            "",
            &uid,
        ));
    }
    for (key, values) in &extra {
        checks.extend(
            values
                .iter()
                .map(|value| Attributes::impersonation("authentication.k8s.io", "userextras", key, value)),
        );
    }
    let mut user = User {
        name,
        uid,
        groups: groups.into_iter().collect(),
        extra,
    };
    if user.name != "system:anonymous" && !user.groups.contains(UNAUTHENTICATED) {
        user = user.authenticated();
    }
    Ok(Some(Impersonated { user, checks }))
}

/// `Impersonate-Extra-KEY: VALUE`, keys percent-decoded.
fn extra(headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        if let (Some(key), Ok(value)) = (extra_key(name), value.to_str()) {
            extra.entry(key).or_default().push(value.to_owned());
        }
    }
    extra
}

fn extra_key(name: &HeaderName) -> Option<String> {
    let key = name.as_str().strip_prefix("impersonate-extra-")?;
    Some(percent_decode_str(key).decode_utf8_lossy().to_lowercase())
}
