//! A stream that is kept by real feeds on an upstream that is not well: what is published of it, in virtual time.

use std::fmt;
use std::sync::Mutex;
use std::task::{Context, Poll};

use krm_stream_projection::{DigestKey, Projection};
use krm_stream_protocol::{
    BoxFuture, Diagnosing, Object, Observing, Scope, Session, SessionItem, Upstream, WatchEvent,
};
use krm_stream_shared::{FeedSettings, Feeds, Keep, Keeper};
use proptest::prelude::*;
use tokio::time::{Instant, Sleep, sleep, timeout_at};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// What comes of one attempt to open a session.
#[derive(Clone, Debug)]
enum Attempt {
    /// It cannot be opened.
    Fails(OpenError),
    /// It opens, has its boundary if `boundary`, lasts, and ends so.
    Ends {
        boundary: bool,
        after: Duration,
        end: End,
    },
    /// It opens, has its boundary, delivers a bookmark halfway, lasts so long, and its transport ends.
    Delivers(Duration),
    /// It opens, has its boundary, and lives.
    Works,
}

/// How a session ends.
#[derive(Clone, Debug)]
enum End {
    As(SessionEnd),
    /// By an object without identity.
    Unusable,
}

type Plan = dyn FnMut(&Start) -> Attempt + Send;

/// An API server that goes by a plan.
struct Flawed {
    plan: Mutex<Box<Plan>>,
    /// When the last boundary was reached, or the last session was opened that goes on after a version.
    sign: Arc<Mutex<Option<Instant>>>,
}

impl fmt::Debug for Flawed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Flawed")
    }
}

impl Upstream for Flawed {
    fn open<'a>(&'a self, _: &'a Scope, start: Start) -> BoxFuture<'a, Result<Box<dyn Session>, OpenError>> {
        let attempt = (self.plan.lock().unwrap())(&start);
        let (boundary, delivers, ends) = match attempt {
            Attempt::Fails(error) => return Box::pin(std::future::ready(Err(error))),
            Attempt::Ends { boundary, after, end } => (boundary, None, Some((after, end))),
            Attempt::Delivers(lasts) => (
                true,
                Some(lasts / 2),
                Some((lasts / 2, End::As(SessionEnd::Closed))),
            ),
            Attempt::Works => (true, None, None),
        };
        let mut items = VecDeque::new();
        if start == Start::Fresh {
            let object = r#"{"metadata":{"uid":"u","name":"n","namespace":"a","resourceVersion":"1"}}"#;
            let object = Object::parse(object.as_bytes().into()).unwrap();
            items.push_back((Duration::ZERO, SessionItem::Event(WatchEvent::Added(object))));
        }
        if start == Start::Fresh && boundary {
            let boundary = WatchEvent::Bookmark {
                resource_version: Some("5".into()),
                initial_events_end: true,
            };
            items.push_back((Duration::ZERO, SessionItem::Event(boundary)));
        }
        if let Some(after) = delivers {
            let bookmark = WatchEvent::Bookmark {
                resource_version: Some("6".into()),
                initial_events_end: false,
            };
            items.push_back((after, SessionItem::Event(bookmark)));
        }
        if boundary {
            *self.sign.lock().unwrap() = Some(Instant::now());
        }
        if let Some((after, end)) = ends {
            let item = match end {
                End::As(end) => SessionItem::End(end),
                End::Unusable => {
                    let partial = Object::parse("{}".as_bytes().into()).unwrap();
                    SessionItem::Event(WatchEvent::Modified(partial))
                }
            };
            items.push_back((after, item));
        }
        let session = Played { items, waiting: None };
        Box::pin(std::future::ready(Ok(Box::new(session) as Box<dyn Session>)))
    }
}

/// A session that yields items, each some time after the one before it, and is silent then.
struct Played {
    items: VecDeque<(Duration, SessionItem)>,
    waiting: Option<std::pin::Pin<Box<Sleep>>>,
}

impl Session for Played {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<SessionItem> {
        let Some((after, _)) = self.items.front() else {
            return Poll::Pending;
        };
        if !after.is_zero() {
            let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(*after)));
            std::task::ready!(waiting.as_mut().poll(cx));
            self.waiting = None;
        }
        match self.items.pop_front() {
            Some((_, item)) => Poll::Ready(item),
            None => Poll::Pending,
        }
    }

    fn asked_timeout(&self) -> Option<Duration> {
        Some(400 * SECOND)
    }
}

/// The cluster, the feeds, and the keeper between them.
struct Scene {
    cluster: Cluster,
    keeper: Keeper,
    began: Instant,
    sign: Arc<Mutex<Option<Instant>>>,
    upstream: Arc<Flawed>,
    _feeds: Feeds,
}

impl Scene {
    fn new(plan: impl FnMut(&Start) -> Attempt + Send + 'static) -> Self {
        let cluster = Cluster::new(&["a"]);
        let feeds = Feeds::new(
            FeedSettings::default(),
            DigestKey::new([7; 32]),
            Observing::default(),
            Diagnosing::default(),
        );
        let sign = Arc::<Mutex<Option<Instant>>>::default();
        let upstream = Arc::new(Flawed {
            plan: Mutex::new(Box::new(plan)),
            sign: Arc::clone(&sign),
        });
        let keeper = feeds.keep(Keep {
            scope: &Scope::builder("v1", "configmaps").namespace("a").build().unwrap(),
            projection: &Projection::full(),
            upstream: upstream.clone(),
            partition: Arc::from("declared"),
        });
        Self {
            cluster,
            keeper,
            began: Instant::now(),
            sign,
            upstream,
            _feeds: feeds,
        }
    }

    /// Follows what is reported for so long, or until `is_enough`; each write is answered at once.
    async fn follow(&mut self, time: Duration, is_enough: impl Fn(&Cluster) -> bool) {
        let end = Instant::now() + time;
        let feed = self.cluster.feed("a");
        while !is_enough(&self.cluster) {
            let Ok(report) = timeout_at(end, self.keeper.reports().next()).await else {
                break;
            };
            let elapsed = self.began.elapsed();
            let now = Moment::after_origin(1000 * SECOND + elapsed);
            self.cluster.now = self.cluster.now.max(now);
            self.cluster.wall = 1_000 + i64::try_from(elapsed.as_secs()).unwrap();
            self.cluster.report_to(feed, report);
            while self.cluster.answer() {}
        }
        self.cluster.settle();
    }

    /// From now on each attempt works.
    fn heal(&self) {
        *self.upstream.plan.lock().unwrap() = Box::new(|_| Attempt::Works);
    }

    fn told(&self) -> Vec<&str> {
        self.cluster
            .reasons()
            .into_iter()
            .map(|(_, reason)| reason)
            .collect()
    }

    fn is_ready(cluster: &Cluster) -> bool {
        cluster
            .status()
            .is_some_and(|status| status.conditions.is_ready())
    }
}

fn ends(boundary: bool, after: Duration, end: SessionEnd) -> Attempt {
    let end = End::As(end);
    Attempt::Ends { boundary, after, end }
}

fn failed(kind: UpstreamErrorKind) -> SessionEnd {
    SessionEnd::Failed(UpstreamError::new(kind))
}

/// What is told of an upstream each of whose attempts comes to the same, and how long after the first boundary that lasts it
/// is ready again.
fn flaws() -> [(&'static str, Attempt, Vec<&'static str>, Duration); 12] {
    let forbidden = || failed(UpstreamErrorKind::Forbidden { message: None });
    let away = || failed(UpstreamErrorKind::Unavailable);
    let now = Duration::ZERO;
    let unusable = Attempt::Ends {
        boundary: true,
        after: now,
        end: End::Unusable,
    };
    let (at_once, proven) = (Duration::ZERO, 5 * SECOND);
    let (replaying, ready, error) = ("Replaying", "AllStreamsReady", "WatchError");
    [
        (
            "it cannot be opened",
            Attempt::Fails(OpenError::Failed(unavailable())),
            vec![replaying, error],
            at_once,
        ),
        (
            "it is refused",
            Attempt::Fails(OpenError::Failed(UpstreamError::forbidden(None))),
            vec![replaying, "WatchNotPermitted"],
            at_once,
        ),
        (
            "a list is served and the watch after it refused",
            ends(false, now, forbidden()),
            vec![replaying, "WatchNotPermitted"],
            at_once,
        ),
        (
            "a list is served and the watch after it fails",
            ends(false, now, away()),
            vec![replaying, error],
            proven,
        ),
        (
            "it ends before its boundary",
            ends(false, now, SessionEnd::Closed),
            vec![replaying, error],
            proven,
        ),
        (
            "it ends a while before its boundary",
            ends(false, 20 * SECOND, SessionEnd::Closed),
            vec![replaying, error],
            proven,
        ),
        (
            "it ends right after its boundary",
            ends(true, now, SessionEnd::Closed),
            vec![replaying, ready, error],
            proven,
        ),
        (
            "it ends just after its boundary",
            ends(true, Duration::from_millis(900), SessionEnd::Closed),
            vec![replaying, ready, error],
            proven,
        ),
        (
            "it is accepted and fails in the stream",
            ends(true, now, away()),
            vec![replaying, ready, error],
            proven,
        ),
        (
            "its version expires after each boundary",
            ends(true, now, SessionEnd::Expired),
            vec![replaying, ready, replaying],
            proven,
        ),
        (
            "what it sends cannot be read",
            ends(true, 2 * SECOND, failed(UpstreamErrorKind::Unreadable)),
            vec![replaying, ready, error],
            proven,
        ),
        (
            "what it sends cannot be used",
            unusable,
            vec![replaying, ready, replaying, error],
            proven,
        ),
    ]
}

/// For an hour nothing lasts; then all is well.
#[tokio::test(start_paused = true)]
async fn a_watch_that_never_works_is_told_once_and_one_that_works_again_is_ready_soon() {
    for (name, attempt, expected, ready_after) in flaws() {
        let mut scene = Scene::new(move |_| attempt.clone());
        scene.cluster.settle();
        scene.follow(3600 * SECOND, |_| false).await;
        assert_eq!(scene.told(), expected, "{name}");
        assert_eq!(
            scene.cluster.writes,
            expected.len(),
            "{name}: a write for each, and no other"
        );
        let warnings = scene.cluster.events.iter();
        let warnings = warnings.filter(|event| event.severity() == EventSeverity::Warning);
        assert_eq!(
            warnings.count(),
            usize::from(expected.last() != Some(&"Replaying")),
            "{name}"
        );

        scene.heal();
        scene.follow(600 * SECOND, Scene::is_ready).await;
        assert!(Scene::is_ready(&scene.cluster), "{name}");
        let sign = scene.sign.lock().unwrap().unwrap();
        let took = sign.elapsed();
        assert!(
            took >= ready_after && took <= ready_after + SECOND / 100,
            "{name}: {took:?}"
        );
        scene.follow(3600 * SECOND, |_| false).await;
        assert_eq!(scene.told().len(), expected.len() + 1, "{name}");
    }
}

/// Ends that are routine, though there are many.
#[tokio::test(start_paused = true)]
async fn sessions_that_end_every_few_seconds_and_go_on_are_no_news() {
    let mut scene = Scene::new(|_| ends(true, 3 * SECOND, SessionEnd::Closed));
    scene.cluster.settle();
    scene.follow(3600 * SECOND, |_| false).await;
    assert_eq!(scene.told(), ["Replaying", "AllStreamsReady"]);
    assert_eq!(scene.cluster.writes, 2);
}

/// The same, after a row of early ends: a proxy that ends each watch after a few seconds is slow, and what it lets through is
/// there. However it was lost, the trust in it is there again once it has let something through.
#[tokio::test(start_paused = true)]
async fn sessions_that_end_every_few_seconds_and_deliver_are_believed_again() {
    for (name, attempt, expected, _) in flaws() {
        let mut scene = Scene::new(move |_| attempt.clone());
        scene.cluster.settle();
        scene.follow(600 * SECOND, |_| false).await;
        assert_eq!(scene.told(), expected, "{name}");

        *scene.upstream.plan.lock().unwrap() = Box::new(|_| Attempt::Delivers(3 * SECOND));
        scene.follow(600 * SECOND, Scene::is_ready).await;
        assert!(Scene::is_ready(&scene.cluster), "{name}");
        let took = scene.sign.lock().unwrap().unwrap().elapsed();
        assert!(took <= 3 * SECOND + SECOND / 100, "{name}: {took:?}");
        let writes = scene.cluster.writes;
        scene.follow(3600 * SECOND, |_| false).await;
        assert_eq!(scene.told().len(), expected.len() + 1, "{name}");
        assert_eq!(scene.cluster.writes, writes, "{name}: not a word more");
    }
}

/// One that delivers nothing gives no proof, nor does one that ends at once whatever it delivers, or by a 410.
#[tokio::test(start_paused = true)]
async fn sessions_that_end_every_few_seconds_without_a_proof_are_not_believed_again() {
    for (name, then) in [
        ("nothing came", ends(true, 3 * SECOND, SessionEnd::Closed)),
        ("it ends at once", Attempt::Delivers(SECOND / 2)),
        ("its version expires", ends(true, 3 * SECOND, SessionEnd::Expired)),
    ] {
        let mut scene = Scene::new(|_| ends(true, Duration::ZERO, SessionEnd::Closed));
        scene.cluster.settle();
        scene.follow(600 * SECOND, |_| false).await;
        let (told, writes) = (scene.told().len(), scene.cluster.writes);
        *scene.upstream.plan.lock().unwrap() = Box::new(move |_| then.clone());
        scene.follow(3600 * SECOND, |_| false).await;
        assert!(!Scene::is_ready(&scene.cluster), "{name}");
        assert_eq!(
            (scene.told().len(), scene.cluster.writes),
            (told, writes),
            "{name}"
        );
    }
}

fn attempt() -> impl Strategy<Value = Attempt> {
    let kind = || {
        prop::sample::select(vec![
            UpstreamErrorKind::Forbidden { message: None },
            UpstreamErrorKind::NotFound,
            UpstreamErrorKind::Unavailable,
            UpstreamErrorKind::VersionTooLarge,
            UpstreamErrorKind::Unreadable,
        ])
    };
    let open_error = prop_oneof![
        1 => Just(OpenError::Expired),
        3 => kind().prop_map(|kind| OpenError::Failed(UpstreamError::new(kind))),
    ];
    let end = prop_oneof![
        4 => Just(End::As(SessionEnd::Closed)),
        2 => Just(End::As(SessionEnd::Expired)),
        2 => kind().prop_map(|kind| End::As(failed(kind))),
        1 => Just(End::Unusable),
    ];
    let millis = prop::sample::select(vec![0_u64, 500, 1500, 4900, 5100, 60_000]);
    let lasts = prop::sample::select(vec![500_u64, 1500, 3000, 60_000]);
    prop_oneof![
        1 => open_error.prop_map(Attempt::Fails),
        1 => lasts.prop_map(|millis| Attempt::Delivers(Duration::from_millis(millis))),
        3 => (any::<bool>(), millis, end).prop_map(|(boundary, millis, end)| Attempt::Ends {
            boundary,
            after: Duration::from_millis(millis),
            end,
        }),
    ]
}

impl Attempt {
    /// Whether a session that starts there shows that it works.
    fn lives(&self, start: &Start) -> bool {
        match self {
            Self::Fails(_) => false,
            Self::Ends { boundary, after, .. } => {
                (*boundary || *start != Start::Fresh) && *after >= 5 * SECOND
            }
            Self::Delivers(lasts) => *lasts >= SECOND,
            Self::Works => true,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Ready turns True when a session lived, and once after that by a sign of recovery, whatever the attempts come to.
    #[test]
    fn ready_turns_no_more_often_than_there_is_evidence(
        attempts in prop::collection::vec(attempt(), 1..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let lived = Arc::new(Mutex::new(0_usize));
            let (counted, mut attempts) = (Arc::clone(&lived), attempts.into_iter());
            let mut scene = Scene::new(move |start| {
                let attempt = attempts.next().unwrap_or(Attempt::Works);
                *counted.lock().unwrap() += usize::from(attempt.lives(start));
                attempt
            });
            scene.cluster.settle();
            scene.follow(2 * 3600 * SECOND, |_| false).await;
            prop_assert!(Scene::is_ready(&scene.cluster), "{:?}", scene.cluster.status());
            let lived = *lived.lock().unwrap();
            let told = scene.told();
            let ready = told.iter().filter(|reason| **reason == "AllStreamsReady").count();
            prop_assert!(ready <= 2 * lived + 1, "{ready} times, {lived} lived: {told:?}");
            Ok(())
        })?;
    }
}
