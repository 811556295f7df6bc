//! How long it takes from a right's removal to the end of delivery.

use std::time::Duration;

use krm_stream_protocol::{ErrorCode, EventType};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::access::{GROUPS, group, take_away};
use crate::api_server::ApiServer;
use crate::gateway::{Gateway, USER};
use crate::objects::{config_map, config_maps, path, set_value};
use crate::reach::let_read;
use crate::viewer::Viewer;

/// Each is a caller of their own, so that no two checks are one.
const CALLERS: usize = 200;
const INTERVAL: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(3);
/// How often the object changes, so that it is seen who is still delivered to.
const CHANGE: Duration = Duration::from_millis(100);
/// The API server's own authorizer learns of a removed binding a little later than it answers the removal.
const INFORMED: Duration = Duration::from_secs(1);
/// A signal to the gateway, and 200 readers who get their turn on a machine that does other things too.
const SLACK: Duration = Duration::from_secs(2);
/// What the gateway counts its checks by, in milliseconds and as its metrics write it. None takes longer than the timeout.
const CHECKS_WITHIN: [(u64, &str); 8] = [
    (5, "0.005"),
    (10, "0.01"),
    (25, "0.025"),
    (50, "0.05"),
    (100, "0.1"),
    (500, "0.5"),
    (1000, "1.0"),
    (5000, "5.0"),
];

pub(crate) async fn a_role_taken_away_ends_delivery_within_its_budget(api: &ApiServer) {
    let by_time = [
        "--reauthorization-interval",
        &format!("{}ms", INTERVAL.as_millis()),
        "--reauthorization-timeout",
        &format!("{}ms", TIMEOUT.as_millis()),
    ];
    let (ends, _) = ends_of_delivery(api, &by_time, |_| {}).await;
    report("checks each 5 s", &ends);
    let budget = INTERVAL + TIMEOUT + INFORMED;
    assert!(
        ends.iter()
            .all(|end| end.last_object <= budget && end.refusal <= budget)
    );

    let bounded = ["--reauthorization-timeout", by_time[3]];
    let (ends, longest_check) = ends_of_delivery(api, &bounded, Gateway::recheck).await;
    report("a recheck one second after", &ends);
    eprintln!("each check took {longest_check:?} at most");
    // Nothing passes from the recheck on, and the stream is over with the check's answer.
    assert!(ends.iter().all(|end| end.last_object <= INFORMED + SLACK));
    assert!(
        ends.iter()
            .all(|end| end.refusal <= INFORMED + longest_check + SLACK)
    );
}

/// What a caller saw of the end, counted from the removal.
#[derive(Clone, Copy)]
struct End {
    last_object: Duration,
    refusal: Duration,
}

/// The end as each caller saw it, and how long the longest of the checks took that denied them.
async fn ends_of_delivery(api: &ApiServer, flags: &[&str], then: impl Fn(&Gateway)) -> (Vec<End>, Duration) {
    let namespace = api.create_namespace().await;
    let scope = config_maps(&namespace);
    api.create(&scope.api_path(), &config_map("settings", "0")).await;
    let_read(api, &namespace, "configmaps", &group("readers")).await;
    let identity = format!("header:{USER}");
    let who = ["--identity", &identity, "--groups-header", GROUPS];
    let access = ["--allow", "configmaps", "--authorize", "subject-access-review"];
    let gateway = Gateway::start(api, &[&access[..], &who, flags].concat()).await;

    let mut readers = JoinSet::new();
    for caller in 0..CALLERS {
        let headers = [(USER, &*format!("caller-{caller}")), (GROUPS, "readers")];
        let mut viewer = if caller == 0 {
            gateway.open_admitted(&scope, &headers).await
        } else {
            gateway.open_with(&scope, &headers).await
        };
        viewer.until_synced().await;
        readers.spawn(last_delivery(viewer));
    }

    let changing = async {
        for value in 1.. {
            api.merge_patch(&path(&scope, "settings"), &set_value(&value.to_string()))
                .await;
            tokio::time::sleep(CHANGE).await;
        }
    };
    let removed = async {
        take_away(api, &namespace, "configmaps").await;
        let removed = Instant::now();
        tokio::time::sleep(INFORMED).await;
        then(&gateway);
        let mut ends = Vec::new();
        while let Some(end) = readers.join_next().await {
            let (last_object, refusal) = end.expect("a reader does not panic");
            ends.push(End {
                last_object: last_object.saturating_duration_since(removed),
                refusal: refusal.saturating_duration_since(removed),
            });
        }
        (ends, longest_denial(&gateway).await)
    };
    tokio::select! {
        () = changing => unreachable!("it changes for ever"),
        ends = removed => ends,
    }
}

/// How long the longest check took whose answer was no, as far as the buckets tell.
async fn longest_denial(gateway: &Gateway) -> Duration {
    const NAME: &str = "krm_stream_authorization_duration_seconds";
    let denied = ("outcome", "denied");
    let all = gateway.metric(&format!("{NAME}_count"), &[denied]).await;
    assert!(all >= CALLERS as u64, "{all} checks ended with a denial");
    for (milliseconds, at_most) in CHECKS_WITHIN {
        let labels = [denied, ("le", at_most)];
        if gateway.metric(&format!("{NAME}_bucket"), &labels).await == all {
            return Duration::from_millis(milliseconds).min(TIMEOUT);
        }
    }
    panic!("a check took longer than {TIMEOUT:?}, or is counted otherwise")
}

/// Reads to the refusal; when the last object came, and when the refusal.
async fn last_delivery(mut viewer: Viewer) -> (Instant, Instant) {
    let mut last = Instant::now();
    loop {
        let before = viewer.events().len();
        let is_over = viewer
            .take_in_until(Instant::now() + Duration::from_millis(10))
            .await;
        let now = Instant::now();
        if viewer.events()[before..]
            .iter()
            .any(|event| event.event_type() == EventType::Modified)
        {
            last = now;
        }
        if is_over {
            let refusal = viewer.until_ended().await;
            assert_eq!(refusal.code(), Some(ErrorCode::Forbidden));
            return (last, now);
        }
    }
}

fn report(what: &str, ends: &[End]) {
    assert_eq!(ends.len(), CALLERS);
    let mut last: Vec<_> = ends.iter().map(|end| end.last_object).collect();
    last.sort_unstable();
    let refused = ends.iter().map(|end| end.refusal).max().unwrap_or_default();
    eprintln!(
        "{what}: delivery to {CALLERS} callers ended {:.2} s (median) and {:.2} s (last) after the removal; the last refusal came \
         after {:.2} s",
        last[CALLERS / 2].as_secs_f64(),
        last[CALLERS - 1].as_secs_f64(),
        refused.as_secs_f64(),
    );
}
