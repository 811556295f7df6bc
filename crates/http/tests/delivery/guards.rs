//! H1 where one guard gets more than one socket: each of them is bounded, those that are served and those that are not.

use std::future::pending;
use std::io;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use krm_stream_http::{BoundedIo, ConnectionGuard, Listener, serve};
use krm_stream_protocol::WatchEvent;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_rustls::rustls::pki_types::ServerName;

use super::support::{
    Client, Host, Kind, Sizes, Stream, config_map, eventually, is_in_time, tls_acceptor, tls_connector,
};

/// Over HTTP/2 each stream has a guard of its own besides.
const KINDS: [Kind; 2] = [Kind::Http1, Kind::Http1Tls];

async fn client(kind: Kind, near: DuplexStream) -> Client {
    let idle = tokio::spawn(pending());
    if kind.is_tls() {
        let name = ServerName::try_from("localhost").unwrap();
        let io = tls_connector().connect(name, near).await.unwrap();
        Client::over(kind, io, Sizes::SMALL.window, idle).await
    } else {
        Client::over(kind, near, Sizes::SMALL.window, idle).await
    }
}

/// A stream that has 2 MiB ahead of it, of which nothing is read.
async fn stalled(host: &mut Host, client: &mut Client) -> Stream {
    let (mut stream, session) = tokio::join!(client.open(), async { host.script.next_open().await.accept() });
    assert_eq!(stream.types(1).await, ["reset"]);
    session.send(WatchEvent::Added(config_map("large", 1, &"x".repeat(2 << 20))));
    tokio::spawn(async move {
        pending::<()>().await;
        drop(session);
    });
    stream
}

trait Io: AsyncRead + AsyncWrite + Unpin + Send {}

impl<I: AsyncRead + AsyncWrite + Unpin + Send> Io for I {}

/// What becomes of a connection's first socket, which is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Closed,
    Kept,
}

/// What is done with the second one.
#[derive(Clone, Copy, Debug)]
enum Second {
    Plain,
    Guarded,
    /// By TLS, where something else is guarded.
    Tls,
    TlsOverGuarded,
}

impl Second {
    fn kind(self) -> Kind {
        match self {
            Self::Plain | Self::Guarded => Kind::Http1,
            Self::Tls | Self::TlsOverGuarded => Kind::Http1Tls,
        }
    }
}

/// Guards two sockets with each guard, and has the second one served.
struct Picky {
    sockets: mpsc::UnboundedReceiver<DuplexStream>,
    first: First,
    second: Second,
    kept: Vec<BoundedIo<DuplexStream>>,
}

impl Listener for Picky {
    type Io = Box<dyn Io>;
    type Handshake = BoxFuture<'static, io::Result<Box<dyn Io>>>;
    type Address = ();

    async fn accept(&mut self, guard: &ConnectionGuard) -> io::Result<(Self::Handshake, ())> {
        let (Some(first), Some(second)) = (self.sockets.recv().await, self.sockets.recv().await) else {
            return pending().await;
        };
        let first = guard.io(first);
        match self.first {
            First::Closed => drop(first),
            First::Kept => self.kept.push(first),
        }
        let handshake: Self::Handshake = match self.second {
            Second::Plain => async { Ok(Box::new(second) as Box<dyn Io>) }.boxed(),
            Second::Guarded => {
                let second = guard.io(second);
                async { Ok(Box::new(second) as Box<dyn Io>) }.boxed()
            }
            Second::Tls => {
                async move { Ok(Box::new(tls_acceptor().accept(second).await?) as Box<dyn Io>) }.boxed()
            }
            Second::TlsOverGuarded => {
                let second = tls_acceptor().accept(guard.io(second));
                async { Ok(Box::new(second.await?) as Box<dyn Io>) }.boxed()
            }
        };
        Ok((handshake, ()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_guards_a_socket_and_serves_another_has_that_one_bounded() {
    for first in [First::Closed, First::Kept] {
        for second in [
            Second::Plain,
            Second::Guarded,
            Second::Tls,
            Second::TlsOverGuarded,
        ] {
            eprintln!("{first:?}, {second:?}");
            let mut host = Host::new();
            let (connections, sockets) = mpsc::unbounded_channel();
            let listener = Picky {
                sockets,
                first,
                second,
                kept: Vec::new(),
            };
            let server = tokio::spawn(serve(listener, host.gateway.clone()).into_future());
            let (_unserved, far) = duplex(16 * 1024);
            connections.send(far).unwrap();
            let (near, far) = duplex(16 * 1024);
            connections.send(far).unwrap();
            let mut client = client(second.kind(), near).await;
            let mut stream = stalled(&mut host, &mut client).await;
            is_in_time(host.cut().await);
            host.is_left_alone().await;
            stream.break_of().await;
            server.abort();
        }
    }
}

/// A client of a connection that is served with this guard.
async fn served(kind: Kind, guard: &Arc<ConnectionGuard>, host: &Host) -> Client {
    let (near, far) = duplex(16 * 1024);
    let (guard, gateway) = (Arc::clone(guard), host.gateway.clone());
    let server = tokio::spawn(async move {
        if kind.is_tls() {
            let io = tls_acceptor().accept(guard.io(far)).await?;
            guard.serve_connection(io, gateway).await
        } else {
            guard.serve_connection(far, gateway).await
        }
    });
    let mut client = client(kind, near).await;
    client.server = server;
    client
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_is_made_once_for_all_bounds_each_of_its_sockets() {
    for kind in KINDS {
        let mut host = Host::new();
        let guard = Arc::default();
        // In turn.
        for turn in 1..=3 {
            let mut client = served(kind, &guard, &host).await;
            let mut stream = stalled(&mut host, &mut client).await;
            let began = Instant::now();
            eventually("it is cut", || client.server.is_finished()).await;
            is_in_time(began.elapsed());
            assert_eq!(host.timeouts(), turn, "{kind:?}");
            stream.break_of().await;
            host.is_left_alone().await;
        }
        // At once.
        let mut first = served(kind, &guard, &host).await;
        let mut second = served(kind, &guard, &host).await;
        let (mut one, session) = tokio::join!(first.open(), async {
            host.script.next_open().await.accept_with([], "1")
        });
        let mut other = second.open().await;
        for stream in [&mut one, &mut other] {
            assert_eq!(stream.types(2).await, ["reset", "synced"]);
        }
        session.send(WatchEvent::Added(config_map("large", 2, &"x".repeat(2 << 20))));
        let began = Instant::now();
        eventually("both are cut", || {
            first.server.is_finished() && second.server.is_finished()
        })
        .await;
        is_in_time(began.elapsed());
        host.is_left_alone().await;
    }
}
