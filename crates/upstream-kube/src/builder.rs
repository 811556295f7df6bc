//! Builds an upstream, and refuses settings that could not work.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use kube::Config;

use crate::impersonation;
use crate::random::Spread;
use crate::settings::{Settings, WatchTimeout};
use crate::streaming_list::StreamingLists;
use crate::transport::{self, StackError};
use crate::upstream::{Connection, KubeUpstream};

/// Settings of a [`KubeUpstream`]; made by [`KubeUpstream::builder`] and [`KubeUpstream::builder_with_client`].
#[derive(Clone)]
#[must_use = "nothing is built before `build`"]
pub struct KubeUpstreamBuilder {
    source: Source,
    settings: Settings,
}

#[derive(Clone)]
enum Source {
    Config(Box<Config>),
    Client(kube::Client),
}

/// Why no upstream can be built. It never holds a credential.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The configuration acts as somebody else, or sets a header that does.
    #[error(
        "the configuration impersonates ({0}): every caller would be that user; remove it and let the upstream act as \
         each caller with `acting_as`"
    )]
    Impersonates(&'static str),
    /// The credential of the configuration cannot be used.
    #[error("the credential of the configuration cannot be used: {0}")]
    Credential(&'static str),
    /// The certificates or TLS settings of the configuration cannot be used.
    #[error("the certificates or TLS settings of the configuration cannot be used")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The proxy of the configuration cannot be used.
    #[error("the proxy of the configuration cannot be used: {0}")]
    Proxy(&'static str),
    /// A wait must have a sensible bound.
    #[error("{0} must be longer than nothing and at most a day")]
    Unbounded(&'static str),
    /// `watch_timeout` is asked for in whole seconds.
    #[error("watch_timeout must be whole seconds, from 1 s to a day, and its first end not after its second")]
    WatchTimeout,
    /// A limit is too small.
    #[error("{name} must be at least {least}")]
    LimitTooSmall {
        /// The setting.
        name: &'static str,
        /// Its smallest value.
        least: usize,
    },
}

/// No object is smaller than this, so a smaller limit is a mistake.
const LEAST_LINE_BYTES: usize = 1024;
/// A longer wait than this is none, and adding it to a clock may overflow.
const LONGEST_WAIT: Duration = Duration::from_hours(24);

impl KubeUpstreamBuilder {
    pub(crate) fn from_config(config: Config) -> Self {
        Self {
            source: Source::Config(Box::new(config)),
            settings: Settings::default(),
        }
    }

    pub(crate) fn from_client(client: kube::Client) -> Self {
        Self {
            source: Source::Client(client),
            settings: Settings::default(),
        }
    }

    /// The longest wait for a connection, TLS included. 10 s by default. Without effect on a given client.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.settings.connect_timeout = timeout;
        self
    }

    /// The longest wait for response headers, the connection included. 30 s by default.
    pub fn open_timeout(mut self, timeout: Duration) -> Self {
        self.settings.open_timeout = timeout;
        self
    }

    /// Before a snapshot is complete: the longest wait for a line (30 s by default), and for the whole of it (5 min).
    /// A streaming list that exceeds either is given up for a list. A watch after a list that is not accepted at first is
    /// asked for again within the second.
    pub fn snapshot_timeout(mut self, for_a_line: Duration, in_all: Duration) -> Self {
        self.settings.snapshot_line_timeout = for_a_line;
        self.settings.snapshot_timeout = in_all;
        self
    }

    /// The `timeoutSeconds` of watch requests, the same for each.
    pub fn watch_timeout(mut self, timeout: Duration) -> Self {
        self.settings.watch_timeout = WatchTimeout::Fixed(timeout);
        self
    }

    /// The `timeoutSeconds` of watch requests, drawn for each between these, both included. 5 to 10 min by default.
    pub fn watch_timeout_between(mut self, from: Duration, to: Duration) -> Self {
        self.settings.watch_timeout = WatchTimeout::Between(from, to);
        self
    }

    /// The longest line of a watch and the largest item of a list, in bytes. 8 MiB by default. A page of a list, which
    /// is read whole, may have 16 times as much.
    pub fn max_line_bytes(mut self, bytes: usize) -> Self {
        self.settings.max_line_bytes = bytes;
        self
    }

    /// How many objects a page of a list has. 500 by default.
    pub fn page_limit(mut self, objects: u32) -> Self {
        self.settings.page_limit = objects;
        self
    }

    /// Builds the upstream. Nothing is connected yet; but certificates and token files are read, and a credential
    /// plugin of the configuration is run, so this may block for as long as it takes.
    ///
    /// # Errors
    /// [`BuildError`] says which part of the configuration or which setting cannot be used.
    pub fn build(self) -> Result<KubeUpstream, BuildError> {
        check(&self.settings)?;
        let transport = match self.source {
            Source::Config(config) => {
                refuse_impersonation(&config)?;
                transport::from_config(&config, &self.settings)?
            }
            Source::Client(client) => transport::from_client(client, &self.settings),
        };
        Ok(KubeUpstream::new(
            Arc::new(Connection {
                transport,
                settings: self.settings,
                streaming_lists: StreamingLists::default(),
                spread: Spread::new(),
            }),
            Arc::new(HeaderMap::new()),
        ))
    }
}

impl std::fmt::Debug for KubeUpstreamBuilder {
    /// Shows no part of the configuration: it holds credentials.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KubeUpstreamBuilder")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl From<StackError> for BuildError {
    fn from(error: StackError) -> Self {
        match error {
            StackError::Credential(what) => Self::Credential(what),
            StackError::Tls(error) => Self::Tls(error),
            StackError::ProxyScheme => Self::Proxy("its scheme is not one of http, https and socks5"),
            StackError::ProxyCredentials => {
                Self::Proxy("its URL holds a user name, which is not supported: use a proxy that needs none")
            }
        }
    }
}

/// A configuration that impersonates would make every caller that one user, and a host that then acts as a caller would
/// send both.
fn refuse_impersonation(config: &Config) -> Result<(), BuildError> {
    let auth = &config.auth_info;
    let impersonates = [
        ("as", auth.impersonate.is_some()),
        ("as-uid", auth.impersonate_uid.is_some()),
        ("as-groups", auth.impersonate_groups.is_some()),
        ("as-user-extra", auth.impersonate_user_extra.is_some()),
        (
            "an Impersonate header",
            config
                .headers
                .iter()
                .any(|(name, _)| impersonation::is_impersonation(name)),
        ),
    ];
    match impersonates.iter().find(|(_, is_set)| *is_set) {
        Some((what, _)) => Err(BuildError::Impersonates(what)),
        None => Ok(()),
    }
}

fn check(settings: &Settings) -> Result<(), BuildError> {
    for (name, duration) in [
        ("connect_timeout", settings.connect_timeout),
        ("open_timeout", settings.open_timeout),
        ("snapshot_timeout for a line", settings.snapshot_line_timeout),
        ("snapshot_timeout in all", settings.snapshot_timeout),
    ] {
        if duration.is_zero() || duration > LONGEST_WAIT {
            return Err(BuildError::Unbounded(name));
        }
    }
    let (from, to) = match settings.watch_timeout {
        WatchTimeout::Fixed(timeout) => (timeout, timeout),
        WatchTimeout::Between(from, to) => (from, to),
    };
    let is_whole = |timeout: Duration| timeout.as_secs() > 0 && timeout.subsec_nanos() == 0;
    if !is_whole(from) || !is_whole(to) || from > to || to > LONGEST_WAIT {
        return Err(BuildError::WatchTimeout);
    }
    if settings.max_line_bytes < LEAST_LINE_BYTES {
        return Err(BuildError::LimitTooSmall {
            name: "max_line_bytes",
            least: LEAST_LINE_BYTES,
        });
    }
    if settings.page_limit == 0 {
        return Err(BuildError::LimitTooSmall {
            name: "page_limit",
            least: 1,
        });
    }
    Ok(())
}
