//! A host's question to its own wiring: does bounded delivery get through?

mod client;
mod probe;
mod problem;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body::Body;
use hyper::body::Incoming;
use tokio::time::timeout;

use client::{Answer, Client};
pub(crate) use probe::{CheckChunks, Probe};
pub use problem::DeliveryProblem;

use crate::serve::BoxError;

/// Checks that a gateway with a write timeout is mounted so that the timeout works: that no middleware between the
/// connection and the gateway takes the connection's capability away, or collects, compresses, runs ahead of or ends what
/// the gateway sends.
///
/// For a host's own tests. It sends requests of its own, over connections in memory and over both versions of HTTP; the
/// gateway recognises them and answers with a stream that the check controls. No resolver, authorizer or upstream is
/// asked. With a paused tokio clock it takes no time at all, however long it is told to be quiet:
///
/// ```
/// # use std::time::Duration;
/// # use krm_stream_http::{DeliveryCheck, Gateway};
/// # async fn check(gateway: Gateway) -> Result<(), Box<dyn std::error::Error>> {
/// // `app` is what the program gives to `serve`, middleware included.
/// let app = axum::Router::new().route_service("/resource-stream/v1", gateway);
/// let request = http::Request::get("/resource-stream/v1").header("x-user", "ada").body(())?;
/// DeliveryCheck::new(request)
///     .quiet_for(Duration::from_secs(600))
///     .run(app)
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a check does nothing until it is run"]
pub struct DeliveryCheck {
    request: Request<()>,
    quiet: Duration,
}

/// How long the parts of an in-memory connection may take for what they can do at once.
const PATIENCE: Duration = Duration::from_secs(5);
/// The write timeout of the check's own streams.
pub(crate) const CHECK_WRITE_TIMEOUT: Duration = Duration::from_secs(1);
/// Longer than a timeout that a host forgot is likely to be noticed in.
const QUIET: Duration = Duration::from_millis(500);
/// A piece and a bit of the next.
const LARGE_CHUNK: usize = 100 * 1024;

impl DeliveryCheck {
    /// A check by this request: its path must be the gateway's, its headers must satisfy the middleware in front of it.
    pub fn new(request: Request<()>) -> Self {
        Self {
            request,
            quiet: QUIET,
        }
    }

    /// How long a stream of the check says nothing and must go on afterwards. Default 500 ms. Choose it longer than any
    /// timeout of yours; heartbeats do not help against a timeout of the whole answer.
    pub fn quiet_for(mut self, quiet: Duration) -> Self {
        self.quiet = quiet;
        self
    }

    /// Runs the check on a tower service: an axum `Router`, say, or the gateway with its middleware.
    ///
    /// # Errors
    /// The first [`DeliveryProblem`] found.
    ///
    /// # Cancel safety
    /// Dropping the future ends the check's streams.
    pub async fn run<S, B>(self, service: S) -> Result<(), DeliveryProblem>
    where
        S: tower_service::Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError> + Send,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError> + Send,
    {
        for version in [Version::HTTP_11, Version::HTTP_2] {
            let probe = Arc::<Probe>::default();
            let mut client = Client::connect(&probe, service.clone(), version)
                .await
                .map_err(DeliveryProblem::Aborted)?;
            let mut answer = self.ask(&mut client, &probe).await?;
            self.check_reader(&mut answer, &probe).await?;
            drop((answer, client));
            if timeout(PATIENCE, probe.dropped()).await.is_err() {
                return Err(DeliveryProblem::NotReleased);
            }
        }
        let probe = Arc::<Probe>::default();
        let mut client = Client::connect(&probe, service, Version::HTTP_2)
            .await
            .map_err(DeliveryProblem::Aborted)?;
        let answer = self.ask(&mut client, &probe).await?;
        check_staller(&probe).await?;
        drop(answer);
        Ok(())
    }

    /// Sends the request and looks at the head of the answer.
    async fn ask(&self, client: &mut Client, probe: &Probe) -> Result<Answer, DeliveryProblem> {
        let sent = timeout(PATIENCE, client.send(&self.request))
            .await
            .map_err(|_| DeliveryProblem::NoHead)?;
        let response = match sent {
            Ok(response) => response,
            Err(_) if probe.is_reached() => return Err(DeliveryProblem::Ended),
            Err(error) => return Err(DeliveryProblem::Aborted(error)),
        };
        problem::of_head(&response, probe)?;
        Ok(Answer::new(response))
    }

    /// Somebody who reads gets everything, soon, and unchanged.
    async fn check_reader(&self, answer: &mut Answer, probe: &Probe) -> Result<(), DeliveryProblem> {
        for (wait, bytes) in [
            (Duration::ZERO, 200),
            (self.quiet, 100),
            (Duration::ZERO, LARGE_CHUNK),
        ] {
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = answer.read(1) => return Err(DeliveryProblem::Ended),
            }
            let chunk = chunk(bytes);
            probe.send(chunk.clone());
            let came = timeout(PATIENCE, answer.read(bytes))
                .await
                .map_err(|_| DeliveryProblem::Held)?
                .ok_or(DeliveryProblem::Ended)?;
            if came != chunk {
                return Err(DeliveryProblem::Altered);
            }
            if timeout(PATIENCE, probe.all_taken()).await.is_err() {
                return Err(DeliveryProblem::NeverTaken);
            }
        }
        Ok(())
    }
}

/// A stream that nobody reads is waited with, and then cut.
async fn check_staller(probe: &Probe) -> Result<(), DeliveryProblem> {
    probe.send(chunk(LARGE_CHUNK));
    if timeout(CHECK_WRITE_TIMEOUT / 2, probe.all_taken()).await.is_ok() {
        return Err(DeliveryProblem::RunsAhead);
    }
    timeout(CHECK_WRITE_TIMEOUT + PATIENCE, probe.dropped())
        .await
        .map_err(|_| DeliveryProblem::NotCut)
}

/// Comments of an event stream.
fn chunk(bytes: usize) -> Bytes {
    let line = b": krm-stream checks its delivery\n\n";
    line.iter().copied().cycle().take(bytes).collect()
}
