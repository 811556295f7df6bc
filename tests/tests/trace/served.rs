//! A gateway that is served over HTTP as the demo serves its own, and all that it says.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use krm_stream_http::Gateway;
use krm_stream_metrics::{MetricsObserver, Registry, encode};
use krm_stream_protocol::{
    AllowAll, BoxFuture, Client, ClientFor, Observation, Observer, Partition, Principal, StreamError, Target,
};
use krm_stream_tests::{ConsumerClient, GatewayUnderTest, ScriptedUpstream};
use krm_stream_upstream_kube::{KubeUpstream, SubjectAccessReviewAuthorizer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::canaries::Written;

/// Whose identity the upstream has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// The gateway's, after a review of each caller.
    Shared,
    /// Each caller's.
    PerCaller,
    /// Each caller's, for one stream.
    Isolated,
}

/// A gateway on a port of its own; it ends with this value.
pub(crate) struct Served {
    address: SocketAddr,
    gateway: Gateway,
    metrics: Arc<Metrics>,
    accepting: JoinHandle<()>,
}

/// The metrics and the registry that shows them.
pub(crate) struct Metrics {
    observer: MetricsObserver,
    registry: Registry,
    written: Written,
}

impl Observer for Metrics {
    fn observe(&self, observation: &Observation) {
        self.observer.observe(observation);
        self.written.observe(observation);
    }
}

struct Clients {
    upstream: KubeUpstream,
    sharing: Sharing,
}

impl ClientFor for Clients {
    fn client_for<'a>(
        &'a self,
        _: &'a Target,
        principal: &'a Principal,
    ) -> BoxFuture<'a, Result<Client, StreamError>> {
        let as_caller = || {
            let upstream = self.upstream.acting_as(principal.subject());
            upstream.map_err(|_| StreamError::unauthenticated("you cannot be acted as"))
        };
        let client = match self.sharing {
            Sharing::Shared => Ok((self.upstream.clone(), Partition::shared("tests"))),
            Sharing::PerCaller => as_caller().map(|upstream| (upstream, Partition::per_caller())),
            Sharing::Isolated => as_caller().map(|upstream| (upstream, Partition::Isolated)),
        };
        let client = client.map(|(upstream, partition)| Client {
            upstream: Arc::new(upstream),
            partition,
        });
        Box::pin(std::future::ready(client))
    }
}

impl Served {
    /// Serves; all that the gateway tells its host goes to `written`.
    pub(crate) async fn start(upstream: KubeUpstream, sharing: Sharing, written: &Written) -> Self {
        let mut registry = Registry::default();
        let metrics = Arc::new(Metrics {
            observer: MetricsObserver::new(&mut registry),
            registry,
            written: written.clone(),
        });
        let (unused, _) = ScriptedUpstream::new();
        let diagnostics = Arc::new(written.clone());
        let builder = GatewayUnderTest::builder(unused, Partition::per_caller())
            .client_for(Clients {
                upstream: upstream.clone(),
                sharing,
            })
            .observer(metrics.clone())
            .diagnostics(diagnostics.clone());
        let builder = match sharing {
            Sharing::Shared => builder.authorizer(
                SubjectAccessReviewAuthorizer::new(Target::default(), upstream).with_diagnostics(diagnostics),
            ),
            Sharing::PerCaller | Sharing::Isolated => {
                builder.authorizer(AllowAll::where_upstream_acts_as_caller())
            }
        };
        let gateway = GatewayUnderTest::build(builder).gateway().clone();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepting = tokio::spawn(accept(listener, gateway.clone()));
        Self {
            address,
            gateway,
            metrics,
            accepting,
        }
    }

    /// Opens a stream over HTTP/1.1, with a credential of a browser's own.
    pub(crate) async fn open(&self, user: &str, query: &str) -> ConsumerClient {
        let address = format!("http://{}/resource-stream/v1?{query}", self.address);
        let headers = [
            ("x-user", user),
            ("authorization", "Bearer canary-of-the-browser"),
            ("cookie", "session=canary-of-the-browser"),
        ];
        ConsumerClient::open(&address.parse().unwrap(), &headers)
            .await
            .unwrap()
    }

    /// Opens a stream over HTTP/2, and reads until `part` came.
    pub(crate) async fn read_http2(&self, user: &str, query: &str, part: &str) -> String {
        let socket = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket))
                .await
                .unwrap();
        let connection = tokio::spawn(connection);
        let request = http::Request::get(format!("http://{}/resource-stream/v1?{query}", self.address))
            .header("x-user", user)
            .body(Empty::<Bytes>::new())
            .unwrap();
        let mut body = sender.send_request(request).await.unwrap().into_body();
        let mut text = String::new();
        while !text.contains(part) {
            let frame = body.frame().await.unwrap().unwrap();
            text += &String::from_utf8_lossy(frame.data_ref().unwrap());
        }
        connection.abort();
        text
    }

    /// The metrics as a scraper gets them, and how everything shows itself.
    pub(crate) fn shown(&self) -> String {
        let metrics = encode(&self.metrics.registry).unwrap();
        format!("{metrics}\n{:?}\n{:#?}", self.gateway, self.metrics.observer)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, gateway: Gateway) {
    while let Ok((socket, _)) = listener.accept().await {
        let service = TowerToHyperService::new(gateway.clone());
        tokio::spawn(async move {
            let server = auto::Builder::new(TokioExecutor::new());
            let _ = server.serve_connection(TokioIo::new(socket), service).await;
        });
    }
}
