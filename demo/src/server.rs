//! Listening: connections that are counted, by TLS where a certificate was given, until the program is told to end.

use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use krm_stream_http::{ConnectionGuard, Listener, handshaking, serve};
use krm_stream_protocol::{BoxFuture, Diagnostics};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tower_service::Service;

use crate::admin::{Connections, OpenConnection};
use crate::diagnostics::Log;
use crate::routes::{Body, Routes};

/// What one listener serves, and for how long.
pub(crate) struct Server {
    pub(crate) routes: Arc<Routes>,
    pub(crate) counting: Arc<Connections>,
    /// Whether the end is asked for.
    pub(crate) end: watch::Receiver<bool>,
    /// How long connections may go on after that.
    pub(crate) grace: Duration,
    /// How long a client may take for each chunk that it is sent.
    pub(crate) write_timeout: Option<Duration>,
}

impl Server {
    /// Serves one listener until the end is asked for, then lets its connections finish.
    ///
    /// # Cancel safety
    /// Dropping the future closes the listener and all its connections.
    pub(crate) async fn serve(self, listener: TcpListener, tls: Option<TlsAcceptor>) {
        match tls {
            Some(acceptor) => {
                self.run(handshaking(listener, move |socket| acceptor.accept(socket)))
                    .await;
            }
            None => self.run(listener).await,
        }
    }

    async fn run<L: Listener>(self, listener: L) {
        let Self {
            routes,
            counting,
            mut end,
            grace,
            write_timeout,
        } = self;
        let log: Arc<dyn Diagnostics> = Arc::new(Log);
        let ended = async move {
            let _ = end.wait_for(|end| *end).await;
        };
        let mut server = serve(Counting { listener, counting }, Answering(routes))
            .with_graceful_shutdown(ended, grace)
            .with_diagnostics(log);
        if let Some(write_timeout) = write_timeout {
            server = server.with_write_timeout(write_timeout);
        }
        server.await;
    }
}

/// The routes as a service.
#[derive(Clone)]
struct Answering(Arc<Routes>);

impl Service<Request<Incoming>> for Answering {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let routes = Arc::clone(&self.0);
        Box::pin(async move { Ok(routes.answer(request).await) })
    }
}

/// A listener whose connections are counted.
struct Counting<L> {
    listener: L,
    counting: Arc<Connections>,
}

impl<L: Listener> Listener for Counting<L> {
    type Io = Counted<L::Io>;
    type Handshake = BoxFuture<'static, io::Result<Counted<L::Io>>>;
    type Address = L::Address;

    async fn accept(&mut self, guard: &ConnectionGuard) -> io::Result<(Self::Handshake, L::Address)> {
        let (handshake, address) = self.listener.accept(guard).await?;
        let open = self.counting.opened();
        let counted = async move {
            let io = handshake.await.inspect_err(crate::tls::handshake_failed)?;
            Ok(Counted { io, _open: open })
        };
        Ok((Box::pin(counted), address))
    }
}

/// A connection that is open as long as this lives.
struct Counted<I> {
    io: I,
    _open: OpenConnection,
}

impl<I: AsyncRead + Unpin> AsyncRead for Counted<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Counted<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
