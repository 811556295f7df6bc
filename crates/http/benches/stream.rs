//! A stream as its transport sees it: polled when nothing is due, and the delivery of one change.
//!
//! `cargo bench -p krm-stream-http`. Objects are ConfigMaps of 2.3 KB. A delivery goes all the way from the session's event to
//! the chunk that a body hands out; behind that is a transport, which is not here.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a benchmark that cannot go on stops"
)]

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use http_body::Body as _;
use krm_stream_http::{Gateway, StreamBody};
use krm_stream_protocol::{
    AllowAll, BoxFuture, Client, ClientFor, GrantNamed, Object, OpenError, Partition, Principal,
    ResourceRule, ResourceVersion, Scope, ScopePolicy, Session, SessionEnd, SessionItem, Start, StreamError,
    Subject, Target, Upstream, WatchEvent,
};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tower_service::Service as _;

fn main() {
    divan::main();
}

const OBJECTS: u64 = 1_000;

/// One session, which the benchmark feeds.
#[derive(Debug)]
struct Piped(Mutex<Option<mpsc::UnboundedReceiver<SessionItem>>>);

struct Running(mpsc::UnboundedReceiver<SessionItem>);

impl Upstream for Piped {
    fn open<'a>(&'a self, _: &'a Scope, _: Start) -> BoxFuture<'a, Result<Box<dyn Session>, OpenError>> {
        let session = self.0.lock().unwrap().take().unwrap();
        Box::pin(async move { Ok(Box::new(Running(session)) as Box<dyn Session>) })
    }
}

impl Session for Running {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<SessionItem> {
        self.0
            .poll_recv(cx)
            .map(|item| item.unwrap_or(SessionItem::End(SessionEnd::Closed)))
    }

    fn asked_timeout(&self) -> Option<Duration> {
        None
    }
}

struct OneUpstream(Arc<Piped>);

impl ClientFor for OneUpstream {
    fn client_for<'a>(
        &'a self,
        _: &'a Target,
        _: &'a Principal,
    ) -> BoxFuture<'a, Result<Client, StreamError>> {
        let client = Client {
            upstream: Arc::clone(&self.0) as Arc<dyn Upstream>,
            partition: Partition::per_caller(),
        };
        Box::pin(std::future::ready(Ok(client)))
    }
}

fn object(n: u64, version: u64) -> Object {
    let value = "x".repeat(2_000);
    let text = format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"object-{n}","namespace":"app","uid":"uid-{n}","resourceVersion":"{version}","labels":{{"n":"{version}","app.kubernetes.io/name":"an-example-of-usual-length"}},"annotations":{{"note":"something of a usual length, as annotations are"}}}},"data":{{"value":"{value}"}}}}"#
    );
    Object::parse(Bytes::from(text)).unwrap()
}

/// A gateway whose feed is fed by the benchmark, and streams that are at the head of it.
struct Warm {
    runtime: Runtime,
    gateway: Gateway,
    items: mpsc::UnboundedSender<SessionItem>,
    version: u64,
}

impl Warm {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let (items, session) = mpsc::unbounded_channel();
        let gateway = Gateway::builder()
            .resolver(|_: &http::request::Parts| Ok(Principal::new(Subject::new("ada")?)))
            .scope_policy(
                ScopePolicy::deny_all()
                    .allow_target(Target::default())
                    .allow(ResourceRule::namespaced("", "configmaps")),
            )
            .authorizer(AllowAll::where_upstream_acts_as_caller())
            .client_for(OneUpstream(Arc::new(Piped(Mutex::new(Some(session))))))
            .projection_policy(GrantNamed::default())
            .build()
            .unwrap();
        for n in 0..OBJECTS {
            let _ = items.send(SessionItem::Event(WatchEvent::Added(object(n, n + 1))));
        }
        let version = OBJECTS + 1;
        let _ = items.send(SessionItem::Event(WatchEvent::Bookmark {
            resource_version: Some(ResourceVersion::from(version.to_string().as_str())),
            initial_events_end: true,
        }));
        Self {
            runtime,
            gateway,
            items,
            version,
        }
    }

    fn open(&mut self) -> StreamBody {
        let request = http::Request::get("/v1?version=v1&resource=configmaps&namespace=app")
            .body(())
            .unwrap();
        // Its timers belong to the runtime.
        let gateway = &mut self.gateway;
        let answer = self.runtime.block_on(async { gateway.call(request).await });
        answer.unwrap().into_body()
    }

    fn change(&mut self) {
        self.version += 1;
        let change = WatchEvent::Modified(object(self.version % OBJECTS, self.version));
        let _ = self.items.send(SessionItem::Event(change));
    }
}

/// The next chunk.
fn poll(body: &mut StreamBody, cx: &mut Context<'_>) -> Poll<Bytes> {
    Pin::new(body).poll_frame(cx).map(|frame| match frame {
        Some(Ok(frame)) => frame.into_data().unwrap(),
        Some(Err(error)) => panic!("{error}"),
        None => panic!("the stream is over"),
    })
}

/// Reads until the snapshot is there.
async fn read_snapshot(body: &mut StreamBody) {
    loop {
        let chunk = std::future::poll_fn(|cx| poll(body, cx)).await;
        if memchr::memmem::find(&chunk, br#""type":"synced""#).is_some() {
            return;
        }
    }
}

/// A stream that has nothing to say: what a wake-up for nothing costs.
#[divan::bench]
fn poll_at_rest(bencher: Bencher<'_, '_>) {
    let mut warm = Warm::new();
    let mut body = warm.open();
    warm.runtime.block_on(read_snapshot(&mut body));
    let _entered = warm.runtime.enter();
    let mut cx = Context::from_waker(Waker::noop());
    bencher.bench_local(|| assert!(black_box(poll(&mut body, &mut cx)).is_pending()));
}

/// One change to so many streams, per delivery.
#[divan::bench(args = [1, 100, 1_000])]
fn delivery(bencher: Bencher<'_, '_>, streams: usize) {
    let mut warm = Warm::new();
    let delivered = Arc::new(AtomicUsize::new(0));
    for _ in 0..streams {
        let (mut body, delivered) = (warm.open(), Arc::clone(&delivered));
        warm.runtime.spawn(async move {
            read_snapshot(&mut body).await;
            loop {
                delivered.fetch_add(1, Ordering::Relaxed);
                black_box(std::future::poll_fn(|cx| poll(&mut body, cx)).await);
            }
        });
    }
    // Its snapshot is each stream's first.
    let mut expected = streams;
    let wait = |warm: &Warm, expected: usize| {
        warm.runtime.block_on(async {
            while delivered.load(Ordering::Relaxed) < expected {
                tokio::task::yield_now().await;
            }
        });
    };
    wait(&warm, expected);
    bencher.counter(ItemsCount::new(streams)).bench_local(|| {
        warm.change();
        expected += streams;
        wait(&warm, expected);
    });
}
