//! The bounds of every wait.

use krm_stream_protocol::{ResourceVersion, Start, Upstream as _};
use tokio::time::Instant;

use crate::support::scripted::{Answer, Step, builder, upstream};
use crate::support::transcript::{drain, read};
use crate::support::{SECOND, bookmark, boundary, config_maps, line, object};

fn after() -> Start {
    Start::After(ResourceVersion::from("1"))
}

#[tokio::test(start_paused = true)]
async fn headers_that_do_not_come_are_waited_for_as_long_as_open_timeout_says() {
    let (upstream, _) = upstream(|_| Answer::hanging());
    let before = Instant::now();
    assert_eq!(
        read(&upstream, &config_maps(), after()).await,
        ["not opened: unavailable"]
    );
    assert_eq!(before.elapsed().as_secs(), 30);
    let (builder, _) = builder(|_| Answer::hanging());
    let upstream = builder.open_timeout(SECOND * 3).build().unwrap();
    let before = Instant::now();
    read(&upstream, &config_maps(), Start::Fresh).await;
    assert_eq!(before.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_silent_past_its_timeout_is_closed() {
    let (builder, _) = builder(|_| Answer::ok(line("ADDED", &object("a", "2"))).then(Step::Hang));
    let upstream = builder.watch_timeout(SECOND * 300).build().unwrap();
    let before = Instant::now();
    assert_eq!(
        read(&upstream, &config_maps(), after()).await,
        ["added a@2", "closed"]
    );
    assert_eq!(before.elapsed().as_secs(), 310);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_lives_to_the_timeout_it_asked_for() {
    let (builder, _) = builder(|_| Answer::ok("").then(Step::Wait(SECOND * 600)));
    let upstream = builder.watch_timeout(SECOND * 600).build().unwrap();
    let before = Instant::now();
    let session = upstream.open(&config_maps(), after()).await.unwrap();
    assert_eq!(session.asked_timeout(), Some(SECOND * 600));
    assert_eq!(drain(session).await, ["closed"]);
    assert_eq!(before.elapsed().as_secs(), 600);
}

#[tokio::test(start_paused = true)]
async fn where_bookmarks_were_seen_three_minutes_of_silence_are_enough() {
    let (upstream, _) = upstream(|_| {
        Answer::ok(boundary("5"))
            .then(Step::Wait(SECOND * 60))
            .then_data(bookmark("6"))
            .then(Step::Hang)
    });
    let before = Instant::now();
    assert_eq!(
        read(&upstream, &config_maps(), Start::Fresh).await,
        ["boundary 5", "bookmark 6", "closed"]
    );
    assert_eq!(before.elapsed().as_secs(), 240);
}

#[tokio::test(start_paused = true)]
async fn the_timeout_that_is_asked_for_is_drawn_between_five_and_ten_minutes() {
    let (upstream, record) = upstream(|_| Answer::ok(""));
    for _ in 0..50 {
        let session = upstream.open(&config_maps(), after()).await.unwrap();
        let asked = session.asked_timeout().unwrap();
        assert!((300..=600).contains(&asked.as_secs()));
        let sent = record
            .requests()
            .last()
            .unwrap()
            .parameter("timeoutSeconds")
            .unwrap()
            .to_owned();
        assert_eq!(sent, asked.as_secs().to_string());
    }
    let mut drawn: Vec<_> = record
        .requests()
        .iter()
        .map(|request| request.parameter("timeoutSeconds").unwrap().to_owned())
        .collect();
    drawn.sort();
    drawn.dedup();
    assert!(drawn.len() > 10, "{drawn:?}");
}
