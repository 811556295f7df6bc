//! `reauthorization_interval`: open streams are checked on time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use krm_stream_http::{Frames, Gateway, GatewayBuilder};
use krm_stream_protocol::{Partition, Principal, StreamError, Subject, WatchEvent};
use tokio::time::Instant;

use super::support::{
    AsCaller, AskedAuthorizer, QUERY, Question, Questions, Script, ScriptedSession, ScriptedUpstream, Seam,
    builder, code_of, config_map, scope, type_of,
};

const SECOND: Duration = Duration::from_secs(1);
const INTERVAL: Duration = Duration::from_secs(20);
const TIMEOUT: Duration = Duration::from_secs(10);

fn timed(builder: GatewayBuilder) -> Gateway {
    builder
        .write_timeout(Duration::from_secs(30))
        .reauthorization_interval(INTERVAL)
        .reauthorization_timeout(TIMEOUT)
        .build()
        .unwrap()
}

/// Without HTTP, since delivery need not be bounded there.
fn open(gateway: &Gateway, user: &str) -> Frames {
    gateway.stream(Principal::new(Subject::new(user).unwrap()), scope(QUERY), None)
}

async fn next(frames: &mut Frames) -> Option<String> {
    let frame = frames.next().await?;
    Some(String::from_utf8(frame.json().to_vec()).unwrap())
}

/// A stream of which all is delivered that there is.
async fn synced(
    gateway: &Gateway,
    questions: &mut Questions,
    script: &mut Script,
) -> (Frames, ScriptedSession) {
    let mut frames = open(gateway, "ada");
    let opening = async {
        questions.allow_next().await;
        script.next_open().await.accept_with([], "1")
    };
    let (reset, session) = tokio::join!(next(&mut frames), opening);
    assert_eq!(type_of(&reset.unwrap()), "reset");
    assert_eq!(type_of(&next(&mut frames).await.unwrap()), "synced");
    (frames, session)
}

/// The next time that the stream is checked, until when nothing comes.
async fn next_question(frames: &mut Frames, questions: &mut Questions) -> Question {
    tokio::select! {
        event = next(frames) => panic!("{event:?}"),
        question = questions.next() => question,
    }
}

/// Reads to the end, and says when something last came before it.
async fn read_out(mut frames: Frames) -> (String, Instant) {
    let (mut last, mut delivered) = (String::new(), Instant::now());
    while let Some(event) = next(&mut frames).await {
        if type_of(&event) == "modified" {
            delivered = Instant::now();
        }
        last = event;
    }
    (last, delivered)
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_taken_away_ends_delivery_within_the_interval_and_the_timeout() {
    for takes in [Duration::ZERO, SECOND * 5, SECOND * 9] {
        let (upstream, mut script) = ScriptedUpstream::new();
        let is_allowed = Arc::new(AtomicBool::new(true));
        let right = Arc::clone(&is_allowed);
        let gateway = timed(
            builder(&upstream)
                .client_for(AsCaller::partitioned(&upstream, Partition::shared("gateway")))
                .authorizer(Slow { takes, right }),
        );
        let mut streams = Vec::new();
        for user in 0..50 {
            streams.push(open(&gateway, &format!("user-{user}")));
        }
        let changes = async {
            let session = script
                .next_open()
                .await
                .accept_with([config_map("a", 1, "v")], "1");
            for version in 2_u64.. {
                tokio::time::sleep(Duration::from_millis(100)).await;
                session.send(WatchEvent::Modified(config_map(
                    "a",
                    version,
                    &version.to_string(),
                )));
            }
        };
        let mut ends = Vec::new();
        let reading = async {
            let readers = streams.into_iter().map(|frames| tokio::spawn(read_out(frames)));
            let readers: Vec<_> = readers.collect();
            tokio::time::sleep(INTERVAL * 3 + SECOND / 3).await;
            assert!(readers.iter().all(|reader| !reader.is_finished()));
            is_allowed.store(false, Ordering::SeqCst);
            let removed = Instant::now();
            for reader in readers {
                let (last, delivered) = reader.await.unwrap();
                assert_eq!(code_of(&last), "FORBIDDEN");
                ends.push(delivered.saturating_duration_since(removed));
            }
            assert!(removed.elapsed() <= INTERVAL + TIMEOUT, "{:?}", removed.elapsed());
        };
        tokio::select! {
            () = reading => {}
            () = changes => unreachable!(),
        }
        ends.sort_unstable();
        assert!(ends[49] <= INTERVAL + TIMEOUT, "{ends:?}");
        assert!(
            ends[5] < INTERVAL / 2 && ends[45] > INTERVAL / 2,
            "spread over the interval: {ends:?}"
        );
    }
}

/// Takes a while for each check, and answers what is true when it is asked.
struct Slow {
    takes: Duration,
    right: Arc<AtomicBool>,
}

impl krm_stream_protocol::Authorizer for Slow {
    fn authorize<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a krm_stream_protocol::Scope,
    ) -> krm_stream_protocol::BoxFuture<'a, Result<(), StreamError>> {
        let is_allowed = self.right.load(Ordering::SeqCst);
        Box::pin(async move {
            tokio::time::sleep(self.takes).await;
            if is_allowed {
                Ok(())
            } else {
                Err(StreamError::forbidden("no longer yours"))
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn streams_that_begin_together_are_not_checked_together() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let gateway = timed(builder(&upstream).authorizer(Seam::new(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        Some(Ok(()))
    })));
    let streams: Vec<_> = (0..1000)
        .map(|_| tokio::spawn(read_out(open(&gateway, "ada"))))
        .collect();
    let session = script.next_open().await.accept_with([], "1");
    tokio::time::sleep(SECOND / 100).await;
    let mut before = asked.load(Ordering::SeqCst);
    assert!((1000..1100).contains(&before));
    // Two intervals: as many checks in each second as in any other, and one for each stream and interval.
    for _ in 0..40 {
        tokio::time::sleep(SECOND).await;
        let now = asked.load(Ordering::SeqCst);
        assert!(
            (15..110).contains(&(now - before)),
            "{} in a second",
            now - before
        );
        before = now;
    }
    assert!((2950..=3050).contains(&before), "{before}");
    for stream in streams {
        stream.abort();
    }
    drop(session);
}

#[tokio::test(start_paused = true)]
async fn a_check_on_time_is_a_reason_of_its_own_and_is_bounded_by_it() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let (authorizer, mut questions) = AskedAuthorizer::new();
    let gateway = timed(builder(&upstream).authorizer(authorizer));
    let (frames, session) = synced(&gateway, &mut questions, &mut script).await;
    let reader = tokio::spawn(read_out(frames));
    let question = questions.next().await;
    let trigger = question.trigger.unwrap();
    assert_eq!(trigger, Instant::now());
    session.send(WatchEvent::Added(config_map("canary", 2, "v")));
    // Not even sent, and given up after the timeout all the same.
    let (last, _) = reader.await.unwrap();
    assert_eq!(code_of(&last), "UPSTREAM_UNAVAILABLE");
    assert_eq!(trigger.elapsed(), TIMEOUT);
    assert!(question.is_abandoned());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_waits_for_its_feed_is_checked_too() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let (authorizer, mut questions) = AskedAuthorizer::new();
    let gateway = timed(builder(&upstream).authorizer(authorizer));
    let reader = tokio::spawn(read_out(open(&gateway, "ada")));
    questions.allow_next().await;
    let opening = script.next_open().await;
    for _ in 0..3 {
        questions.allow_next().await;
    }
    questions.next().await.deny();
    let (last, _) = reader.await.unwrap();
    assert!(
        last.starts_with("{\"seq\":1,\"type\":\"error\",\"code\":\"FORBIDDEN\""),
        "{last}"
    );
    assert!(opening.is_abandoned());
}

#[tokio::test(start_paused = true)]
async fn checks_that_take_longer_than_the_interval_still_let_something_through() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let right = Arc::new(AtomicBool::new(true));
    let takes = SECOND * 3;
    let gateway = builder(&upstream)
        .authorizer(Slow { takes, right })
        .write_timeout(SECOND * 30)
        .reauthorization_interval(SECOND)
        .build()
        .unwrap();
    let mut frames = open(&gateway, "ada");
    let (_, session) = tokio::join!(next(&mut frames), async {
        script.next_open().await.accept_with([], "1")
    });
    next(&mut frames).await;
    for version in 2..50_u64 {
        session.send(WatchEvent::Modified(config_map(
            "a",
            version,
            &version.to_string(),
        )));
        let asked = Instant::now();
        assert!(next(&mut frames).await.is_some());
        assert!(asked.elapsed() <= takes + SECOND / 2);
    }
}

#[tokio::test(start_paused = true)]
async fn an_allowed_that_is_heard_after_its_time_is_asked_for_again() {
    for by in ["time", "recheck"] {
        for is_still_allowed in [true, false] {
            let (upstream, mut script) = ScriptedUpstream::new();
            let (authorizer, mut questions) = AskedAuthorizer::new();
            let gateway = timed(builder(&upstream).authorizer(authorizer));
            let (mut frames, session) = synced(&gateway, &mut questions, &mut script).await;
            if by == "recheck" {
                gateway.recheck(|_, _| true);
            }
            let mut question = next_question(&mut frames, &mut questions).await;
            question.send();
            session.send(WatchEvent::Added(config_map("canary", 2, "v")));
            // Its reader stops reading; the answer comes, and waits.
            question.answer(Ok(()));
            tokio::time::sleep(TIMEOUT + SECOND).await;
            let heard = Instant::now();
            let again = tokio::select! {
                event = next(&mut frames) => panic!("{by}: {event:?} on the strength of an old answer"),
                again = questions.next() => again,
            };
            assert_eq!(again.trigger, Some(heard), "{by}");
            // The time of this one is its own.
            tokio::select! {
                event = next(&mut frames) => panic!("{by}: {event:?}"),
                () = tokio::time::sleep(TIMEOUT / 2) => {}
            }
            if is_still_allowed {
                again.answer(Ok(()));
                assert_eq!(type_of(&next(&mut frames).await.unwrap()), "added");
            } else {
                again.deny();
                assert_eq!(code_of(&next(&mut frames).await.unwrap()), "FORBIDDEN");
                assert_eq!(next(&mut frames).await, None);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_allowed_that_is_heard_late_and_in_time_counts() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let (authorizer, mut questions) = AskedAuthorizer::new();
    let gateway = timed(builder(&upstream).authorizer(authorizer));
    let (mut frames, session) = synced(&gateway, &mut questions, &mut script).await;
    let question = next_question(&mut frames, &mut questions).await;
    session.send(WatchEvent::Added(config_map("a", 2, "v")));
    let deadline = question.trigger.unwrap() + TIMEOUT;
    question.answer(Ok(()));
    tokio::time::sleep_until(deadline).await;
    assert_eq!(type_of(&next(&mut frames).await.unwrap()), "added");
    assert!(questions.try_next().is_none());
}
