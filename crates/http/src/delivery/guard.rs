//! The guards of one connection, for a host that drives hyper itself.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, Version};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::TokioTimer;
use hyper_util::server::conn::auto;
use hyper_util::service::{TowerToHyperService, TowerToHyperServiceFuture};
use tokio::io::{AsyncRead, AsyncWrite};

use super::body::Multiplexed;
use super::{BoundedAnswer, BoundedBody, BoundedExecutor, BoundedIo, Capability, Connection, Probe};
use crate::serve::HttpService;

/// What hyper and h2 have taken and the socket has not can no longer be merged with what comes, or be recalled.
const BUFFER_BYTES: usize = 16 * 1024;
/// How long a client may take for the head of a request.
pub(crate) const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// A quiet HTTP/2 peer is asked whether it is still there this often, and has so long to answer.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// The guards of one connection, for a host that drives hyper itself: wrap its transport, its service and its executor.
/// [`serve_connection`](crate::serve_connection) does all of it; use that where you can.
///
/// One guard is for one connection. A connection that lacks one of the three is told apart: a gateway with a write
/// timeout aborts its requests and says in diagnostics what is missing.
///
/// ```no_run
/// # use hyper_util::rt::TokioIo;
/// # use krm_stream_http::{ConnectionGuard, Gateway};
/// # async fn accepted(socket: tokio::net::TcpStream, gateway: Gateway) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let guard = ConnectionGuard::new();
/// let io = TokioIo::new(guard.io(socket));
/// guard.builder().serve_connection(io, guard.service(gateway)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ConnectionGuard {
    connection: Arc<Connection>,
    probe: Option<Arc<Probe>>,
}

impl Default for ConnectionGuard {
    fn default() -> Self {
        Self::new()
    }
}

impl ConnectionGuard {
    /// The guards of a new connection.
    pub fn new() -> Self {
        Self {
            connection: Arc::default(),
            probe: None,
        }
    }

    /// Bounds whatever is written on the connection, from its begin. Without it only a gateway's streams bring a bound, which is
    /// that of the other routes too for the rest of the connection's life. The shortest of all counts. Of an answer over HTTP/2 each frame of its body, and of a long one each 64 KiB, must
    /// be taken in this time, or its stream is reset; that needs all three guards. More than a day counts as a day.
    #[must_use]
    pub fn with_write_timeout(self, write_timeout: Duration) -> Self {
        self.connection.bound_all(write_timeout);
        self
    }

    pub(super) fn probing(probe: Arc<Probe>) -> Self {
        Self {
            connection: Arc::default(),
            probe: Some(probe),
        }
    }

    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Guards the transport. Where something with a buffer of its own is spoken over a socket, TLS say, guard the socket and
    /// put the rest over it, since only the socket says what it took:
    ///
    /// ```no_run
    /// # use krm_stream_http::{ConnectionGuard, Gateway};
    /// # async fn accepted(socket: tokio::net::TcpStream, acceptor: tokio_rustls::TlsAcceptor, gateway: Gateway) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// let guard = ConnectionGuard::new();
    /// let io = acceptor.accept(guard.io(socket)).await?;
    /// guard.serve_connection(io, gateway).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Where the TLS stream alone is guarded, a reader that takes a little now and then may live for up to four write
    /// timeouts in place of one. Of two guards, one over the other, the lower one keeps the time; the guards of two sockets each
    /// keep their own.
    pub fn io<I>(&self, io: I) -> BoundedIo<I> {
        BoundedIo::new(io, &self.connection)
    }

    /// Serves the connection, as [`serve_connection`](crate::serve_connection) does, with what was guarded before.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection and drops its streams.
    pub fn serve_connection<I, S>(&self, io: I, service: S) -> crate::Connection
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        S: HttpService,
    {
        crate::Connection::new(self, io, service)
    }

    /// A tower service as hyper wants it. Each request tells the gateway that its connection is guarded.
    pub fn service<S>(&self, service: S) -> BoundedService<S> {
        BoundedService {
            service: TowerToHyperService::new(service),
            connection: Arc::clone(&self.connection),
            probe: self.probe.clone(),
        }
    }

    /// hyper's builder for HTTP/1.1, set as [`builder`](Self::builder) sets it.
    pub(crate) fn http1() -> http1::Builder {
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(BUFFER_BYTES);
        builder
    }

    /// hyper's builder for HTTP/2, set as [`builder`](Self::builder) sets it.
    pub(crate) fn http2(&self) -> http2::Builder<BoundedExecutor> {
        let mut builder = http2::Builder::new(self.executor());
        builder
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .max_send_buf_size(BUFFER_BYTES);
        builder
    }

    /// What runs the streams of an HTTP/2 connection.
    pub fn executor(&self) -> BoundedExecutor {
        BoundedExecutor(Arc::clone(&self.connection))
    }

    /// hyper's builder for either version, with the executor, small buffers, a bound for the head of each request, and
    /// pings where an HTTP/2 peer is quiet. A builder of your own needs `max_buf_size` and `max_send_buf_size` of 16 KiB.
    pub fn builder(&self) -> auto::Builder<BoundedExecutor> {
        let mut builder = auto::Builder::new(self.executor());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(BUFFER_BYTES);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .max_send_buf_size(BUFFER_BYTES);
        builder
    }
}

/// A tower service whose requests say that their connection is guarded, and whose answers can be bounded.
#[derive(Clone, Debug)]
pub struct BoundedService<S> {
    service: TowerToHyperService<S>,
    connection: Arc<Connection>,
    probe: Option<Arc<Probe>>,
}

impl<S, B> hyper::service::Service<Request<Incoming>> for BoundedService<S>
where
    S: tower_service::Service<Request<Incoming>, Response = Response<B>> + Clone,
    B: Body,
{
    type Response = Response<BoundedBody<B>>;
    type Error = S::Error;
    type Future = BoundedAnswer<TowerToHyperServiceFuture<S, Request<Incoming>>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        let version = request.version();
        let slot = self.connection.begin_request(version);
        let stream = (version >= Version::HTTP_2).then(|| Multiplexed {
            connection: Arc::clone(&self.connection),
            slot: Arc::clone(&slot),
        });
        request.extensions_mut().insert(Capability {
            connection: Arc::clone(&self.connection),
            slot,
            is_io_guarded: self.connection.is_io_guarded(),
            probe: self.probe.clone(),
        });
        BoundedAnswer::new(self.service.call(request), stream)
    }
}
