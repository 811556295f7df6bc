//! Connections: HTTP/1.1 and cleartext HTTP/2 on a listener, until the program is told to end.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::admin::Connections;
use crate::routes::Routes;

/// How long a client may take for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// What is written and not taken yet is kept small: it can no longer be merged with what comes.
const BUFFER_BYTES: usize = 16 * 1024;
/// How long a connection may go on after the end was asked for.
const GRACE: Duration = Duration::from_secs(1);
/// The wait after a connection could not be accepted: out of file descriptors, say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves one listener until `end` is true, then lets its connections finish for a moment.
///
/// # Cancel safety
/// Dropping the future closes the listener and all its connections.
pub(crate) async fn serve(
    listener: TcpListener,
    routes: Arc<Routes>,
    counting: Arc<Connections>,
    mut end: watch::Receiver<bool>,
) {
    let builder = builder();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = ended(&mut end) => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let connection = Connection {
                        builder: builder.clone(),
                        routes: Arc::clone(&routes),
                        peer,
                        end: end.clone(),
                    };
                    let open = counting.opened();
                    connections.spawn(async move {
                        connection.serve(stream).await;
                        drop(open);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    let finished = timeout(GRACE, async { while connections.join_next().await.is_some() {} }).await;
    if finished.is_err() {
        tracing::info!(connections = connections.len(), "closing what is still open");
        connections.shutdown().await;
    }
}

struct Connection {
    builder: Builder<TokioExecutor>,
    routes: Arc<Routes>,
    peer: SocketAddr,
    end: watch::Receiver<bool>,
}

impl Connection {
    async fn serve(self, stream: TcpStream) {
        let Self {
            builder,
            routes,
            peer,
            mut end,
        } = self;
        // An event is written as a whole, so waiting for more would only delay it.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY");
        }
        let peer: IpAddr = peer.ip();
        let service = service_fn(move |request: Request<Incoming>| {
            let routes = Arc::clone(&routes);
            async move { Ok::<_, Infallible>(routes.answer(request, peer).await) }
        });
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let ended_by_itself = tokio::select! {
            result = connection.as_mut() => Some(result),
            () = ended(&mut end) => None,
        };
        let result = if let Some(result) = ended_by_itself {
            result
        } else {
            connection.as_mut().graceful_shutdown();
            connection.await
        };
        if let Err(error) = result {
            // A browser that went away, mostly.
            tracing::debug!(error, "a connection ended");
        }
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(BUFFER_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_send_buf_size(BUFFER_BYTES);
    builder
}

/// Resolves when the end is asked for, or can no longer be.
async fn ended(end: &mut watch::Receiver<bool>) {
    let _ = end.wait_for(|end| *end).await;
}
