//! H1 and H2 at the socket: a reader that takes a little now and then is cut as if it took nothing, by TLS as in cleartext.

use std::future::ready;
use std::net::SocketAddr;
use std::time::Duration;

use krm_stream_http::{handshaking, serve};
use krm_stream_protocol::WatchEvent;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_rustls::rustls::pki_types::ServerName;

use super::support::{
    Client, Guarded, Host, Kind, Rate, Seen, Sizes, Throttled, WRITE_TIMEOUT as WRITE_TIMEOUT_IN_MEMORY,
    Watched, config_map, tls_acceptor, tls_connector,
};

/// Long beside what two dozen gateways at once may delay each other.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// What a reader takes: so many bytes at a time, so often.
const TRICKLES: [(usize, Duration); 3] = [
    (1, Duration::from_millis(100)),
    (512, Duration::from_millis(500)),
    (4096, Duration::from_secs(1)),
];

/// What there is to take.
#[derive(Clone, Copy, Debug)]
enum Load {
    /// 2 MiB at once.
    Large,
    /// 1 KiB every 50 ms.
    Flow,
}

async fn client(kind: Kind, address: SocketAddr, rate: &Rate) -> Client {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(&SockAddr::from(address)).unwrap();
    socket.set_nonblocking(true).unwrap();
    let socket = Throttled::new(TcpStream::from_std(socket.into()).unwrap(), rate);
    let idle = tokio::spawn(std::future::pending());
    // Room in the streams' windows: it is the socket that does not take more.
    let window = 1 << 20;
    if kind.is_tls() {
        let name = ServerName::try_from("localhost").unwrap();
        let io = tls_connector().connect(name, socket).await.unwrap();
        Client::over(kind, io, window, idle).await
    } else {
        Client::over(kind, socket, window, idle).await
    }
}

/// How long a chunk had waited at the socket when its reader was cut. Over HTTP/2 the connection has two streams, of which
/// one is not read.
async fn waited(kind: Kind, (bytes, tick): (usize, Duration), load: Load) -> Duration {
    let mut host = Host::with(|builder| builder.write_timeout(WRITE_TIMEOUT));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let gateway = host.gateway.clone();
    let seen = Seen::default();
    let socket_seen = seen.clone();
    let server = tokio::spawn(async move {
        if kind.is_tls() {
            let acceptor = tls_acceptor();
            let shakes = move |socket| acceptor.accept(Watched::new(socket, &socket_seen));
            serve(handshaking(listener, shakes), gateway).await;
        } else {
            let shakes = move |socket| ready(Ok(Watched::new(socket, &socket_seen)));
            serve(handshaking(listener, shakes), gateway).await;
        }
    });
    let rate = Rate::unlimited().with_tick(tick);
    let mut client = client(kind, address, &rate).await;
    let (mut stream, session) = tokio::join!(client.open(), async {
        host.script.next_open().await.accept_with([], "1")
    });
    assert_eq!(stream.types(2).await, ["reset", "synced"]);
    let mut unread = None;
    if kind.is_multiplexed() {
        unread = Some(client.open().await);
    }
    rate.set(bytes);
    let reading = tokio::spawn(async move { while let Some(Ok(_)) = stream.chunk().await {} });
    let sending = tokio::spawn(async move {
        match load {
            Load::Large => session.send(WatchEvent::Added(config_map("large", 2, &"x".repeat(2 << 20)))),
            Load::Flow => {}
        }
        for version in 3.. {
            sleep(Duration::from_millis(50)).await;
            if let Load::Flow = load {
                let value = "x".repeat(1024);
                session.send(WatchEvent::Added(config_map(
                    &format!("o{version}"),
                    version,
                    &value,
                )));
            }
        }
    });
    host.cut().await;
    let waited = seen.waiting().unwrap();
    for task in [server, reading, sending] {
        task.abort();
    }
    drop((client, unread));
    waited
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_takes_a_little_now_and_then_is_cut_after_one_timeout() {
    let mut waits = JoinSet::new();
    for kind in Kind::ALL {
        for trickle in TRICKLES {
            for load in [Load::Large, Load::Flow] {
                waits.spawn(async move {
                    let waited = waited(kind, trickle, load).await;
                    // Over HTTP/2 a stream has a guard of its own, which may be first.
                    let is_too_soon = !kind.is_multiplexed() && waited < WRITE_TIMEOUT;
                    assert!(
                        !is_too_soon && waited < WRITE_TIMEOUT.mul_f32(1.8),
                        "{kind:?} {trickle:?} {load:?}: {waited:?}"
                    );
                });
            }
        }
    }
    waits.join_all().await;
}

/// How long a chunk had waited at the socket when its reader was cut, over a connection in memory whose reader takes so much
/// in 100 ms, and for whom a little more comes than that.
async fn waited_in_memory(kind: Kind, guarded: Guarded, bytes: usize) -> Duration {
    let mut host = Host::new();
    let rate = Rate::unlimited();
    let seen = Seen::default();
    let sizes = Sizes {
        transport: 16 * 1024,
        window: 1 << 20,
    };
    let link = |io| Throttled::new(io, &rate);
    let socket = |io| Watched::new(io, &seen);
    let mut client = Client::connect_guarding(kind, guarded, host.gateway.clone(), sizes, link, socket).await;
    let (mut stream, session) = tokio::join!(client.open(), async {
        host.script.next_open().await.accept_with([], "1")
    });
    assert_eq!(stream.types(2).await, ["reset", "synced"]);
    rate.set(bytes);
    let reading = tokio::spawn(async move { while let Some(Ok(_)) = stream.chunk().await {} });
    let sending = tokio::spawn(async move {
        for version in 3.. {
            sleep(Duration::from_millis(100)).await;
            let value = "x".repeat(bytes + 50);
            session.send(WatchEvent::Added(config_map(
                &format!("o{version}"),
                version,
                &value,
            )));
        }
    });
    host.cut().await;
    reading.abort();
    sending.abort();
    seen.waiting().unwrap()
}

#[tokio::test(start_paused = true)]
async fn whatever_a_reader_takes_in_less_than_a_chunk_a_timeout_the_socket_waits_for_one_timeout_at_most() {
    let slack = Duration::from_millis(10);
    for kind in Kind::ALL {
        for bytes in [1, 20, 100, 300, 500] {
            let waited = waited_in_memory(kind, Guarded::Socket, bytes).await;
            assert!(
                waited <= WRITE_TIMEOUT_IN_MEMORY + slack,
                "{kind:?} {bytes}: {waited:?}"
            );
            // Over HTTP/2 a stream has a guard of its own, which may be first.
            if bytes == 1 || !kind.is_multiplexed() {
                assert!(waited >= WRITE_TIMEOUT_IN_MEMORY, "{kind:?} {bytes}: {waited:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn where_the_tls_stream_alone_is_guarded_a_reader_that_takes_a_little_lives_for_four_timeouts_at_most()
{
    for kind in [Kind::Http1Tls, Kind::Http2Tls] {
        for bytes in [1, 20, 100, 300, 500] {
            let waited = waited_in_memory(kind, Guarded::WhatIsOverIt, bytes).await;
            assert!(
                waited <= 4 * WRITE_TIMEOUT_IN_MEMORY,
                "{kind:?} {bytes}: {waited:?}"
            );
        }
    }
}
