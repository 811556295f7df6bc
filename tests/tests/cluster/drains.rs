//! A replica that ends while many read, and the other one to which they come back.

use std::sync::Arc;
use std::time::Duration;

use krm_stream_protocol::ErrorCode;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::api_server::ApiServer;
use crate::gateway::Gateway;
use crate::objects::{config_map, config_maps, has_value, path, set_value};
use crate::viewer::Viewer;

const STREAMS: usize = 500;
/// `--drain-timeout` and `--drain-spread`. All are told at once, and the time is for those who do not read.
const GRACE: Duration = Duration::from_secs(30);
const SPREAD: Duration = Duration::from_secs(4);
/// A replica that begins again at once is not there at once.
const LEAST: Duration = Duration::from_millis(500);

pub(crate) async fn five_hundred_streams_come_back_to_another_replica(api: &ApiServer) {
    let scope = config_maps(&api.create_namespace().await);
    for name in ["written", "steady", "third"] {
        api.create(&scope.api_path(), &config_map(name, "1")).await;
    }
    let flags = [
        "--allow",
        "configmaps",
        "--drain-timeout",
        "30s",
        "--drain-spread",
        "4s",
    ];
    let mut ending = Gateway::start(api, &flags).await;
    let other = Arc::new(Gateway::start(api, &flags).await);
    let mut viewers = Vec::new();
    for _ in 0..STREAMS {
        viewers.push(ending.open(&scope).await);
    }
    for viewer in &mut viewers {
        viewer.until_synced().await;
    }

    let mut readers = JoinSet::new();
    for viewer in viewers {
        readers.spawn(come_back(viewer, Arc::clone(&other)));
    }
    let begin = Instant::now();
    ending.signal("TERM");
    assert!(ending.until_ended().await.success());
    let drained = begin.elapsed();
    assert!(drained < GRACE, "all of them read: {drained:?}");
    api.merge_patch(&path(&scope, "written"), &set_value("2")).await;
    let mut waits = Vec::new();
    let mut readers_back = Vec::new();
    while let Some(reader) = readers.join_next().await {
        let (viewer, wait) = reader.expect("each reader comes back");
        waits.push(wait);
        readers_back.push(viewer);
    }
    let back = begin.elapsed();
    assert_eq!(readers_back.len(), STREAMS);
    // One of them by kubectl's measure, and all by that of the one.
    let (first, others) = readers_back.split_first_mut().expect("there are readers");
    first
        .comes_to_agree_with_kubectl(api, crate::expectation::Versions::Equal)
        .await;
    for viewer in others {
        viewer.until_shows("written", has_value("2")).await;
        assert_eq!(viewer.count_held(), first.count_held());
    }
    waits.sort();
    let quarters = [1, 2, 3].map(|quarter| waits[quarter * STREAMS / 4]);
    eprintln!(
        "{STREAMS} streams: the replica ended after {drained:.1?}, all were back after {back:.1?}; told to wait {:?} to {:?}, \
         quarters {quarters:?}",
        waits[0],
        waits[STREAMS - 1]
    );
    assert!(
        waits[0] >= LEAST && waits[STREAMS - 1] <= LEAST + SPREAD,
        "{quarters:?}"
    );
    assert!(
        quarters[2] >= quarters[0] + SPREAD / 4,
        "they are spread: {quarters:?}"
    );
}

/// Reads to the end, waits as it is told, and opens the stream at the other replica; returns how long it was told to wait.
async fn come_back(mut viewer: Viewer, other: Arc<Gateway>) -> (Viewer, Duration) {
    let is_over = viewer.take_in_until(Instant::now() + crate::wait::WITHIN).await;
    assert!(is_over, "the stream ends; came: {}", viewer.summary());
    let last = viewer
        .events()
        .last()
        .and_then(krm_stream_tests::ReceivedEvent::error);
    let told = last.unwrap_or_else(|| panic!("the end is told; came: {}", viewer.summary()));
    assert_eq!(told.code(), Some(ErrorCode::UpstreamUnavailable));
    assert!(!told.is_terminal());
    let wait = told.retry_after().expect("it is told when to come back");
    sleep(wait).await;
    other.reopen(&mut viewer).await;
    viewer.until_shows("written", has_value("2")).await;
    viewer.until_synced().await;
    (viewer, wait)
}
