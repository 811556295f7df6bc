//! The settings of a simulator.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use crate::{
    resource::{Resource, built_in},
    shared::Shared,
    simulator::Simulator,
    store::Store,
};

type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Distinguishes the uids of the simulators of one process.
static SEEDS: AtomicU64 = AtomicU64::new(1);

#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) clock: Clock,
    pub(crate) bookmark_interval: Duration,
    pub(crate) watch_timeout: Duration,
    pub(crate) streaming_lists: bool,
    pub(crate) require_namespaces: bool,
    pub(crate) max_concurrent_streams: u32,
}

impl fmt::Debug for Settings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Settings")
            .field("bookmark_interval", &self.bookmark_interval)
            .field("watch_timeout", &self.watch_timeout)
            .field("streaming_lists", &self.streaming_lists)
            .field("require_namespaces", &self.require_namespaces)
            .field("max_concurrent_streams", &self.max_concurrent_streams)
            .finish_non_exhaustive()
    }
}

/// Sets up a [`Simulator`].
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use std::time::Duration;
/// use krm_stream_simulator::{Resource, Simulator};
///
/// let simulator = Simulator::builder()
///     .bookmark_interval(Duration::from_millis(50))
///     .resource(Resource::custom("example.com", "v1", "widgets", "Widget"))
///     .start()
///     .await?;
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Builder {
    address: SocketAddr,
    resources: Vec<Resource>,
    first_version: u64,
    history: usize,
    seed: Option<u64>,
    settings: Settings,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            resources: built_in(),
            first_version: 1,
            history: 10_000,
            seed: None,
            settings: Settings {
                clock: Arc::new(wall_clock),
                bookmark_interval: Duration::from_mins(1),
                watch_timeout: Duration::from_mins(30),
                streaming_lists: true,
                require_namespaces: false,
                max_concurrent_streams: 1_000,
            },
        }
    }

    /// Where to listen. Default: a free port of 127.0.0.1.
    pub fn address(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// Serves one more resource.
    pub fn resource(mut self, resource: Resource) -> Self {
        self.resources.push(resource);
        self
    }

    /// The `resourceVersion` before any change. Default 1.
    pub fn first_resource_version(mut self, version: u64) -> Self {
        self.first_version = version;
        self
    }

    /// How many changes of each collection are kept for watches and pages. Default 10,000.
    pub fn history(mut self, changes: usize) -> Self {
        self.history = changes;
        self
    }

    /// Draws uids from this seed, so that they are the same in each run. Default: another one for each simulator of
    /// the process.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The clock of time stamps in objects. Default: the wall clock.
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.settings.clock = Arc::new(clock);
        self
    }

    /// How often a watch that allows bookmarks gets one. Default 1 minute, as a real API server; greater than 0.
    pub fn bookmark_interval(mut self, interval: Duration) -> Self {
        self.settings.bookmark_interval = interval.max(Duration::from_millis(1));
        self
    }

    /// How long a watch lives that asks for no `timeoutSeconds`. Default 30 minutes.
    pub fn watch_timeout(mut self, timeout: Duration) -> Self {
        self.settings.watch_timeout = timeout;
        self
    }

    /// Whether streaming lists are served; without, `sendInitialEvents` is refused with 422. Default true.
    pub fn streaming_lists(mut self, served: bool) -> Self {
        self.settings.streaming_lists = served;
        self
    }

    /// Whether a request may create objects only in namespaces that exist. Default false.
    pub fn require_namespaces(mut self, required: bool) -> Self {
        self.settings.require_namespaces = required;
        self
    }

    /// How many requests one HTTP/2 connection may have open. Default 1,000.
    pub fn max_concurrent_streams(mut self, streams: u32) -> Self {
        self.settings.max_concurrent_streams = streams;
        self
    }

    /// Starts listening and serving, on the current tokio runtime.
    ///
    /// # Errors
    ///
    /// If the address cannot be listened on.
    ///
    /// # Cancel safety
    ///
    /// Nothing listens if the future is dropped before it is ready.
    pub async fn start(self) -> io::Result<Simulator> {
        let seed = self
            .seed
            .unwrap_or_else(|| SEEDS.fetch_add(1, Ordering::Relaxed) << 32);
        let store = Store::new(self.resources, self.first_version, self.history, seed);
        Simulator::listen(Shared::new(self.settings, store), self.address).await
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the default clock of time stamps; tests set their own"
)]
fn wall_clock() -> SystemTime {
    SystemTime::now()
}
