//! All feeds of a gateway: who joins which, and who has to wait before trying again.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use krm_stream_projection::{DigestKey, Projection};
use krm_stream_protocol::{
    Client, Diagnosing, Moment, Observation, Observing, PartitionKey, Principal, Scope, StreamError, Subject,
    Upstream,
};
use tokio::time::Instant;
use tracing::Instrument;

use crate::backoff::Backoff;
use crate::feed::{Attachment, Driver, Feed, FeedKey, FeedReports, Keep, Keeper, Owner, Waiter, drive};
use crate::settings::FeedSettings;

/// How many keys may be in backoff at once.
const BACKOFF_KEYS: usize = 10_000;

/// The feeds of a gateway. Cloning is cheap; all clones are the same feeds.
///
/// A feed's task runs on the runtime of the stream that opened it, and ends with its last stream.
#[derive(Clone)]
pub struct Feeds(Arc<Registry>);

struct Registry {
    settings: FeedSettings,
    digest_key: Arc<DigestKey>,
    observing: Observing,
    diagnosing: Diagnosing,
    origin: Instant,
    next_stream: AtomicU64,
    seeds: RandomState,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    feeds: HashMap<FeedKey, Arc<Feed>>,
    backoff: Option<Backoff<BackoffKey>>,
}

/// Whose failure it was: (target, scope, caller or shared name). The projection takes no part in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct BackoffKey {
    scope: Scope,
    identity: BackoffIdentity,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum BackoffIdentity {
    Caller(Subject),
    Shared(Arc<str>),
}

/// A stream that wants to join a feed.
#[derive(Clone, Debug)]
pub struct Join<'a> {
    /// Who asks. The part of the feed's key that keeps identities apart is computed from its complete subject.
    pub principal: &'a Principal,
    /// What is asked for.
    pub scope: &'a Scope,
    /// The granted projection.
    pub projection: &'a Arc<Projection>,
    /// Where the feed is opened if nobody has yet, and with whom it is shared.
    pub client: Client,
    /// The stream's number, from [`Feeds::next_stream`]. Two joins of an isolated stream with one number are on one feed.
    pub stream: u64,
}

/// A stream's place at a feed. Dropping it leaves the feed.
#[derive(Debug)]
pub struct Subscription {
    attachment: Attachment,
    observing: Observing,
}

impl Feeds {
    /// Feeds with these settings. `digest_key` is the process's one key for digests of withheld values: 32 random bytes.
    pub fn new(
        settings: FeedSettings,
        digest_key: DigestKey,
        observing: Observing,
        diagnosing: Diagnosing,
    ) -> Self {
        Self(Arc::new(Registry {
            settings,
            digest_key: Arc::new(digest_key),
            observing,
            diagnosing,
            origin: Instant::now(),
            next_stream: AtomicU64::new(1),
            seeds: RandomState::new(),
            table: Mutex::default(),
        }))
    }

    /// A number that no other stream of these feeds has.
    pub fn next_stream(&self) -> u64 {
        self.0.next_stream.fetch_add(1, Ordering::Relaxed)
    }

    /// Keeps a feed open, for as long as the keeper lives, without being a stream of it. To be called within a tokio runtime.
    pub fn keep(&self, keep: Keep<'_>) -> Keeper {
        let key = FeedKey {
            partition: PartitionKey::Shared(Arc::clone(&keep.partition)),
            scope: keep.scope.clone(),
            projection: keep.projection.name().clone(),
        };
        let backoff_key = BackoffKey {
            scope: keep.scope.clone(),
            identity: BackoffIdentity::Shared(keep.partition),
        };
        let (registry, projection) = (Arc::clone(&self.0), Arc::clone(keep.projection));
        let stream = self.next_stream();
        Keeper::start(self.0.seeds.hash_one(stream), move || {
            registry.attach(
                key.clone(),
                backoff_key.clone(),
                &projection,
                Arc::clone(&keep.upstream),
                stream,
            )
        })
    }

    /// How many feeds there are, those that are being opened included.
    pub fn count(&self) -> usize {
        self.0.table().feeds.len()
    }

    /// Joins the feed of this scope, projection and identity; opens it if there is none. Resolves when the feed is open.
    ///
    /// # Errors
    /// Why this stream cannot be served, as it is to be told: the API server's refusal, or `UPSTREAM_UNAVAILABLE` with
    /// the time that is left of a backoff.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the feed; the last one to leave cancels the opening.
    pub async fn join(&self, join: Join<'_>) -> Result<Subscription, StreamError> {
        let key = FeedKey {
            partition: join.client.partition.key(join.principal, join.stream),
            scope: join.scope.clone(),
            projection: join.projection.name().clone(),
        };
        let backoff_key = BackoffKey::of(join.principal, &key);
        let (attachment, waiter) = self.0.attach(
            key,
            backoff_key,
            join.projection,
            join.client.upstream,
            join.stream,
        )?;
        if let Some(waiter) = waiter {
            waiter.await.unwrap_or_else(|_| {
                // The feed's task went away with its runtime.
                Err(StreamError::unavailable("the gateway is shutting down", None))
            })?;
        }
        let observing = self.0.observing.clone();
        observing.observe(&Observation::SharedSubscriptionOpened);
        Ok(Subscription {
            attachment,
            observing,
        })
    }
}

impl fmt::Debug for Feeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feeds")
            .field("settings", &self.0.settings)
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}

impl Subscription {
    pub(crate) fn feed(&self) -> &Arc<Feed> {
        self.attachment.feed()
    }

    pub(crate) fn attachment(&self) -> &Attachment {
        &self.attachment
    }

    /// What happens to the sessions of the feed.
    pub fn reports(&self) -> FeedReports {
        self.feed().reports().listen()
    }

    /// Whether the feed has one stream only, so that what it missed can be had from the API server alone.
    pub(crate) fn is_isolated(&self) -> bool {
        self.feed().key().is_isolated()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.observing.observe(&Observation::SharedSubscriptionClosed);
    }
}

impl Registry {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Moment {
        Moment::after_origin(self.origin.elapsed())
    }

    fn attach(
        self: &Arc<Self>,
        key: FeedKey,
        backoff_key: BackoffKey,
        projection: &Arc<Projection>,
        upstream: Arc<dyn Upstream>,
        stream: u64,
    ) -> Result<(Attachment, Option<Waiter>), StreamError> {
        let mut table = self.table();
        if let Some(feed) = table.feeds.get(&key) {
            return Ok(feed.attach(stream, upstream));
        }
        if let Some(remaining) = table.backoff().remaining(&backoff_key, self.now()) {
            return Err(StreamError::unavailable(
                "the API server could not be reached a moment ago",
                Some(remaining),
            ));
        }
        let feed = Arc::new(Feed::new(key.clone(), Arc::clone(projection), &self.settings));
        let place = feed.attach(stream, upstream);
        table.feeds.insert(key, Arc::clone(&feed));
        drop(table);
        self.start(feed, backoff_key, stream);
        Ok(place)
    }

    fn start(self: &Arc<Self>, feed: Arc<Feed>, backoff_key: BackoffKey, stream: u64) {
        let span = tracing::debug_span!("feed", stream);
        let driver = Driver {
            feed,
            settings: self.settings,
            digest_key: Arc::clone(&self.digest_key),
            observing: self.observing.clone(),
            diagnosing: self.diagnosing.clone(),
            seed: self.seeds.hash_one(stream),
            origin: self.origin,
        };
        let owner = Arc::new(FeedOwner {
            registry: Arc::clone(self),
            backoff_key,
        });
        tokio::spawn(drive(driver, owner).instrument(span));
    }
}

impl Table {
    fn backoff(&mut self) -> &mut Backoff<BackoffKey> {
        self.backoff.get_or_insert_with(|| Backoff::new(BACKOFF_KEYS))
    }

    /// Takes the feed out, if it is still the one of its key.
    fn release(&mut self, feed: &Arc<Feed>) {
        if self
            .feeds
            .get(feed.key())
            .is_some_and(|current| Arc::ptr_eq(current, feed))
        {
            self.feeds.remove(feed.key());
        }
    }
}

impl BackoffKey {
    fn of(principal: &Principal, key: &FeedKey) -> Self {
        let identity = match &key.partition {
            PartitionKey::Isolated(_) | PartitionKey::PerCaller(..) => {
                BackoffIdentity::Caller(principal.subject().clone())
            }
            PartitionKey::Shared(name) => BackoffIdentity::Shared(Arc::clone(name)),
        };
        Self {
            scope: key.scope.clone(),
            identity,
        }
    }
}

/// The registry as one feed's driver sees it.
struct FeedOwner {
    registry: Arc<Registry>,
    backoff_key: BackoffKey,
}

impl Owner for FeedOwner {
    fn release_if_vacant(&self, feed: &Arc<Feed>) -> bool {
        // Whoever joins does so under this lock, so that nobody is left on a feed that ends.
        let mut table = self.registry.table();
        let is_vacant = feed.is_vacant();
        if is_vacant {
            table.release(feed);
        }
        is_vacant
    }

    fn release(&self, feed: &Arc<Feed>) {
        self.registry.table().release(feed);
    }

    fn put_aside(&self, feed: &Arc<Feed>, error: StreamError) -> StreamError {
        let now = self.registry.now();
        let mut table = self.registry.table();
        table.release(feed);
        let wait = table
            .backoff()
            .failed(&self.backoff_key, now, error.retry_after());
        StreamError::unavailable(error.message().to_owned(), Some(wait))
    }
}
