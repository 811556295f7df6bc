//! Cycles after the first: each takes the same steps again.

use std::sync::Arc;
use std::time::Duration;

use krm_stream_http::{Gateway, GatewayBuilder};
use krm_stream_protocol::{
    Client, Partition, SessionEnd, Start, StreamError, UpstreamError, UpstreamErrorKind, WatchEvent,
};

use super::support::{
    AsCaller, Connection, QUERY, Script, ScriptedSession, ScriptedUpstream, Seam, builder, code_of,
    config_map, get, text_of,
};

type Checks = Seam<Result<(), StreamError>>;

/// A gateway whose authorizer answers by the number of the question.
fn checked(
    answer: impl Fn(usize) -> Result<(), StreamError> + Send + Sync + 'static,
) -> (GatewayBuilder, Checks, Script) {
    let (upstream, script) = ScriptedUpstream::new();
    let authorizer = Seam::new(move |asked| Some(answer(asked)));
    (
        builder(&upstream).authorizer(authorizer.clone()),
        authorizer,
        script,
    )
}

/// Opens a stream of one object, which then lives for a while.
async fn live(gateway: &Gateway, script: &mut Script) -> (Connection, ScriptedSession) {
    let mut connection = get(gateway, QUERY);
    let (types, session) = tokio::join!(connection.types(3), async {
        script
            .next_open()
            .await
            .accept_with([config_map("a", 1, "v")], "1")
    });
    assert_eq!(types, ["reset", "added", "synced"]);
    tokio::time::sleep(Duration::from_mins(1)).await;
    (connection, session)
}

/// Ends the session, and refuses the reopen.
async fn refuse_reopen(session: ScriptedSession, script: &mut Script, error: UpstreamError) {
    session.end(SessionEnd::Closed);
    script.next_open().await.refuse(error);
}

#[tokio::test(start_paused = true)]
async fn a_refused_reopen_has_each_stream_checked_and_refused_as_itself() {
    let (builder, authorizer, mut script) = checked(|_| Ok(()));
    let gateway = builder.build().unwrap();
    let (connection, session) = live(&gateway, &mut script).await;
    let (event, ()) = tokio::join!(connection.only_event(), async {
        refuse_reopen(
            session,
            &mut script,
            UpstreamError::forbidden(Some("of the feed")),
        )
        .await;
        script
            .next_open()
            .await
            .refuse(UpstreamError::forbidden(Some("of this stream")));
    });
    assert_eq!(code_of(&event), "FORBIDDEN", "and no RESYNC_REQUIRED before it");
    assert_eq!(text_of(&event, "message").unwrap(), "of this stream");
    assert_eq!(authorizer.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_refused_reopen_and_a_denial_since_then_end_the_stream_without_another_request() {
    let (builder, _, mut script) = checked(|asked| match asked {
        0 => Ok(()),
        _ => Err(StreamError::forbidden("no longer yours")),
    });
    let gateway = builder.build().unwrap();
    let (connection, session) = live(&gateway, &mut script).await;
    let (event, ()) = tokio::join!(
        connection.only_event(),
        refuse_reopen(
            session,
            &mut script,
            UpstreamError::new(UpstreamErrorKind::Unauthenticated)
        )
    );
    assert_eq!(code_of(&event), "FORBIDDEN");
    assert_eq!(text_of(&event, "message").unwrap(), "no longer yours");
    assert_eq!(script.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_refused_reopen_is_survived_with_a_fresh_credential() {
    let (stale, mut old_script) = ScriptedUpstream::new();
    let (fresh, mut new_script) = ScriptedUpstream::new();
    let (old, new) = (Arc::new(stale.clone()), Arc::new(fresh));
    let client_for = Seam::new(move |asked| {
        let partition = Partition::per_caller();
        Some(Ok(match asked {
            0 => Client {
                upstream: old.clone(),
                partition,
            },
            _ => Client {
                upstream: new.clone(),
                partition,
            },
        }))
    });
    let gateway = builder(&stale).client_for(client_for.clone()).build().unwrap();
    let (mut connection, session) = live(&gateway, &mut old_script).await;
    let (types, _session) = tokio::join!(connection.types(4), async {
        let error = UpstreamError::new(UpstreamErrorKind::Unauthenticated);
        refuse_reopen(session, &mut old_script, error).await;
        new_script
            .next_open()
            .await
            .accept_with([config_map("a", 7, "w")], "7")
    });
    assert_eq!(types, ["RESYNC_REQUIRED", "reset", "added", "synced"]);
    assert_eq!(
        (client_for.asked(), old_script.asked(), new_script.asked()),
        (2, 2, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn of_two_callers_on_one_shared_feed_each_is_checked_as_itself_after_it_was_refused() {
    let (upstream, mut script) = ScriptedUpstream::new();
    // Both may at first; of the two later questions the first is refused.
    let authorizer = Seam::new(|asked| {
        Some(match asked {
            2 => Err(StreamError::forbidden("no longer yours")),
            _ => Ok(()),
        })
    });
    let gateway = builder(&upstream)
        .client_for(AsCaller::partitioned(&upstream, Partition::shared("gateway")))
        .authorizer(authorizer)
        .build()
        .unwrap();
    let (first, session) = live(&gateway, &mut script).await;
    let mut second = get(&gateway, QUERY);
    assert_eq!(second.types(3).await, ["reset", "added", "synced"]);
    refuse_reopen(
        session,
        &mut script,
        UpstreamError::new(UpstreamErrorKind::Unauthenticated),
    )
    .await;
    assert_eq!(code_of(&first.only_event().await), "FORBIDDEN");
    let (types, _session) = tokio::join!(second.types(4), async {
        script
            .next_open()
            .await
            .accept_with([config_map("a", 2, "w")], "2")
    });
    assert_eq!(types, ["RESYNC_REQUIRED", "reset", "added", "synced"]);
}

#[tokio::test(start_paused = true)]
async fn an_isolated_stream_goes_on_with_a_new_feed_after_a_refused_reopen() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream)
        .client_for(AsCaller::partitioned(&upstream, Partition::Isolated))
        .build()
        .unwrap();
    let (mut connection, session) = live(&gateway, &mut script).await;
    let (types, _session) = tokio::join!(connection.types(4), async {
        refuse_reopen(
            session,
            &mut script,
            UpstreamError::new(UpstreamErrorKind::Unauthenticated),
        )
        .await;
        script
            .next_open()
            .await
            .accept_with([config_map("a", 2, "w")], "2")
    });
    assert_eq!(types, ["RESYNC_REQUIRED", "reset", "added", "synced"]);
}

#[tokio::test(start_paused = true)]
async fn who_may_list_but_not_watch_is_forbidden_once_and_not_listed_again() {
    for partition in [
        Partition::per_caller(),
        Partition::Isolated,
        Partition::shared("gateway"),
    ] {
        let (upstream, mut script) = ScriptedUpstream::new();
        let gateway = builder(&upstream)
            .client_for(AsCaller::partitioned(&upstream, partition.clone()))
            .authorizer(Seam::new(|_| Some(Ok(()))))
            .build()
            .unwrap();
        let mut connection = get(&gateway, QUERY);
        let (types, session) = tokio::join!(connection.types(3), async {
            script
                .next_open()
                .await
                .accept_with([config_map("a", 1, "v")], "1")
        });
        assert_eq!(types, ["reset", "added", "synced"]);
        // The list was served; the watch that follows it within the session is not.
        session.end(SessionEnd::Failed(UpstreamError::forbidden(Some("cannot watch"))));
        assert_eq!(code_of(&connection.only_event().await), "FORBIDDEN");
        assert_eq!(script.asked(), 1, "{partition:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_refuses_each_reopen_right_after_a_snapshot_is_not_asked_for_ever() {
    let (builder, _, mut script) = checked(|_| Ok(()));
    let gateway = builder.build().unwrap();
    let mut connection = get(&gateway, QUERY);
    let mut snapshots = 0;
    let refusing = async {
        loop {
            let session = script.next_open().await.accept_with([], "1");
            snapshots += 1;
            tokio::time::sleep(Duration::from_secs(2)).await;
            session.end(SessionEnd::Closed);
            let reopen = script.next_open().await;
            reopen.refuse(UpstreamError::new(UpstreamErrorKind::Rejected));
        }
    };
    let types = tokio::select! {
        types = connection.types(6) => types,
        () = refusing => unreachable!(),
    };
    assert_eq!(
        types,
        [
            "reset",
            "synced",
            "RESYNC_REQUIRED",
            "reset",
            "synced",
            "INTERNAL"
        ]
    );
    assert_eq!(connection.next().await, None);
    assert_eq!(snapshots, 2);
}

#[tokio::test(start_paused = true)]
async fn a_lost_history_has_the_stream_checked_before_its_new_cycle() {
    let (builder, authorizer, mut script) = checked(|asked| match asked {
        0 | 1 => Ok(()),
        _ => Err(StreamError::forbidden("no longer yours")),
    });
    let gateway = builder.build().unwrap();
    let (mut connection, session) = live(&gateway, &mut script).await;
    session.end(SessionEnd::Expired);
    let session = script
        .next_open()
        .await
        .accept_with([config_map("a", 5, "w")], "5");
    assert_eq!(
        connection.types(4).await,
        ["RESYNC_REQUIRED", "reset", "added", "synced"]
    );
    assert_eq!(authorizer.asked(), 2);
    tokio::time::sleep(Duration::from_mins(2)).await;
    session.end(SessionEnd::Expired);
    let _session = script
        .next_open()
        .await
        .accept_with([config_map("canary", 9, "w")], "9");
    assert_eq!(connection.types(2).await, ["RESYNC_REQUIRED", "FORBIDDEN"]);
    assert_eq!(connection.next().await, None);
    assert!(!String::from_utf8_lossy(connection.raw()).contains("canary"));
}

#[tokio::test(start_paused = true)]
async fn a_routine_end_of_the_watch_is_resumed_and_nobody_is_asked() {
    let (builder, authorizer, mut script) = checked(|_| Ok(()));
    let gateway = builder.build().unwrap();
    let (mut connection, session) = live(&gateway, &mut script).await;
    session.end(SessionEnd::Closed);
    let opening = script.next_open().await;
    assert_eq!(opening.start, Start::After("1".into()));
    let session = opening.accept();
    session.send(WatchEvent::Modified(config_map("a", 2, "w")));
    assert_eq!(connection.types(1).await, ["modified"]);
    assert_eq!(authorizer.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_terminal_error_is_the_last_event_whatever_else_was_due() {
    let (builder, _, mut script) = checked(|_| Ok(()));
    let gateway = builder.build().unwrap();
    let (connection, session) = live(&gateway, &mut script).await;
    for version in 2..50 {
        session.send(WatchEvent::Added(config_map(
            &format!("late-{version}"),
            version,
            "v",
        )));
    }
    session.end(SessionEnd::Failed(UpstreamError::new(
        UpstreamErrorKind::Unreadable,
    )));
    let event = connection.only_event().await;
    assert_eq!(code_of(&event), "INTERNAL");
    assert!(event.contains("\"terminal\":true"));
    assert_eq!(gateway.feeds().count(), 0);
}
