//! Random scripts: whatever an upstream and an authorizer do, the order of events is legal, nothing follows an error that
//! ends the stream, and nothing is left over.

use std::sync::Arc;
use std::time::Duration;

use krm_stream_http::Gateway;
use krm_stream_protocol::{Partition, SessionEnd, StreamError, UpstreamError, UpstreamErrorKind, WatchEvent};
use tokio::runtime::Handle;

use super::support::{
    AsCaller, Connection, QUERY, Recorder, Script, ScriptedSession, ScriptedUpstream, Seam, builder,
    config_map, eventually, get,
};

/// xorshift64*, by S. Vigna.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound
    }

    fn error(&mut self) -> UpstreamError {
        UpstreamError::new(match self.below(7) {
            0 => UpstreamErrorKind::Forbidden { message: None },
            1 => UpstreamErrorKind::Unauthenticated,
            2 => UpstreamErrorKind::NotFound,
            3 => UpstreamErrorKind::Rejected,
            4 => UpstreamErrorKind::Unreadable,
            5 => UpstreamErrorKind::VersionTooLarge,
            _ => UpstreamErrorKind::Unavailable,
        })
    }

    fn end(&mut self) -> SessionEnd {
        match self.below(5) {
            0 => SessionEnd::Failed(self.error()),
            1 => SessionEnd::Expired,
            _ => SessionEnd::Closed,
        }
    }

    fn event(&mut self, version: u64) -> WatchEvent {
        let object = config_map(&format!("o{}", self.below(6)), version, &version.to_string());
        match self.below(3) {
            0 => WatchEvent::Deleted(object),
            1 => WatchEvent::Added(object),
            _ => WatchEvent::Modified(object),
        }
    }
}

/// An API server that does anything, for ever.
async fn misbehave(script: &mut Script, random: &mut Random) {
    let (mut session, mut version): (Option<ScriptedSession>, u64) = (None, 1);
    loop {
        version += 1;
        match (session.take(), random.below(12)) {
            (None, 0) => script.next_open().await.refuse(random.error()),
            (None, _) => session = Some(script.next_open().await.accept()),
            (Some(open), 0) => open.end(random.end()),
            (Some(open), 1 | 2) => {
                open.boundary(&version.to_string());
                session = Some(open);
            }
            (Some(open), 3) => {
                tokio::time::sleep(Duration::from_millis(random.below(9000))).await;
                session = Some(open);
            }
            (Some(open), 4) => {
                open.send(WatchEvent::SnapshotRestarted);
                session = Some(open);
            }
            (Some(open), _) => {
                open.send(random.event(version));
                session = Some(open);
            }
        }
        tokio::task::yield_now().await;
    }
}

/// Reads at a pace of its own, to the end or until the consumer has had enough. `next` checks the order of events.
/// Now and then somebody wants the stream checked, or, seldom, the gateway drained.
async fn read(gateway: &Gateway, connection: &mut Connection, mut patience: u64, random: &mut Random) {
    while patience > 0 && connection.next().await.is_some() {
        patience -= 1;
        match random.below(200) {
            0..20 => assert!(gateway.recheck(|_, _| true) <= 1),
            20 => gateway.drain(Duration::from_secs(1)),
            _ => {}
        }
        if random.below(4) == 0 {
            tokio::time::sleep(Duration::from_millis(random.below(3000))).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn any_script_gives_a_legal_stream_and_leaves_nothing() {
    let mut ended = 0;
    for seed in 1..400 {
        let (upstream, mut script) = ScriptedUpstream::new();
        let recorder = Arc::new(Recorder::default());
        let denied_from = usize::try_from(Random(seed).below(30)).unwrap();
        let partition = match seed % 3 {
            0 => Partition::Isolated,
            1 => Partition::shared("gateway"),
            _ => Partition::per_caller(),
        };
        let gateway = builder(&upstream)
            .client_for(AsCaller::partitioned(&upstream, partition))
            .queue_depth(2)
            .delivery_interval(Duration::from_millis(seed % 4 * 300))
            .authorizer(Seam::new(move |asked| {
                let is_denied = asked > 0 && asked >= denied_from;
                Some(if is_denied {
                    Err(StreamError::forbidden("no longer"))
                } else {
                    Ok(())
                })
            }))
            .observer(recorder.clone())
            .build()
            .unwrap();
        let mut connection = get(&gateway, QUERY);
        let (mut server, mut reader) = (Random(seed * 7919), Random(seed * 104_729));
        tokio::select! {
            () = read(&gateway, &mut connection, 200, &mut reader) => {}
            () = misbehave(&mut script, &mut server) => {}
        }
        let errors = |text: &str| String::from_utf8_lossy(connection.raw()).matches(text).count();
        assert!(errors("\"terminal\":true") <= 1, "seed {seed}");
        ended += errors("\"terminal\":true");
        drop((connection, script));
        eventually("its tasks end", || {
            Handle::current().metrics().num_alive_tasks() == 0
        })
        .await;
        assert_eq!(recorder.still_open(), [0, 0, 0], "seed {seed}");
        gateway.drain(Duration::ZERO);
        let drained = tokio::time::timeout(Duration::from_secs(1), gateway.drained()).await;
        assert!(drained.is_ok(), "seed {seed}");
    }
    assert!(ended > 100, "the scripts should end many streams: {ended}");
}
