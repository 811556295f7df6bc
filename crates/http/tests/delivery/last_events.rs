//! The last event of a stream: until it is written, or its connection is gone, the stream is there.

use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use krm_stream_http::serve_connection;
use krm_stream_protocol::{StreamError, WatchEvent};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::support::{
    Client, Guarded, Host, Kind, PATH, Rate, ScriptedUpstream, Seam, Sizes, Stream, Throttled, WRITE_TIMEOUT,
    builder, config_map, eventually, is_in_time,
};

/// Less than a last event fits between a server and a reader who takes nothing, and the window is no hindrance.
const NARROW: Sizes = Sizes {
    transport: 64,
    window: 64 * 1024,
};
const SPREAD: Duration = Duration::from_secs(30);

/// Resolves when the gateway is drained, which has begun.
fn draining(host: &Host) -> JoinHandle<()> {
    host.gateway.drain(SPREAD);
    let gateway = host.gateway.clone();
    tokio::spawn(async move { gateway.drained().await })
}

fn every_kind_and_guard() -> impl Iterator<Item = (Kind, Guarded)> {
    Kind::ALL
        .into_iter()
        .flat_map(|kind| Guarded::ALL.map(|guarded| (kind, guarded)))
        .filter(|(kind, guarded)| kind.is_tls() || *guarded == Guarded::Socket)
}

/// A stream that is at the head, over a link whose rate may change.
async fn at_the_head(kind: Kind, guarded: Guarded, host: &mut Host, rate: &Rate) -> (Client, Stream) {
    let link = |io| Throttled::new(io, rate);
    let gateway = host.gateway.clone();
    let mut client = Client::connect_guarding(kind, guarded, gateway, NARROW, link, |io| io).await;
    let (mut stream, session) = tokio::join!(client.open(), async {
        host.script.next_open().await.accept_with([], "1")
    });
    assert_eq!(stream.types(2).await, ["reset", "synced"]);
    // The watch goes on, in silence.
    tokio::spawn(async move {
        std::future::pending::<()>().await;
        drop(session);
    });
    (client, stream)
}

#[tokio::test(start_paused = true)]
async fn a_gateway_is_not_drained_while_a_farewell_is_not_taken_and_its_reader_is_cut_in_time() {
    for (kind, guarded) in every_kind_and_guard() {
        let mut host = Host::new();
        let rate = Rate::unlimited();
        let (client, stream) = at_the_head(kind, guarded, &mut host, &rate).await;
        rate.set(0);
        let began = Instant::now();
        let drained = draining(&host);
        sleep(WRITE_TIMEOUT / 2).await;
        assert!(!drained.is_finished(), "{kind:?} {guarded:?}: it was not taken");
        assert_eq!(host.recorder.still_open()[0], 1, "{kind:?} {guarded:?}");
        timeout(Duration::from_mins(1), drained).await.unwrap().unwrap();
        is_in_time(began.elapsed());
        assert_eq!(host.timeouts(), 1, "{kind:?} {guarded:?}");
        host.is_left_alone().await;
        eventually("the connection is dropped", || client.server.is_finished()).await;
        drop(stream);
    }
}

#[tokio::test(start_paused = true)]
async fn a_gateway_is_drained_as_soon_as_farewells_are_read_while_their_connections_stay() {
    for (kind, guarded) in every_kind_and_guard() {
        let mut host = Host::new();
        let rate = Rate::unlimited();
        let (client, mut stream) = at_the_head(kind, guarded, &mut host, &rate).await;
        rate.set(0);
        let drained = draining(&host);
        sleep(WRITE_TIMEOUT / 2).await;
        assert!(!drained.is_finished(), "{kind:?} {guarded:?}");
        rate.set(usize::MAX);
        // The link looks at its rate again within a tick.
        assert_eq!(stream.types(1).await, ["UPSTREAM_UNAVAILABLE"]);
        assert!(stream.next().await.is_none(), "it ends, and does not break");
        let read_at = Instant::now();
        timeout(Duration::from_mins(1), drained).await.unwrap().unwrap();
        assert!(
            read_at.elapsed() < Duration::from_millis(200),
            "{kind:?} {guarded:?}"
        );
        assert!(!client.server.is_finished(), "{kind:?} {guarded:?}");
        assert_eq!(host.timeouts(), 0);
        host.is_left_alone().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_farewell_that_is_not_taken_goes_with_its_connection() {
    for (kind, guarded) in every_kind_and_guard() {
        let mut host = Host::new();
        let rate = Rate::unlimited();
        let (client, stream) = at_the_head(kind, guarded, &mut host, &rate).await;
        rate.set(0);
        let drained = draining(&host);
        sleep(WRITE_TIMEOUT / 2).await;
        assert!(!drained.is_finished(), "{kind:?} {guarded:?}");
        let left_at = Instant::now();
        drop((client, stream));
        timeout(Duration::from_mins(1), drained).await.unwrap().unwrap();
        assert!(
            left_at.elapsed() < Duration::from_millis(100),
            "{kind:?} {guarded:?}"
        );
        assert_eq!(host.timeouts(), 0, "nobody was late");
        host.is_left_alone().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_is_not_taken_is_a_stream_until_it_is_cut() {
    let host = Host::with(|builder| {
        let denied = || StreamError::forbidden("no ".repeat(200));
        builder.authorizer(Seam::new(move |_| Some(Err(denied()))))
    });
    let (mut near, far) = duplex(256);
    let server = tokio::spawn(serve_connection(far, host.gateway.clone()));
    let request = format!("GET {PATH} HTTP/1.1\r\nhost: localhost\r\nx-user: ada\r\n\r\n");
    near.write_all(request.as_bytes()).await.unwrap();
    eventually("it is there", || host.recorder.still_open()[0] == 1).await;
    sleep(WRITE_TIMEOUT / 2).await;
    assert_eq!(host.recorder.still_open()[0], 1, "nothing of it was read");
    host.cut().await;
    assert!(server.await.unwrap().is_err());
    assert_eq!(host.timeouts(), 1);
    host.is_left_alone().await;
    let mut came = Vec::new();
    near.read_to_end(&mut came).await.unwrap();
    assert_eq!(came.len(), 256);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_goes_on_keeps_no_other_of_its_connection_from_leaving() {
    for kind in Kind::MULTIPLEXED {
        let mut host = Host::with(|builder| {
            let denied = || StreamError::forbidden("no");
            builder.authorizer(Seam::new(move |asked| {
                Some(if asked == 0 { Ok(()) } else { Err(denied()) })
            }))
        });
        let sizes = Sizes {
            transport: 16 * 1024,
            window: 64 * 1024,
        };
        let mut client = Client::connect_through(kind, host.gateway.clone(), sizes, |io| io).await;
        let (mut live, session) = tokio::join!(client.open(), async {
            host.script.next_open().await.accept_with([], "1")
        });
        assert_eq!(live.types(2).await, ["reset", "synced"]);
        for version in 2..50 {
            session.send(WatchEvent::Added(config_map("a", version, &version.to_string())));
            let mut refused = client.open().await;
            assert_eq!(refused.types(1).await, ["FORBIDDEN"]);
            assert!(refused.next().await.is_none());
            live.types(1).await;
            let began = Instant::now();
            eventually("the refused one is gone", || host.recorder.still_open()[0] == 1).await;
            assert!(began.elapsed() < Duration::from_millis(100), "{kind:?}");
        }
        assert_eq!(host.timeouts(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_farewell_on_a_connection_without_guards_is_not_waited_for() {
    let (upstream, mut script) = ScriptedUpstream::new();
    let gateway = builder(&upstream).build().unwrap();
    let (mut near, far) = duplex(64);
    let service = TowerToHyperService::new(gateway.clone());
    let server = tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(far), service));
    let request = format!("GET {PATH} HTTP/1.1\r\nhost: localhost\r\nx-user: ada\r\n\r\n");
    near.write_all(request.as_bytes()).await.unwrap();
    let session = script.next_open().await.accept_with([], "1");
    gateway.drain(SPREAD);
    let drained = timeout(Duration::from_secs(1), gateway.drained()).await;
    assert!(drained.is_ok(), "nothing tells when it is written");
    assert!(!server.is_finished());
    server.abort();
    drop(session);
}
