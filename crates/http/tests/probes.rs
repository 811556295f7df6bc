//! Clients that vanish without a word leave nothing: no task, no file descriptor, no stream. In a process of its own,
//! since it counts what the process has.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use krm_stream_http::{Gateway, ResolveError};
use krm_stream_protocol::{
    AllowAll, BoxFuture, Client, ClientFor, GrantNamed, Partition, Principal, ResourceRule, ScopePolicy,
    StreamError, Subject, Target,
};
use krm_stream_simulator::Simulator;
use krm_stream_upstream_kube::{KubeUpstream, kube::Config};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::time::Instant;

struct OneCluster(KubeUpstream);

impl ClientFor for OneCluster {
    fn client_for<'a>(
        &'a self,
        _: &'a Target,
        _: &'a Principal,
    ) -> BoxFuture<'a, Result<Client, StreamError>> {
        let client = Client {
            upstream: Arc::new(self.0.clone()),
            partition: Partition::Isolated,
        };
        Box::pin(std::future::ready(Ok(client)))
    }
}

fn gateway(simulator: &Simulator) -> Gateway {
    let config = Config::new(simulator.url().parse().unwrap());
    Gateway::builder()
        .resolver(|_: &http::request::Parts| -> Result<Principal, ResolveError> {
            Ok(Principal::new(Subject::new("ada")?))
        })
        .scope_policy(
            ScopePolicy::deny_all()
                .allow_target(Target::default())
                .allow(ResourceRule::namespaced("", "configmaps")),
        )
        .authorizer(AllowAll::where_upstream_acts_as_caller())
        .client_for(OneCluster(KubeUpstream::from_config(config).unwrap()))
        .projection_policy(GrantNamed::default())
        .heartbeat_interval(Duration::from_secs(1))
        .write_timeout(Duration::from_secs(30))
        .build()
        .unwrap()
}

/// How much of a stream a client sees before it is gone.
#[derive(Clone, Copy, Debug)]
enum Until {
    Asked,
    Headers,
    Snapshot,
    MiddleOfALargeEvent,
}

/// Asks for a stream, and resets the connection.
async fn probe(address: SocketAddr, until: Until) {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let name = match until {
        Until::MiddleOfALargeEvent => "large",
        Until::Asked | Until::Headers | Until::Snapshot => "small",
    };
    let request = format!(
        "GET /resource-stream/v1?version=v1&resource=configmaps&namespace=app&name={name} HTTP/1.1\r\nhost: localhost\r\n\r\n"
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let wanted: &[u8] = match until {
        Until::Asked => b"",
        Until::Headers => b"\r\n\r\n",
        Until::Snapshot => b"\"synced\"",
        Until::MiddleOfALargeEvent => b"xxxxxxxx",
    };
    let mut seen = Vec::new();
    while !wanted.is_empty() && !seen.windows(wanted.len()).any(|window| window == wanted) {
        assert_ne!(socket.read_buf(&mut seen).await.unwrap(), 0);
    }
    socket.set_zero_linger().unwrap();
}

fn file_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_clients_that_reset_their_connections_leave_nothing() {
    let simulator = Simulator::start().await.unwrap();
    for (name, size) in [("small", 10), ("large", 1 << 20)] {
        let object = json!({"metadata": {"name": name, "namespace": "app"}, "data": {"k": "x".repeat(size)}});
        simulator.create("configmaps", object).unwrap();
    }
    let gateway = gateway(&simulator);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = Router::new().route_service("/resource-stream/v1", gateway.clone());
    let server = tokio::spawn(krm_stream_http::serve(listener, app).into_future());

    let untils = [
        Until::Asked,
        Until::Headers,
        Until::Snapshot,
        Until::MiddleOfALargeEvent,
    ];
    // The first ones open what stays: connections to the API server among it.
    for until in untils {
        probe(address, until).await;
    }
    settled(&gateway, &simulator, usize::MAX, usize::MAX).await;
    let (tasks, files) = (Handle::current().metrics().num_alive_tasks(), file_descriptors());
    for until in untils.iter().cycle().take(500) {
        probe(address, *until).await;
    }
    // Idle connections to the API server may be a few more than before.
    settled(&gateway, &simulator, tasks + 20, files + 20).await;
    server.abort();
}

/// Waits, at most some heartbeats, until nothing is left.
async fn settled(gateway: &Gateway, simulator: &Simulator, tasks: usize, files: usize) {
    let deadline = Instant::now() + Duration::from_secs(15);
    loop {
        let left = (
            gateway.feeds().count(),
            simulator.counts().open_watches,
            Handle::current()
                .metrics()
                .num_alive_tasks()
                .saturating_sub(tasks),
            file_descriptors().saturating_sub(files),
        );
        if left == (0, 0, 0, 0) {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "feeds, watches, tasks, files left: {left:?}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
