//! Connections that cannot bound delivery, and a host's own loop that can.

use axum::Router;
use http::Request;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use krm_stream_http::{ConnectionGuard, Gateway};
use krm_stream_protocol::{Observation, WatchEvent};
use tokio::io::{DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tower::ServiceExt as _;
use tower::service_fn;

use super::support::{Client, Host, Kind, PATH, Sizes, config_map, eventually, is_in_time, request};

const PLAIN: [Kind; 2] = [Kind::Http1, Kind::Http2];

/// A client of a server of the test's own.
async fn client_of(kind: Kind, serve: impl FnOnce(DuplexStream) -> JoinHandle<()>) -> Client {
    let (near, far) = duplex(16 * 1024);
    let server = serve(far);
    let server = tokio::spawn(async move {
        server.await?;
        Ok(())
    });
    Client::over(kind, near, Sizes::SMALL.window, server).await
}

fn without_guards(gateway: Gateway) -> impl FnOnce(DuplexStream) -> JoinHandle<()> {
    |io| {
        tokio::spawn(async move {
            let server = auto::Builder::new(TokioExecutor::new());
            let _ = server
                .serve_connection(TokioIo::new(io), TowerToHyperService::new(gateway))
                .await;
        })
    }
}

/// The request is aborted; nobody was asked about it, and the operator is told the way out.
async fn is_rejected(kind: Kind, host: &Host, client: &mut Client, word: &str) {
    match client.send(request(kind, PATH)).await {
        Err(_) => {}
        // The head may be out when an HTTP/2 stream is reset.
        Ok(response) => {
            assert!(kind.is_multiplexed());
            assert!(
                response.into_body().collect().await.is_err(),
                "no event came, nor an end"
            );
        }
    }
    assert!(host.recorder.has(&Observation::HttpTransportRejected));
    assert_eq!(host.recorder.all().len(), 1, "{:?}", host.recorder.all());
    assert_eq!(host.script.asked(), 0);
    let reports = host.reports.all();
    assert!(reports.len() == 1 && reports[0].contains(word), "{reports:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_guards_is_refused_before_any_event_and_the_operator_told() {
    for kind in PLAIN {
        let host = Host::new();
        let mut client = client_of(kind, without_guards(host.gateway.clone())).await;
        is_rejected(kind, &host, &mut client, "krm_stream_http::serve").await;
    }
}

#[tokio::test]
async fn plain_axum_is_refused_as_well() {
    let host = Host::new();
    let app = Router::new().route_service("/resource-stream/v1", host.gateway.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    for kind in PLAIN {
        let socket = TcpStream::connect(address).await.unwrap();
        let idle = tokio::spawn(async { Ok(()) });
        let mut client = Client::over(kind, socket, Sizes::SMALL.window, idle).await;
        let answer = client.send(request(kind, PATH)).await;
        if let Ok(response) = answer {
            assert!(response.into_body().collect().await.is_err());
        }
    }
    assert_eq!(
        host.recorder.all(),
        [
            Observation::HttpTransportRejected,
            Observation::HttpTransportRejected
        ]
    );
    server.abort();
}

#[tokio::test(start_paused = true)]
async fn without_a_write_timeout_any_connection_is_served() {
    for kind in PLAIN {
        let (upstream, mut script) = super::support::ScriptedUpstream::new();
        let gateway = super::support::builder(&upstream).build().unwrap();
        for is_guarded in [false, true] {
            let mut client = if is_guarded {
                Client::connect(kind, gateway.clone()).await
            } else {
                client_of(kind, without_guards(gateway.clone())).await
            };
            let (mut stream, _session) = tokio::join!(client.open(), async {
                script.next_open().await.accept_with([], "1")
            });
            assert_eq!(stream.types(2).await, ["reset", "synced"]);
            drop((stream, client));
            eventually("it is left", || gateway.feeds().count() == 0).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_lacks_one_guard_is_refused_and_the_operator_told_which() {
    for kind in PLAIN {
        let host = Host::new();
        let gateway = host.gateway.clone();
        let mut client = client_of(kind, |io| {
            tokio::spawn(async move {
                let guard = ConnectionGuard::new();
                let io = TokioIo::new(io);
                let _ = guard.builder().serve_connection(io, guard.service(gateway)).await;
            })
        })
        .await;
        is_rejected(kind, &host, &mut client, "ConnectionGuard::io").await;
    }
    let host = Host::new();
    let gateway = host.gateway.clone();
    let mut client = client_of(Kind::Http2, |io| {
        tokio::spawn(async move {
            let guard = ConnectionGuard::new();
            let io = TokioIo::new(guard.io(io));
            let server = auto::Builder::new(TokioExecutor::new());
            let _ = server.serve_connection(io, guard.service(gateway)).await;
        })
    })
    .await;
    is_rejected(Kind::Http2, &host, &mut client, "ConnectionGuard::executor").await;
}

#[tokio::test(start_paused = true)]
async fn a_guard_whose_socket_is_gone_vouches_for_no_other() {
    for kind in PLAIN {
        let host = Host::new();
        let gateway = host.gateway.clone();
        let mut client = client_of(kind, |io| {
            tokio::spawn(async move {
                let guard = ConnectionGuard::new();
                drop(guard.io(tokio::io::empty()));
                let io = TokioIo::new(io);
                let _ = guard.builder().serve_connection(io, guard.service(gateway)).await;
            })
        })
        .await;
        is_rejected(kind, &host, &mut client, "ConnectionGuard::io").await;
    }
}

#[tokio::test(start_paused = true)]
async fn middleware_that_builds_a_new_request_is_refused() {
    for kind in PLAIN {
        let host = Host::new();
        let gateway = host.gateway.clone();
        let forgetful = service_fn(move |request: Request<Incoming>| {
            let mut anew = Request::new(());
            *anew.uri_mut() = request.uri().clone();
            *anew.headers_mut() = request.headers().clone();
            gateway.clone().oneshot(anew)
        });
        let mut client = Client::connect(kind, forgetful).await;
        is_rejected(kind, &host, &mut client, "extensions").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_hosts_own_loop_with_the_guards_bounds_delivery() {
    for kind in PLAIN {
        let mut host = Host::new();
        let gateway = host.gateway.clone();
        let mut client = client_of(kind, |io| {
            tokio::spawn(async move {
                let guard = ConnectionGuard::new();
                let io = TokioIo::new(guard.io(io));
                let _ = guard.builder().serve_connection(io, guard.service(gateway)).await;
            })
        })
        .await;
        let (mut stream, session) =
            tokio::join!(client.open(), async { host.script.next_open().await.accept() });
        assert_eq!(stream.types(1).await, ["reset"]);
        session.send(WatchEvent::Added(config_map("large", 1, &"x".repeat(2 << 20))));
        is_in_time(host.cut().await);
        drop(session);
        host.is_left_alone().await;
    }
}
