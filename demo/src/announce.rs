//! What is said on standard output, for a person and for a script: where things are.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;

use crate::identity::IdentityFlag;
use crate::routes::STREAM_PATH;

/// Where things are.
#[derive(Debug)]
pub(crate) struct Announcement<'a> {
    pub(crate) page: SocketAddr,
    pub(crate) is_tls: bool,
    pub(crate) admin: Option<SocketAddr>,
    pub(crate) simulator: Option<String>,
    /// The query of a scope that is worth a look.
    pub(crate) example: &'a str,
    /// How the one who tries it is known.
    pub(crate) identity: &'a IdentityFlag,
}

impl Announcement<'_> {
    /// Says it. If nobody listens, that is no reason to end.
    pub(crate) fn say(&self) {
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(self.text().as_bytes()).and_then(|()| out.flush());
    }

    fn text(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        let page = reachable(self.page);
        let caller = match self.identity {
            IdentityFlag::Anonymous => String::new(),
            IdentityFlag::Header(header) => format!("-H '{header}: you' "),
        };
        let mut text = format!(
            "page {scheme}://{page}/\ntry  curl -N {caller}'{scheme}://{page}{STREAM_PATH}?{}'\n",
            self.example
        );
        // Writing to a string does not fail.
        if let Some(admin) = self.admin {
            let _ = writeln!(text, "admin http://{}", reachable(admin));
        }
        if let Some(simulator) = &self.simulator {
            let _ = writeln!(text, "simulator {simulator}");
        }
        text
    }
}

/// An address that a client on this machine can connect to.
fn reachable(address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        format!("localhost:{}", address.port())
    } else {
        address.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_comes_first_and_everything_has_its_line() {
        let announcement = Announcement {
            page: "127.0.0.1:8080".parse().unwrap(),
            is_tls: false,
            admin: Some("0.0.0.0:9090".parse().unwrap()),
            simulator: Some("http://127.0.0.1:6443".to_owned()),
            example: "version=v1&resource=pods&namespace=shop",
            identity: &IdentityFlag::Anonymous,
        };
        assert_eq!(
            announcement.text(),
            "page http://127.0.0.1:8080/\n\
             try  curl -N 'http://127.0.0.1:8080/resource-stream/v1?version=v1&resource=pods&namespace=shop'\n\
             admin http://localhost:9090\n\
             simulator http://127.0.0.1:6443\n"
        );
    }

    #[test]
    fn the_line_to_try_names_a_user_where_one_has_to_be_named() {
        let announcement = Announcement {
            page: "127.0.0.1:8080".parse().unwrap(),
            is_tls: false,
            admin: None,
            simulator: None,
            example: "version=v1&resource=pods&namespace=shop",
            identity: &"header:X-Remote-User".parse().unwrap(),
        };
        assert_eq!(
            announcement.text(),
            "page http://127.0.0.1:8080/\n\
             try  curl -N -H 'x-remote-user: you' \
             'http://127.0.0.1:8080/resource-stream/v1?version=v1&resource=pods&namespace=shop'\n"
        );
    }
}
