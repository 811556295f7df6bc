//! H2: streams of one HTTP/2 connection, with and without TLS: one that stalls is reset alone, and streams that come and go
//! leave nothing.

use std::time::Duration;

use krm_stream_protocol::{StreamError, WatchEvent};
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::support::{Client, Host, Kind, Seam, Sizes, WRITE_TIMEOUT, config_map, eventually, is_in_time};

#[tokio::test(start_paused = true)]
async fn of_two_streams_the_stalled_one_is_reset_in_time_and_the_other_misses_nothing() {
    for kind in Kind::MULTIPLEXED {
        let mut host = Host::new();
        let mut client = Client::connect(kind, host.gateway.clone()).await;
        let (mut stalled, session) =
            tokio::join!(client.open(), async { host.script.next_open().await.accept() });
        let mut live = client.open().await;
        assert_eq!(stalled.types(1).await, ["reset"]);
        assert_eq!(live.types(1).await, ["reset"]);
        let began = Instant::now();
        for number in 1..=50 {
            let value = number.to_string().repeat(10_000);
            session.send(WatchEvent::Added(config_map(
                &format!("o{number}"),
                number,
                &value,
            )));
        }
        session.boundary("50");
        let types = live.types(51).await;
        assert_eq!(types.iter().filter(|kind| *kind == "added").count(), 50);
        // The live one goes on before, while and after the other is cut.
        let mut version = 50;
        let mut change = async || {
            version += 1;
            session.send(WatchEvent::Added(config_map("o7", version, &version.to_string())));
            let event = live.next().await.unwrap().unwrap();
            assert!(event.contains(&format!("\"value\":\"{version}\"")), "{event}");
        };
        while host.timeouts() == 0 {
            change().await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        is_in_time(began.elapsed());
        assert_eq!(
            host.recorder.still_open()[..2],
            [1, 1],
            "what the stalled one had is freed at once"
        );
        for _ in 0..50 {
            change().await;
        }
        let broken = stalled.break_of().await;
        assert!(format!("{broken:?}").contains("Reset"), "{broken:?}");
        assert_eq!(host.timeouts(), 1);
        assert!(!client.server.is_finished());
        assert_eq!(client.open().await.types(52).await.last().unwrap(), "synced");
        drop((client, live, session));
        host.is_left_alone().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_streams_that_are_opened_and_reset_leave_no_task() {
    for kind in Kind::MULTIPLEXED {
        let mut host = Host::new();
        let mut client = Client::connect(kind, host.gateway.clone()).await;
        let mut first = client.open().await;
        let session = host.script.next_open().await.accept();
        session.send(WatchEvent::Added(config_map("large", 1, &"x".repeat(100_000))));
        session.boundary("1");
        assert_eq!(first.types(3).await, ["reset", "added", "synced"]);
        eventually("the tasks of the opening are over", || {
            host.recorder.still_open()[0] == 1
        })
        .await;
        let before = Handle::current().metrics().num_alive_tasks();
        for number in 0..100 {
            let mut stream = client.open().await;
            if number % 2 == 0 {
                assert_eq!(stream.types(1).await, ["reset"]);
            }
            drop(stream);
        }
        let began = Instant::now();
        eventually("no task is left", || {
            Handle::current().metrics().num_alive_tasks() == before
        })
        .await;
        assert!(began.elapsed() < WRITE_TIMEOUT, "a reset is not waited for");
        assert_eq!(host.recorder.still_open(), [1, 1, 1]);
        assert_eq!(host.timeouts(), 0);
        session.send(WatchEvent::Deleted(config_map("large", 2, "")));
        assert_eq!(first.types(1).await, ["deleted"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_streams_that_stall_are_reset_one_by_one_and_leave_no_task() {
    for kind in Kind::MULTIPLEXED {
        let mut host = Host::new();
        let mut client = Client::connect(kind, host.gateway.clone()).await;
        let mut live = client.open().await;
        let session = host.script.next_open().await.accept();
        session.send(WatchEvent::Added(config_map("large", 1, &"x".repeat(100_000))));
        session.boundary("1");
        assert_eq!(live.types(3).await, ["reset", "added", "synced"]);
        let before = Handle::current().metrics().num_alive_tasks();
        let mut stalled = Vec::new();
        for _ in 0..100 {
            stalled.push(client.open().await);
        }
        is_in_time(host.cut().await);
        eventually("each is cut", || host.timeouts() == 100).await;
        eventually("no task is left", || {
            Handle::current().metrics().num_alive_tasks() == before
        })
        .await;
        assert_eq!(host.recorder.still_open(), [1, 1, 1]);
        session.send(WatchEvent::Deleted(config_map("large", 2, "")));
        assert_eq!(live.types(1).await, ["deleted"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_while_its_last_event_is_not_taken_is_cut_as_well() {
    for kind in Kind::MULTIPLEXED {
        let host = Host::with(|builder| {
            let denied = || StreamError::forbidden("no ".repeat(200));
            builder.authorizer(Seam::new(move |_| Some(Err(denied()))))
        });
        let sizes = Sizes {
            transport: 16 * 1024,
            window: 128,
        };
        let mut client = Client::connect_through(kind, host.gateway.clone(), sizes, |io| io).await;
        let before = Handle::current().metrics().num_alive_tasks();
        let mut stalled = client.open().await;
        is_in_time(host.cut().await);
        host.is_left_alone().await;
        eventually("no task is left", || {
            Handle::current().metrics().num_alive_tasks() == before
        })
        .await;
        stalled.break_of().await;
        // Somebody who reads gets all of it, and its end.
        let mut read = client.open().await;
        assert_eq!(read.types(1).await, ["FORBIDDEN"]);
        assert!(read.next().await.is_none());
        assert_eq!(host.timeouts(), 1);
    }
}
