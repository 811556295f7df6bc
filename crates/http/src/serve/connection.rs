//! One connection.

use std::error::Error;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Sleep, sleep_until};

use super::HttpService;
use super::version::{FirstBytes, Fresh, Http};
use crate::delivery::{self, ConnectionGuard, HEAD_TIMEOUT, Work};

/// Any error.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// An HTTP/2 connection without streams is told to go after this long, and has to go as soon again.
const IDLE_TIMEOUT: Duration = Duration::from_mins(2);

/// How long a connection that is told to go before its first request may take for it.
const LAST_HEAD_TIMEOUT: Duration = Duration::from_millis(500);

/// Serves one connection, over HTTP/1.1 or HTTP/2 as its client chooses, so that delivery can be bounded: for a host's own
/// accept loop. `io` is a socket; see [`prepare_socket`](crate::prepare_socket). For TLS over one, guard the socket:
/// [`ConnectionGuard::io`].
///
/// A client has 10 s for the head of each request, and an HTTP/2 connection without streams is closed after two minutes.
///
/// The future must be polled on a tokio runtime with a timer. Its error is the connection's end: a client that went away,
/// mostly.
///
/// # Cancel safety
/// Dropping the future closes the connection and drops its streams.
pub fn serve_connection<I, S>(io: I, service: S) -> Connection
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: HttpService,
{
    Connection::new(&ConnectionGuard::new(), io, service)
}

/// A connection that is being served.
#[must_use = "a connection does nothing unless it is polled"]
pub struct Connection {
    http: Version,
    state: Arc<delivery::Connection>,
    patience: Patience,
}

/// What is known of a connection.
enum Version {
    /// Nothing yet. Its first bytes tell: `Known`. Told to go: `Gone`.
    Unknown(Box<dyn Fresh + Send>),
    Known(Pin<Box<dyn Http + Send>>),
    /// It was told to go before it had said anything.
    Gone,
}

impl Version {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        loop {
            match self {
                Self::Unknown(fresh) => *self = Self::Known(ready!(fresh.poll_version(cx))?),
                Self::Known(http) => return http.as_mut().poll_end(cx),
                Self::Gone => {
                    let error = io::Error::new(io::ErrorKind::Interrupted, "told to go before a request");
                    return Poll::Ready(Err(error.into()));
                }
            }
        }
    }

    fn graceful_shutdown(&mut self) {
        match self {
            Self::Unknown(_) => *self = Self::Gone,
            Self::Known(http) => http.as_mut().graceful_shutdown(),
            Self::Gone => {}
        }
    }
}

impl Connection {
    pub(crate) fn new<I, S>(guard: &ConnectionGuard, io: I, service: S) -> Self
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        S: HttpService,
    {
        Self {
            http: Version::Unknown(Box::new(FirstBytes::new(guard, io, service))),
            state: Arc::clone(guard.connection()),
            patience: Patience::Head(Box::pin(sleep_until(Instant::now() + HEAD_TIMEOUT))),
        }
    }

    /// Lets what is under way finish and takes no new request: over HTTP/2 the client gets GOAWAY, over HTTP/1.1 the
    /// connection closes after the answer. One that has not sent a whole head has half a second for it. Poll the
    /// connection on.
    pub fn graceful_shutdown(&mut self) {
        self.http.graceful_shutdown();
        if let Patience::Head(sleep) = &mut self.patience {
            sleep.as_mut().reset(Instant::now() + LAST_HEAD_TIMEOUT);
        }
    }
}

/// What a connection without anything to do is waited with.
enum Patience {
    /// For its first request.
    Head(Pin<Box<Sleep>>),
    /// It has something to do.
    Busy,
    /// It speaks HTTP/1.1: hyper watches it from now on.
    Watched,
    /// It has no stream.
    Idle(Pin<Box<Sleep>>),
    /// It was told to go.
    Leaving(Pin<Box<Sleep>>),
}

impl Future for Connection {
    type Output = Result<(), BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            if let Poll::Ready(result) = this.http.poll(cx) {
                return Poll::Ready(result);
            }
            if let Patience::Watched = this.patience {
                return Poll::Pending;
            }
            match this.patience.poll(this.state.work(cx.waker()), cx) {
                Wait::GoOn => return Poll::Pending,
                Wait::TellToGo => this.http.graceful_shutdown(),
                Wait::End => {
                    let error =
                        io::Error::new(io::ErrorKind::TimedOut, "the client asked for nothing in time");
                    return Poll::Ready(Err(error.into()));
                }
            }
        }
    }
}

enum Wait {
    GoOn,
    TellToGo,
    End,
}

impl Patience {
    fn poll(&mut self, work: Work, cx: &mut Context<'_>) -> Wait {
        match (&mut *self, work) {
            (Self::Head(_) | Self::Busy | Self::Idle(_), Work::Multiplexed { open: 1.. }) => {
                *self = Self::Busy;
                Wait::GoOn
            }
            (Self::Head(_) | Self::Busy | Self::Idle(_), Work::OneByOne) => {
                *self = Self::Watched;
                Wait::GoOn
            }
            (Self::Head(_) | Self::Busy, Work::Multiplexed { open: 0 }) => {
                *self = Self::Idle(wait(IDLE_TIMEOUT, cx));
                Wait::GoOn
            }
            (Self::Head(sleep), Work::None) | (Self::Leaving(sleep), Work::Multiplexed { open: 0 }) => {
                match sleep.as_mut().poll(cx) {
                    Poll::Pending => Wait::GoOn,
                    Poll::Ready(()) => Wait::End,
                }
            }
            (Self::Idle(sleep), Work::Multiplexed { open: 0 }) => match sleep.as_mut().poll(cx) {
                Poll::Pending => Wait::GoOn,
                Poll::Ready(()) => {
                    *self = Self::Leaving(wait(IDLE_TIMEOUT, cx));
                    Wait::TellToGo
                }
            },
            // A request that crossed the notice is served.
            (Self::Leaving(_), Work::OneByOne | Work::Multiplexed { open: 1.. })
            | (Self::Watched, Work::OneByOne | Work::Multiplexed { .. })
            // A connection does not forget that it had a request.
            | (Self::Busy | Self::Watched | Self::Idle(_) | Self::Leaving(_), Work::None) => Wait::GoOn,
        }
    }
}

/// A timer that wakes this task.
fn wait(time: Duration, cx: &mut Context<'_>) -> Pin<Box<Sleep>> {
    let mut sleep = Box::pin(sleep_until(Instant::now() + time));
    let _ = sleep.as_mut().poll(cx);
    sleep
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
