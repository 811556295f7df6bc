//! Consumers that leave: whatever is under way for them ends.

use std::sync::Arc;
use std::time::Duration;

use krm_stream_http::{Gateway, GatewayBuilder};
use krm_stream_protocol::{Partition, WatchEvent};
use tokio::runtime::Handle;

use super::support::{
    AsCaller, Connection, QUERY, Recorder, Script, ScriptedUpstream, Seam, builder, config_map, eventually,
    get,
};

struct Setup {
    gateway: Gateway,
    recorder: Arc<Recorder>,
    script: Script,
}

fn setup(set: impl FnOnce(GatewayBuilder, &ScriptedUpstream) -> GatewayBuilder) -> Setup {
    let (upstream, script) = ScriptedUpstream::new();
    let recorder = Arc::new(Recorder::default());
    let builder = set(builder(&upstream), &upstream).observer(recorder.clone());
    Setup {
        gateway: builder.build().unwrap(),
        recorder,
        script,
    }
}

/// Looks at the body until it waits.
async fn until_it_waits(connection: &mut Connection) {
    let chunk = tokio::time::timeout(Duration::from_millis(10), connection.chunk()).await;
    assert!(chunk.is_err(), "{chunk:?}");
}

impl Setup {
    /// Closes the connection; nothing may be left of it within moments, and without another event.
    async fn leaves_nothing(&self, connection: Connection) {
        drop(connection);
        eventually("its task ends", || {
            Handle::current().metrics().num_alive_tasks() == 0
        })
        .await;
        assert_eq!(self.recorder.still_open(), [0, 0, 0]);
        assert_eq!(self.script.open_sessions(), 0);
        assert_eq!(self.gateway.feeds().count(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn leaving_before_the_caller_is_known() {
    let setup = setup(|builder, _| builder.resolver(Seam::hangs()));
    let mut connection = get(&setup.gateway, QUERY);
    until_it_waits(&mut connection).await;
    setup.leaves_nothing(connection).await;
    assert_eq!(setup.recorder.all(), [], "it never entered");
}

#[tokio::test(start_paused = true)]
async fn leaving_during_the_authorizers_check() {
    let authorizer = Seam::hangs();
    let setup = setup(|builder, _| builder.authorizer(authorizer.clone()));
    let mut connection = get(&setup.gateway, QUERY);
    until_it_waits(&mut connection).await;
    assert_eq!(authorizer.asked(), 1);
    assert_eq!(setup.recorder.still_open(), [1, 0, 0]);
    setup.leaves_nothing(connection).await;
    assert_eq!(setup.script.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn leaving_while_the_upstream_is_being_opened_cancels_the_request() {
    for partition in [
        Partition::per_caller(),
        Partition::Isolated,
        Partition::per_caller(),
    ] {
        let mut setup = setup(|builder, upstream| {
            builder
                .client_for(AsCaller::partitioned(upstream, partition))
                .linger(Duration::from_mins(1))
        });
        let mut connection = get(&setup.gateway, QUERY);
        until_it_waits(&mut connection).await;
        let opening = setup.script.next_open().await;
        assert!(!opening.is_abandoned());
        setup.leaves_nothing(connection).await;
        assert!(opening.is_abandoned());
    }
}

#[tokio::test(start_paused = true)]
async fn leaving_in_the_snapshot() {
    let mut setup = setup(|builder, _| builder);
    let mut connection = get(&setup.gateway, QUERY);
    let (types, session) = tokio::join!(connection.types(2), async {
        let session = setup.script.next_open().await.accept();
        session.send(WatchEvent::Added(config_map("a", 1, "v")));
        session
    });
    assert_eq!(types, ["reset", "added"]);
    setup.leaves_nothing(connection).await;
    drop(session);
}

#[tokio::test(start_paused = true)]
async fn leaving_within_a_large_event() {
    let mut setup = setup(|builder, _| builder);
    let mut connection = get(&setup.gateway, QUERY);
    let (_, session) = tokio::join!(connection.types(2), async {
        setup.script.next_open().await.accept_with([], "1")
    });
    session.send(WatchEvent::Added(config_map("a", 2, &"x".repeat(3 << 20))));
    let beginning = connection.chunk().await.unwrap();
    assert!(!beginning.ends_with(b"\n\n"), "only a part of it was taken");
    setup.leaves_nothing(connection).await;
}

#[tokio::test(start_paused = true)]
async fn leaving_a_quiet_stream_ends_the_session_though_the_upstream_says_nothing() {
    let mut setup = setup(|builder, _| builder);
    let mut connection = get(&setup.gateway, QUERY);
    let (_, session) = tokio::join!(connection.types(2), async {
        setup.script.next_open().await.accept_with([], "1")
    });
    until_it_waits(&mut connection).await;
    setup.leaves_nothing(connection).await;
    drop(session);
}

#[tokio::test(start_paused = true)]
async fn the_session_outlives_its_last_stream_by_the_linger_time_and_no_longer() {
    let mut setup = setup(|builder, _| builder.linger(Duration::from_secs(5)));
    let mut connection = get(&setup.gateway, QUERY);
    let (_, _session) = tokio::join!(connection.types(2), async {
        setup.script.next_open().await.accept_with([], "1")
    });
    drop(connection);
    tokio::time::sleep(Duration::from_millis(4900)).await;
    assert_eq!(setup.script.open_sessions(), 1);
    let mut again = get(&setup.gateway, QUERY);
    assert_eq!(again.types(2).await, ["reset", "synced"]);
    assert_eq!(setup.script.asked(), 1, "a reload joins the warm feed");
    drop(again);
    tokio::time::sleep(Duration::from_millis(5100)).await;
    assert_eq!(setup.script.open_sessions(), 0);
    assert_eq!(setup.recorder.still_open(), [0, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn one_of_two_that_wait_for_an_opening_may_leave() {
    let mut setup = setup(|builder, _| builder);
    let mut first = get(&setup.gateway, QUERY);
    let mut second = get(&setup.gateway, QUERY);
    until_it_waits(&mut first).await;
    until_it_waits(&mut second).await;
    let opening = setup.script.next_open().await;
    drop(first);
    until_it_waits(&mut second).await;
    assert!(!opening.is_abandoned());
    let _session = opening.accept_with([], "1");
    assert_eq!(second.types(2).await, ["reset", "synced"]);
    assert_eq!(setup.script.asked(), 1);
    setup.leaves_nothing(second).await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_that_come_and_go_leave_nothing() {
    let mut setup = setup(|builder, _| builder);
    for round in 0..1000 {
        let mut connection = get(&setup.gateway, QUERY);
        match round % 4 {
            0 => {}
            1 => until_it_waits(&mut connection).await,
            _ => {
                let (types, _session) = tokio::join!(connection.types(2), async {
                    loop {
                        // Those who left before an answer asked too.
                        let opening = setup.script.next_open().await;
                        if !opening.is_abandoned() {
                            break opening.accept_with([], "1");
                        }
                    }
                });
                assert_eq!(types, ["reset", "synced"]);
            }
        }
        drop(connection);
        tokio::task::yield_now().await;
    }
    setup.leaves_nothing(get(&setup.gateway, QUERY)).await;
}
