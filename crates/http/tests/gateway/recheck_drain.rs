//! What was written to a stream that is told to end, and whose caller's right is in doubt by then.

use std::time::Duration;

use futures_util::StreamExt as _;
use krm_stream_protocol::{Principal, Subject, WatchEvent};
use tokio::time::Instant;

use super::support::{
    AskedAuthorizer, Connection, MOMENT, QUERY, ScriptedUpstream, builder, code_of, config_map, is_cut_off,
    scope, stalled_after, type_of,
};

const SPREAD: Duration = Duration::from_secs(20);
const INTERVAL: Duration = Duration::from_secs(20);

/// It is cut off with the farewell, where no event was begun. Whether that came.
async fn is_dropped(connection: &mut Connection, told: &str) -> bool {
    let Some(last) = is_cut_off(connection, told).await else {
        return false;
    };
    assert_eq!(code_of(&last), "UPSTREAM_UNAVAILABLE", "{told}");
    assert!(last.contains("shutting down"), "{told}: {last}");
    true
}

#[tokio::test(start_paused = true)]
async fn a_recheck_and_a_drain_in_any_order_drop_what_was_not_handed_out() {
    for told in [
        "recheck, drain",
        "drain, recheck",
        "recheck, drain, recheck",
        "drain, recheck, drain",
    ] {
        let (mut between, mut within) = (0, 0);
        for taken in 0..20 {
            let (gateway, mut connection, mut questions, _session) = stalled_after(taken).await;
            for word in told.split(", ") {
                match word {
                    "recheck" => assert_eq!(gateway.recheck(|_, _| true), 1),
                    _ => gateway.drain(SPREAD),
                }
            }
            if is_dropped(&mut connection, told).await {
                between += 1;
            } else {
                within += 1;
            }
            assert!(questions.try_next().is_none(), "it is over without an answer");
            gateway.drained().await;
        }
        assert!(between > 5 && within >= 6, "{told}: {between}, {within}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_recheck_of_a_stream_that_sends_its_rest_drops_it() {
    for taken in 0..20 {
        let (gateway, mut connection, _questions, _session) = stalled_after(taken).await;
        gateway.drain(SPREAD);
        // What was allowed goes out: the first of it does.
        if connection.chunk_events().await.is_none() {
            continue;
        }
        connection.skip_received();
        let is_over = String::from_utf8_lossy(connection.raw()).contains("shutting down");
        gateway.recheck(|_, _| true);
        if is_over {
            assert_eq!(connection.next().await, None);
        } else {
            is_dropped(&mut connection, &format!("drain, chunk, recheck after {taken}")).await;
        }
        gateway.drained().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_alone_or_with_a_recheck_of_others_lets_go_out_what_was_written() {
    for rechecks in [false, true] {
        let mut finished = 0;
        for taken in 0..20 {
            let (gateway, mut connection, _questions, _session) = stalled_after(taken).await;
            let before = connection.raw().len();
            let is_within = before > 0 && !connection.raw().ends_with(b"\n\n");
            if rechecks {
                assert_eq!(gateway.recheck(|_, _| false), 0);
            }
            gateway.drain(SPREAD);
            while connection.chunk_events().await.is_some() {}
            let raw = String::from_utf8_lossy(connection.raw()).into_owned();
            assert!(raw.contains("shutting down"), "after {taken}");
            assert_eq!(
                raw.matches("data: ").count(),
                connection.received(),
                "after {taken}"
            );
            finished += usize::from(is_within);
        }
        assert!(finished > 2, "{finished}: what was begun is finished");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_drained_stream_still_has_goes_out_until_it_would_have_been_checked_on_time() {
    for taken in 0..=6 {
        let (upstream, mut script) = ScriptedUpstream::new();
        let (authorizer, mut questions) = AskedAuthorizer::new();
        let gateway = builder(&upstream)
            .authorizer(authorizer)
            .write_timeout(Duration::from_hours(1))
            .reauthorization_interval(INTERVAL)
            .build()
            .unwrap();
        // Without HTTP, since delivery need not be bounded there.
        let principal = Principal::new(Subject::new("ada").unwrap());
        let frames = gateway.stream(principal, scope(QUERY), None);
        let mut events = frames.map(|frame| String::from_utf8(frame.json().to_vec()).unwrap());
        let opening = async {
            questions.allow_next().await;
            script.next_open().await.accept_with([], "1")
        };
        let (first, session) = tokio::join!(events.next(), opening);
        assert_eq!(type_of(&first.unwrap()), "reset");
        assert_eq!(type_of(&events.next().await.unwrap()), "synced");
        // From now on it is known when it is checked.
        tokio::select! {
            event = events.next() => panic!("{event:?}"),
            () = questions.allow_next() => {}
        }
        for number in 2..12 {
            session.send(WatchEvent::Added(config_map(
                &format!("uid-{number}"),
                number,
                "v",
            )));
        }
        let mut seq = 2;
        let mut next_is_added = async || {
            let event = events.next().await.unwrap();
            seq += 1;
            assert!(
                event.starts_with(&format!("{{\"seq\":{seq},\"type\":\"added\"")),
                "{taken}: {event}"
            );
        };
        for _ in 0..=taken {
            next_is_added().await;
        }
        gateway.drain(SPREAD);
        next_is_added().await;
        let due = Instant::now() + INTERVAL;
        tokio::time::sleep_until(due - MOMENT).await;
        next_is_added().await;
        tokio::time::sleep_until(due).await;
        let last = events.next().await.unwrap();
        let farewell = format!("{{\"seq\":{},\"type\":\"error\"", seq + 1);
        assert!(last.starts_with(&farewell), "{taken}: {last}");
        assert_eq!(code_of(&last), "UPSTREAM_UNAVAILABLE");
        assert_eq!(events.next().await, None);
        assert!(questions.try_next().is_none(), "nobody is asked for it");
    }
}
