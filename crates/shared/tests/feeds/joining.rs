//! Joins of a warm feed by shared bytes, at bad moments, by readers that keep up and by readers that do not.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use krm_stream_protocol::{EventType, Observation, Observer, Partition, Upstream};
use krm_stream_shared::Feeds;

use crate::browser::{Browser, applied, at, state, uid};
use crate::support::{Script, ScriptedSession, ScriptedUpstream, Stream, feeds};

const OBJECTS: u64 = 400;

struct Warm {
    feeds: Feeds,
    upstream: Arc<dyn Upstream>,
    session: ScriptedSession,
    script: Script,
    /// Keeps the feed open, and has taken all in.
    first: Browser,
    version: u64,
    kind: &'static str,
}

impl Warm {
    /// A feed of objects that are several chunks.
    async fn of(kind: &'static str) -> Self {
        let (upstream, mut script) = ScriptedUpstream::new();
        let upstream: Arc<dyn Upstream> = upstream;
        let feeds = feeds(Duration::from_secs(5));
        let answer = script
            .next_open_when(Browser::join(&feeds, &upstream, at(0)))
            .await;
        let (first, session) = answer;
        let version = session.fill(kind, OBJECTS, 900);
        session.boundary(version);
        applied().await;
        let mut first = first;
        first.take_all();
        assert!(first.consumer.is_synced());
        Self {
            feeds,
            upstream,
            session,
            script,
            first,
            version,
            kind,
        }
    }

    async fn join(&self, milliseconds: u64) -> Browser {
        Browser::join(&self.feeds, &self.upstream, at(milliseconds)).await
    }

    fn modify(&mut self, n: u64, value: &str) {
        self.version += 1;
        self.session.modify(self.kind, &uid(n), self.version, value);
    }

    fn delete(&mut self, n: u64) {
        self.version += 1;
        self.session.delete(self.kind, &uid(n), self.version);
    }

    /// The joined ones hold what the first one holds, which was told each change by itself.
    async fn converge(&mut self, mut others: Vec<Browser>) {
        applied().await;
        self.first.take_all();
        for browser in &mut others {
            browser.take_all();
            assert!(browser.consumer.is_synced());
            assert!(browser.values() == self.first.values());
            assert_eq!(browser.resyncs, 0);
            assert!(!String::from_utf8_lossy(&browser.wire).contains("canary") || self.kind != "Secret");
        }
    }
}

fn seqs(wire: &[u8]) -> usize {
    wire.windows(6).filter(|window| window == b"\"seq\":").count()
}

#[tokio::test(start_paused = true)]
async fn a_reader_of_shared_bytes_is_sent_what_a_sweep_sends() {
    for kind in ["ConfigMap", "Secret"] {
        let warm = Warm::of(kind).await;
        let mut wires = Vec::new();
        // A lone join sweeps; those that follow it share.
        for milliseconds in [5_000, 5_100, 5_200, 9_000] {
            let mut browser = warm.join(milliseconds).await;
            browser.take_all();
            assert!(browser.consumer.is_synced());
            assert_eq!(seqs(&browser.wire) as u64, OBJECTS + 2);
            wires.push(browser.wire);
        }
        assert!(wires.iter().all(|wire| *wire == wires[0]), "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_changed_since_the_bytes_is_told_after_them() {
    for kind in ["ConfigMap", "Secret"] {
        let mut warm = Warm::of(kind).await;
        let early = [warm.join(5_000).await, warm.join(5_001).await];
        warm.modify(3, "second");
        warm.delete(5);
        applied().await;
        let late = warm.join(5_002).await;
        warm.modify(3, "third");
        warm.delete(6);
        warm.modify(6, "back");
        applied().await;
        let latest = warm.join(5_003).await;
        let [one, two] = early;
        warm.converge(vec![one, two, late, latest]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_stalls_leaves_the_bytes_and_lacks_nothing() {
    for stall in [999, 1_001, 60_000] {
        for chunks in [0, 1, 3] {
            let mut warm = Warm::of("ConfigMap").await;
            let _ = warm.join(5_000).await;
            let mut browser = warm.join(5_000).await;
            for _ in 0..chunks {
                assert!(browser.take_one());
            }
            warm.modify(1, "second");
            warm.delete(2);
            warm.delete(390);
            warm.delete(391);
            warm.modify(391, "back");
            warm.modify(392, "third");
            warm.version += 1;
            let new = state("ConfigMap", "v", warm.version, "new", 1);
            warm.session.send(krm_stream_protocol::WatchEvent::Added(new));
            applied().await;
            browser.stream.now = at(5_000 + stall);
            warm.converge(vec![browser]).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_that_a_stuck_reader_holds_are_freed_and_it_goes_on_as_a_sweep() {
    let mut warm = Warm::of("Secret").await;
    let _ = warm.join(5_000).await;
    let mut browser = warm.join(5_000).await;
    assert!(browser.take_one());
    let before = seqs(&browser.wire);
    // Nobody polls it; the feed's own time goes by.
    tokio::time::sleep(Duration::from_secs(3)).await;
    warm.modify(399, "second");
    applied().await;
    browser.stream.now = at(5_900);
    assert!(browser.take_one());
    let text = String::from_utf8(browser.wire.clone()).unwrap();
    let last = text.lines().rfind(|line| line.starts_with("data")).unwrap();
    assert!(seqs(&browser.wire) > before && last.contains("\"rev\":1"));
    warm.converge(vec![browser]).await;
}

#[tokio::test(start_paused = true)]
async fn more_deletions_than_a_stream_may_owe_begin_no_new_cycle_for_a_reader_of_shared_bytes() {
    for burst in [50, 128] {
        let mut warm = Warm::of("ConfigMap").await;
        let _ = warm.join(5_000).await;
        let (mut browser, mut deleted) = (warm.join(5_000).await, 0);
        while deleted < 350 && browser.take_one() {
            let held = browser.consumer.objects().count() as u64;
            for _ in 0..burst.min(350 - deleted).min(held) {
                warm.delete(deleted);
                deleted += 1;
            }
            applied().await;
            warm.first.take_all();
        }
        warm.converge(vec![browser]).await;
        assert!(deleted > 256 && warm.first.resyncs == 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_value_rotated_after_the_bytes_were_made_has_revision_two_for_who_read_it_and_one_for_who_did_not()
{
    let rev = |browser: &Browser, n: u64| {
        let held = browser.consumer.get(&uid(n)).unwrap();
        held.redacted().iter().map(|one| one.rev).collect::<Vec<_>>()
    };
    let mut warm = Warm::of("Secret").await;
    let _ = warm.join(5_000).await;
    let (mut reads_on, mut leaves) = (warm.join(5_000).await, warm.join(5_000).await);
    assert!(reads_on.take_one() && leaves.take_one());
    warm.modify(0, "second");
    warm.modify(399, "second");
    applied().await;
    leaves.stream.now = at(7_000);
    for browser in [&mut reads_on, &mut leaves] {
        browser.take_all();
    }
    assert_eq!((rev(&reads_on, 0), rev(&reads_on, 399)), (vec![2], vec![2]));
    assert_eq!(
        (rev(&leaves, 0), rev(&leaves, 399)),
        (vec![2], vec![1]),
        "the first value of the last one was never sent to it"
    );
    warm.modify(399, "third");
    applied().await;
    leaves.take_all();
    assert_eq!(rev(&leaves, 399), [2]);
    warm.converge(vec![reads_on, leaves]).await;
}

#[derive(Default)]
struct Seen(Mutex<Vec<Observation>>);

impl Observer for Seen {
    fn observe(&self, observation: &Observation) {
        self.0.lock().unwrap().push(observation.clone());
    }
}

impl Seen {
    fn emitted(&self, wanted: EventType) -> u64 {
        let seen = self.0.lock().unwrap();
        seen.iter()
            .map(|one| match one {
                Observation::EventEmitted { event_type, count } if *event_type == wanted => *count,
                _ => 0,
            })
            .sum()
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_observed_of_shared_bytes_is_what_is_observed_of_a_sweep() {
    let warm = Warm::of("ConfigMap").await;
    let mut snapshots = Vec::new();
    for milliseconds in [5_000, 5_001, 5_002] {
        let seen = Arc::new(Seen::default());
        let stream = Stream::new(&warm.feeds, Arc::clone(&warm.upstream), Partition::per_caller());
        let mut browser = Browser::begin(stream.observed(seen.clone()), at(milliseconds)).await;
        browser.take_all();
        for (event_type, count) in [
            (EventType::Reset, 1),
            (EventType::Added, OBJECTS),
            (EventType::Synced, 1),
            (EventType::Modified, 0),
        ] {
            assert_eq!(seen.emitted(event_type), count, "{event_type:?}");
        }
        let seen = seen.0.lock().unwrap();
        snapshots.extend(
            seen.iter()
                .filter(|one| matches!(one, Observation::SnapshotDelivered { .. }))
                .cloned(),
        );
    }
    assert_eq!(snapshots.len(), 3);
    assert!(snapshots.iter().all(|one| *one == snapshots[0]), "{snapshots:?}");
}

#[tokio::test(start_paused = true)]
async fn nobody_begins_from_shared_bytes_once_history_was_lost() {
    let mut warm = Warm::of("ConfigMap").await;
    let _ = warm.join(5_000).await;
    let mut reading = warm.join(5_000).await;
    assert!(reading.take_one());
    let before = seqs(&reading.wire);
    let (feeds, upstream) = (warm.feeds.clone(), Arc::clone(&warm.upstream));
    let session = warm.script.expire(warm.session).await;
    let mut waits = Browser::join(&feeds, &upstream, at(5_010)).await;
    waits.take_all();
    assert_eq!(seqs(&waits.wire), 1, "a reset, and nothing of the old state");
    assert!(reading.take_one(), "who reads them is served on meanwhile");
    assert!(seqs(&reading.wire) > before);
    session.send(krm_stream_protocol::WatchEvent::Added(state(
        "ConfigMap",
        "u00007",
        9_000,
        "new",
        1,
    )));
    session.boundary(9_001);
    applied().await;
    reading.take_all();
    assert_eq!(reading.resyncs, 1);
    waits.take_all();
    assert_eq!(waits.values(), [(uid(7), "new".to_owned())]);
    assert!(waits.consumer.is_synced());
    drop(warm.first);
}

/// Before the first item, between items, just before the boundary, and just after it.
#[tokio::test(start_paused = true)]
async fn whoever_joins_while_the_first_snapshot_arrives_is_sent_it_once_and_synced_once() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let upstream: Arc<dyn Upstream> = upstream;
    let feeds = feeds(Duration::from_secs(5));
    let (first, session) = script
        .next_open_when(Browser::join(&feeds, &upstream, at(0)))
        .await;
    let mut browsers = vec![first];
    for part in 0..4 {
        for n in 0..10 {
            let object = state("ConfigMap", &uid(10 * part + n), 10 * part + n + 1, "first", 900);
            session.send(krm_stream_protocol::WatchEvent::Added(object));
        }
        applied().await;
        browsers.push(Browser::join(&feeds, &upstream, at(part)).await);
        browsers.push(Browser::join(&feeds, &upstream, at(part)).await);
        browsers[0].take_all();
    }
    session.boundary(40);
    for late in [true, false] {
        if late {
            browsers.push(Browser::join(&feeds, &upstream, at(5)).await);
            applied().await;
        }
        browsers.push(Browser::join(&feeds, &upstream, at(5)).await);
    }
    for browser in &mut browsers {
        browser.take_all();
        assert!(browser.consumer.is_synced());
        assert_eq!((seqs(&browser.wire), browser.values().len()), (42, 40));
    }
    session.modify("ConfigMap", &uid(7), 41, "second");
    session.delete("ConfigMap", &uid(8), 42);
    applied().await;
    for browser in &mut browsers {
        browser.take_all();
        assert_eq!((seqs(&browser.wire), browser.values().len()), (44, 39));
    }
}

#[test]
fn a_reader_is_small() {
    let size = size_of::<krm_stream_shared::Reader>();
    assert!(size <= 512, "{size} bytes");
}
