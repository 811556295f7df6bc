//! The examples do what they say.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use krm_stream_http::DeliveryCheck;
use krm_stream_simulator::{Simulator, Verb};
use krm_stream_upstream_kube::KubeUpstream;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::support::{SocketStream, code_of, text_of};

#[expect(dead_code, reason = "its `main` is for people")]
#[path = "../../examples/axum_per_caller.rs"]
mod axum_per_caller;
#[expect(dead_code, reason = "its `main` is for people")]
#[path = "../../examples/hyper_shared.rs"]
mod hyper_shared;

/// Ends a server with the test.
struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn request(path: &str, headers: &[(&str, &str)]) -> Request<Full<Bytes>> {
    let mut request = Request::get(path).header("host", "localhost");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Full::default()).unwrap()
}

const SHOP: &str = "/resource-stream/v1?version=v1&resource=configmaps&namespace=shop";

/// A stream that shows the object of the simulated cluster, and its change.
async fn shows_the_shop(mut stream: SocketStream, simulator: &Simulator) {
    assert_eq!(stream.response.status(), 200);
    assert_eq!(stream.types(1).await, ["reset"]);
    let object = stream.next().await.unwrap();
    assert!(
        object.contains(r#""type":"added""#) && object.contains(r#""data":{"tea":"2"}"#),
        "{object}"
    );
    assert_eq!(stream.types(1).await, ["synced"]);
    simulator
        .patch("configmaps", "shop", "prices", &json!({"data": {"tea": "3"}}))
        .unwrap();
    let object = stream.next().await.unwrap();
    assert!(
        object.contains(r#""type":"modified""#) && object.contains(r#""data":{"tea":"3"}"#),
        "{object}"
    );
}

async fn axum_server() -> (Server, Arc<Simulator>) {
    let simulator = axum_per_caller::simulated_cluster().await.unwrap();
    let config = axum_per_caller::config_of(&simulator).unwrap();
    let (app, _) = axum_per_caller::app(KubeUpstream::from_config(config).unwrap()).unwrap();
    let (listener, address) = listener().await;
    let task = tokio::spawn(krm_stream_http::serve(listener, app).into_future());
    (Server { address, task }, Arc::new(simulator))
}

async fn token_of(server: &Server, name: &str) -> String {
    let request = Request::post("/login")
        .header("host", "localhost")
        .body(Full::from(name.to_owned()))
        .unwrap();
    let answer = SocketStream::http1(server.address, request).await;
    assert_eq!(answer.response.status(), 200);
    answer.text().await
}

#[tokio::test]
async fn the_axum_service_streams_a_namespace_as_the_caller() {
    let (server, simulator) = axum_server().await;
    let token = token_of(&server, "ada").await;
    let me = request("/me", &[("cookie", &format!("theme=dark; login={token}"))]);
    assert_eq!(SocketStream::http1(server.address, me).await.text().await, "ada");

    let bearer = format!("Bearer {token}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("user-agent", "Mozilla/5.0 canary"),
        ("impersonate-user", "system:admin"),
    ];
    let stream = SocketStream::http1(server.address, request(SHOP, &headers)).await;
    shows_the_shop(stream, &simulator).await;

    let requests = simulator.requests();
    assert!(!requests.is_empty());
    for asked in requests {
        let all = |name: &str| -> Vec<_> {
            asked
                .headers()
                .get_all(name)
                .iter()
                .map(|value| value.to_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(all("impersonate-user"), ["ada"]);
        assert_eq!(all("impersonate-group"), ["shop-viewers", "staff"]);
        assert_eq!(asked.namespace(), "shop");
        let is_forwarded = |value: &http::HeaderValue| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            value.contains("canary") || value.contains(&token)
        };
        assert!(!asked.headers().values().any(is_forwarded), "{asked:?}");
        assert!(!asked.headers().contains_key("cookie"));
    }
}

#[tokio::test]
async fn the_axum_services_tabs_of_one_caller_share_a_watch_and_other_callers_do_not() {
    let (server, simulator) = axum_server().await;
    let mut streams = Vec::new();
    for name in ["ada", "ada", "ada"] {
        let cookie = format!("login={}", token_of(&server, name).await);
        let mut stream = SocketStream::http1(server.address, request(SHOP, &[("cookie", &cookie)])).await;
        assert_eq!(stream.types(3).await, ["reset", "added", "synced"]);
        streams.push(stream);
    }
    assert_eq!(simulator.counts().open_watches, 1);
}

#[tokio::test]
async fn the_axum_service_refuses_a_caller_without_rights_in_kubernetes_own_words() {
    let (server, simulator) = axum_server().await;
    let cookie = format!("login={}", token_of(&server, "ada").await);
    let mut warm = SocketStream::http1(server.address, request(SHOP, &[("cookie", &cookie)])).await;
    assert_eq!(warm.types(3).await, ["reset", "added", "synced"]);

    let bearer = format!("Bearer {}", token_of(&server, "bob").await);
    let mut stream = SocketStream::http1(server.address, request(SHOP, &[("authorization", &bearer)])).await;
    assert_eq!(stream.response.status(), 200);
    let event = stream.next().await.unwrap();
    assert_eq!(code_of(&event), "FORBIDDEN");
    let message = text_of(&event, "message").unwrap();
    assert!(
        message.starts_with("configmaps is forbidden: User \"bob\" cannot ")
            && message.ends_with(" resource \"configmaps\" in API group \"\" in the namespace \"shop\""),
        "{message}"
    );
    assert_eq!(stream.next().await, None);
    let of_bob = |header: &http::HeaderMap| header.get("impersonate-user").is_some_and(|user| user == "bob");
    assert!(simulator.requests().iter().any(|asked| of_bob(asked.headers())));
}

#[tokio::test]
async fn the_axum_service_tells_a_stranger_to_sign_in_and_asks_the_cluster_nothing() {
    let (server, simulator) = axum_server().await;
    let mut stream = SocketStream::http1(server.address, request(SHOP, &[])).await;
    let event = stream.next().await.unwrap();
    assert_eq!(code_of(&event), "UNAUTHENTICATED");
    assert_eq!(text_of(&event, "message").unwrap(), "sign in first");
    assert_eq!(stream.next().await, None);
    assert_eq!(simulator.requests().len(), 0);
}

async fn hyper_server() -> (Server, Arc<Simulator>) {
    hyper_server_until(std::future::pending()).await
}

async fn hyper_server_until(end: impl Future<Output = ()> + Send + 'static) -> (Server, Arc<Simulator>) {
    let simulator = hyper_shared::simulated_cluster().await.unwrap();
    let config = hyper_shared::config_of(&simulator).unwrap();
    let gateway = hyper_shared::gateway(KubeUpstream::from_config(config).unwrap()).unwrap();
    let (listener, address) = listener().await;
    let task = tokio::spawn(async move { hyper_shared::serve(listener, gateway, end).await });
    (Server { address, task }, Arc::new(simulator))
}

#[tokio::test]
async fn the_hyper_server_shares_one_watch_among_all_who_may_see_it() {
    let (server, simulator) = hyper_server().await;
    let as_user = |user| {
        request(
            SHOP,
            &[
                ("x-forwarded-user", user),
                ("x-forwarded-groups", "staff, shop-viewers"),
            ],
        )
    };
    let mut first = SocketStream::http1(server.address, as_user("ada")).await;
    assert_eq!(first.types(3).await, ["reset", "added", "synced"]);
    let second = SocketStream::http2(server.address, {
        let mut request = as_user("eve");
        *request.uri_mut() = format!("http://localhost{SHOP}").parse().unwrap();
        request.headers_mut().remove("host");
        request
    })
    .await;
    shows_the_shop(second, &simulator).await;
    assert_eq!(first.types(1).await, ["modified"]);
    assert_eq!(simulator.counts().open_watches, 1);
    let watches = simulator.requests();
    let mut watches = watches.iter().filter(|asked| asked.verb() == Verb::Watch);
    assert!(watches.all(|asked| !asked.headers().contains_key("impersonate-user")));
    let reviews = simulator.counts().by_path["/apis/authorization.k8s.io/v1/subjectaccessreviews"];
    assert_eq!(reviews, 4, "list and watch, for each of the two");
}

#[tokio::test]
async fn the_hyper_server_tells_its_streams_to_come_back_when_it_ends() {
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let (mut server, _simulator) = hyper_server_until(async { drop(ended.await) }).await;
    let headers = [
        ("x-forwarded-user", "ada"),
        ("x-forwarded-groups", "shop-viewers"),
    ];
    let mut http1 = SocketStream::http1(server.address, request(SHOP, &headers)).await;
    let mut over_http2 = request(&format!("http://localhost{SHOP}"), &headers);
    over_http2.headers_mut().remove("host");
    let mut http2 = SocketStream::http2(server.address, over_http2).await;
    for stream in [&mut http1, &mut http2] {
        assert_eq!(stream.types(3).await, ["reset", "added", "synced"]);
    }
    end.send(()).unwrap();
    for stream in [&mut http1, &mut http2] {
        let event = stream.next().await.unwrap();
        assert_eq!(code_of(&event), "UPSTREAM_UNAVAILABLE");
        assert!(event.contains("\"retryAfterMs\":"), "{event}");
        assert_eq!(stream.next().await, None);
    }
    let within_the_grace_time = std::time::Duration::from_secs(9);
    tokio::time::timeout(within_the_grace_time, &mut server.task)
        .await
        .expect("nothing is left to wait for")
        .unwrap();
    tokio::net::TcpStream::connect(server.address).await.unwrap_err();
}

#[tokio::test]
async fn the_hyper_server_refuses_who_may_not_see_it_though_the_feed_is_warm() {
    let (server, _simulator) = hyper_server().await;
    let headers = [
        ("x-forwarded-user", "ada"),
        ("x-forwarded-groups", "shop-viewers"),
    ];
    let mut warm = SocketStream::http1(server.address, request(SHOP, &headers)).await;
    assert_eq!(warm.types(3).await, ["reset", "added", "synced"]);
    let mut stream = SocketStream::http1(server.address, request(SHOP, &[("x-forwarded-user", "bob")])).await;
    assert_eq!(stream.types(1).await, ["FORBIDDEN"]);
    assert_eq!(stream.next().await, None);
    let mut stream = SocketStream::http1(server.address, request(SHOP, &[])).await;
    assert_eq!(stream.types(1).await, ["UNAUTHENTICATED"]);
    assert_eq!(stream.next().await, None);
    let live = SocketStream::http1(server.address, request("/livez", &[])).await;
    assert_eq!(live.text().await, "ok");
    let missing = SocketStream::http1(server.address, request("/nothing", &[])).await;
    assert_eq!(missing.response.status(), 404);
}

#[tokio::test]
async fn delivery_is_bounded_through_the_axum_services_routes() {
    let simulator = axum_per_caller::simulated_cluster().await.unwrap();
    let config = axum_per_caller::config_of(&simulator).unwrap();
    let (app, _) = axum_per_caller::app(KubeUpstream::from_config(config).unwrap()).unwrap();
    let request = Request::get("/resource-stream/v1").body(()).unwrap();
    DeliveryCheck::new(request).run(app).await.unwrap();
}

#[tokio::test]
async fn delivery_is_bounded_through_the_hyper_servers_answers() {
    let simulator = hyper_shared::simulated_cluster().await.unwrap();
    let config = hyper_shared::config_of(&simulator).unwrap();
    let gateway = hyper_shared::gateway(KubeUpstream::from_config(config).unwrap()).unwrap();
    let service = tower::service_fn(move |request| hyper_shared::answer(gateway.clone(), request));
    let request = Request::get("/resource-stream/v1").body(()).unwrap();
    DeliveryCheck::new(request).run(service).await.unwrap();
}
