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

pub(crate) async fn a_role_taken_away_ends_delivery_within_its_budget(api: &ApiServer) {
    let by_time = [
        "--reauthorization-interval",
        &format!("{}ms", INTERVAL.as_millis()),
        "--reauthorization-timeout",
        &format!("{}ms", TIMEOUT.as_millis()),
    ];
    let ends = ends_of_delivery(api, &by_time, |_| {}).await;
    report("checks each 5 s", &ends);
    assert!(ends.iter().all(|end| *end <= INTERVAL + TIMEOUT + INFORMED));

    let bounded = ["--reauthorization-timeout", by_time[3]];
    let ends = ends_of_delivery(api, &bounded, Gateway::recheck).await;
    report("a recheck one second after", &ends);
    assert!(ends.iter().all(|end| *end <= INFORMED + TIMEOUT));
}

/// The time from the removal to the last object, for each caller.
async fn ends_of_delivery(api: &ApiServer, flags: &[&str], then: impl Fn(&Gateway)) -> Vec<Duration> {
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
            let end = end.expect("a reader does not panic");
            ends.push(end.saturating_duration_since(removed));
        }
        ends
    };
    tokio::select! {
        () = changing => unreachable!("it changes for ever"),
        ends = removed => ends,
    }
}

/// Reads to the refusal; when the last object came.
async fn last_delivery(mut viewer: Viewer) -> Instant {
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
            return last;
        }
    }
}

fn report(what: &str, ends: &[Duration]) {
    assert_eq!(ends.len(), CALLERS);
    let mut ends = ends.to_vec();
    ends.sort_unstable();
    eprintln!(
        "{what}: delivery to {CALLERS} callers ended {:.2} s (median) and {:.2} s (last) after the removal",
        ends[CALLERS / 2].as_secs_f64(),
        ends[CALLERS - 1].as_secs_f64(),
    );
}
