//! Who is calling: nobody in particular, or whom a trusted proxy names.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use http::request::Parts;
use http::{HeaderMap, HeaderName};
use krm_stream_http::{PeerAddress, ResolveError, Resolver};
use krm_stream_protocol::{BoxFuture, Principal, StreamError, Subject, SubjectError};

use crate::networks::Network;

/// Kubernetes' own name for a caller that nobody knows.
/// See <https://kubernetes.io/docs/reference/access-authn-authz/authentication/#anonymous-requests>.
const ANONYMOUS: (&str, &str) = ("system:anonymous", "system:unauthenticated");

/// How a caller is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IdentityFlag {
    /// Not at all.
    Anonymous,
    /// By the user name in this header.
    Header(HeaderFlag),
}

/// The name of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeaderFlag(HeaderName);

/// Resolves the caller of a request.
#[derive(Debug)]
pub(crate) enum Identities {
    /// Everyone is anonymous.
    Anonymous(Principal),
    /// A trusted proxy says who.
    Headers(ProxyHeaders),
}

/// What is believed, and from whom.
#[derive(Debug)]
pub(crate) struct ProxyHeaders {
    user: HeaderName,
    groups: Option<HeaderName>,
    trusted: Vec<Network>,
}

impl Identities {
    /// # Errors
    /// Never in practice: Kubernetes' name for anonymous callers is not empty.
    pub(crate) fn anonymous() -> Result<Self, SubjectError> {
        let (user, group) = ANONYMOUS;
        Ok(Self::Anonymous(Principal::new(Subject::new(user)?.group(group))))
    }

    pub(crate) fn from_headers(user: HeaderFlag, groups: Option<HeaderFlag>, trusted: Vec<Network>) -> Self {
        Self::Headers(ProxyHeaders {
            user: user.0,
            groups: groups.map(|header| header.0),
            trusted,
        })
    }

    fn principal(&self, request: &Parts) -> Result<Principal, StreamError> {
        match self {
            Self::Anonymous(principal) => Ok(principal.clone()),
            Self::Headers(headers) => {
                let peer = request.extensions.get::<PeerAddress>().map(|peer| peer.0.ip());
                headers.principal(peer, &request.headers)
            }
        }
    }
}

impl Resolver for Identities {
    fn resolve<'a>(&'a self, request: &'a Parts) -> BoxFuture<'a, Result<Principal, ResolveError>> {
        let resolved = self.principal(request).map_err(ResolveError::from);
        Box::pin(std::future::ready(resolved))
    }
}

impl ProxyHeaders {
    fn principal(&self, peer: Option<IpAddr>, headers: &HeaderMap) -> Result<Principal, StreamError> {
        let is_trusted = peer.is_some_and(|peer| self.trusted.iter().any(|network| network.contains(peer)));
        if !is_trusted {
            return Err(StreamError::unauthenticated(
                "who you are is taken from a trusted proxy only: come through it",
            ));
        }
        let mut users = headers.get_all(&self.user).iter();
        let user = match (users.next(), users.next()) {
            (Some(user), None) => text(user)?,
            (None, _) => {
                return Err(StreamError::unauthenticated(
                    "the proxy did not say who you are: sign in again",
                ));
            }
            (Some(_), Some(_)) => {
                return Err(StreamError::unauthenticated(
                    "the proxy named more than one user for this request",
                ));
            }
        };
        let mut subject = Subject::new(user).map_err(|_| {
            StreamError::unauthenticated("the proxy named a user without a name: sign in again")
        })?;
        for group in self.groups.iter().flat_map(|name| headers.get_all(name)) {
            let group = text(group)?;
            if group.is_empty() {
                return Err(StreamError::unauthenticated(
                    "the proxy named a group without a name",
                ));
            }
            subject = subject.group(group);
        }
        Ok(Principal::new(subject))
    }
}

fn text(value: &http::HeaderValue) -> Result<&str, StreamError> {
    std::str::from_utf8(value.as_bytes())
        .map_err(|_| StreamError::unauthenticated("the proxy named you in bytes that are not UTF-8"))
}

impl FromStr for IdentityFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "anonymous" => Ok(Self::Anonymous),
            Some(("header", name)) => Ok(Self::Header(name.parse()?)),
            None | Some(_) => {
                Err("write `anonymous`, or `header:NAME` as in header:X-Remote-User".to_owned())
            }
        }
    }
}

impl fmt::Display for IdentityFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anonymous => f.write_str("anonymous"),
            Self::Header(name) => write!(f, "header:{name}"),
        }
    }
}

impl fmt::Display for HeaderFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for HeaderFlag {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        HeaderName::from_bytes(name.as_bytes())
            .map(Self)
            .map_err(|_| format!("{name:?} is no name of a header"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()))
            .collect()
    }

    fn resolve(peer: &str, pairs: &[(&str, &str)]) -> Result<Principal, StreamError> {
        let identities = Identities::from_headers(
            "X-Remote-User".parse().unwrap(),
            Some("X-Remote-Group".parse().unwrap()),
            vec!["10.0.0.0/8".parse().unwrap()],
        );
        let mut request = http::Request::new(()).into_parts().0;
        request.headers = headers(pairs);
        let peer: IpAddr = peer.parse().unwrap();
        request
            .extensions
            .insert(PeerAddress(std::net::SocketAddr::from((peer, 443))));
        identities.principal(&request)
    }

    #[test]
    fn a_trusted_proxy_names_the_user_and_the_groups() {
        let principal = resolve(
            "10.1.2.3",
            &[
                ("x-remote-user", "ada"),
                ("x-remote-group", "dev"),
                ("x-remote-group", "ops"),
            ],
        )
        .unwrap();
        assert_eq!(principal.subject().user_name(), "ada");
        assert_eq!(principal.subject().groups().collect::<Vec<_>>(), ["dev", "ops"]);
    }

    #[test]
    fn nobody_else_is_believed() {
        let error = resolve("192.0.2.1", &[("x-remote-user", "ada")]).unwrap_err();
        assert_eq!(error.code(), krm_stream_protocol::ErrorCode::Unauthenticated);
    }

    #[test]
    fn a_user_is_named_exactly_once() {
        for wrong in [
            &[][..],
            &[("x-remote-user", "")],
            &[("x-remote-user", "ada"), ("x-remote-user", "ada")],
            &[("x-remote-user", "ada"), ("x-remote-group", "")],
        ] {
            assert!(resolve("10.0.0.1", wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_request_whose_peer_is_unknown_is_not_believed() {
        let headers = headers(&[("x-remote-user", "ada")]);
        let everyone = ProxyHeaders {
            user: "x-remote-user".parse().unwrap(),
            groups: None,
            trusted: vec!["0.0.0.0/0".parse().unwrap()],
        };
        assert!(everyone.principal(None, &headers).is_err());
    }

    #[test]
    fn anonymous_callers_have_the_name_that_kubernetes_gives_them() {
        let Identities::Anonymous(principal) = Identities::anonymous().unwrap() else {
            unreachable!()
        };
        assert_eq!(principal.subject().user_name(), "system:anonymous");
        assert_eq!(
            principal.subject().groups().collect::<Vec<_>>(),
            ["system:unauthenticated"]
        );
    }
}
