//! Whose identity the upstream has: credentials, impersonation, and what is refused.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use krm_stream_protocol::{OpenError, ResourceVersion, Start, Subject, Upstream as _};
use krm_stream_upstream_kube::{BuildError, ImpersonationError, KubeUpstream, kube};

use crate::support::config_maps;
use crate::support::scripted::{self, Answer};
use crate::support::socket::{RawAnswer, Server, header};
use crate::support::transcript::read;

fn after() -> Start {
    Start::After(ResourceVersion::from("1"))
}

fn config() -> kube::Config {
    kube::Config::new("http://127.0.0.1:1".parse().unwrap())
}

/// The error and everything beneath it.
fn chain(error: &dyn Error) -> String {
    let below = error.source().map(chain).unwrap_or_default();
    format!("{error} {error:?}\n{below}")
}

#[test]
fn a_configuration_that_impersonates_is_refused() {
    let mut configs = vec![config(), config(), config(), config(), config(), config()];
    configs[0].auth_info.impersonate = Some("admin".to_owned());
    configs[1].auth_info.impersonate_uid = Some("1".to_owned());
    configs[2].auth_info.impersonate_groups = Some(vec!["system:masters".to_owned()]);
    configs[3].auth_info.impersonate_user_extra = Some(HashMap::new());
    configs[4]
        .headers
        .push(("impersonate-user".parse().unwrap(), "admin".parse().unwrap()));
    configs[5]
        .headers
        .push(("Impersonate-Extra-Scopes".parse().unwrap(), "x".parse().unwrap()));
    for config in configs {
        let error = KubeUpstream::from_config(config).unwrap_err();
        assert!(matches!(error, BuildError::Impersonates(_)), "{error}");
        assert!(error.to_string().contains("acting_as"));
    }
}

#[test]
fn settings_that_cannot_work_are_refused() {
    use std::time::Duration;
    let builder = || KubeUpstream::builder(config());
    let second = Duration::from_secs(1);
    for wrong in [
        builder().connect_timeout(Duration::ZERO),
        builder().open_timeout(Duration::ZERO),
        builder().snapshot_timeout(Duration::from_secs(30), Duration::MAX),
        builder().watch_timeout(Duration::from_hours(25)),
        builder().snapshot_timeout(Duration::ZERO, second),
        builder().snapshot_timeout(second, Duration::ZERO),
        builder().watch_timeout(Duration::from_millis(1500)),
        builder().watch_timeout(Duration::ZERO),
        builder().watch_timeout_between(second * 2, second),
        builder().max_line_bytes(1023),
        builder().page_limit(0),
    ] {
        assert!(wrong.clone().build().is_err(), "{wrong:?}");
    }
    builder()
        .watch_timeout(second)
        .max_line_bytes(1024)
        .page_limit(1)
        .build()
        .unwrap();
}

#[test]
fn a_proxy_that_cannot_be_used_is_refused_and_never_left_out() {
    for proxy in ["ftp://127.0.0.1:1", "http://user:canary@127.0.0.1:1"] {
        let mut config = config();
        config.proxy_url = Some(proxy.parse().unwrap());
        let error = KubeUpstream::from_config(config).unwrap_err();
        assert!(matches!(error, BuildError::Proxy(_)));
        assert!(!chain(&error).contains("canary"));
    }
}

#[tokio::test]
async fn requests_go_through_the_proxy_of_the_configuration() {
    let proxy = Server::start(|_| RawAnswer::whole(502, "")).await;
    let mut config = config();
    config.proxy_url = Some(format!("http://{}", proxy.address).parse().unwrap());
    let upstream = KubeUpstream::from_config(config).unwrap();
    assert_eq!(
        read(&upstream, &config_maps(), after()).await,
        ["not opened: unavailable"]
    );
    assert!(proxy.heads()[0].starts_with("CONNECT 127.0.0.1:1 "));
}

#[tokio::test]
async fn a_subject_is_acted_as_by_headers_on_one_pool() {
    let server = Server::start(|_| RawAnswer::whole(403, "")).await;
    let mut config = server.config();
    config.auth_info.token = Some(String::from("gateway").into());
    config
        .headers
        .push(("x-host".parse().unwrap(), "1".parse().unwrap()));
    let upstream = KubeUpstream::from_config(config).unwrap();
    let ada = Subject::new("ada")
        .unwrap()
        .uid("7")
        .group("dev")
        .group("ops")
        .extra("example.org/Scope", "x");
    let bob = Subject::new("bob").unwrap();
    for subject in [&ada, &bob] {
        read(&upstream.acting_as(subject).unwrap(), &config_maps(), after()).await;
    }
    read(&upstream, &config_maps(), after()).await;
    let heads = server.heads();
    assert_eq!(server.accepted(), 1, "one connection served all");
    let impersonation = |head: &str| {
        let mut lines: Vec<_> = head
            .lines()
            .filter(|line| line.to_ascii_lowercase().starts_with("impersonate-"))
            .map(str::to_owned)
            .collect();
        lines.sort();
        lines
    };
    assert_eq!(
        impersonation(&heads[0]),
        [
            "impersonate-extra-example.org%2f%53cope: x",
            "impersonate-group: dev",
            "impersonate-group: ops",
            "impersonate-uid: 7",
            "impersonate-user: ada"
        ]
    );
    assert_eq!(impersonation(&heads[1]), ["impersonate-user: bob"]);
    assert!(impersonation(&heads[2]).is_empty());
    for head in &heads {
        assert_eq!(header(head, "authorization"), Some("Bearer gateway"));
        assert_eq!(header(head, "x-host"), Some("1"));
    }
}

#[test]
fn a_subject_that_no_header_can_carry_is_refused() {
    let upstream = KubeUpstream::from_config(config()).unwrap();
    let subject = Subject::new("ada\r\nImpersonate-Group: system:masters").unwrap();
    assert_eq!(
        upstream.acting_as(&subject).unwrap_err(),
        ImpersonationError::User
    );
    let subject = Subject::new("ada").unwrap().group(" system:masters");
    assert_eq!(
        upstream.acting_as(&subject).unwrap_err(),
        ImpersonationError::Group
    );
}

/// A server that accepts one token.
async fn accepting(token: &'static str) -> Server {
    Server::start(move |head| match header(head, "authorization") {
        Some(value) if value == format!("Bearer {token}") => RawAnswer::whole(200, ""),
        _ => RawAnswer::whole(401, ""),
    })
    .await
}

#[tokio::test]
async fn a_rejected_token_is_read_from_its_file_once_more_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "new\n").unwrap();
    let server = accepting("new").await;
    let mut config = server.config();
    config.auth_info.token_file = Some(file.to_str().unwrap().to_owned());
    let upstream = KubeUpstream::from_config(config).unwrap();
    assert_eq!(read(&upstream, &config_maps(), after()).await, ["closed"]);
    std::fs::write(&file, "old").unwrap();
    // Still the token that was read.
    assert_eq!(read(&upstream, &config_maps(), after()).await, ["closed"]);
    assert_eq!(server.heads().len(), 2);

    let rotated = accepting("newer").await;
    let mut config = rotated.config();
    config.auth_info.token_file = Some(file.to_str().unwrap().to_owned());
    let upstream = KubeUpstream::from_config(config).unwrap();
    assert_eq!(
        read(&upstream, &config_maps(), after()).await,
        ["not opened: unauthenticated"]
    );
    assert_eq!(rotated.heads().len(), 2, "asked once more, and no more");
    std::fs::write(&file, "newer").unwrap();
    assert_eq!(read(&upstream, &config_maps(), after()).await, ["closed"]);
    assert_eq!(
        rotated.heads().len(),
        4,
        "rejected with the token that was kept, accepted with the file's"
    );
}

#[tokio::test]
async fn a_token_file_that_is_taken_away_leaves_the_last_token_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "kept").unwrap();
    let rejections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&rejections);
    let server = Server::start(move |_| {
        if counted.fetch_add(1, Ordering::SeqCst) == 1 {
            RawAnswer::whole(401, "")
        } else {
            RawAnswer::whole(200, "")
        }
    })
    .await;
    let mut config = server.config();
    config.auth_info.token_file = Some(file.to_str().unwrap().to_owned());
    let upstream = KubeUpstream::from_config(config).unwrap();
    read(&upstream, &config_maps(), after()).await;
    std::fs::remove_file(&file).unwrap();
    assert_eq!(read(&upstream, &config_maps(), after()).await, ["closed"]);
    assert_eq!(rejections.load(Ordering::SeqCst), 3);
    assert!(
        server
            .heads()
            .iter()
            .all(|head| header(head, "authorization") == Some("Bearer kept"))
    );
}

#[tokio::test]
async fn a_token_file_without_a_legal_token_sends_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let server = Server::start(|_| RawAnswer::whole(200, "")).await;
    let mut config = server.config();
    config.auth_info.token_file = Some(file.to_str().unwrap().to_owned());
    let upstream = KubeUpstream::from_config(config).unwrap();
    for content in [None, Some(""), Some(" \n"), Some("canary\r\nx: y")] {
        if let Some(content) = content {
            std::fs::write(&file, content).unwrap();
        }
        let Err(OpenError::Failed(error)) = upstream.open(&config_maps(), after()).await else {
            panic!("{content:?}");
        };
        assert!(!chain(&error).contains("canary"));
    }
    assert_eq!(server.accepted(), 0);
}

#[tokio::test]
async fn other_credentials_of_a_kubeconfig_are_sent_as_kube_does() {
    let server = Server::start(|_| RawAnswer::whole(200, "")).await;
    let mut basic = server.config();
    basic.auth_info.username = Some("u".to_owned());
    basic.auth_info.password = Some(String::from("p").into());
    let mut exec = server.config();
    exec.auth_info.exec = Some(plugin(
        r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"from-plugin"}}"#,
    ));
    for config in [basic, exec] {
        read(
            &KubeUpstream::from_config(config).unwrap(),
            &config_maps(),
            after(),
        )
        .await;
    }
    let sent: Vec<_> = server
        .heads()
        .iter()
        .map(|head| header(head, "authorization").unwrap().to_owned())
        .collect();
    assert_eq!(sent, ["Basic dTpw", "Bearer from-plugin"]);
}

/// A credential plugin that prints `output`.
fn plugin(output: &str) -> kube::config::ExecConfig {
    serde_json::from_value(serde_json::json!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "echo",
        "args": [output],
        "interactiveMode": "Never",
    }))
    .unwrap()
}

#[tokio::test]
async fn what_a_credential_plugin_printed_is_in_no_error() {
    let mut config = config();
    config.auth_info.exec = Some(plugin("canary is no credential"));
    let error = KubeUpstream::from_config(config.clone()).unwrap_err();
    assert!(matches!(error, BuildError::Credential(_)));
    assert!(!chain(&error).contains("canary"), "{}", chain(&error));

    let mut failing = plugin("");
    failing.command = Some("sh".to_owned());
    failing.args = Some(vec![
        "-c".to_owned(),
        "echo canary; echo canary >&2; exit 3".to_owned(),
    ]);
    config.auth_info.exec = Some(failing);
    let error = KubeUpstream::from_config(config).unwrap_err();
    assert!(!chain(&error).contains("canary"), "{}", chain(&error));
}

#[tokio::test(start_paused = true)]
async fn a_client_of_the_host_s_own_is_used_as_it_is() {
    let (upstream, record) = scripted::upstream(|_| Answer::ok(""));
    let ada = upstream.acting_as(&Subject::new("ada").unwrap()).unwrap();
    assert_eq!(read(&ada, &config_maps(), after()).await, ["closed"]);
    assert_eq!(record.requests()[0].headers["impersonate-user"], "ada");
}

#[test]
fn debug_shows_no_credential() {
    let mut config = config();
    config.auth_info.token = Some(String::from("canary").into());
    config
        .headers
        .push(("x-key".parse().unwrap(), "canary".parse().unwrap()));
    let builder = KubeUpstream::builder(config);
    let shown = format!("{builder:?} {:?}", builder.clone().build().unwrap());
    assert!(!shown.contains("canary"), "{shown}");
}
