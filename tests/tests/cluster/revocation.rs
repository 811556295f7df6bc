//! How long it takes from a right's removal to the end of delivery.

use std::cell::RefCell;
use std::time::Duration;

use krm_stream_protocol::ErrorCode;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::access::{GROUPS, group, take_away, until_reviewed};
use crate::api_server::{ApiServer, text};
use crate::gateway::{Gateway, USER};
use crate::objects::{config_map, config_maps, path, set_value};
use crate::reach::let_read;
use crate::viewer::Viewer;
use crate::wait::{WITHIN, until};

/// Each is a caller of their own, so that no two checks are one.
const CALLERS: usize = 200;
const INTERVAL: Duration = Duration::from_secs(5);
/// A check that takes longer ends its stream for another reason.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often the object changes, so that it is seen who is still delivered to.
const CHANGE: Duration = Duration::from_millis(100);
/// A signal to the gateway, and 200 streams that get their turn on a machine that does other things too.
const SLACK: Duration = Duration::from_secs(2);
/// What the gateway counts its checks by, in milliseconds and as its metrics write it. None takes longer than the timeout.
const CHECKS_WITHIN: [(u64, &str); 9] = [
    (5, "0.005"),
    (10, "0.01"),
    (25, "0.025"),
    (50, "0.05"),
    (100, "0.1"),
    (500, "0.5"),
    (1000, "1.0"),
    (5000, "5.0"),
    (10_000, "10.0"),
];

pub(crate) async fn a_role_taken_away_ends_delivery_within_its_budget(api: &ApiServer) {
    let by_time = [
        "--reauthorization-interval",
        &format!("{}ms", INTERVAL.as_millis()),
        "--reauthorization-timeout",
        &format!("{}ms", TIMEOUT.as_millis()),
    ];
    let (ends, _) = ends_of_delivery(api, &by_time, |_| {}).await;
    ends.report("checks each 5 s");
    let budget = INTERVAL + TIMEOUT + SLACK;
    assert!(ends.last_objects.iter().all(|last| *last <= budget), "{budget:?}");
    assert!(ends.last_refusal <= budget, "{budget:?}");

    let bounded = ["--reauthorization-timeout", by_time[3]];
    let (ends, longest_check) = ends_of_delivery(api, &bounded, Gateway::recheck).await;
    ends.report("a recheck then");
    eprintln!("each check took {longest_check:?} at most");
    // Nothing passes from the recheck on, and the stream is over with the check's answer.
    assert!(ends.last_objects.iter().all(|last| *last <= SLACK));
    assert!(ends.last_refusal <= longest_check + SLACK);
}

/// How delivery ended, counted from when the API server's authorizer was found to know of the removal.
///
/// It is what the gateway did, whenever the readers came to read it: 200 of them may be far behind.
struct Ends {
    /// When the last object was written that was delivered, for each caller; zero if it was before.
    last_objects: Vec<Duration>,
    /// When the gateway had refused all of them.
    last_refusal: Duration,
}

/// The end as each caller saw it, and how long the longest of the checks took that denied them.
async fn ends_of_delivery(api: &ApiServer, flags: &[&str], then: impl Fn(&Gateway)) -> (Ends, Duration) {
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
    let refused_before = refusals(&gateway).await;

    // When each value was sent, the first of which was so before all this.
    let written = RefCell::new(vec![Instant::now()]);
    let changing = async {
        for value in 1.. {
            written.borrow_mut().push(Instant::now());
            api.merge_patch(&path(&scope, "settings"), &set_value(&value.to_string()))
                .await;
            tokio::time::sleep(CHANGE).await;
        }
    };
    let removed = async {
        take_away(api, &namespace, "configmaps").await;
        until_denied(api, &namespace).await;
        let known = Instant::now();
        then(&gateway);
        let last_refusal = until("all callers are refused", async || {
            let asked = known.elapsed();
            (refusals(&gateway).await >= refused_before + CALLERS as u64).then_some(asked)
        })
        .await;
        let mut last_objects = Vec::new();
        while let Some(last) = timeout(WITHIN, readers.join_next())
            .await
            .expect("a reader comes to the end of its stream in time")
        {
            let value = last.expect("a reader does not panic");
            last_objects.push(written.borrow()[value].saturating_duration_since(known));
        }
        let ends = Ends {
            last_objects,
            last_refusal,
        };
        (ends, longest_denial(&gateway).await)
    };
    tokio::select! {
        () = changing => unreachable!("it changes for ever"),
        ends = removed => ends,
    }
}

/// Waits until the API server's own authorizer denies it, of which it learns a little later than it answers the removal.
async fn until_denied(api: &ApiServer, namespace: &str) {
    let attributes = json!({"verb": "watch", "resource": "configmaps", "namespace": namespace});
    let asked = json!({"user": "caller-0", "groups": ["readers"], "resourceAttributes": attributes});
    until_reviewed(api, &asked, false).await;
}

/// How many streams the gateway has refused.
async fn refusals(gateway: &Gateway) -> u64 {
    let forbidden = [("code", ErrorCode::Forbidden.as_str())];
    gateway
        .metric("krm_stream_terminal_errors_total", &forbidden)
        .await
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

/// Reads to the refusal; the last value that came.
async fn last_delivery(mut viewer: Viewer) -> usize {
    // Whether that is in time is for the one to say who knows when it has to be.
    while !viewer.take_in_until(Instant::now() + WITHIN).await {}
    let refusal = viewer.until_ended().await;
    assert_eq!(refusal.code(), Some(ErrorCode::Forbidden));
    let settings = viewer.object("settings").expect("it was delivered");
    text(&settings["data"]["value"])
        .parse()
        .expect("values are numbers")
}

impl Ends {
    fn report(&self, what: &str) {
        assert_eq!(self.last_objects.len(), CALLERS);
        let mut last = self.last_objects.clone();
        last.sort_unstable();
        eprintln!(
            "{what}: what was delivered last to {CALLERS} callers was written {:.2} s (median) and {:.2} s (last) after the \
             removal was known; the last refusal came after {:.2} s",
            last[CALLERS / 2].as_secs_f64(),
            last[CALLERS - 1].as_secs_f64(),
            self.last_refusal.as_secs_f64(),
        );
    }
}
