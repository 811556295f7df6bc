//! H6 as far as a server goes: shutting down, and accepting on whatever happens.

use std::collections::VecDeque;
use std::future::{Pending, pending};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::BodyExt as _;
use krm_stream_http::{BoundedIo, ConnectionGuard, Gateway, Listener, serve};
use krm_stream_protocol::WatchEvent;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::server::TlsStream;

use super::support::{
    Client, Host, Kind, PATH, Reports, Sizes, config_map, eventually, request, tls_acceptor, tls_connector,
};

/// Connections in memory, and errors between them.
pub(crate) struct InMemory {
    pub(crate) accepted: mpsc::UnboundedReceiver<io::Result<DuplexStream>>,
}

impl Listener for InMemory {
    type Io = DuplexStream;
    type Handshake = std::future::Ready<io::Result<DuplexStream>>;
    type Address = ();

    async fn accept(&mut self, _: &ConnectionGuard) -> io::Result<(Self::Handshake, ())> {
        match self.accepted.recv().await {
            Some(accepted) => Ok((std::future::ready(Ok(accepted?)), ())),
            None => pending().await,
        }
    }
}

struct Server {
    connections: mpsc::UnboundedSender<io::Result<DuplexStream>>,
    end: Option<oneshot::Sender<()>>,
    reports: Arc<Reports>,
    task: JoinHandle<()>,
}

const GRACE: Duration = Duration::from_secs(10);

/// A server that drains the gateway when its end is asked for, if `drains`.
fn server(gateway: &Gateway, drains: bool) -> Server {
    let (connections, accepted) = mpsc::unbounded_channel();
    let (end, ended) = oneshot::channel();
    let reports = Arc::new(Reports::default());
    let draining = gateway.clone();
    let serving = serve(InMemory { accepted }, gateway.clone())
        .with_diagnostics(reports.clone())
        .with_graceful_shutdown(
            async move {
                let _ = ended.await;
                if drains {
                    draining.drain(Duration::from_secs(30));
                }
            },
            GRACE,
        );
    Server {
        connections,
        end: Some(end),
        reports,
        task: tokio::spawn(serving.into_future()),
    }
}

impl Server {
    async fn client(&self, kind: Kind) -> Client {
        let (near, far) = duplex(16 * 1024);
        self.connections.send(Ok(far)).unwrap();
        Client::over(kind, near, Sizes::SMALL.window, tokio::spawn(pending())).await
    }

    fn end(&mut self) {
        let _ = self.end.take().unwrap().send(());
    }
}

const PLAIN: [Kind; 2] = [Kind::Http1, Kind::Http2];

#[tokio::test(start_paused = true)]
async fn streams_that_are_drained_end_with_their_last_event_and_the_server_with_them() {
    for kind in PLAIN {
        let mut host = Host::new();
        let mut server = server(&host.gateway, true);
        let mut client = server.client(kind).await;
        let (mut stream, _session) = tokio::join!(client.open(), async {
            host.script.next_open().await.accept_with([], "1")
        });
        assert_eq!(stream.types(2).await, ["reset", "synced"]);
        let began = Instant::now();
        server.end();
        let last = stream.next().await.unwrap().unwrap();
        assert!(
            last.contains("UPSTREAM_UNAVAILABLE") && last.contains("retryAfterMs"),
            "{last}"
        );
        assert!(stream.next().await.is_none());
        server.task.await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        assert!(
            client.send(request(kind, PATH)).await.is_err(),
            "no new request is taken"
        );
        host.is_left_alone().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_still_open_after_the_grace_time_is_dropped() {
    for kind in PLAIN {
        let mut host = Host::with(|builder| builder.write_timeout(Duration::from_hours(1)));
        let mut server = server(&host.gateway, true);
        let mut client = server.client(kind).await;
        let (mut stalled, session) =
            tokio::join!(client.open(), async { host.script.next_open().await.accept() });
        assert_eq!(stalled.types(1).await, ["reset"]);
        session.send(WatchEvent::Added(config_map("large", 1, &"x".repeat(2 << 20))));
        tokio::time::sleep(Duration::from_secs(1)).await;
        let began = Instant::now();
        server.end();
        server.task.await.unwrap();
        assert_eq!(began.elapsed(), GRACE);
        eventually("its stream is dropped", || {
            host.recorder.still_open()[..2] == [0, 0]
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_streams_ends_at_once_whatever_its_clients_have_begun() {
    let host = Host::new();
    let mut server = server(&host.gateway, true);
    let idle = [server.client(Kind::Http1).await, server.client(Kind::Http2).await];
    let (mut half, far) = duplex(1024);
    half.write_all(b"GET /resource-str").await.unwrap();
    server.connections.send(Ok(far)).unwrap();
    let (silent, far) = duplex(1024);
    server.connections.send(Ok(far)).unwrap();
    tokio::time::sleep(Duration::from_millis(10)).await;
    let began = Instant::now();
    server.end();
    server.task.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    drop((idle, half, silent));
}

#[tokio::test(start_paused = true)]
async fn answers_under_way_finish_without_any_drain() {
    for kind in PLAIN {
        let slow = tower::service_fn(|_: http::Request<hyper::body::Incoming>| async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            Ok::<_, std::convert::Infallible>(http::Response::new("done".to_owned()))
        });
        let (connections, accepted) = mpsc::unbounded_channel();
        let (end, ended) = oneshot::channel::<()>();
        let serving = serve(InMemory { accepted }, slow)
            .with_graceful_shutdown(async move { drop(ended.await) }, GRACE);
        let task = tokio::spawn(serving.into_future());
        let (near, far) = duplex(16 * 1024);
        connections.send(Ok(far)).unwrap();
        let mut client = Client::over(kind, near, 4096, tokio::spawn(pending())).await;
        let ending = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            end.send(()).unwrap();
        };
        let (response, ()) = tokio::join!(client.send(request(kind, "/")), ending);
        let body = response.unwrap().into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, "done");
        tokio::time::timeout(Duration::from_secs(2), task)
            .await
            .unwrap()
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn errors_of_the_listener_are_reported_and_survived() {
    let host = Host::new();
    let server = server(&host.gateway, false);
    for error in [
        io::Error::from(io::ErrorKind::ConnectionAborted),
        io::Error::other("too many open files"),
    ] {
        server.connections.send(Err(error)).unwrap();
    }
    let mut client = server.client(Kind::Http1).await;
    let mut not_allowed = request(Kind::Http1, PATH);
    *not_allowed.method_mut() = http::Method::POST;
    assert_eq!(client.send(not_allowed).await.unwrap().status(), 405);
    let reports = server.reports.all();
    assert_eq!(reports.len(), 2);
    assert!(reports[1].contains("too many open files"));
    server.task.abort();
}

/// Connections whose handshakes are the test's.
struct Shaking(Arc<Mutex<VecDeque<DuplexStream>>>, Arc<tokio::sync::Notify>);

impl Listener for Shaking {
    type Io = DuplexStream;
    type Handshake = std::pin::Pin<Box<dyn Future<Output = io::Result<DuplexStream>> + Send>>;
    type Address = ();

    async fn accept(&mut self, _: &ConnectionGuard) -> io::Result<(Self::Handshake, ())> {
        loop {
            let next = self.0.lock().unwrap().pop_front();
            match next {
                // The first one never comes to its end.
                Some(io) if self.0.lock().unwrap().len() == 1 => {
                    return Ok((
                        Box::pin(async move {
                            let _held = io;
                            let never: Pending<io::Result<DuplexStream>> = pending();
                            never.await
                        }),
                        (),
                    ));
                }
                Some(io) => return Ok((Box::pin(std::future::ready(Ok(io))), ())),
                None => self.1.notified().await,
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_hangs_is_given_up_and_delays_nobody() {
    let host = Host::new();
    let (mut hanging, first) = duplex(1024);
    let (near, second) = duplex(16 * 1024);
    let waiting = Arc::new(Mutex::new(VecDeque::from([first, second])));
    let task = tokio::spawn(serve(Shaking(waiting, Arc::default()), host.gateway.clone()).into_future());
    let began = Instant::now();
    let mut client = Client::over(Kind::Http1, near, 4096, tokio::spawn(pending())).await;
    let mut not_allowed = request(Kind::Http1, PATH);
    *not_allowed.method_mut() = http::Method::POST;
    assert_eq!(client.send(not_allowed).await.unwrap().status(), 405);
    assert!(began.elapsed() < Duration::from_secs(1));
    let mut came = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(&mut hanging, &mut came)
        .await
        .unwrap();
    assert_eq!(began.elapsed().as_secs(), 10);
    task.abort();
}

/// Connections in memory, by TLS.
struct ByTls(mpsc::UnboundedReceiver<DuplexStream>);

impl Listener for ByTls {
    type Io = TlsStream<BoundedIo<DuplexStream>>;
    type Handshake = tokio_rustls::Accept<BoundedIo<DuplexStream>>;
    type Address = ();

    async fn accept(&mut self, guard: &ConnectionGuard) -> io::Result<(Self::Handshake, ())> {
        match self.0.recv().await {
            Some(accepted) => Ok((tls_acceptor().accept(guard.io(accepted)), ())),
            None => pending().await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_by_tls_has_ten_seconds_for_the_handshake_and_ten_for_its_first_request() {
    let host = Host::new();
    let (connections, accepted) = mpsc::unbounded_channel();
    let task = tokio::spawn(serve(ByTls(accepted), host.gateway.clone()).into_future());

    // A record of the handshake that comes byte by byte: RFC 8446, section 5.1.
    let (mut near, far) = duplex(1024);
    connections.send(far).unwrap();
    let began = Instant::now();
    near.write_all(&[22, 3, 1, 2, 0, 1]).await.unwrap();
    while near.write_all(&[0]).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let took = began.elapsed();
    assert!(
        took.abs_diff(Duration::from_secs(10)) < Duration::from_secs(1),
        "{took:?}"
    );

    let (near, far) = duplex(16 * 1024);
    connections.send(far).unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut silent = tls_connector().connect(name, near).await.unwrap();
    let began = Instant::now();
    let mut came = Vec::new();
    let _ = silent.read_to_end(&mut came).await;
    let took = began.elapsed();
    assert!(
        took.abs_diff(Duration::from_secs(10)) < Duration::from_secs(1),
        "{took:?}"
    );
    task.abort();
}
