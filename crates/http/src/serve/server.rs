//! A listener's connections, until the end is asked for.

use std::fmt;
use std::future::{pending, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::Request;
use krm_stream_protocol::{BoxFuture, Diagnosing, Diagnostics};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::task::coop::unconstrained;
use tokio::time::{sleep, timeout};
use tower_service::Service;

use super::{Connection, HttpService, Listener};
use crate::delivery::ConnectionGuard;

/// How long a connection's handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The wait after an error that is the listener's own: out of file descriptors, say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The address of a request's peer, in the extensions of each request that [`serve`] takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress<A = std::net::SocketAddr>(pub A);

/// Serves a listener, over HTTP/1.1 and HTTP/2, so that delivery can be bounded: in place of `axum::serve`.
///
/// `service` is an axum `Router`, a [`Gateway`](crate::Gateway), or any tower service over requests of hyper. Each request
/// has a [`PeerAddress`] among its extensions.
///
/// ```no_run
/// # use krm_stream_http::Gateway;
/// # async fn run(gateway: Gateway) -> std::io::Result<()> {
/// use std::time::Duration;
///
/// let router = axum::Router::new().route_service("/resource-stream/v1", gateway);
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
/// # let the_end_is_asked_for = std::future::pending();
/// krm_stream_http::serve(listener, router)
///     .with_graceful_shutdown(the_end_is_asked_for, Duration::from_secs(10))
///     .await;
/// # Ok(())
/// # }
/// ```
///
/// A client has 10 s for a handshake and for the head of each request; an HTTP/2 connection without streams is closed
/// after two minutes, and one whose peer does not answer a ping after 50 s.
pub fn serve<L: Listener, S>(listener: L, service: S) -> Serve<L, S> {
    Serve {
        listener,
        service,
        end: Box::pin(pending()),
        grace: Duration::ZERO,
        write_timeout: None,
        diagnosing: Diagnosing::default(),
    }
}

/// A listener to be served: await it.
#[must_use = "a server does nothing unless it is awaited"]
pub struct Serve<L, S> {
    listener: L,
    service: S,
    end: BoxFuture<'static, ()>,
    grace: Duration,
    write_timeout: Option<Duration>,
    diagnosing: Diagnosing,
}

impl<L, S> Serve<L, S> {
    /// Bounds whatever is written, as a gateway's `write_timeout` bounds its streams: a client that asks another route and
    /// reads nothing is cut as well, its connection over HTTP/1.1, its stream over HTTP/2. Default: only connections that have
    /// or had a gateway's bounded stream are, by its `write_timeout`. More than a day counts as a day.
    ///
    /// A gateway without a `write_timeout` of its own is bounded as other routes are: its stalled stream is cut without a
    /// `delivery_timeout` being observed.
    pub fn with_write_timeout(mut self, write_timeout: Duration) -> Self {
        self.write_timeout = Some(write_timeout);
        self
    }

    /// Ends when `end` resolves: the listener is closed, clients of HTTP/2 get GOAWAY, answers of HTTP/1.1 finish, and what
    /// is still open after `grace` is dropped. Streams do not end by themselves: let `end` tell the gateway.
    pub fn with_graceful_shutdown(
        mut self,
        end: impl Future<Output = ()> + Send + 'static,
        grace: Duration,
    ) -> Self {
        self.end = Box::pin(end);
        self.grace = grace;
        self
    }

    /// Who is told why a connection could not be accepted.
    pub fn with_diagnostics(mut self, diagnostics: Arc<dyn Diagnostics>) -> Self {
        self.diagnosing = Diagnosing::with(diagnostics);
        self
    }
}

impl<L, S> IntoFuture for Serve<L, S>
where
    L: Listener,
    S: HttpService,
{
    type Output = ();
    type IntoFuture = BoxFuture<'static, ()>;

    /// # Cancel safety
    /// Dropping the future closes the listener and its connections.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl<L, S> Serve<L, S>
where
    L: Listener,
    S: HttpService,
{
    async fn run(self) {
        let Self {
            mut listener,
            service,
            mut end,
            grace,
            write_timeout,
            diagnosing,
        } = self;
        let (ending, ended) = watch::channel(());
        let mut connections = JoinSet::new();
        loop {
            let guard = match write_timeout {
                Some(write_timeout) => ConnectionGuard::new().with_write_timeout(write_timeout),
                None => ConnectionGuard::new(),
            };
            tokio::select! {
                biased;
                () = &mut end => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                accepted = listener.accept(&guard) => match accepted {
                    Ok((handshake, address)) => {
                        let service = WithPeer { service: service.clone(), peer: PeerAddress(address) };
                        connections.spawn(serve_accepted(guard, handshake, service, ended.clone()));
                    }
                    Err(error) => {
                        diagnosing.report("accepting a connection", None, &error);
                        if !is_of_one_connection(&error) {
                            sleep(ACCEPT_PAUSE).await;
                        }
                    }
                },
            }
        }
        drop(listener);
        drop(ending);
        // One that is not awaited any more is aborted with the set.
        let _ = timeout(grace, async { while connections.join_next().await.is_some() {} }).await;
    }
}

/// Whether the listener is well and a connection went before it was accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}

async fn serve_accepted<H, I, S>(
    guard: ConnectionGuard,
    handshake: H,
    service: S,
    mut ended: watch::Receiver<()>,
) where
    H: Future<Output = io::Result<I>>,
    I: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    S: HttpService,
{
    let io = tokio::select! {
        shaken = timeout(HANDSHAKE_TIMEOUT, handshake) => match shaken {
            Ok(Ok(io)) => io,
            // A port scan, a client that does not trust the certificate: nothing to serve.
            Ok(Err(_)) | Err(_) => return,
        },
        _ = ended.changed() => return,
    };
    let mut connection = pin!(Connection::new(&guard, io, service));
    // How a connection ended is of no interest: a browser that left, mostly.
    if or_told(connection.as_mut(), ended).await.is_some() {
        return;
    }
    connection.graceful_shutdown();
    let _ = connection.await;
}

/// Runs a connection until it is over, or until the end is asked for: `None`.
///
/// A connection is polled for each event that it sends. To poll a channel that all connections share as often would take its
/// lock each time; once it knows this task, a look at its state is enough.
async fn or_told<F: Future>(
    mut connection: Pin<&mut F>,
    mut ended: watch::Receiver<()>,
) -> Option<F::Output> {
    let state = ended.clone();
    // Else a task that has used up what it may do at once would count as known, and not be.
    let mut told = pin!(unconstrained(ended.changed()));
    let mut known: Option<Waker> = None;
    poll_fn(|cx| {
        if let Poll::Ready(output) = connection.as_mut().poll(cx) {
            return Poll::Ready(Some(output));
        }
        let is_known = known.as_ref().is_some_and(|known| known.will_wake(cx.waker()));
        if is_known && matches!(state.has_changed(), Ok(false)) {
            return Poll::Pending;
        }
        known = Some(cx.waker().clone());
        told.as_mut().poll(cx).map(|_| None)
    })
    .await
}

/// Adds the peer's address to each request.
#[derive(Clone)]
struct WithPeer<S, A> {
    service: S,
    peer: PeerAddress<A>,
}

impl<S, A, B> Service<Request<B>> for WithPeer<S, A>
where
    S: Service<Request<B>>,
    A: Clone + Send + Sync + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        request.extensions_mut().insert(self.peer.clone());
        self.service.call(request)
    }
}

impl<L: fmt::Debug, S> fmt::Debug for Serve<L, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serve")
            .field("listener", &self.listener)
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}
