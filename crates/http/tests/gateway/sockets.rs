//! The gateway in hyper and in axum, over real sockets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use krm_stream_http::Gateway;
use krm_stream_protocol::WatchEvent;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tower::Service as _;

use super::support::{
    Connection, QUERY, Recorder, ScriptedUpstream, Seam, SocketStream, builder, config_map, eventually,
};

struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn in_hyper(gateway: Gateway) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let service = TowerToHyperService::new(gateway.clone());
            tokio::spawn(async move {
                let server = auto::Builder::new(TokioExecutor::new());
                let _ = server.serve_connection(TokioIo::new(socket), service).await;
            });
        }
    });
    Server { address, task }
}

async fn in_axum(gateway: Gateway) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = Router::new().route_service("/resource-stream/v1", gateway);
    let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    Server { address, task }
}

fn request(method: &str) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(format!("/resource-stream/v1?{QUERY}"))
        .header("host", "localhost")
        .header("x-user", "ada")
        .body(Full::default())
        .unwrap()
}

fn http2_request() -> Request<Full<Bytes>> {
    Request::get(format!("http://localhost/resource-stream/v1?{QUERY}"))
        .header("x-user", "ada")
        .body(Full::default())
        .unwrap()
}

fn has_the_headers_of_a_stream(headers: &HeaderMap) {
    let get = |name: &str| headers.get(name).map(|value| value.to_str().unwrap());
    assert_eq!(get("content-type"), Some("text/event-stream"));
    assert_eq!(get("x-krm-stream-protocol"), Some("1"));
    assert_eq!(get("cache-control"), Some("no-cache, no-transform"));
    assert_eq!(get("x-accel-buffering"), Some("no"));
    assert_eq!(get("connection"), None);
    assert_eq!(get("content-length"), None);
}

/// The headers come while the resolver is still at it.
async fn sends_headers_at_once(server: impl AsyncFnOnce(Gateway) -> Server) {
    let (upstream, _script) = ScriptedUpstream::new();
    let gateway = builder(&upstream)
        .resolver(Seam::hangs())
        .heartbeat_interval(Duration::from_millis(50))
        .build()
        .unwrap();
    let server = server(gateway).await;
    let mut http1 = SocketStream::http1(server.address, request("GET")).await;
    has_the_headers_of_a_stream(http1.response.headers());
    let heartbeat = http1
        .response
        .frame()
        .await
        .unwrap()
        .unwrap()
        .into_data()
        .unwrap();
    assert!(heartbeat.starts_with(b": heartbeat\n\n"));
    assert_eq!(
        SocketStream::http1(server.address, request("DELETE"))
            .await
            .response
            .status(),
        405
    );
}

#[tokio::test]
async fn in_hyper_headers_are_sent_at_once() {
    sends_headers_at_once(in_hyper).await;
}

#[tokio::test]
async fn in_axum_headers_are_sent_at_once() {
    sends_headers_at_once(in_axum).await;
}

/// A stream of each kind is read; whoever closes the connection frees all of it, though the stream is quiet.
async fn streams_until_the_client_leaves(server: impl AsyncFnOnce(Gateway) -> Server) {
    let (upstream, mut script) = ScriptedUpstream::new();
    let recorder = Arc::new(Recorder::default());
    let gateway = builder(&upstream).observer(recorder.clone()).build().unwrap();
    let server = server(gateway.clone()).await;
    let large = "x".repeat(2 << 20);
    for is_http2 in [false, true] {
        let connecting = async {
            if is_http2 {
                SocketStream::http2(server.address, http2_request()).await
            } else {
                SocketStream::http1(server.address, request("GET")).await
            }
        };
        let opening = async {
            script
                .next_open()
                .await
                .accept_with([config_map("a", 1, "v"), config_map("large", 2, &large)], "2")
        };
        let (mut stream, session) = tokio::join!(connecting, opening);
        has_the_headers_of_a_stream(stream.response.headers());
        assert_eq!(stream.types(1).await, ["reset"]);
        let objects = [stream.next().await.unwrap(), stream.next().await.unwrap()];
        assert!(objects.iter().any(|object| object.contains(&large)));
        assert_eq!(stream.types(1).await, ["synced"]);
        session.send(WatchEvent::Deleted(config_map("a", 3, "v")));
        assert_eq!(stream.types(1).await, ["deleted"]);
        assert_eq!(recorder.still_open(), [1, 1, 1]);
        drop(stream);
        eventually("a closed connection ends its stream", || {
            recorder.still_open() == [0, 0, 0]
        })
        .await;
        eventually("and its feed", || gateway.feeds().count() == 0).await;
    }
}

#[tokio::test]
async fn in_hyper_a_stream_is_read_until_its_client_leaves() {
    streams_until_the_client_leaves(in_hyper).await;
}

#[tokio::test]
async fn in_axum_a_stream_is_read_until_its_client_leaves() {
    streams_until_the_client_leaves(in_axum).await;
}

#[tokio::test]
async fn a_refusal_ends_the_answer_and_not_the_connection() {
    let (upstream, _script) = ScriptedUpstream::new();
    let server = in_hyper(builder(&upstream).build().unwrap()).await;
    let request = Request::get("/resource-stream/v1").header("host", "localhost");
    let stream = SocketStream::http1(server.address, request.body(Full::default()).unwrap()).await;
    let text = stream.text().await;
    assert!(text.starts_with("data: {\"seq\":1,\"type\":\"error\",\"code\":\"UNAUTHENTICATED\""));
    assert!(text.ends_with("\"terminal\":true}\n\n"));
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_bounds_requests_in_time_does_not_end_a_stream() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream).build().unwrap();
    let mut bounded = tower::timeout::Timeout::new(gateway, Duration::from_secs(2));
    let response = bounded.call(request("GET")).await.unwrap();
    let mut connection = Connection::new(response.into_body());
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (types, session) = tokio::join!(connection.types(2), async {
        script.next_open().await.accept_with([], "1")
    });
    assert_eq!(types, ["reset", "synced"]);
    tokio::time::sleep(Duration::from_secs(10)).await;
    session.send(WatchEvent::Added(config_map("a", 2, "v")));
    assert_eq!(connection.types(1).await, ["added"]);
}
