//! Where connections come from.

use std::future::{Ready, ready};
use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

use super::prepare_socket;
use crate::delivery::{BoundedIo, ConnectionGuard};

/// Where connections come from. A `TcpListener` is one; [`handshaking`] makes one that speaks TLS of it.
pub trait Listener: Send + 'static {
    /// What HTTP is spoken on.
    type Io: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    /// What has to happen before HTTP is spoken. It runs beside the accepting of others, for at most 10 s.
    type Handshake: Future<Output = io::Result<Self::Io>> + Send + 'static;
    /// Who is at the other end.
    type Address: Clone + Send + Sync + 'static;

    /// The next connection. `guard` is its own: whoever speaks TLS, or anything else that has a buffer, speaks it over
    /// [`guard.io(socket)`](ConnectionGuard::io), so that it is the socket that bounds delivery. A plain socket needs
    /// nothing.
    ///
    /// # Errors
    /// That of the operating system. The listener is asked again: at once where a single connection failed, otherwise
    /// after a pause, as it may be out of file descriptors.
    ///
    /// # Cancel safety
    /// Dropping the future must lose no connection.
    fn accept(
        &mut self,
        guard: &ConnectionGuard,
    ) -> impl Future<Output = io::Result<(Self::Handshake, Self::Address)>> + Send;
}

impl Listener for TcpListener {
    type Io = TcpStream;
    type Handshake = Ready<io::Result<TcpStream>>;
    type Address = SocketAddr;

    async fn accept(&mut self, _: &ConnectionGuard) -> io::Result<(Self::Handshake, SocketAddr)> {
        let (socket, address) = accept_prepared(self).await?;
        Ok((ready(Ok(socket)), address))
    }
}

async fn accept_prepared(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (socket, address) = TcpListener::accept(listener).await?;
    // A socket that lacks an option is slower, and serves. One that is already gone is found when it is read.
    let _ = prepare_socket(&socket);
    Ok((socket, address))
}

/// A listener whose connections begin with a handshake, TLS say.
#[derive(Debug)]
pub struct Handshaking<F> {
    listener: TcpListener,
    handshake: F,
}

/// Begins each connection of `listener` with a handshake, beside the accepting of others. `handshake` gets the socket in
/// its guard: delivery is bounded as in cleartext, whatever is buffered above.
///
/// ```
/// # async fn listen(acceptor: tokio_rustls::TlsAcceptor, router: axum::Router) -> std::io::Result<()> {
/// use krm_stream_http::{handshaking, serve};
/// use tokio::net::TcpListener;
///
/// let listener = TcpListener::bind("127.0.0.1:8443").await?;
/// // The acceptor's `alpn_protocols` are `h2` and `http/1.1`.
/// serve(handshaking(listener, move |socket| acceptor.accept(socket)), router).await;
/// # Ok(())
/// # }
/// ```
pub const fn handshaking<F>(listener: TcpListener, handshake: F) -> Handshaking<F> {
    Handshaking { listener, handshake }
}

impl<F, H, I> Listener for Handshaking<F>
where
    F: FnMut(BoundedIo<TcpStream>) -> H + Send + 'static,
    H: Future<Output = io::Result<I>> + Send + 'static,
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Io = I;
    type Handshake = H;
    type Address = SocketAddr;

    async fn accept(&mut self, guard: &ConnectionGuard) -> io::Result<(H, SocketAddr)> {
        let (socket, address) = accept_prepared(&self.listener).await?;
        Ok(((self.handshake)(guard.io(socket)), address))
    }
}
