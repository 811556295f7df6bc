//! The head of an answer.

use http::header::ALLOW;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use krm_stream_http::{Gateway, StreamBody};
use tower_service::Service as _;

use super::support::{QUERY, ScriptedUpstream, Seam, builder};

fn call(gateway: &Gateway, method: Method, query: &str) -> Response<StreamBody> {
    let request = Request::builder()
        .method(method)
        .uri(format!("/resource-stream/v1?{query}"))
        .header("x-user", "ada")
        .body(())
        .unwrap();
    gateway.clone().call(request).into_inner().unwrap()
}

fn sorted(headers: &HeaderMap) -> Vec<(&str, &str)> {
    let mut headers: Vec<_> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    headers.sort_unstable();
    headers
}

#[tokio::test(start_paused = true)]
async fn a_stream_and_a_refusal_have_exactly_the_headers_of_the_contract() {
    let (upstream, _script) = ScriptedUpstream::new();
    let gateway = builder(&upstream).build().unwrap();
    for query in [QUERY, "version=v1&resource=nodes", ""] {
        let response = call(&gateway, Method::GET, query);
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(
            sorted(response.headers()),
            [
                ("cache-control", "no-cache, no-transform"),
                ("content-type", "text/event-stream"),
                ("x-accel-buffering", "no"),
                ("x-krm-stream-protocol", "1"),
            ]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn methods_other_than_get_are_not_allowed_and_nobody_is_asked() {
    let (upstream, script) = ScriptedUpstream::new();
    let resolver = Seam::hangs();
    let gateway = builder(&upstream).resolver(resolver.clone()).build().unwrap();
    for method in [
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
    ] {
        let response = call(&gateway, method.clone(), QUERY);
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED, "{method}");
        assert_eq!(sorted(response.headers()), [(ALLOW.as_str(), "GET")], "{method}");
        assert!(response.body().is_end_stream());
        assert!(
            response
                .into_body()
                .collect()
                .await
                .unwrap()
                .to_bytes()
                .is_empty()
        );
    }
    assert_eq!((resolver.asked(), script.asked()), (0, 0));
}
