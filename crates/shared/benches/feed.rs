//! The hot functions of a feed: append, join, delivery at the head, and a whole snapshot, swept or by shared bytes.
//!
//! `cargo bench -p krm-stream-shared`. Objects are ConfigMaps of 2.3 KB. A delivery is one change of one object to one stream:
//! applied, streams woken, the frame written and taken from the outbox; no transport is behind it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a benchmark that cannot go on stops"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use krm_stream_projection::{DigestKey, Projection};
use krm_stream_protocol::{
    BoxFuture, Client, Diagnosing, Moment, Object, Observing, OpenError, Partition, Principal,
    ResourceVersion, Scope, Session, SessionEnd, SessionItem, Start, Subject, Upstream, WatchEvent,
};
use krm_stream_shared::{
    Changelog, FeedSettings, Feeds, Frame, Identified, Join, Outbox, Reader, Sink, Step, Sweep,
};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

fn main() {
    divan::main();
}

#[derive(Clone, Debug)]
struct Uid(Arc<str>);

impl Identified for Uid {
    fn uid(&self) -> &str {
        &self.0
    }
}

/// Room for everything, and no use for it.
#[derive(Default)]
struct Nowhere(u64);

impl Sink<Uid, u64> for Nowhere {
    fn has_room(&self) -> bool {
        true
    }

    fn push(&mut self, frame: Frame<'_, Uid, u64>) {
        if let Frame::Upsert { payload, .. } = frame {
            self.0 += payload;
        }
    }
}

fn changelog(objects: u64) -> (Changelog<Uid, u64, u64>, Vec<Uid>) {
    let uids: Vec<_> = (0..objects).map(|n| Uid(format!("uid-{n}").into())).collect();
    let mut changelog = Changelog::new(256);
    for uid in &uids {
        changelog.upsert(uid.clone(), 1, 1);
    }
    changelog.reach_boundary();
    (changelog, uids)
}

#[divan::bench(args = [1_000, 50_000])]
fn append(bencher: Bencher<'_, '_>, objects: u64) {
    let (mut changelog, uids) = changelog(objects);
    let mut at = 0;
    bencher.bench_local(|| {
        at = (at + 7_919) % uids.len();
        changelog.upsert(uids[at].clone(), 2, 2);
    });
}

#[divan::bench(args = [1_000, 50_000])]
fn join(bencher: Bencher<'_, '_>, objects: u64) {
    let (changelog, _) = changelog(objects);
    bencher.bench_local(|| {
        let mut sweep = Sweep::new();
        sweep.begin_cycle(&changelog, &mut Nowhere::default());
        sweep.leave(&changelog);
    });
}

#[divan::bench]
fn take_in_at_head(bencher: Bencher<'_, '_>) {
    let (mut changelog, uids) = changelog(1_000);
    let mut sweep = Sweep::new();
    sweep.begin_cycle(&changelog, &mut Nowhere::default());
    let _ = sweep.poll(&changelog, &mut Nowhere::default());
    let mut at = 0;
    bencher.bench_local(|| {
        at = (at + 7_919) % uids.len();
        changelog.upsert(uids[at].clone(), 2, 2);
        black_box(sweep.poll(&changelog, &mut Nowhere::default()))
    });
}

/// A warm feed behind a session that the benchmark feeds.
struct Warm {
    runtime: Runtime,
    feeds: Feeds,
    upstream: Arc<dyn Upstream>,
    items: mpsc::UnboundedSender<SessionItem>,
    version: u64,
    keeper: Stream,
}

#[derive(Debug)]
struct Piped(std::sync::Mutex<Option<mpsc::UnboundedReceiver<SessionItem>>>);

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

struct Stream {
    reader: Reader,
    outbox: Outbox,
}

impl Stream {
    async fn join(feeds: &Feeds, upstream: &Arc<dyn Upstream>, scope: &Scope, now: Moment) -> Self {
        let subscription = feeds
            .join(Join {
                principal: &Principal::new(Subject::new("ada").unwrap()),
                scope,
                projection: &Projection::full(),
                client: Client {
                    upstream: Arc::clone(upstream),
                    partition: Partition::per_caller(),
                },
                stream: feeds.next_stream(),
            })
            .await
            .unwrap();
        let mut stream = Self {
            reader: Reader::new(Observing::default()),
            outbox: Outbox::new(64 * 1024),
        };
        stream
            .reader
            .begin_cycle(subscription, None, now, &mut stream.outbox);
        stream
    }

    /// Takes all that there is. Returns how many bytes.
    fn take(&mut self, cx: &mut Context<'_>, now: Moment) -> usize {
        let mut bytes = 0;
        loop {
            while let Some(chunk) = self.outbox.take() {
                bytes += black_box(chunk).len();
            }
            match self.reader.poll(cx, now, &mut self.outbox) {
                Poll::Ready(Step::Wrote) => {}
                Poll::Pending => return bytes,
                Poll::Ready(Step::NextCycle(_) | Step::End(_)) => panic!("the cycle is over"),
            }
        }
    }
}

fn object(kind: &str, n: u64, version: u64) -> Object {
    let value = "x".repeat(2_000);
    let text = format!(
        r#"{{"kind":"{kind}","apiVersion":"v1","metadata":{{"name":"object-{n}","namespace":"app","uid":"uid-{n}","resourceVersion":"{version}","labels":{{"n":"{version}","app.kubernetes.io/name":"an-example-of-usual-length"}},"annotations":{{"note":"something of a usual length, as annotations are"}}}},"data":{{"value":"{value}"}}}}"#
    );
    Object::parse(Bytes::from(text)).unwrap()
}

fn scope() -> Scope {
    Scope::builder("v1", "configmaps")
        .namespace("app")
        .build()
        .unwrap()
}

impl Warm {
    fn of(kind: &str, objects: u64) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let (items, session) = mpsc::unbounded_channel();
        let upstream: Arc<dyn Upstream> = Arc::new(Piped(std::sync::Mutex::new(Some(session))));
        let feeds = Feeds::new(
            FeedSettings::default(),
            DigestKey::new([7; 32]),
            Observing::default(),
            Diagnosing::default(),
        );
        for n in 0..objects {
            let _ = items.send(SessionItem::Event(WatchEvent::Added(object(kind, n, n + 1))));
        }
        let _ = items.send(SessionItem::Event(WatchEvent::Bookmark {
            resource_version: Some(ResourceVersion::from((objects + 1).to_string().as_str())),
            initial_events_end: true,
        }));
        let keeper = runtime.block_on(async {
            let mut keeper = Stream::join(&feeds, &upstream, &scope(), Moment::ORIGIN).await;
            std::future::poll_fn(|cx| {
                keeper.take(cx, Moment::ORIGIN);
                if keeper.reader.is_at_head() {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
            .await;
            keeper
        });
        Self {
            runtime,
            feeds,
            upstream,
            items,
            version: objects + 1,
            keeper,
        }
    }

    /// Joins and reads the snapshot to its end.
    fn snapshot(&self, now: Moment) -> usize {
        let mut stream = self
            .runtime
            .block_on(Stream::join(&self.feeds, &self.upstream, &scope(), now));
        let bytes = stream.take(&mut Context::from_waker(Waker::noop()), now);
        assert!(stream.reader.is_at_head());
        bytes
    }
}

/// One change to so many streams, per delivery.
#[divan::bench(args = [100, 1_000, 5_000])]
fn delivery(bencher: Bencher<'_, '_>, streams: usize) {
    let mut warm = Warm::of("ConfigMap", 1_000);
    let delivered = Arc::new(AtomicUsize::new(0));
    for _ in 0..streams {
        let (feeds, upstream, delivered) = (
            warm.feeds.clone(),
            Arc::clone(&warm.upstream),
            Arc::clone(&delivered),
        );
        warm.runtime.spawn(async move {
            let mut stream = Stream::join(&feeds, &upstream, &scope(), Moment::ORIGIN).await;
            std::future::poll_fn(|cx| {
                if stream.take(cx, Moment::ORIGIN) > 0 {
                    delivered.fetch_add(1, Ordering::Relaxed);
                }
                Poll::<()>::Pending
            })
            .await;
        });
    }
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
        warm.version += 1;
        let change = WatchEvent::Modified(object("ConfigMap", warm.version % 1_000, warm.version));
        let _ = warm.items.send(SessionItem::Event(change));
        expected += streams;
        wait(&warm, expected);
    });
    drop(warm.keeper);
}

/// A join that follows no other: the whole snapshot is written for it.
#[divan::bench(args = [("ConfigMap", 1_000), ("Secret", 1_000), ("ConfigMap", 50_000)])]
fn snapshot_swept(bencher: Bencher<'_, '_>, (kind, objects): (&str, u64)) {
    let warm = Warm::of(kind, objects);
    let mut seconds = 0;
    bencher.counter(ItemsCount::new(objects)).bench_local(|| {
        seconds += 10;
        warm.snapshot(Moment::after_origin(Duration::from_secs(seconds)))
    });
    drop(warm.keeper);
}

/// One join among others: the bytes are there.
#[divan::bench(args = [("ConfigMap", 1_000), ("Secret", 1_000), ("ConfigMap", 50_000)])]
fn snapshot_shared(bencher: Bencher<'_, '_>, (kind, objects): (&str, u64)) {
    let warm = Warm::of(kind, objects);
    for _ in 0..2 {
        warm.snapshot(Moment::ORIGIN);
    }
    bencher
        .counter(ItemsCount::new(objects))
        .bench_local(|| warm.snapshot(Moment::ORIGIN));
    drop(warm.keeper);
}
