//! Which hosts a request may be addressed to, and which pages it may come from.
//!
//! A page of any site can have its own name resolved to this gateway's address (DNS rebinding) and would then be of the
//! same origin as the gateway. Such a request carries the site's name in `Host`; it is refused.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use http::header::{HOST, ORIGIN};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderName, StatusCode};

/// A host name or an IP address, without scheme and port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HostName {
    /// In lower case.
    Name(String),
    /// IPv4 or IPv6.
    Address(IpAddr),
}

/// The hosts that are allowed; those of the loopback interface always are.
#[derive(Clone, Debug)]
pub(crate) struct AllowedHosts(BTreeSet<HostName>);

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HostRefusal {
    #[error("the request does not say, once and legibly, which host it is for")]
    NoHost,
    #[error("this gateway does not answer to that host name; its operator can allow it with --allow-host")]
    Host,
    #[error(
        "pages of that origin may not use this gateway; its operator can allow the origin's host with --allow-host"
    )]
    Origin,
}

impl AllowedHosts {
    /// These hosts, and the addresses that are listened on, which no other site's name can stand for.
    pub(crate) fn new(hosts: &[HostName], listening: &[SocketAddr]) -> Self {
        let addresses = listening
            .iter()
            .map(SocketAddr::ip)
            .filter(|address| !address.is_unspecified())
            .map(HostName::from);
        Self(hosts.iter().cloned().chain(addresses).collect())
    }

    /// Checks a request's host, and its origin if it names one. Ports are not looked at: a proxy may have another.
    ///
    /// # Errors
    /// [`HostRefusal`], with what to answer.
    pub(crate) fn check(&self, request: &Parts) -> Result<(), HostRefusal> {
        // HTTP/2 and proxies' requests have it in the target, and may have the header as well (RFC 9110, 7.2).
        let in_target = request.uri.authority().map(Authority::as_str);
        let in_header = only(request, &HOST).map_err(|()| HostRefusal::NoHost)?;
        if in_target.is_none() && in_header.is_none() {
            return Err(HostRefusal::NoHost);
        }
        for authority in in_target.into_iter().chain(in_header) {
            let host = host_of(authority).ok_or(HostRefusal::NoHost)?;
            if !self.contains(&host) {
                return Err(HostRefusal::Host);
            }
        }
        match only(request, &ORIGIN) {
            Ok(None) => Ok(()),
            Ok(Some(origin)) if self.is_allowed_origin(origin) => Ok(()),
            Ok(Some(_)) | Err(()) => Err(HostRefusal::Origin),
        }
    }

    fn is_allowed_origin(&self, origin: &str) -> bool {
        let Some((scheme, authority)) = origin.split_once("://") else {
            // `null`, of a sandboxed page or a file.
            return false;
        };
        matches!(scheme, "http" | "https") && host_of(authority).is_some_and(|host| self.contains(&host))
    }

    fn contains(&self, host: &HostName) -> bool {
        let is_loopback = match host {
            HostName::Name(name) => name == "localhost",
            HostName::Address(address) => address.to_canonical().is_loopback(),
        };
        is_loopback || self.0.contains(host)
    }
}

impl HostRefusal {
    /// The status that says it.
    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::NoHost => StatusCode::BAD_REQUEST,
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::Origin => StatusCode::FORBIDDEN,
        }
    }
}

impl HostName {
    fn parse(host: &str) -> Option<Self> {
        let address = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        if let Ok(address) = address.parse::<IpAddr>() {
            return Some(address.into());
        }
        let is_name = !host.is_empty()
            && host
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'));
        is_name.then(|| Self::Name(host.to_ascii_lowercase()))
    }
}

impl From<IpAddr> for HostName {
    fn from(address: IpAddr) -> Self {
        Self::Address(address.to_canonical())
    }
}

impl FromStr for HostName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text).ok_or_else(|| {
            "write a host name or an IP address alone, without scheme and port, as krm.example.com".to_owned()
        })
    }
}

/// The value of a header, if there is one; an error if there are several, or none that can be read.
fn only<'a>(request: &'a Parts, name: &HeaderName) -> Result<Option<&'a str>, ()> {
    let mut values = request.headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| ()),
        (Some(_), Some(_)) => Err(()),
    }
}

fn host_of(authority: &str) -> Option<HostName> {
    if authority.contains('@') {
        return None;
    }
    let authority: Authority = authority.parse().ok()?;
    HostName::parse(authority.host())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(target: &str, headers: &[(HeaderName, &str)]) -> Result<(), HostRefusal> {
        let allowed = AllowedHosts::new(
            &["krm.example.com".parse().unwrap(), "192.0.2.7".parse().unwrap()],
            &["10.0.0.1:8080".parse().unwrap(), "0.0.0.0:9090".parse().unwrap()],
        );
        let mut request = http::Request::new(()).into_parts().0;
        request.uri = target.parse().unwrap();
        for (name, value) in headers {
            request.headers.append(name, value.parse().unwrap());
        }
        allowed.check(&request)
    }

    #[test]
    fn loopback_names_and_allowed_hosts_are_answered_to_at_any_port() {
        for host in [
            "localhost",
            "localhost:8080",
            "LOCALHOST:8080",
            "127.0.0.1:1",
            "127.0.0.53",
            "[::1]:8080",
            "krm.example.com",
            "KRM.example.com:443",
            "192.0.2.7:80",
            "10.0.0.1:8080",
        ] {
            assert_eq!(check("/", &[(HOST, host)]), Ok(()), "{host}");
        }
    }

    #[test]
    fn no_other_host_is_answered_to() {
        for host in [
            "evil.example.com",
            "krm.example.com.evil.com",
            "localhost.evil.com",
            "127.0.0.1.evil.com",
            "0.0.0.0",
            "10.0.0.2",
            "[::2]",
        ] {
            assert_eq!(check("/", &[(HOST, host)]), Err(HostRefusal::Host), "{host}");
        }
        for host in ["", "localhost@evil.com", "localhost, evil.com", ":80"] {
            assert_eq!(check("/", &[(HOST, host)]), Err(HostRefusal::NoHost), "{host:?}");
        }
    }

    #[test]
    fn a_request_names_its_host_once_and_the_target_counts_too() {
        assert_eq!(check("/", &[]), Err(HostRefusal::NoHost));
        assert_eq!(
            check("/", &[(HOST, "localhost"), (HOST, "localhost")]),
            Err(HostRefusal::NoHost)
        );
        assert_eq!(check("http://localhost/", &[]), Ok(()));
        assert_eq!(check("http://evil.com/", &[]), Err(HostRefusal::Host));
        assert_eq!(
            check("http://evil.com/", &[(HOST, "localhost")]),
            Err(HostRefusal::Host)
        );
        assert_eq!(
            check("http://localhost/", &[(HOST, "evil.com")]),
            Err(HostRefusal::Host)
        );
    }

    #[test]
    fn an_origin_is_a_page_of_an_allowed_host_or_the_request_is_refused() {
        let check = |origin| check("/", &[(HOST, "localhost"), (ORIGIN, origin)]);
        assert_eq!(check("http://localhost:8080"), Ok(()));
        assert_eq!(check("https://krm.example.com"), Ok(()));
        for origin in [
            "null",
            "https://evil.com",
            "http://localhost.evil.com",
            "file://localhost",
            "localhost",
            "",
        ] {
            assert_eq!(check(origin), Err(HostRefusal::Origin), "{origin}");
        }
    }

    #[test]
    fn a_flag_is_a_name_or_an_address_alone() {
        for wrong in ["", "http://a", "a:80", "a/b", "*.example.com", "a b"] {
            assert!(wrong.parse::<HostName>().is_err(), "{wrong:?}");
        }
        assert_eq!("[::1]".parse::<HostName>(), "::1".parse::<HostName>());
    }
}
