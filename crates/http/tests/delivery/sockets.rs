//! H1, H2 and H8 on sockets: what the kernel takes is bounded too, others are not slowed, and resets free everything.

use std::net::SocketAddr;
use std::time::Duration;

use krm_stream_http::{ConnectionGuard, Listener, PeerAddress, handshaking, prepare_socket, serve};
use krm_stream_protocol::WatchEvent;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use tower::ServiceExt as _;
use tower::service_fn;

use super::support::{Client, Host, Kind, Stream, config_map, eventually, tls_acceptor, tls_connector};

/// Long beside what a busy machine may delay a server or a test.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Ends with the test.
struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn server(kind: Kind, host: &Host) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let gateway = host.gateway.clone();
    let task = tokio::spawn(async move {
        if kind.is_tls() {
            let acceptor = tls_acceptor();
            serve(
                handshaking(listener, move |socket| acceptor.accept(socket)),
                gateway,
            )
            .await;
        } else {
            serve(listener, gateway).await;
        }
    });
    Server { address, task }
}

/// A client with room for so many bytes that it has not read, in its kernel and in each of its streams.
async fn client(kind: Kind, address: SocketAddr, room: u32) -> Client {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
    socket.set_recv_buffer_size(room as usize).unwrap();
    socket.connect(&SockAddr::from(address)).unwrap();
    socket.set_nonblocking(true).unwrap();
    let socket = TcpStream::from_std(socket.into()).unwrap();
    let idle = tokio::spawn(std::future::pending());
    if kind.is_tls() {
        let name = tokio_rustls::rustls::pki_types::ServerName::try_from("localhost").unwrap();
        let io = tls_connector().connect(name, socket).await.unwrap();
        Client::over(kind, io, room, idle).await
    } else {
        Client::over(kind, socket, room, idle).await
    }
}

/// What one that stalls is handed at most: a chunk, and what fits into hyper, the kernel and its own. Where the system has no
/// bound for what waits unsent, the kernel takes a few MiB.
const MOST_HANDED_OUT: u64 = if cfg!(target_os = "linux") {
    1 << 20
} else {
    16 << 20
};
/// 64 MiB of them.
const CHANGES: u32 = 256;

/// So many changes of 256 KiB to 8 objects, and one that reads them beside one that stalls, if that `is_there`. How long each
/// took from the upstream to the reader.
async fn reads(kind: Kind, changes: u32, is_there: bool) -> Duration {
    let mut host = Host::with(|builder| builder.write_timeout(WRITE_TIMEOUT));
    let server = server(kind, &host).await;
    let mut second = client(kind, server.address, 1 << 20).await;
    let (mut live, session) = tokio::join!(second.open(), async {
        host.script.next_open().await.accept_with([], "1")
    });
    assert_eq!(live.types(2).await, ["reset", "synced"]);
    let mut stalled = None;
    if is_there {
        let mut first = client(kind, server.address, 4096).await;
        let mut stream = first.open().await;
        assert_eq!(stream.types(2).await, ["reset", "synced"]);
        stalled = Some((first, stream));
    }

    let value = "x".repeat(256 * 1024);
    let mut read = 0;
    let began = Instant::now();
    let reading = async {
        for version in 2..u64::from(changes) + 2 {
            let uid = format!("o{}", version % 8);
            session.send(WatchEvent::Added(config_map(
                &uid,
                version,
                &format!("{version}{value}"),
            )));
            // It is as fast as the one that reads, so that nothing coalesces and all 64 MiB are there for both.
            let event = live.next().await.unwrap().unwrap();
            assert!(event.contains(&format!("\"value\":\"{version}x")));
            read += std::mem::take(&mut live.raw).len();
        }
        began.elapsed() / changes
    };
    let cutting = async {
        if is_there {
            let cut = host.cut().await;
            assert!(cut < WRITE_TIMEOUT + Duration::from_secs(5), "{kind:?}: {cut:?}");
        }
    };
    let (took, ()) = tokio::join!(reading, cutting);
    if let Some((first, mut stream)) = stalled {
        assert_eq!(host.timeouts(), 1, "{kind:?}");
        eventually("its subscription is released", || {
            host.recorder.still_open() == [1, 1, 1]
        })
        .await;
        let handed_out = host.bytes_handed_out() - read as u64;
        eprintln!("{kind:?}: {handed_out} bytes were handed out to the one that stalls");
        assert!(
            handed_out <= MOST_HANDED_OUT,
            "{kind:?}: {handed_out} bytes of 64 MiB were handed out to one that took nothing"
        );
        stream.break_of().await;
        drop((first, stream));
    }
    drop((second, live));
    host.is_left_alone().await;
    took
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_a_reader_stalls_before_64_mib_the_others_go_on_as_fast_and_it_is_cut() {
    for kind in [Kind::Http1, Kind::Http2] {
        let alone = reads(kind, CHANGES / 4, false).await;
        let beside = reads(kind, CHANGES, true).await;
        // Other tests run at the same time, and may take the processors away for a moment.
        let at_most = (alone * 3).max(Duration::from_millis(50));
        assert!(
            beside < at_most,
            "{kind:?}: {alone:?} alone, {beside:?} beside one that stalls"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_stalls_before_one_event_of_two_mib_and_silence_is_cut() {
    let mut cuts = JoinSet::new();
    for kind in Kind::ALL {
        cuts.spawn(async move {
            let cut = cut_before_a_large_event(kind).await;
            assert!(
                WRITE_TIMEOUT <= cut && cut < WRITE_TIMEOUT * 2,
                "{kind:?}: {cut:?}"
            );
        });
    }
    cuts.join_all().await;
}

/// How long after the event its reader was cut.
async fn cut_before_a_large_event(kind: Kind) -> Duration {
    let mut host = Host::with(|builder| builder.write_timeout(WRITE_TIMEOUT));
    let server = server(kind, &host).await;
    let mut client = client(kind, server.address, 4096).await;
    let (mut stream, session) = tokio::join!(client.open(), async {
        host.script.next_open().await.accept_with([], "1")
    });
    assert_eq!(stream.types(2).await, ["reset", "synced"]);
    let large = config_map("large", 2, &"x".repeat(2 << 20));
    let sent = Instant::now();
    session.send(WatchEvent::Added(large));
    host.cut().await;
    let cut = sent.elapsed();
    host.is_left_alone().await;
    drop(session);
    cut
}

#[derive(Clone, Copy, Debug)]
enum When {
    Idle,
    InTheSnapshot,
    InALargeEvent,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_resets_its_connection_at_any_moment_frees_everything_within_a_heartbeat() {
    let heartbeat = Duration::from_secs(10);
    for kind in [Kind::Http1, Kind::Http2] {
        for when in [When::Idle, When::InTheSnapshot, When::InALargeEvent] {
            let mut host = Host::with(|builder| builder.heartbeat_interval(heartbeat));
            let server = server(kind, &host).await;
            let socket = TcpStream::connect(server.address).await.unwrap();
            socket.set_zero_linger().unwrap();
            let mut client = Client::over(kind, socket, 4096, tokio::spawn(std::future::pending())).await;
            let began = Instant::now();
            let (mut stream, session) =
                tokio::join!(client.open(), async { host.script.next_open().await.accept() });
            assert_eq!(stream.types(1).await, ["reset"]);
            match when {
                When::InTheSnapshot => {
                    session.send(WatchEvent::Added(config_map("a", 1, "v")));
                    assert_eq!(stream.types(1).await, ["added"]);
                }
                When::Idle | When::InALargeEvent => {
                    session.boundary("1");
                    assert_eq!(stream.types(1).await, ["synced"]);
                }
            }
            if let When::InALargeEvent = when {
                session.send(WatchEvent::Added(config_map("large", 2, &"x".repeat(4 << 20))));
                read_some(&mut stream, 1000).await;
            }
            drop((stream, client));
            eventually("everything is freed", || host.recorder.still_open() == [0, 0, 0]).await;
            let took = began.elapsed();
            assert!(
                took < heartbeat,
                "a heartbeat may have helped: {kind:?} {when:?}: {took:?}"
            );
            host.is_left_alone().await;
            assert_eq!(host.timeouts(), 0);
        }
    }
}

async fn read_some(stream: &mut Stream, bytes: usize) {
    let before = stream.raw.len();
    while stream.raw.len() < before + bytes {
        stream.chunk().await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn requests_know_their_peer() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = service_fn(|request: http::Request<hyper::body::Incoming>| async move {
        let PeerAddress::<SocketAddr>(peer) = request.extensions().get().unwrap();
        Ok::<_, std::convert::Infallible>(http::Response::new(peer.to_string()))
    });
    let task = tokio::spawn(async move { serve(listener, answer.map_err(|never| never)).await });
    let socket = TcpStream::connect(address).await.unwrap();
    let own = socket.local_addr().unwrap();
    let mut client = Client::over(Kind::Http1, socket, 4096, tokio::spawn(std::future::pending())).await;
    let response = client
        .send(super::support::request(Kind::Http1, "/"))
        .await
        .unwrap();
    let body = http_body_util::BodyExt::collect(response.into_body())
        .await
        .unwrap()
        .to_bytes();
    assert_eq!(body, own.to_string());
    task.abort();
}

/// Whether a socket has the options of one that was prepared.
fn is_prepared(socket: &TcpStream) -> bool {
    #[cfg(target_os = "linux")]
    {
        let unsent = socket2::SockRef::from(socket).tcp_notsent_lowat().unwrap();
        if !(16 * 1024..=64 * 1024).contains(&unsent) {
            return false;
        }
    }
    socket.nodelay().unwrap()
}

#[tokio::test]
async fn sockets_are_prepared_where_they_are_accepted() {
    let listener = async || {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    };
    let guard = ConnectionGuard::new();

    let (plain, address) = listener().await;
    let (accepted, _near) = tokio::join!(plain.accept(), TcpStream::connect(address));
    let (socket, _) = accepted.unwrap();
    assert!(!is_prepared(&socket), "no socket is by itself");
    prepare_socket(&socket).unwrap();
    assert!(is_prepared(&socket));

    let (mut served, address) = listener().await;
    let (accepted, _near) = tokio::join!(Listener::accept(&mut served, &guard), TcpStream::connect(address));
    let (handshake, _) = accepted.unwrap();
    assert!(is_prepared(&handshake.await.unwrap()));

    let (shaken, address) = listener().await;
    let mut shaken = handshaking(shaken, |socket| std::future::ready(Ok(socket)));
    let (accepted, _near) = tokio::join!(Listener::accept(&mut shaken, &guard), TcpStream::connect(address));
    let (handshake, _) = accepted.unwrap();
    assert!(is_prepared(handshake.await.unwrap().get_ref()));
}
