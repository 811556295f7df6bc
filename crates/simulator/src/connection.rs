//! One accepted connection: its socket, which can be reset on command, and the loop that serves it.

use std::{
    convert::Infallible,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::Notify,
};

use crate::{serve::serve, shared::Shared};

/// Commands to one connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectionControl {
    reset: AtomicBool,
    vanish: AtomicBool,
    close: Notify,
    go_away: Notify,
}

impl ConnectionControl {
    /// Closes the connection with a TCP RST.
    pub(crate) fn reset(&self) {
        self.reset.store(true, Ordering::Release);
        self.close.notify_one();
    }

    /// Says nothing more on the connection, and does not close it.
    pub(crate) fn vanish(&self) {
        self.vanish.store(true, Ordering::Release);
        self.close.notify_one();
    }

    /// Ends the connection after its open requests: GOAWAY in HTTP/2, `Connection: close` in HTTP/1.1.
    pub(crate) fn go_away(&self) {
        self.go_away.notify_one();
    }
}

/// Serves a connection until it ends.
pub(crate) async fn serve_connection(shared: Arc<Shared>, stream: TcpStream) {
    // Small events must not wait for the acknowledgement of earlier ones.
    let _ = stream.set_nodelay(true);
    let control = Arc::new(ConnectionControl::default());
    let guard = shared.connection_opened(&control);
    let socket = Socket {
        stream: Some(stream),
        shared: Arc::clone(&shared),
        control: Arc::clone(&control),
    };
    let service = service_fn({
        let control = Arc::clone(&control);
        let shared = Arc::clone(&shared);
        move |request: hyper::Request<Incoming>| {
            let (shared, control) = (Arc::clone(&shared), Arc::clone(&control));
            async move { Ok::<_, Infallible>(serve(shared, control, request).await) }
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http2()
        .max_concurrent_streams(shared.settings.max_concurrent_streams);
    let connection = builder.serve_connection(TokioIo::new(socket), service);
    let mut connection = std::pin::pin!(connection);
    loop {
        tokio::select! {
            biased;
            () = control.close.notified() => break,
            () = control.go_away.notified() => connection.as_mut().graceful_shutdown(),
            // How a connection ends is the client's business; there is nobody to tell.
            _ = connection.as_mut() => break,
        }
    }
    drop(guard);
}

/// The socket; when it is dropped after a command to do so, it is reset, or kept open in silence.
struct Socket {
    /// There until it is dropped.
    stream: Option<TcpStream>,
    shared: Arc<Shared>,
    control: Arc<ConnectionControl>,
}

impl Drop for Socket {
    fn drop(&mut self) {
        let Some(stream) = self.stream.take() else {
            return;
        };
        if self.control.vanish.load(Ordering::Acquire) {
            self.shared.keep_in_silence(stream);
        } else if self.control.reset.load(Ordering::Acquire) {
            // A failure leaves an ordinary close, which the peer sees as an end as well.
            let _ = stream.set_zero_linger();
        }
    }
}

impl Socket {
    fn stream(&mut self) -> io::Result<Pin<&mut TcpStream>> {
        let stream = self.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        Ok(Pin::new(stream))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream()?.poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write(context, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(TcpStream::is_write_vectored)
    }
}
