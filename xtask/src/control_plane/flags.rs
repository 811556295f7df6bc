//! The command lines of etcd and kube-apiserver.

use std::path::Path;

use super::certificates::Certificates;

/// How a control plane is to differ from the default.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Whether the API server serves streaming lists; `false` refuses them as aggregated API servers do.
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, value_name = "BOOL")]
    watch_list: bool,
    /// A watch that asks for no timeout lives between once and twice this many seconds [default: 1800].
    #[arg(long, value_name = "SECONDS")]
    min_request_timeout: Option<u32>,
    /// A further flag of kube-apiserver, as one word: --apiserver-arg=--v=4 (may be repeated).
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    apiserver_arg: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            watch_list: true,
            min_request_timeout: None,
            apiserver_arg: Vec::new(),
        }
    }
}

impl Options {
    /// The default, but for an API server that refuses streaming lists.
    pub(crate) fn without_streaming_lists() -> Self {
        Self {
            watch_list: false,
            ..Self::default()
        }
    }

    fn flags(&self) -> Vec<String> {
        let mut flags = Vec::new();
        if !self.watch_list {
            flags.push("--feature-gates=WatchList=false".to_owned());
        }
        flags.extend(
            self.min_request_timeout
                .map(|seconds| format!("--min-request-timeout={seconds}")),
        );
        flags.extend(self.apiserver_arg.iter().cloned());
        flags
    }
}

/// The flags of etcd.
pub(super) fn etcd(state: &Path, client: u16, peer: u16) -> Vec<String> {
    vec![
        "--name=krm-stream".to_owned(),
        format!("--data-dir={}", state.join("etcd").display()),
        format!("--listen-client-urls=http://127.0.0.1:{client}"),
        format!("--advertise-client-urls=http://127.0.0.1:{client}"),
        format!("--listen-peer-urls=http://127.0.0.1:{peer}"),
        format!("--initial-advertise-peer-urls=http://127.0.0.1:{peer}"),
        format!("--initial-cluster=krm-stream=http://127.0.0.1:{peer}"),
        // The data lives as long as the test run, a crash of the machine may lose it.
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ]
}

/// The flags of kube-apiserver.
pub(super) fn apiserver(
    state: &Path,
    etcd: u16,
    serving: u16,
    certificates: &Certificates,
    options: &Options,
) -> Vec<String> {
    let mut arguments = vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd}"),
        format!("--secure-port={serving}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        // A loopback address may not become an endpoint of the service `kubernetes`, which nobody uses here.
        "--endpoint-reconciler-type=none".to_owned(),
        format!("--cert-dir={}", state.join("keys").display()),
        format!("--tls-cert-file={}", certificates.server().display()),
        format!("--tls-private-key-file={}", certificates.server_key().display()),
        format!("--client-ca-file={}", certificates.authority().display()),
        "--authorization-mode=RBAC".to_owned(),
        format!("--token-auth-file={}", state.join("tokens.csv").display()),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!(
            "--service-account-key-file={}",
            certificates.token_public_key().display()
        ),
        format!(
            "--service-account-signing-key-file={}",
            certificates.token_key().display()
        ),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        // No controller creates the service accounts that this plugin would wait for.
        "--disable-admission-plugins=ServiceAccount".to_owned(),
    ];
    arguments.extend(options.flags());
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_flags_of_the_api_server() {
        let options = Options {
            watch_list: false,
            min_request_timeout: Some(5),
            apiserver_arg: vec!["--v=4".to_owned()],
        };
        assert_eq!(
            options.flags(),
            [
                "--feature-gates=WatchList=false",
                "--min-request-timeout=5",
                "--v=4"
            ]
        );
        assert!(Options::default().flags().is_empty());
        assert_eq!(
            Options::without_streaming_lists().flags(),
            ["--feature-gates=WatchList=false"]
        );
    }
}
