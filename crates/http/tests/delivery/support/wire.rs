//! Connections in memory: a hyper client at one end, a served gateway at the other.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use krm_stream_http::{BoxError, ConnectionGuard, serve_connection};
use krm_stream_protocol::{FrameGrammar, SseDecoder, SseEvent};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, duplex};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::{PATH, type_of};

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Http1,
    Http2,
    Http1Tls,
    Http2Tls,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Http1, Self::Http2, Self::Http1Tls, Self::Http2Tls];
    pub(crate) const MULTIPLEXED: [Self; 2] = [Self::Http2, Self::Http2Tls];

    pub(crate) fn is_multiplexed(self) -> bool {
        Self::MULTIPLEXED.contains(&self)
    }

    pub(crate) fn is_tls(self) -> bool {
        matches!(self, Self::Http1Tls | Self::Http2Tls)
    }
}

/// What of a connection by TLS is guarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guarded {
    /// The socket, as `serve` does it.
    Socket,
    /// The TLS stream alone.
    WhatIsOverIt,
}

impl Guarded {
    pub(crate) const ALL: [Self; 2] = [Self::Socket, Self::WhatIsOverIt];
}

/// What fits between a server and a reader who takes nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// The buffer of the transport.
    pub(crate) transport: usize,
    /// The window of an HTTP/2 stream.
    pub(crate) window: u32,
}

impl Sizes {
    pub(crate) const SMALL: Self = Self {
        transport: 16 * 1024,
        window: 1024,
    };
}

/// A client's connection. Dropping it closes it.
pub(crate) struct Client {
    requests: Requests,
    /// The server's end.
    pub(crate) server: JoinHandle<Result<(), BoxError>>,
    _ends: JoinSet<()>,
}

enum Requests {
    One(http1::SendRequest<Empty<Bytes>>),
    Multiplexed(http2::SendRequest<Empty<Bytes>>),
}

/// A request for the stream of the tests' scope.
pub(crate) fn request(kind: Kind, path: &str) -> Request<Empty<Bytes>> {
    let uri = if kind.is_multiplexed() {
        format!("http://localhost{path}")
    } else {
        path.to_owned()
    };
    let mut request = Request::get(uri).header("x-user", "ada");
    if !kind.is_multiplexed() {
        request = request.header("host", "localhost");
    }
    request.body(Empty::new()).unwrap()
}

impl Client {
    /// A connection with small buffers.
    pub(crate) async fn connect<S, B>(kind: Kind, service: S) -> Self
    where
        S: tower_service::Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        Self::connect_through(kind, service, Sizes::SMALL, |io| io).await
    }

    /// A connection through a link of the test's.
    pub(crate) async fn connect_through<S, B, L>(
        kind: Kind,
        service: S,
        sizes: Sizes,
        link: impl FnOnce(DuplexStream) -> L,
    ) -> Self
    where
        S: tower_service::Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
        L: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        Self::connect_guarding(kind, Guarded::Socket, service, sizes, link, |io| io).await
    }

    /// The same, with the server's socket as the test wants it, and the guard where it wants it.
    pub(crate) async fn connect_guarding<S, B, L, O>(
        kind: Kind,
        guarded: Guarded,
        service: S,
        sizes: Sizes,
        link: impl FnOnce(DuplexStream) -> L,
        socket: impl FnOnce(DuplexStream) -> O,
    ) -> Self
    where
        O: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        S: tower_service::Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
        L: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (near, far) = duplex(sizes.transport);
        let (near, far) = (link(near), socket(far));
        if kind.is_tls() {
            let server = tokio::spawn(async move {
                match guarded {
                    Guarded::Socket => {
                        let guard = ConnectionGuard::new();
                        let io = tls_acceptor().accept(guard.io(far)).await?;
                        guard.serve_connection(io, service).await
                    }
                    Guarded::WhatIsOverIt => {
                        let io = tls_acceptor().accept(far).await?;
                        serve_connection(io, service).await
                    }
                }
            });
            let name = ServerName::try_from("localhost").unwrap();
            let io = tls_connector().connect(name, near).await.unwrap();
            Self::over(kind, io, sizes.window, server).await
        } else {
            let server = tokio::spawn(serve_connection(far, service));
            Self::over(kind, near, sizes.window, server).await
        }
    }

    /// A client at this end of a connection.
    pub(crate) async fn over(
        kind: Kind,
        io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        window: u32,
        server: JoinHandle<Result<(), BoxError>>,
    ) -> Self {
        let io = TokioIo::new(io);
        let mut ends = JoinSet::new();
        let requests = if kind.is_multiplexed() {
            let (requests, connection) = http2::Builder::new(TokioExecutor::new())
                .initial_stream_window_size(window)
                .handshake(io)
                .await
                .unwrap();
            ends.spawn(async move { drop(connection.await) });
            Requests::Multiplexed(requests)
        } else {
            let (requests, connection) = http1::Builder::new()
                .max_buf_size(8192)
                .handshake(io)
                .await
                .unwrap();
            ends.spawn(async move { drop(connection.await) });
            Requests::One(requests)
        };
        Self {
            requests,
            server,
            _ends: ends,
        }
    }

    pub(crate) async fn send(
        &mut self,
        request: Request<Empty<Bytes>>,
    ) -> Result<Response<Incoming>, hyper::Error> {
        match &mut self.requests {
            Requests::One(requests) => requests.send_request(request).await,
            Requests::Multiplexed(requests) => {
                requests.ready().await?;
                requests.send_request(request).await
            }
        }
    }

    /// Asks for the stream of the tests' scope.
    pub(crate) async fn open(&mut self) -> Stream {
        let kind = match self.requests {
            Requests::One(_) => Kind::Http1,
            Requests::Multiplexed(_) => Kind::Http2,
        };
        let response = self.send(request(kind, PATH)).await.unwrap();
        assert_eq!(response.status(), 200);
        Stream::new(response.into_body())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// A stream as a consumer reads it. Dropping it is leaving it.
pub(crate) struct Stream {
    body: Incoming,
    decoder: SseDecoder,
    decoded: VecDeque<SseEvent>,
    grammar: FrameGrammar,
    pub(crate) raw: Vec<u8>,
}

impl Stream {
    pub(crate) fn new(body: Incoming) -> Self {
        Self {
            body,
            decoder: SseDecoder::new(64 << 20),
            decoded: VecDeque::new(),
            grammar: FrameGrammar::new(),
            raw: Vec::new(),
        }
    }

    /// The next bytes; `None` at the end.
    pub(crate) async fn chunk(&mut self) -> Option<Result<Bytes, hyper::Error>> {
        let chunk = self.body.frame().await?.map(|frame| frame.into_data().unwrap());
        if let Ok(chunk) = &chunk {
            self.raw.extend_from_slice(chunk);
        }
        Some(chunk)
    }

    /// The data of the next event; `None` at the end, and an error where there is none.
    pub(crate) async fn next(&mut self) -> Option<Result<String, hyper::Error>> {
        while self.decoded.is_empty() {
            match self.chunk().await? {
                Ok(chunk) => {
                    for event in self.decoder.push(&chunk).unwrap() {
                        self.grammar.check(event.data()).unwrap();
                        self.decoded.push_back(event);
                    }
                }
                Err(error) => return Some(Err(error)),
            }
        }
        self.decoded.pop_front().map(|event| Ok(event.data().to_owned()))
    }

    /// The types of the next `count` events; an error's is its code.
    pub(crate) async fn types(&mut self, count: usize) -> Vec<String> {
        let mut types = Vec::with_capacity(count);
        for _ in 0..count {
            let event = tokio::time::timeout(Duration::from_mins(10), self.next())
                .await
                .expect("an event should have come")
                .expect("the stream should go on")
                .expect("the stream should not break");
            types.push(type_of(&event));
        }
        types
    }

    /// Reads until the stream breaks.
    pub(crate) async fn break_of(&mut self) -> hyper::Error {
        loop {
            match self.next().await {
                Some(Ok(_)) => {}
                Some(Err(error)) => return error,
                None => panic!("a stream that is cut does not end as if it were whole"),
            }
        }
    }
}

struct Tls {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
}

fn tls() -> &'static Tls {
    static TLS: OnceLock<Tls> = OnceLock::new();
    TLS.get_or_init(|| {
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = certified.cert.der().clone();
        let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
        let server = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let client = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Tls {
            acceptor: TlsAcceptor::from(Arc::new(server)),
            connector: TlsConnector::from(Arc::new(client)),
        }
    })
}

pub(crate) fn tls_acceptor() -> TlsAcceptor {
    tls().acceptor.clone()
}

pub(crate) fn tls_connector() -> TlsConnector {
    tls().connector.clone()
}
