//! What a host's own routes write is bounded where the host wants it, beside streams of a gateway and without one: over HTTP/2 a
//! reader that takes too little loses its stream alone, and nothing of an answer is lost or changed.

use std::convert::Infallible;
use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full, StreamBody};
use hyper::body::{Body as _, Frame, Incoming};
use krm_stream_http::{BoxError, ConnectionGuard, HttpService};
use tokio::io::duplex;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::rustls::pki_types::ServerName;
use tower::service_fn;

use super::support::{
    Client, Host, Kind, PATH, Sizes, WRITE_TIMEOUT, eventually, is_in_time, request, tls_acceptor,
    tls_connector,
};

type Body = UnsyncBoxBody<Bytes, BoxError>;
type Item = Result<Frame<Bytes>, BoxError>;

const FRAME_BYTES: usize = 16 * 1024;
const LONG_BYTES: usize = 1 << 20;
const QUIET: Duration = Duration::from_hours(1);

/// The bytes of the long answer, which tell where they stand.
fn long() -> Vec<u8> {
    (0..=250)
        .flat_map(|byte| [byte; 7])
        .cycle()
        .take(LONG_BYTES)
        .collect()
}

/// Counts the bodies that are there.
struct Present(Arc<AtomicUsize>);

impl Present {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A body of these items, the second and all after it after some time.
fn body(items: Vec<Item>, pause: Duration, present: &Arc<AtomicUsize>) -> Body {
    let state = (items.into_iter(), Present::new(present), Duration::ZERO);
    let items = stream::unfold(state, move |(mut items, present, wait)| async move {
        if !wait.is_zero() {
            sleep(wait).await;
        }
        Some((items.next()?, (items, present, pause)))
    });
    StreamBody::new(items).boxed_unsync()
}

fn data(bytes: &[u8]) -> Frame<Bytes> {
    Frame::data(Bytes::copy_from_slice(bytes))
}

fn answer(request: &Request<Incoming>, present: &Arc<AtomicUsize>) -> Body {
    let full = |bytes: &[u8]| {
        Full::new(Bytes::copy_from_slice(bytes))
            .map_err(BoxError::from)
            .boxed_unsync()
    };
    match request.uri().path() {
        "/long" => body(
            long().chunks(FRAME_BYTES).map(|frame| Ok(data(frame))).collect(),
            Duration::ZERO,
            present,
        ),
        "/whole" => full(&long()),
        "/byte" => full(b"x"),
        "/empty" => Empty::new().map_err(BoxError::from).boxed_unsync(),
        "/quiet" => body(vec![Ok(data(b"a")), Ok(data(b"bc"))], QUIET, present),
        "/trailers" => {
            let mut trailers = HeaderMap::new();
            trailers.insert("x-sum", http::HeaderValue::from_static("7"));
            let items = vec![Ok(data(&long())), Ok(data(b"")), Ok(Frame::trailers(trailers))];
            body(items, Duration::ZERO, present)
        }
        "/breaks" => body(
            vec![Ok(data(b"half")), Err("it broke".into())],
            Duration::from_secs(1),
            present,
        ),
        other => panic!("no route {other}"),
    }
}

fn routes(present: &Arc<AtomicUsize>) -> impl HttpService {
    let present = Arc::clone(present);
    service_fn(move |request: Request<Incoming>| {
        let body = answer(&request, &present);
        async move { Ok::<_, Infallible>(Response::new(body)) }
    })
}

/// A client of a connection whose host bounds whatever is written.
async fn client(kind: Kind, service: impl HttpService, sizes: Sizes, write_timeout: Duration) -> Client {
    let (near, far) = duplex(sizes.transport);
    let guard = ConnectionGuard::new().with_write_timeout(write_timeout);
    if kind.is_tls() {
        let server = tokio::spawn(async move {
            let io = tls_acceptor().accept(guard.io(far)).await?;
            guard.serve_connection(io, service).await
        });
        let name = ServerName::try_from("localhost").unwrap();
        let io = tls_connector().connect(name, near).await.unwrap();
        Client::over(kind, io, sizes.window, server).await
    } else {
        let server = tokio::spawn(guard.serve_connection(far, service));
        Client::over(kind, near, sizes.window, server).await
    }
}

async fn ask(client: &mut Client, kind: Kind, path: &str) -> Response<Incoming> {
    let response = client.send(request(kind, path)).await.unwrap();
    assert_eq!(response.status(), 200);
    response
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_nothing_of_an_answer_is_cut_in_time_and_over_http2_alone() {
    for kind in Kind::ALL {
        for path in ["/long", "/whole", "/trailers"] {
            let present = Arc::default();
            let mut client = client(kind, routes(&present), Sizes::SMALL, WRITE_TIMEOUT).await;
            let began = Instant::now();
            let stalled = ask(&mut client, kind, path).await;
            if kind.is_multiplexed() {
                // Another is served before, while and after it is cut.
                for _ in 0..2 {
                    let whole = ask(&mut client, kind, "/long").await.into_body();
                    assert_eq!(whole.collect().await.unwrap().to_bytes(), long());
                    sleep(WRITE_TIMEOUT.mul_f32(0.9)).await;
                }
                sleep(WRITE_TIMEOUT).await;
                assert!(!client.server.is_finished(), "{kind:?}");
            } else {
                timeout(Duration::from_mins(10), &mut client.server)
                    .await
                    .unwrap()
                    .unwrap()
                    .unwrap_err();
                is_in_time(began.elapsed());
            }
            assert_eq!(
                present.load(Ordering::SeqCst),
                0,
                "{kind:?} {path}: its body is gone"
            );
            stalled.into_body().collect().await.unwrap_err();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stalled_answer_over_http2_is_cut_when_the_timeout_is_over_and_not_later() {
    for kind in Kind::MULTIPLEXED {
        let present = Arc::default();
        let mut client = client(kind, routes(&present), Sizes::SMALL, WRITE_TIMEOUT).await;
        let began = Instant::now();
        let _stalled = ask(&mut client, kind, "/long").await;
        eventually("its body is gone", || present.load(Ordering::SeqCst) == 0).await;
        is_in_time(began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_trickle_does_not_save_an_answer_over_http2() {
    for kind in Kind::MULTIPLEXED {
        let present = Arc::default();
        let mut client = client(kind, routes(&present), Sizes::SMALL, WRITE_TIMEOUT).await;
        let began = Instant::now();
        let mut trickling = ask(&mut client, kind, "/whole").await.into_body();
        loop {
            sleep(Duration::from_millis(500)).await;
            match trickling.frame().await {
                Some(Ok(frame)) => assert!(frame.into_data().unwrap().len() <= 1024),
                Some(Err(_)) => break,
                None => panic!("what is cut does not end as if it were whole"),
            }
        }
        assert!(!client.server.is_finished(), "{kind:?}: only the stream is cut");
        // What had come before is read first.
        let took = began.elapsed();
        assert!(
            took < WRITE_TIMEOUT + Duration::from_secs(2),
            "{kind:?}: {took:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_slow_and_keeps_the_pace_gets_every_byte() {
    let sizes = Sizes {
        transport: FRAME_BYTES,
        window: 16 * 1024,
    };
    for kind in Kind::ALL {
        let present = Arc::default();
        let mut client = client(kind, routes(&present), sizes, WRITE_TIMEOUT).await;
        let began = Instant::now();
        for path in ["/long", "/whole"] {
            let mut slow = ask(&mut client, kind, path).await.into_body();
            let mut came = Vec::new();
            while let Some(frame) = slow.frame().await {
                came.extend_from_slice(&frame.unwrap().into_data().unwrap());
                sleep(Duration::from_millis(200)).await;
            }
            assert!(came == long(), "{kind:?} {path}");
        }
        assert!(began.elapsed() > WRITE_TIMEOUT * 4, "{kind:?}: it is slow");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_quiet_lives_for_ever() {
    for kind in Kind::ALL {
        let present = Arc::default();
        let mut client = client(kind, routes(&present), Sizes::SMALL, WRITE_TIMEOUT).await;
        let quiet = ask(&mut client, kind, "/quiet").await.into_body();
        assert_eq!(quiet.collect().await.unwrap().to_bytes(), "abc", "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn lengths_ends_trailers_and_errors_are_those_of_the_host() {
    let sizes = Sizes {
        transport: 1 << 20,
        window: 1 << 20,
    };
    for kind in Kind::ALL {
        let present = Arc::default();
        let mut client = client(kind, routes(&present), sizes, WRITE_TIMEOUT).await;
        for (path, length) in [("/whole", LONG_BYTES), ("/byte", 1), ("/empty", 0)] {
            let response = ask(&mut client, kind, path).await;
            let told = response.headers().get("content-length");
            assert_eq!(
                told.map(|told| told.to_str().unwrap().to_owned()),
                // An answer of HTTP/2 that ends with its head needs none.
                (!(kind.is_multiplexed() && length == 0)).then(|| length.to_string()),
                "{kind:?} {path}"
            );
            assert_eq!(
                response.body().is_end_stream(),
                length == 0,
                "{kind:?} {path}: an empty answer ends with its head"
            );
            assert_eq!(
                response.into_body().collect().await.unwrap().to_bytes().len(),
                length
            );
        }
        if kind.is_multiplexed() {
            let collected = ask(&mut client, kind, "/trailers").await.into_body().collect();
            let collected = collected.await.unwrap();
            assert_eq!(collected.trailers().unwrap()["x-sum"], "7");
            assert!(collected.to_bytes() == long());
        }
        let broken = ask(&mut client, kind, "/breaks").await.into_body();
        broken.collect().await.unwrap_err();
        assert_eq!(present.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn data_of_any_type_is_cut_without_a_loss() {
    let service = service_fn(|_: Request<Incoming>| async {
        Ok::<_, Infallible>(Response::new(Full::new(Cursor::new(long()))))
    });
    for kind in Kind::ALL {
        let sizes = Sizes::SMALL;
        let mut client = client(kind, service, sizes, WRITE_TIMEOUT).await;
        let response = ask(&mut client, kind, "/").await;
        assert_eq!(response.headers()["content-length"], LONG_BYTES.to_string());
        assert!(
            response.into_body().collect().await.unwrap().to_bytes() == long(),
            "{kind:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_gateways_streams_bound_the_other_answers_of_their_connection() {
    for kind in Kind::MULTIPLEXED {
        let mut host = Host::new();
        let present = Arc::default();
        let (gateway, others) = (host.gateway.clone(), Arc::clone(&present));
        let service = service_fn(move |request: Request<Incoming>| {
            let (mut gateway, others) = (gateway.clone(), Arc::clone(&others));
            async move {
                Ok::<_, Infallible>(if request.uri().path() == "/long" {
                    Response::new(answer(&request, &others))
                } else {
                    let response = tower_service::Service::call(&mut gateway, request).await?;
                    response.map(|body| body.map_err(BoxError::from).boxed_unsync())
                })
            }
        });
        let mut client = Client::connect(kind, service).await;
        let alone = ask(&mut client, kind, "/long").await;
        sleep(WRITE_TIMEOUT * 10).await;
        assert_eq!(
            present.load(Ordering::SeqCst),
            1,
            "nothing bounds it before there is a stream"
        );
        drop(alone);
        let (stream, _session) = tokio::join!(ask(&mut client, kind, PATH), async {
            host.script.next_open().await.accept()
        });
        let _stalled = ask(&mut client, kind, "/long").await;
        sleep(WRITE_TIMEOUT + Duration::from_millis(200)).await;
        assert_eq!(present.load(Ordering::SeqCst), 0, "{kind:?}");
        assert_eq!(host.timeouts(), 0, "it is no stream of the gateway's");
        assert_eq!(host.recorder.still_open()[..1], [1]);
        drop(stream);
    }
}

#[tokio::test(start_paused = true)]
async fn the_longest_write_timeout_of_all_is_a_bound_like_any_other() {
    for kind in Kind::ALL {
        let present = Arc::default();
        let mut client = client(kind, routes(&present), Sizes::SMALL, Duration::MAX).await;
        let long_after = ask(&mut client, kind, "/long").await.into_body();
        sleep(QUIET).await;
        assert!(
            long_after.collect().await.unwrap().to_bytes() == long(),
            "{kind:?}"
        );
    }
}
