//! Generated schedules: object changes, ends and faults of sessions, streams that come, go and read as they like.
//!
//! After any of them what a conforming consumer holds is what the API server has; on the way every connection keeps the
//! wire's grammar, and no state of an object goes backwards within a cycle (each connection checks both). A seed says
//! everything: `KRM_SEED=n` plays one.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a schedule that cannot go on says why and fails; how much the schedules reached is told"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use krm_stream_protocol::{Ordering, Partition, SessionEnd, UpstreamError, UpstreamErrorKind, json};
use krm_stream_tests::{
    Connection, GatewayUnderTest, ModelServer, Schedule, ScriptedUpstream, Trouble, UpstreamKind, long_mode,
};

const APP: &str = "version=v1&resource=configmaps&namespace=app";

/// What one schedule is played with.
struct Play {
    seed: u64,
    schedule: Schedule,
    gateway: GatewayUnderTest,
    server: ModelServer,
    connections: Vec<Connection>,
    /// Whether each connection has nothing that was written for it and not read.
    drained: Vec<bool>,
    /// When each connection's cycle began, by the feed that it is on and what that had taken in; unknown where the `reset`
    /// was written before it was read.
    began: Vec<Option<(usize, u64)>>,
    /// Whether all streams are on the feed that the server sees.
    is_shared: bool,
    /// Filling of each value, so that a chunk holds few objects.
    padding: usize,
    /// How much a session sends at a time.
    pace: usize,
    told: Told,
}

/// What happened in a schedule, so that a test can see that its schedules reach what they are for.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    ended: usize,
    resyncs: usize,
    heads: usize,
    synced: usize,
}

impl Play {
    fn new(seed: u64) -> Self {
        let mut schedule = Schedule::new(seed);
        let (upstream, script) = ScriptedUpstream::new();
        let partition = match schedule.below(4) {
            0 => Partition::per_caller(),
            1 => Partition::Isolated,
            _ => Partition::shared("tests"),
        };
        let kind = if schedule.percent(50) {
            UpstreamKind::StreamingList
        } else {
            UpstreamKind::ListThenWatch
        };
        let linger = Duration::from_secs([0, 5][schedule.below(2)]);
        let is_shared = partition != Partition::Isolated;
        let builder = GatewayUnderTest::builder(upstream, partition)
            .ordering(Ordering::Strict)
            .linger(linger)
            .queue_depth([1, 3, 8, 256][schedule.below(4)]);
        Self {
            seed,
            gateway: GatewayUnderTest::build(builder),
            server: ModelServer::new(script, kind),
            connections: Vec::new(),
            drained: Vec::new(),
            began: Vec::new(),
            is_shared,
            padding: [0, 0, 0, 0, 17_000][schedule.below(5)],
            pace: [1, 4, 1000][schedule.below(3)],
            schedule,
            told: Told::default(),
        }
    }

    async fn run(mut self) -> Told {
        for _ in 0..self.schedule.below(150) + 10 {
            self.act().await;
            self.settle(Duration::from_millis(1)).await;
        }
        self.converge().await;
        let told = self.told;
        self.leave_nothing().await;
        told
    }

    async fn act(&mut self) {
        match self.schedule.below(100) {
            0..=29 => self.change(),
            30..=37 if self.connections.len() < 5 => self.join(),
            38..=39 if !self.connections.is_empty() => {
                let gone = self.schedule.below(self.connections.len());
                drop(self.connections.swap_remove(gone));
                self.drained.swap_remove(gone);
                self.began.swap_remove(gone);
            }
            40..=43 => self.server.bookmark(),
            44..=48 => self.server.end_sessions(&SessionEnd::Closed),
            49..=50 => {
                self.server.compact();
                self.server.end_sessions(&SessionEnd::Closed);
            }
            51 => self.server.compact(),
            52..=53 => self.server.end_sessions(&SessionEnd::Expired),
            54 => self.server.send_partial(),
            55..=56 => {
                let error = UpstreamError::new(UpstreamErrorKind::Unavailable);
                self.server.end_sessions(&SessionEnd::Failed(error));
            }
            57..=61 => {
                let trouble = self.trouble();
                self.server.expect_trouble(trouble);
            }
            62..=67 => {
                // Streams read nothing while much changes.
                for _ in 0..self.schedule.below(40) {
                    self.change();
                }
            }
            68..=69 => {
                // Everything goes at once.
                for uid in self.server.truth().into_keys() {
                    self.server.delete(&uid);
                }
            }
            70..=79 => {
                let time = [100, 2_000, 7_000, 40_000][self.schedule.below(4)];
                self.settle(Duration::from_millis(time)).await;
            }
            _ => {
                if !self.connections.is_empty() {
                    let reader = self.schedule.below(self.connections.len());
                    let events = [1, 3, usize::MAX, usize::MAX][self.schedule.below(4)];
                    self.read(reader, events).await;
                }
            }
        }
    }

    fn trouble(&mut self) -> Trouble {
        match self.schedule.below(8) {
            0 => Trouble::Unavailable(None),
            1 => Trouble::Unavailable(Some(3)),
            2 => Trouble::Forbidden,
            3 => Trouble::CutInSnapshot,
            4 => Trouble::CutAtOnce,
            5 => Trouble::Replay,
            6 => Trouble::Hang,
            _ => Trouble::RestartedSnapshot,
        }
    }

    fn change(&mut self) {
        let uid = format!("u{}", self.schedule.below(12));
        if self.schedule.percent(30) {
            self.server.delete(&uid);
        } else {
            let value = format!("v{}{}", self.schedule.below(6), ".".repeat(self.padding));
            self.server.apply(&uid, &value);
        }
    }

    /// Lets time pass in small steps while the server answers what it is asked; then until the feeds have read what they were
    /// sent, since what is said of a feed is said of what was delivered to it. A burst of deletions is read in steps.
    async fn settle(&mut self, time: Duration) {
        self.pass(time).await;
        let deadline = tokio::time::Instant::now() + Duration::from_mins(1);
        while !self.server.is_read() {
            assert!(
                tokio::time::Instant::now() < deadline,
                "seed {}: a feed does not read what it is sent",
                self.seed
            );
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn pass(&mut self, time: Duration) {
        let end = tokio::time::Instant::now() + time;
        let step = (time / 20).max(Duration::from_millis(1));
        loop {
            self.server.serve(self.pace);
            tokio::time::sleep(step).await;
            if tokio::time::Instant::now() >= end {
                return;
            }
        }
    }

    fn join(&mut self) {
        self.connections.push(self.gateway.connect(APP));
        self.drained.push(true);
        self.began.push(None);
    }

    /// Reads up to `events` of what a connection has, while upstream does nothing; one that ended is replaced.
    ///
    /// At each `synced` that was written just now it holds no ghost; when it has read everything and is in a synced cycle,
    /// it holds exactly what its feed has.
    async fn read(&mut self, reader: usize, events: usize) {
        let is_written_now = std::mem::replace(&mut self.drained[reader], false);
        for _ in 0..events {
            let connection = &mut self.connections[reader];
            match tokio::time::timeout(Duration::from_micros(500), connection.next()).await {
                Ok(Some(event)) => {
                    self.told.resyncs += usize::from(event.contains("RESYNC_REQUIRED"));
                    if event.contains(r#""type":"reset""#) {
                        self.began[reader] = self.server.feed_and_tick().filter(|_| is_written_now);
                    }
                    if is_written_now && event.contains(r#""type":"synced""#) {
                        self.assert_synced(reader);
                    }
                }
                Ok(None) => {
                    self.told.ended += 1;
                    self.connections[reader] = self.gateway.connect(APP);
                    self.drained[reader] = true;
                    return;
                }
                Err(_) => {
                    self.drained[reader] = true;
                    return self.assert_at_head(reader);
                }
            }
        }
    }

    /// It holds no ghost, and lacks no object that lived through the cycle.
    fn assert_synced(&mut self, reader: usize) {
        let Some(feed) = self.server.feed().filter(|_| self.is_shared) else {
            return;
        };
        let held = held(&self.connections[reader]);
        for uid in held.keys() {
            assert!(
                feed.visible().contains_key(uid),
                "seed {}: {uid} is a ghost at synced",
                self.seed
            );
        }
        let Some((feed_then, tick)) = self.began[reader] else {
            return;
        };
        if self
            .server
            .feed_and_tick()
            .is_some_and(|(feed_now, _)| feed_now == feed_then)
        {
            self.told.synced += 1;
            for uid in feed.lived_since(tick) {
                assert!(
                    held.contains_key(uid),
                    "seed {}: {uid} is missing at synced",
                    self.seed
                );
            }
        }
    }

    fn assert_at_head(&mut self, reader: usize) {
        // A stream whose feed is over waits for the opening of another: then that is the feed that asked last.
        self.server.serve(0);
        let Some(feed) = self
            .server
            .feed()
            .filter(|feed| self.is_shared && feed.is_complete())
        else {
            return;
        };
        let connection = &self.connections[reader];
        if connection.consumer().is_synced() && connection.is_in_cycle() {
            self.told.heads += 1;
            let (held, visible) = (held(connection), feed.visible());
            assert!(
                held == *visible,
                "seed {}: at the head a consumer holds {:?}, its feed {:?}",
                self.seed,
                shortened(&held),
                shortened(visible),
            );
        }
    }

    /// With no trouble left every reader gets to the head within two minutes, and holds what is there.
    async fn converge(&mut self) {
        self.server.forget_trouble();
        self.pace = 1000;
        if self.connections.is_empty() {
            self.join();
        }
        let deadline = tokio::time::Instant::now() + Duration::from_mins(2);
        loop {
            for reader in 0..self.connections.len() {
                self.read(reader, usize::MAX).await;
            }
            self.settle(Duration::from_secs(1)).await;
            let truth = self.server.truth();
            let is_there =
                |connection: &Connection| connection.consumer().is_synced() && held(connection) == truth;
            if self.connections.iter().all(is_there) {
                return;
            }
            assert!(
                tokio::time::Instant::now() < deadline,
                "seed {}: a consumer does not hold what the api server has: {:?} and {:?}",
                self.seed,
                self.connections
                    .iter()
                    .map(|connection| held(connection).into_keys().collect::<Vec<_>>())
                    .collect::<Vec<_>>(),
                truth.keys().collect::<Vec<_>>(),
            );
        }
    }

    /// No session, feed or task outlives the streams.
    async fn leave_nothing(mut self) {
        self.connections.clear();
        self.settle(Duration::from_secs(30)).await;
        assert_eq!(
            self.server.open_sessions(),
            0,
            "seed {}: sessions are left",
            self.seed
        );
        assert_eq!(
            self.gateway.gateway().feeds().count(),
            0,
            "seed {}: feeds are left",
            self.seed
        );
        let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        assert_eq!(tasks, 0, "seed {}: tasks are left", self.seed);
    }
}

/// Without the padding, for people.
fn shortened(objects: &BTreeMap<String, String>) -> Vec<String> {
    let short = |(uid, value): (&String, &String)| format!("{uid}={}", value.trim_end_matches('.'));
    objects.iter().map(short).collect()
}

/// What a conforming consumer holds: uid to value.
fn held(connection: &Connection) -> BTreeMap<String, String> {
    connection
        .consumer()
        .objects()
        .map(|held| {
            let data = json::last_member(held.json().as_bytes(), "data").expect("a config map has data");
            let value = json::last_member(data, "value")
                .and_then(json::string)
                .expect("with one value");
            (held.uid().to_owned(), value.into_owned())
        })
        .collect()
}

fn play(seed: u64) -> Told {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        runtime.block_on(Play::new(seed).run())
    }));
    match played {
        Ok(told) => told,
        Err(panic) => {
            #[expect(
                clippy::print_stderr,
                reason = "a failing seed is told so that it can be played again"
            )]
            {
                eprintln!("seed {seed} fails: play it alone with KRM_SEED={seed}");
            }
            std::panic::resume_unwind(panic)
        }
    }
}

#[test]
fn after_any_schedule_a_conforming_consumer_holds_what_the_api_server_has() {
    if let Some(seed) = std::env::var("KRM_SEED").ok().and_then(|seed| seed.parse().ok()) {
        play(seed);
        return;
    }
    let schedules = if long_mode() { 100_000 } else { 200 };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let told: Vec<Told> = std::thread::scope(|scope| {
        let play_some = |first: usize| {
            move || {
                (first..schedules)
                    .step_by(threads)
                    .map(|seed| play(seed as u64))
                    .collect()
            }
        };
        let running: Vec<_> = (0..threads).map(|first| scope.spawn(play_some(first))).collect();
        running
            .into_iter()
            .flat_map(|thread| -> Vec<Told> {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    let sum = |count: fn(&Told) -> usize| told.iter().map(count).sum::<usize>();
    let (ended, resyncs, heads) = (
        sum(|told| told.ended),
        sum(|told| told.resyncs),
        sum(|told| told.heads),
    );
    let synced = sum(|told| told.synced);
    println!(
        "{schedules} schedules: {heads} times at the head, {synced} times checked at synced, {resyncs} new cycles told, \
         {ended} streams ended"
    );
    assert!(synced > schedules, "snapshots are checked");
    assert!(ended > schedules / 10, "streams end and come back");
    assert!(resyncs > schedules, "continuity is lost");
    assert!(heads > schedules * 5, "readers reach the head");
}
