//! The check that a host runs on its own wiring: what it lets through, and what it says of middleware that does harm.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body as AxumBody;
use axum::extract::Request as AxumRequest;
use axum::middleware::{Next, from_fn};
use axum::response::Response as AxumResponse;
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, HeaderValue};
use http::{Request, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, StreamBody};
use krm_stream_http::{DeliveryCheck, DeliveryProblem};
use tokio::time::sleep;
use tower::ServiceExt as _;

use super::support::{Host, ScriptedUpstream, builder};

const PATH: &str = "/resource-stream/v1";

fn check() -> DeliveryCheck {
    DeliveryCheck::new(Request::get(PATH).header("x-user", "ada").body(()).unwrap())
}

fn app(host: &Host) -> Router {
    Router::new().route_service(PATH, host.gateway.clone())
}

/// What the check says of an app with this middleware.
async fn says<F>(middleware: fn(AxumRequest, Next) -> F) -> Result<(), DeliveryProblem>
where
    F: Future<Output = AxumResponse> + Send + 'static,
{
    let host = Host::new();
    let said = check().run(app(&host).layer(from_fn(middleware))).await;
    assert_eq!(host.script.asked(), 0, "the cluster is not asked");
    said
}

#[tokio::test(start_paused = true)]
async fn a_gateway_is_found_well_bare_and_in_a_router_and_nobody_is_asked() {
    let host = Host::new();
    check().run(host.gateway.clone()).await.unwrap();
    check()
        .quiet_for(Duration::from_hours(2))
        .run(app(&host))
        .await
        .unwrap();
    let query = Request::get(format!("{PATH}?version=v1&resource=secrets"))
        .header("host", "streams.example")
        .body(())
        .unwrap();
    DeliveryCheck::new(query).run(app(&host)).await.unwrap();
    assert_eq!(host.recorder.all(), []);
    assert_eq!(host.reports.all(), [] as [String; 0]);
    assert_eq!(host.script.asked(), 0);
}

#[tokio::test]
async fn it_needs_no_paused_clock() {
    let host = Host::new();
    check().run(app(&host)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn middleware_that_passes_frames_on_is_found_well() {
    async fn adds_a_header(request: AxumRequest, next: Next) -> AxumResponse {
        let mut response = next.run(request).await;
        response
            .headers_mut()
            .insert("x-frame-options", HeaderValue::from_static("DENY"));
        response
    }
    async fn counts(request: AxumRequest, next: Next) -> AxumResponse {
        next.run(request)
            .await
            .map(|body| AxumBody::new(body.map_frame(|frame| frame)))
    }
    async fn takes_its_time(request: AxumRequest, next: Next) -> AxumResponse {
        sleep(Duration::from_secs(1)).await;
        tokio::time::timeout(Duration::from_secs(2), next.run(request))
            .await
            .unwrap()
    }
    says(adds_a_header).await.unwrap();
    says(counts).await.unwrap();
    says(takes_its_time).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_request_that_reaches_no_gateway_is_told_apart() {
    async fn refuses(_: AxumRequest, _: Next) -> AxumResponse {
        AxumResponse::builder()
            .status(401)
            .body(AxumBody::empty())
            .unwrap()
    }
    let host = Host::new();
    let elsewhere = DeliveryCheck::new(Request::get("/elsewhere").body(()).unwrap());
    let said = elsewhere.run(app(&host)).await;
    assert!(
        matches!(said, Err(DeliveryProblem::NotReached(StatusCode::NOT_FOUND))),
        "{said:?}"
    );
    let said = says(refuses).await;
    assert!(
        matches!(said, Err(DeliveryProblem::NotReached(StatusCode::UNAUTHORIZED))),
        "{said:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_gateway_without_a_write_timeout_is_told_apart() {
    let (upstream, _script) = ScriptedUpstream::new();
    let gateway = builder(&upstream).build().unwrap();
    let said = check().run(gateway).await;
    assert!(matches!(said, Err(DeliveryProblem::NoWriteTimeout)), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn lost_extensions_are_found() {
    async fn forgets(request: AxumRequest, next: Next) -> AxumResponse {
        let mut anew = AxumRequest::new(AxumBody::empty());
        *anew.uri_mut() = request.uri().clone();
        *anew.headers_mut() = request.headers().clone();
        next.run(anew).await
    }
    let said = says(forgets).await;
    assert!(
        matches!(
            said,
            Err(DeliveryProblem::Aborted(_) | DeliveryProblem::CapabilityLost)
        ),
        "{said:?}"
    );
    assert!(said.unwrap_err().to_string().contains("extensions"));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_collected_first_is_found() {
    async fn collects(request: AxumRequest, next: Next) -> AxumResponse {
        let (parts, body) = next.run(request).await.into_parts();
        let all = body.collect().await.unwrap().to_bytes();
        AxumResponse::from_parts(parts, AxumBody::from(all))
    }
    let said = says(collects).await;
    assert!(matches!(said, Err(DeliveryProblem::NoHead)), "{said:?}");
}

/// Collects so many bytes before it passes them on.
struct Buffered {
    inner: AxumBody,
    held: BytesMut,
    enough: usize,
}

impl Body for Buffered {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        loop {
            if this.held.len() >= this.enough {
                return Poll::Ready(Some(Ok(Frame::data(this.held.split().freeze()))));
            }
            match std::task::ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
                Some(Ok(frame)) => this.held.extend_from_slice(&frame.into_data().unwrap()),
                end => return Poll::Ready(end),
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_buffered_is_found() {
    async fn buffers(request: AxumRequest, next: Next) -> AxumResponse {
        next.run(request).await.map(|inner| {
            AxumBody::new(Buffered {
                inner,
                held: BytesMut::new(),
                enough: 8192,
            })
        })
    }
    let said = says(buffers).await;
    assert!(matches!(said, Err(DeliveryProblem::Held)), "{said:?}");
}

/// Joins the frames that are ready, as a body does that wants fewer and larger ones.
struct Joined(AxumBody);

impl Body for Joined {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        let mut joined = BytesMut::new();
        loop {
            match Pin::new(&mut this.0).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => joined.extend_from_slice(&frame.into_data().unwrap()),
                end if joined.is_empty() => return end,
                Poll::Ready(_) | Poll::Pending => {
                    return Poll::Ready(Some(Ok(Frame::data(joined.freeze()))));
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn frames_that_are_joined_are_found() {
    async fn joins(request: AxumRequest, next: Next) -> AxumResponse {
        next.run(request).await.map(|body| AxumBody::new(Joined(body)))
    }
    let said = says(joins).await;
    assert!(matches!(said, Err(DeliveryProblem::RunsAhead)), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_pumped_by_another_task_is_found() {
    async fn pumps(request: AxumRequest, next: Next) -> AxumResponse {
        next.run(request).await.map(|mut body| {
            let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
            tokio::spawn(async move {
                while let Some(frame) = body.frame().await {
                    if sender.send(frame).is_err() {
                        break;
                    }
                }
            });
            let receiver = std::sync::Mutex::new(receiver);
            let frames = futures_util::stream::poll_fn(move |cx| receiver.lock().unwrap().poll_recv(cx));
            AxumBody::new(StreamBody::new(frames))
        })
    }
    let said = says(pumps).await;
    assert!(
        matches!(
            said,
            Err(DeliveryProblem::NotReleased | DeliveryProblem::RunsAhead)
        ),
        "{said:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn compression_is_found() {
    async fn compresses(request: AxumRequest, next: Next) -> AxumResponse {
        let is_asked = request.headers().contains_key("accept-encoding");
        let mut response = next.run(request).await;
        if is_asked {
            response
                .headers_mut()
                .insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }
    let said = says(compresses).await;
    assert!(
        matches!(&said, Err(DeliveryProblem::Compressed(coding)) if coding == "gzip"),
        "{said:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_changed_is_found() {
    async fn shouts(request: AxumRequest, next: Next) -> AxumResponse {
        next.run(request).await.map(|body| {
            AxumBody::new(
                body.map_frame(|frame| frame.map_data(|data| Bytes::from(data.to_ascii_uppercase()))),
            )
        })
    }
    let said = says(shouts).await;
    assert!(matches!(said, Err(DeliveryProblem::Altered)), "{said:?}");
}

/// Ends the answer after 30 s.
struct Bounded(AxumBody, Pin<Box<tokio::time::Sleep>>);

impl Body for Bounded {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        if this.1.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        Pin::new(&mut this.0).poll_frame(cx)
    }
}

#[tokio::test(start_paused = true)]
async fn a_timeout_of_the_whole_answer_is_found_where_the_check_is_quiet_for_longer() {
    async fn bounds(request: AxumRequest, next: Next) -> AxumResponse {
        next.run(request)
            .await
            .map(|body| AxumBody::new(Bounded(body, Box::pin(sleep(Duration::from_secs(30))))))
    }
    says(bounds).await.unwrap();
    let host = Host::new();
    let app = app(&host).layer(from_fn(bounds));
    let said = check().quiet_for(Duration::from_mins(1)).run(app).await;
    assert!(matches!(said, Err(DeliveryProblem::Ended)), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_fails_is_told() {
    let failing = tower::service_fn(|_: Request<hyper::body::Incoming>| async {
        Err::<http::Response<String>, _>(std::io::Error::other("no"))
    });
    let said = check().run(failing).await;
    assert!(matches!(said, Err(DeliveryProblem::Aborted(_))), "{said:?}");
    let never = tower::service_fn(|_: Request<hyper::body::Incoming>| {
        std::future::pending::<Result<http::Response<String>, Infallible>>()
    });
    let said = check().run(never).await;
    assert!(matches!(said, Err(DeliveryProblem::NoHead)), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_kept_after_its_reader_left_is_found() {
    let host = Host::new();
    let gateway = host.gateway.clone();
    let kept = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let keeping = tower::service_fn(move |request: Request<hyper::body::Incoming>| {
        let kept = kept.clone();
        let gateway = gateway.clone();
        async move {
            let response = gateway.oneshot(request).await?;
            Ok::<_, Infallible>(response.map(|body| {
                let body = std::sync::Arc::new(std::sync::Mutex::new(body));
                kept.lock().unwrap().push(body.clone());
                let frames = futures_util::stream::poll_fn(move |cx| {
                    Pin::new(&mut *body.lock().unwrap()).poll_frame(cx)
                });
                StreamBody::new(frames)
            }))
        }
    });
    let said = check().run(keeping).await;
    assert!(matches!(said, Err(DeliveryProblem::NotReleased)), "{said:?}");
}
