//! A namespace that is emptied at once, under many readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use krm_stream_protocol::{Moment, Partition, Upstream, WatchEvent};
use krm_stream_shared::{FeedSettings, Feeds, Step};
use tokio::sync::Mutex;

use crate::browser::{Browser, state, uid};
use crate::support::{ScriptedUpstream, Stream, feeds_with};

/// What a reader does once it has all there is.
#[derive(Clone)]
enum Then {
    Waits,
    Rests,
    /// It waits, and once woken for the only processor, on which each look takes 10 ms.
    WaitsForTheProcessor(Arc<Mutex<()>>),
}

/// Empties a collection under readers that take whatever is there whenever they are woken. Returns how many cycles were begun
/// again.
async fn resyncs(readers: usize, then: Then, objects: u64, queue_depth: usize, stuck: usize) -> usize {
    let (upstream, mut script) = ScriptedUpstream::new();
    let upstream: Arc<dyn Upstream> = upstream;
    let feeds = feeds_with(FeedSettings {
        queue_depth,
        ..FeedSettings::default()
    });
    let opening = Browser::join(&feeds, &upstream, Moment::ORIGIN);
    let (mut first, session) = script.next_open_when(opening).await;
    let version = session.fill("ConfigMap", objects, 10);
    session.boundary(version);
    let synced = Arc::new(AtomicUsize::new(0));
    let (done, resyncs) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut tasks = Vec::new();
    for _ in 0..readers {
        let (synced, done, resyncs) = (synced.clone(), done.clone(), resyncs.clone());
        let stream = begun(&feeds, &upstream).await;
        tasks.push(tokio::spawn(read(
            stream,
            then.clone(),
            objects,
            synced,
            done,
            resyncs,
        )));
    }
    let mut stuck_ones = Vec::new();
    for _ in 0..stuck {
        stuck_ones.push(begun(&feeds, &upstream).await);
    }
    wait_for(|| {
        first.take_all();
        synced.load(Ordering::Relaxed) == readers && first.consumer.is_synced()
    })
    .await;
    for n in 0..objects {
        session.delete("ConfigMap", &uid(n), version + 1 + n);
    }
    wait_for(|| done.load(Ordering::Relaxed) + resyncs.load(Ordering::Relaxed) == readers).await;
    for task in tasks {
        task.abort();
    }
    resyncs.load(Ordering::Relaxed)
}

async fn begun(feeds: &Feeds, upstream: &Arc<dyn Upstream>) -> Stream {
    let mut stream = Stream::new(feeds, Arc::clone(upstream), Partition::per_caller());
    stream.begin().await.unwrap();
    stream
}

async fn read(
    mut stream: Stream,
    then: Then,
    objects: u64,
    synced: Arc<AtomicUsize>,
    done: Arc<AtomicUsize>,
    resyncs: Arc<AtomicUsize>,
) {
    let (mut deleted, mut was_synced) = (0, false);
    loop {
        while let Some(chunk) = stream.outbox.take() {
            deleted += count(&chunk, "\"type\":\"deleted\"");
            if !was_synced && count(&chunk, "\"type\":\"synced\"") > 0 {
                was_synced = true;
                synced.fetch_add(1, Ordering::Relaxed);
            }
        }
        if deleted == objects {
            done.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let step = match &then {
            Then::Waits => stream.step().await,
            Then::Rests => stream.step_between_rests().await,
            Then::WaitsForTheProcessor(processor) => {
                stream.step_in_turn(processor, Duration::from_millis(10)).await
            }
        };
        match step {
            Step::Wrote => {}
            Step::NextCycle(_) | Step::End(_) => {
                resyncs.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
    }
}

fn count(bytes: &[u8], wanted: &str) -> u64 {
    std::str::from_utf8(bytes).unwrap().matches(wanted).count() as u64
}

async fn wait_for(mut condition: impl FnMut() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(2), wait).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_thousand_deletions_drive_no_reader_away_that_keeps_up() {
    assert_eq!(resyncs(500, Then::Waits, 5_000, 256, 0).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_do_they_beside_readers_that_are_stuck_or_with_a_short_queue() {
    assert_eq!(resyncs(100, Then::Waits, 1_000, 100, 10).await, 0);
    assert_eq!(resyncs(50, Then::Waits, 100, 1, 0).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_readers_that_rest_between_rousings() {
    assert_eq!(resyncs(500, Then::Rests, 20 * 256, 256, 0).await, 0);
    assert_eq!(resyncs(100, Then::Rests, 10 * 100, 100, 10).await, 0);
    assert_eq!(resyncs(50, Then::Rests, 100, 1, 0).await, 0);
}

#[tokio::test]
async fn nor_do_they_on_one_thread() {
    assert_eq!(resyncs(200, Then::Waits, 2_000, 256, 0).await, 0);
}

#[tokio::test(start_paused = true)]
async fn nor_do_they_where_the_machine_is_so_busy_that_every_look_is_late() {
    let then = Then::WaitsForTheProcessor(Arc::default());
    assert_eq!(resyncs(30, then, 2_000, 64, 0).await, 0);
}

#[tokio::test(start_paused = true)]
async fn nor_does_a_snapshot_that_is_read_again_and_lacks_nearly_all_that_was_sent() {
    const OBJECTS: u64 = 5_000;
    let (upstream, mut script) = ScriptedUpstream::new();
    let upstream: Arc<dyn Upstream> = upstream;
    let feeds = feeds_with(FeedSettings::default());
    let opening = Browser::join(&feeds, &upstream, Moment::ORIGIN);
    let (first, session) = script.next_open_when(opening).await;
    let mut readers = vec![first];
    for _ in 0..3 {
        readers.push(Browser::join(&feeds, &upstream, Moment::ORIGIN).await);
    }
    let version = session.fill("ConfigMap", OBJECTS, 10);
    wait_for(|| {
        readers.iter_mut().for_each(Browser::take_all);
        let have_all = |reader: &Browser| reader.consumer.objects().count() as u64 == OBJECTS;
        readers.iter().all(have_all)
    })
    .await;
    session.send(WatchEvent::SnapshotRestarted);
    session.send(WatchEvent::Added(state("ConfigMap", &uid(7), 17, "first", 10)));
    session.boundary(version);
    session.modify("ConfigMap", &uid(7), version + 1, "second");
    wait_for(|| {
        readers.iter_mut().for_each(Browser::take_all);
        let is_done = |reader: &Browser| reader.consumer.is_synced() || reader.resyncs > 0;
        readers.iter().all(is_done)
    })
    .await;
    for reader in &mut readers {
        reader.take_all();
        assert_eq!(reader.resyncs, 0);
        assert_eq!(reader.values(), [(uid(7), "second".to_owned())]);
    }
}

/// Each of these looks now and then, so that one of them always has not looked yet.
#[tokio::test(start_paused = true)]
async fn slow_readers_hold_up_a_burst_of_deletions_by_seconds_however_many_there_are_of_either() {
    const OBJECTS: u64 = 12_800;
    let (upstream, mut script) = ScriptedUpstream::new();
    let upstream: Arc<dyn Upstream> = upstream;
    let feeds = feeds_with(FeedSettings::default());
    let opening = Browser::join(&feeds, &upstream, Moment::ORIGIN);
    let (mut first, session) = script.next_open_when(opening).await;
    let version = session.fill("ConfigMap", OBJECTS, 10);
    session.boundary(version);
    wait_for(|| {
        first.take_all();
        first.consumer.is_synced()
    })
    .await;
    let mut slow = Vec::new();
    for n in 0..30 {
        let mut stream = begun(&feeds, &upstream).await;
        slow.push(tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(10 * n)).await;
            loop {
                let _ = stream.poll();
                while stream.outbox.take().is_some() {}
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
        }));
    }
    let began = tokio::time::Instant::now();
    for n in 0..OBJECTS {
        session.delete("ConfigMap", &uid(n), version + 1 + n);
    }
    wait_for(|| {
        first.take_all();
        first.consumer.objects().count() == 0
    })
    .await;
    // 100 portions, of which each would wait for 300 ms.
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(first.resyncs, 0);
    for task in slow {
        task.abort();
    }
}
