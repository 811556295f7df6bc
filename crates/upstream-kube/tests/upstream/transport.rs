//! Real sockets: what is unreachable, cut, reset, redirected and dropped.

use krm_stream_protocol::{ResourceVersion, Start, Upstream as _};
use krm_stream_upstream_kube::{KubeUpstream, kube};
use tokio::net::{TcpListener, TcpSocket};

use crate::support::socket::{RawAnswer, Server, Then, header, until};
use crate::support::transcript::{next, read};
use crate::support::{SECOND, boundary, config_maps, line, object, status};

fn after() -> Start {
    Start::After(ResourceVersion::from("1"))
}

fn upstream(server: &Server) -> KubeUpstream {
    KubeUpstream::from_config(server.config()).unwrap()
}

#[tokio::test]
async fn a_session_on_a_socket_reads_its_snapshot_and_ends_closed_however_the_connection_ends() {
    for then in [Then::Close, Then::Reset] {
        let body = line("ADDED", &object("a", "1")) + &boundary("2");
        let server = Server::start(move |_| RawAnswer::chunked(&body, then)).await;
        assert_eq!(
            read(&upstream(&server), &config_maps(), Start::Fresh)
                .await
                .last()
                .unwrap(),
            "closed",
            "{then:?}"
        );
    }
}

#[tokio::test]
async fn dropping_a_session_closes_its_connection_though_nothing_is_sent() {
    let server = Server::start(|_| RawAnswer::chunked(&boundary("2"), Then::Hold)).await;
    let upstream = upstream(&server);
    let mut session = upstream.open(&config_maps(), Start::Fresh).await.unwrap();
    next(&mut *session).await;
    drop(session);
    server.wait_for_closed(1).await;
}

#[tokio::test]
async fn dropping_an_opening_abandons_its_request() {
    let server = Server::start(|_| RawAnswer {
        bytes: Vec::new(),
        then: Then::Hold,
    })
    .await;
    let upstream = upstream(&server);
    let scope = config_maps();
    tokio::select! {
        opened = upstream.open(&scope, Start::Fresh) => panic!("it is not answered: {:?}", opened.err()),
        () = until(|| server.heads().len() == 1) => {}
    }
    server.wait_for_closed(1).await;
}

#[tokio::test]
async fn lists_share_connections_and_each_watch_has_its_own() {
    let server = Server::start(|head| {
        if head.contains("watch=1") {
            RawAnswer::chunked(&boundary("2"), Then::Hold)
        } else {
            RawAnswer::whole(200, "{}")
        }
    })
    .await;
    let upstream = upstream(&server);
    let mut sessions = Vec::new();
    for _ in 0..3 {
        let mut session = upstream.open(&config_maps(), Start::Fresh).await.unwrap();
        next(&mut *session).await;
        sessions.push(session);
    }
    assert_eq!(server.accepted(), 3);
    drop(sessions);
    server.wait_for_closed(3).await;
}

#[tokio::test]
async fn a_redirect_is_refused_and_the_credential_goes_nowhere_else() {
    let elsewhere = Server::start(|_| RawAnswer::whole(200, "{}")).await;
    let location = format!("http://{}/stolen", elsewhere.address);
    for code in [301, 302, 303, 307, 308] {
        let location = location.clone();
        let server = Server::start(move |_| RawAnswer {
            bytes: format!("HTTP/1.1 {code} X\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n")
                .into_bytes(),
            then: Then::KeepAlive,
        })
        .await;
        let mut config = server.config();
        config.auth_info.token = Some(String::from("canary-token").into());
        let upstream = KubeUpstream::from_config(config).unwrap();
        assert_eq!(
            read(&upstream, &config_maps(), after()).await,
            ["not opened: rejected"],
            "{code}"
        );
        assert_eq!(
            header(&server.heads()[0], "authorization"),
            Some("Bearer canary-token")
        );
        assert_eq!(elsewhere.accepted(), 0);
    }
}

#[tokio::test]
async fn nothing_is_retried_beneath_a_session() {
    for code in [429, 503, 504] {
        let server = Server::start(move |_| RawAnswer::whole(code, "")).await;
        assert_eq!(
            read(&upstream(&server), &config_maps(), Start::Fresh).await,
            ["not opened: unavailable"]
        );
        assert_eq!(server.heads().len(), 1, "{code}");
    }
}

#[tokio::test]
async fn what_cannot_be_reached_is_unavailable() {
    // Bound, so that nobody else listens there, and not listened on.
    let bound = TcpSocket::new_v4().unwrap();
    bound.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = bound.local_addr().unwrap();
    let plain = Server::start(|_| RawAnswer::whole(200, "{}")).await;
    for url in [
        format!("http://{address}"),
        // No TLS is spoken there.
        format!("https://{}", plain.address),
        // No legal name, so nothing is asked of a name server.
        format!("http://{}.invalid", "x".repeat(64)),
    ] {
        let upstream = KubeUpstream::builder(kube::Config::new(url.parse().unwrap()))
            .connect_timeout(SECOND)
            .build()
            .unwrap();
        assert_eq!(
            read(&upstream, &config_maps(), Start::Fresh).await,
            ["not opened: unavailable"],
            "{url}"
        );
    }
}

#[tokio::test]
async fn a_tls_handshake_that_hangs_is_bounded_by_connect_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let upstream = KubeUpstream::builder(kube::Config::new(url.parse().unwrap()))
        .connect_timeout(SECOND / 5)
        .build()
        .unwrap();
    let before = tokio::time::Instant::now();
    assert_eq!(
        read(&upstream, &config_maps(), Start::Fresh).await,
        ["not opened: unavailable"]
    );
    assert!(before.elapsed() < SECOND * 5);
}

#[tokio::test]
async fn a_path_in_the_cluster_s_url_is_kept() {
    let server = Server::start(|_| RawAnswer::whole(403, &status(403, "Forbidden", "no"))).await;
    let mut config = server.config();
    config.cluster_url = format!("http://{}/clusters/one", server.address).parse().unwrap();
    let upstream = KubeUpstream::from_config(config).unwrap();
    assert_eq!(
        read(&upstream, &config_maps(), after()).await,
        ["not opened: forbidden no"]
    );
    assert!(server.heads()[0].starts_with("GET /clusters/one/api/v1/namespaces/rec/configmaps?watch=1&"));
}
