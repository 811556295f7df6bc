//! `delivery_interval`: a stream sends at most once per interval.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use futures_util::Stream as _;
use krm_stream_http::Gateway;
use krm_stream_protocol::{Principal, StreamError, Subject, WatchEvent};
use tokio::time::Instant;

use super::support::{
    AskedAuthorizer, Connection, QUERY, Script, ScriptedSession, ScriptedUpstream, Seam, builder, config_map,
    get, nothing_comes, scope,
};

const INTERVAL: Duration = Duration::from_millis(500);
const MOMENT: Duration = Duration::from_millis(1);

async fn live(gateway: &Gateway, script: &mut Script) -> (Connection, ScriptedSession) {
    let mut connection = get(gateway, QUERY);
    let (_, session) = tokio::join!(connection.types(2), async {
        script.next_open().await.accept_with([], "1")
    });
    nothing_comes(&mut connection, INTERVAL * 2).await;
    (connection, session)
}

#[tokio::test(start_paused = true)]
async fn what_changes_meanwhile_goes_out_together_and_each_object_once() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream).delivery_interval(INTERVAL).build().unwrap();
    let (mut connection, session) = live(&gateway, &mut script).await;
    let changes = async {
        for version in 2..1002_u64 {
            let uid = if version % 2 == 0 { "a" } else { "b" };
            session.send(WatchEvent::Modified(config_map(
                uid,
                version,
                &version.to_string(),
            )));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let begun = Instant::now();
    let mut at = Vec::new();
    let reading = async {
        // The first at once; then two objects every half second for five seconds.
        while at.len() < 21 {
            connection.events(1).await;
            at.push(begun.elapsed());
        }
    };
    tokio::join!(changes, reading);
    assert!(at[0] <= Duration::from_millis(5), "{at:?}");
    for (first, second) in at[1..].chunks(2).map(|pair| (pair[0], pair[1])) {
        assert_eq!(first, second, "{at:?}");
    }
    for pair in at[1..].chunks(2).collect::<Vec<_>>().windows(2) {
        let apart = pair[1][0].saturating_sub(pair[0][0]);
        assert!(
            apart >= INTERVAL && apart < INTERVAL + Duration::from_millis(20),
            "{apart:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_snapshot_comes_as_fast_as_it_can() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream)
        .delivery_interval(Duration::from_mins(1))
        .build()
        .unwrap();
    let mut connection = get(&gateway, QUERY);
    let begun = Instant::now();
    let opening = async {
        let session = script.next_open().await.accept();
        for version in 1..=20_u64 {
            session.send(WatchEvent::Added(config_map(
                &format!("o{version}"),
                version,
                &"x".repeat(30_000),
            )));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        session.boundary("20");
        session
    };
    let (types, _session) = tokio::join!(connection.types(22), opening);
    assert_eq!(types[21], "synced");
    assert!(
        begun.elapsed() < Duration::from_millis(250),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn checks_and_drains_end_a_resting_stream_at_once() {
    for is_drained in [true, false] {
        let (upstream, mut script) = ScriptedUpstream::new();
        let gateway = builder(&upstream)
            .authorizer(Seam::new(|asked| {
                Some(match asked {
                    0 => Ok(()),
                    _ => Err(StreamError::forbidden("no longer yours")),
                })
            }))
            .delivery_interval(Duration::from_mins(1))
            .build()
            .unwrap();
        let (mut connection, session) = live(&gateway, &mut script).await;
        session.send(WatchEvent::Added(config_map("a", 2, "v")));
        connection.events(1).await;
        session.send(WatchEvent::Added(config_map("b", 3, "v")));
        nothing_comes(&mut connection, MOMENT).await;
        let begun = Instant::now();
        if is_drained {
            gateway.drain(Duration::from_secs(1));
        } else {
            gateway.recheck(|_, _| true);
        }
        assert_eq!(
            connection.types(1).await,
            [if is_drained {
                "UPSTREAM_UNAVAILABLE"
            } else {
                "FORBIDDEN"
            }]
        );
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}

#[derive(Default)]
struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn a_resting_stream_is_not_woken_by_each_change() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream).delivery_interval(INTERVAL).build().unwrap();
    let principal = Principal::new(Subject::new("ada").unwrap());
    let mut frames = gateway.stream(principal, scope(QUERY), None);
    let counter = Arc::new(Counter::default());
    let waker = Waker::from(Arc::clone(&counter));
    let mut poll = || Pin::new(&mut frames).poll_next(&mut Context::from_waker(&waker));
    assert!(poll().is_pending());
    let session = script.next_open().await.accept_with([], "1");
    tokio::time::sleep(INTERVAL * 2).await;
    while poll().is_ready() {}
    tokio::time::sleep(INTERVAL * 2).await;
    session.send(WatchEvent::Added(config_map("a", 2, "v")));
    tokio::time::sleep(MOMENT).await;
    assert!(poll().is_ready());
    assert!(poll().is_pending());
    let before = counter.0.load(Ordering::SeqCst);
    let (mut polls, begun) = (0, Instant::now());
    for version in 3..1000_u64 {
        if begun.elapsed() + MOMENT * 10 >= INTERVAL {
            break;
        }
        session.send(WatchEvent::Modified(config_map(
            "a",
            version,
            &version.to_string(),
        )));
        tokio::time::sleep(MOMENT).await;
        // A task is polled when it is woken.
        if counter.0.load(Ordering::SeqCst) > before + polls {
            polls += 1;
            assert!(poll().is_pending());
        }
    }
    assert!(polls <= 1, "{polls} polls for some 490 changes");
    tokio::time::sleep(MOMENT * 20).await;
    assert!(poll().is_ready());
    assert!(poll().is_pending());
}

/// Streams that rest beside each other, with so many objects `o0`, `o1` and so on, and `last`, which all have just been sent.
async fn resting(
    gateway: &Gateway,
    script: &mut Script,
    streams: usize,
    objects: u64,
) -> (Vec<Connection>, ScriptedSession) {
    let mut first = get(gateway, QUERY);
    let there = (0..objects).map(|n| config_map(&format!("o{n}"), 1 + n, "v"));
    let snapshot = usize::try_from(objects).unwrap() + 2;
    let (_, session) = tokio::join!(first.types(snapshot), async {
        script.next_open().await.accept_with(there, "10000")
    });
    let mut connections = vec![first];
    for _ in 1..streams {
        let mut connection = get(gateway, QUERY);
        connection.types(snapshot).await;
        connections.push(connection);
    }
    tokio::time::sleep(INTERVAL * 2).await;
    for connection in &mut connections {
        nothing_comes(connection, MOMENT).await;
    }
    session.send(WatchEvent::Added(config_map("last", 10_001, "v")));
    for connection in &mut connections {
        assert_eq!(connection.types(1).await, ["added"]);
    }
    for connection in &mut connections {
        nothing_comes(connection, MOMENT).await;
    }
    (connections, session)
}

fn delete(session: &ScriptedSession, objects: u64) {
    for n in 0..objects {
        session.send(WatchEvent::Deleted(config_map(&format!("o{n}"), 10_002 + n, "v")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_scope_that_is_emptied_at_once_drives_no_resting_stream_away_but_one_that_is_stalled() {
    const OBJECTS: u64 = 5_000;
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream).delivery_interval(INTERVAL).build().unwrap();
    let (connections, session) = resting(&gateway, &mut script, 4, OBJECTS).await;
    let [mut one, mut another, mut third, mut stalled] = <[Connection; 4]>::try_from(connections).unwrap();
    let begun = Instant::now();
    delete(&session, OBJECTS);
    let deletions = usize::try_from(OBJECTS).unwrap();
    let (from_one, from_another, from_third) = tokio::join!(
        one.types(deletions),
        another.types(deletions),
        third.types(deletions)
    );
    for types in [from_one, from_another, from_third] {
        assert_eq!(types, vec!["deleted"; deletions]);
    }
    // The one that is stalled was waited for, once; the last few of the burst were not worth rousing anyone.
    assert!(begun.elapsed() < INTERVAL * 3 / 2, "{:?}", begun.elapsed());

    let mut fast = [one, another, third];
    for connection in &mut fast {
        nothing_comes(connection, MOMENT).await;
    }
    let sent = Instant::now();
    session.send(WatchEvent::Modified(config_map("last", 20_000, "w")));
    for connection in &mut fast {
        assert_eq!(connection.types(1).await, ["modified"]);
        assert!(
            sent.elapsed() + MOMENT * 10 > INTERVAL,
            "it rests anew since it sent"
        );
    }
    assert_eq!(
        stalled.types(4).await,
        ["RESYNC_REQUIRED", "reset", "added", "synced"]
    );
}

#[tokio::test(start_paused = true)]
async fn fewer_deletions_than_half_of_what_a_stream_may_owe_wait_for_the_interval() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream)
        .delivery_interval(INTERVAL)
        .queue_depth(16)
        .build()
        .unwrap();
    let (mut connections, session) = resting(&gateway, &mut script, 2, 16).await;
    let begun = Instant::now();
    delete(&session, 7);
    for connection in &mut connections {
        assert_eq!(connection.types(7).await, vec!["deleted"; 7]);
        assert!(begun.elapsed() + MOMENT * 10 > INTERVAL, "{:?}", begun.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_that_lasts_longer_than_the_rest_holds_what_the_rest_held() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let (authorizer, mut questions) = AskedAuthorizer::new();
    let gateway = builder(&upstream)
        .authorizer(authorizer)
        .delivery_interval(INTERVAL)
        .build()
        .unwrap();
    let mut connection = get(&gateway, QUERY);
    let (_, session) = tokio::join!(connection.types(2), async {
        questions.allow_next().await;
        script.next_open().await.accept_with([], "1")
    });
    nothing_comes(&mut connection, INTERVAL * 2).await;
    session.send(WatchEvent::Added(config_map("a", 2, "v")));
    connection.events(1).await;
    gateway.recheck(|_, _| true);
    session.send(WatchEvent::Added(config_map("b", 3, "v")));
    nothing_comes(&mut connection, INTERVAL * 4).await;
    let (types, ()) = tokio::join!(connection.types(1), questions.allow_next());
    assert_eq!(types, ["added"]);
}
