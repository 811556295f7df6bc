//! What an API server does that nobody wished for: it is cut off, compacted, killed, restarted, frozen.

use std::sync::Arc;
use std::time::Duration;

use krm_stream_protocol::{ErrorCode, EventType, Scope};
use krm_stream_tests::ReceivedEvent;
use tokio::time::{Instant, sleep};

use crate::api_server::ApiServer;
use crate::control_plane::{ControlPlane, Fault};
use crate::expectation::Versions;
use crate::gateway::Gateway;
use crate::link::{Condition, Link};
use crate::objects::{config_map, config_maps, path, set_value};
use crate::tab::Tab;
use crate::viewer::Viewer;
use crate::wait::until;

/// What a watch's silence may exceed its `timeoutSeconds` by.
const SILENCE_GRACE: Duration = Duration::from_secs(10);
/// Three retries after 250 ms, 1 s and 4 s at the least: so long it is tried to go on after what is known.
const RETRIED_FOR: Duration = Duration::from_secs(5);
/// How often a cut is tried that is shorter.
const CUTS_AT_MOST: usize = 3;
/// What a busy machine may add to a time.
const TOLERANCE: Duration = Duration::from_secs(6);

/// A control plane of its own, a link, a gateway on it, three tabs on two scopes of it.
struct Setting {
    control_plane: ControlPlane,
    api: ApiServer,
    link: Link,
    gateway: Arc<Gateway>,
    scopes: [Scope; 2],
    tabs: [Tab; 3],
    writes: u32,
}

impl Setting {
    /// `None` if there is no control plane whose processes may be broken.
    async fn start(flags: &[&str]) -> Option<Self> {
        let control_plane = ControlPlane::start().await?;
        let api = ApiServer::reached_with(control_plane.kubeconfig()).await;
        let scopes = [
            config_maps(&api.create_namespace().await),
            config_maps(&api.create_namespace().await),
        ];
        for scope in &scopes {
            api.create(&scope.api_path(), &config_map("written", "0")).await;
            api.create(&scope.api_path(), &config_map("steady", "0")).await;
        }
        let link = Link::to(&api).await;
        let flags = [&["--allow", "configmaps"], flags].concat();
        let gateway = Arc::new(Gateway::start_with(&link.kubeconfig(), &flags).await);
        let tabs = [
            Tab::open(&gateway, &scopes[0]).await,
            Tab::open(&gateway, &scopes[0]).await,
            Tab::open(&gateway, &scopes[1]).await,
        ];
        for tab in &tabs {
            tab.until("the snapshot is complete", Viewer::is_synced).await;
        }
        Some(Self {
            control_plane,
            api,
            link,
            gateway,
            scopes,
            tabs,
            writes: 0,
        })
    }

    /// Changes an object of each scope, makes one and removes the one before.
    async fn write(&mut self) {
        self.writes += 1;
        let value = self.writes.to_string();
        for scope in &self.scopes {
            self.api
                .create(&scope.api_path(), &config_map(&format!("made-{value}"), "1"))
                .await;
            if let before @ 1.. = self.writes - 1 {
                self.api.delete(&path(scope, &format!("made-{before}"))).await;
            }
            self.api
                .merge_patch(&path(scope, "written"), &set_value(&value))
                .await;
        }
    }

    /// Waits until every tab shows the last write, and holds what kubectl prints.
    async fn converge(&self) {
        let value = self.writes.to_string();
        for tab in &self.tabs {
            tab.until_shows("written", &value).await;
            let mut viewer = tab.viewer().await;
            viewer
                .comes_to_agree_with_kubectl(&self.api, Versions::Equal)
                .await;
        }
    }

    async fn kill(&self) {
        self.control_plane.api_server(Fault::Kill).await;
    }

    async fn start_again(&mut self) {
        self.control_plane.api_server(Fault::Start).await;
        // The connections of the old one went with the old API server.
        self.api = ApiServer::reached_with(self.control_plane.kubeconfig()).await;
    }

    /// How many cycles each tab has seen begin.
    async fn cycles(&self) -> [usize; 3] {
        self.count(|viewer| viewer.count(EventType::Reset)).await
    }

    async fn errors(&self) -> [usize; 3] {
        self.count(|viewer| viewer.count(EventType::Error)).await
    }

    async fn resyncs(&self) -> [usize; 3] {
        self.count(|viewer| viewer.count_errors(ErrorCode::ResyncRequired))
            .await
    }

    async fn refusals(&self) -> [usize; 3] {
        self.count(|viewer| viewer.count_errors(ErrorCode::UpstreamUnavailable))
            .await
    }

    async fn count(&self, what: impl Fn(&Viewer) -> usize) -> [usize; 3] {
        let mut counts = [0; 3];
        for (count, tab) in counts.iter_mut().zip(&self.tabs) {
            *count = what(&*tab.viewer().await);
        }
        counts
    }

    /// Whatever happened, a tab was told nothing but this, and always when to come back.
    async fn was_told_only_to_resync_or_to_come_back(&self) {
        for tab in &self.tabs {
            let viewer = tab.viewer().await;
            for error in viewer.events().iter().filter_map(ReceivedEvent::error) {
                let is_as_promised = match error.code() {
                    Some(ErrorCode::ResyncRequired) => !error.is_terminal(),
                    Some(ErrorCode::UpstreamUnavailable) => {
                        !error.is_terminal() && error.retry_after().is_some()
                    }
                    Some(
                        ErrorCode::Forbidden
                        | ErrorCode::Unauthenticated
                        | ErrorCode::ScopeInvalid
                        | ErrorCode::SlowConsumer
                        | ErrorCode::Internal,
                    )
                    | None => false,
                };
                assert!(is_as_promised, "{error:?}; came: {}", viewer.summary());
            }
        }
    }
}

pub(crate) async fn lost_continuity_is_one_new_cycle_and_nothing_else_is() {
    let Some(mut setting) = Setting::start(&[]).await else {
        return;
    };
    assert_eq!(setting.cycles().await, [1; 3]);

    // Compaction alone, while watches are open, and while none is.
    setting.write().await;
    setting.control_plane.compact().await;
    setting.write().await;
    setting.converge().await;
    assert_eq!(setting.cycles().await, [1; 3], "compaction alone");
    setting.outlasts_a_cut_with_a_compaction().await;

    // A restart alone.
    let before = setting.cycles().await;
    setting.kill().await;
    setting.start_again().await;
    setting.write().await;
    setting.converge().await;
    let after = setting.cycles().await;
    for (before, after) in before.iter().zip(after) {
        assert!(after <= before + 1, "a restart alone: {after}, {before} before");
    }
    eprintln!("a restart alone: cycles {before:?} before, {after:?} after");
    let before = after;

    // All of it, behind a network that is silent, so that the gateway learns of it only when it is back.
    let resyncs = setting.resyncs().await;
    setting.link.set(Condition::Stalled);
    setting.lose_the_history().await;
    setting.link.set(Condition::Up);
    setting.converge().await;
    assert_eq!(setting.cycles().await, before.map(|cycles| cycles + 1), "stalled");
    assert_eq!(setting.resyncs().await, resyncs.map(|count| count + 1), "stalled");

    // The same, behind a network that refuses connections.
    let (before, refusals) = (setting.cycles().await, setting.refusals().await);
    setting.link.set(Condition::Cut);
    setting.lose_the_history().await;
    setting.link.set(Condition::Up);
    setting.converge().await;
    let after = setting.cycles().await;
    assert_eq!(after, before.map(|cycles| cycles + 1), "cut off");
    eprintln!(
        "cut off: UPSTREAM_UNAVAILABLE {refusals:?} before, {:?} after; RESYNC_REQUIRED {:?}",
        setting.refusals().await,
        setting.resyncs().await
    );
    setting.was_told_only_to_resync_or_to_come_back().await;
}

impl Setting {
    /// A cut that is over before the retries are used up is told to nobody. A longer one may be told, so one that a busy
    /// machine drew out shows nothing, and is followed by another.
    async fn outlasts_a_cut_with_a_compaction(&mut self) {
        for _ in 0..CUTS_AT_MOST {
            let before = (self.cycles().await, self.errors().await);
            let attempts = self.link.attempts();
            let begin = Instant::now();
            self.link.set(Condition::Cut);
            self.write().await;
            self.control_plane.compact().await;
            self.write().await;
            self.link.set(Condition::Up);
            let cut = begin.elapsed();
            self.converge().await;
            assert!(self.link.attempts() > attempts, "the cut was noticed");
            if cut < RETRIED_FOR {
                let after = (self.cycles().await, self.errors().await);
                assert_eq!(after, before, "compaction alone, and a cut of {cut:.1?}");
                return;
            }
            eprintln!("a cut of {cut:.1?} was too long to be unseen");
        }
        panic!("no cut of {CUTS_AT_MOST} was shorter than {RETRIED_FOR:?}: the machine is too busy");
    }

    /// Nobody can resume after this what was open before.
    async fn lose_the_history(&mut self) {
        self.write().await;
        self.control_plane.compact().await;
        self.kill().await;
        self.start_again().await;
        self.write().await;
    }
}

pub(crate) async fn an_api_server_that_is_gone_for_a_while_is_awaited_with_patience() {
    let Some(mut setting) = Setting::start(&[]).await else {
        return;
    };
    for outage in [Duration::from_secs(5), Duration::from_mins(1)] {
        let (cycles, refusals, attempts) = (
            setting.cycles().await,
            setting.refusals().await,
            setting.link.attempts(),
        );
        let begin = Instant::now();
        setting.kill().await;
        sleep(outage).await;
        setting.start_again().await;
        setting.write().await;
        let outage = begin.elapsed();
        setting.converge().await;
        let healed = begin.elapsed();

        let attempts = setting.link.attempts() - attempts;
        let (cycles_after, refusals_after) = (setting.cycles().await, setting.refusals().await);
        eprintln!(
            "gone for {outage:.1?}, converged after {healed:.1?}: {attempts} attempts for {} scopes; cycles {cycles:?} \
             to {cycles_after:?}, UPSTREAM_UNAVAILABLE {refusals:?} to {refusals_after:?}",
            setting.scopes.len()
        );
        for ((cycles, after), refusals) in cycles.iter().zip(cycles_after).zip(refusals_after) {
            // Silently resumed, or one new cycle, on the same stream or on the one that follows a refusal.
            assert!(after <= cycles + 1, "{refusals} refusals");
        }
        assert!(attempts <= setting.scopes.len() * attempts_at_most(healed));
        setting.was_told_only_to_resync_or_to_come_back().await;
    }
    let refusals = setting.refusals().await;
    assert!(
        refusals.iter().all(|count| *count >= 1),
        "a minute is more than is waited in silence: {refusals:?}"
    );
}

/// How often one scope may ask within a time: three retries of a reopen and the fresh snapshot that follows, which take
/// some 5 s, and after them the backoff, which doubles from 1 s to 30 s; at the shortest that jitter makes of it.
fn attempts_at_most(time: Duration) -> usize {
    let (mut attempts, mut backoff) = (5, Duration::from_secs(1));
    let mut passed = Duration::ZERO;
    while passed < time {
        attempts += 1;
        passed += backoff / 2;
        backoff = (backoff * 2).min(Duration::from_secs(30));
    }
    attempts
}

pub(crate) async fn an_api_server_that_freezes_is_given_up_and_resumed() {
    const ASKED: Duration = Duration::from_secs(2);
    const FROZEN: Duration = Duration::from_secs(20);
    let flags = ["--watch-timeout", "2", "--heartbeat-interval", "1s"];
    let Some(mut setting) = Setting::start(&flags).await else {
        return;
    };
    setting.write().await;
    setting.converge().await;
    let heartbeats = setting.count(Viewer::heartbeats).await;
    let attempts = setting.link.attempts();
    setting.control_plane.api_server(Fault::Pause).await;
    let begin = Instant::now();
    until("the silent watches are given up", async || {
        (setting.link.attempts() >= attempts + setting.scopes.len()).then_some(())
    })
    .await;
    let given_up = begin.elapsed();
    assert!(
        given_up <= ASKED + SILENCE_GRACE + TOLERANCE,
        "given up after {given_up:?}"
    );
    sleep(FROZEN.saturating_sub(given_up)).await;
    let heartbeats_after = setting.count(Viewer::heartbeats).await;
    setting.control_plane.api_server(Fault::Resume).await;
    let resumed = Instant::now();
    setting.write().await;
    setting.converge().await;

    let cycles = setting.cycles().await;
    eprintln!(
        "frozen for {FROZEN:?}: given up after {given_up:.1?}, converged {:.1?} after the thaw, {} attempts, cycles \
         {cycles:?}, UPSTREAM_UNAVAILABLE {:?}, heartbeats {heartbeats:?} to {heartbeats_after:?}",
        resumed.elapsed(),
        setting.link.attempts() - attempts,
        setting.refusals().await,
    );
    assert!(cycles.iter().all(|cycles| *cycles <= 2), "{cycles:?}");
    for (before, after) in heartbeats.iter().zip(heartbeats_after) {
        assert!(after >= before + 10, "heartbeats go on while upstream is silent");
    }
    setting.was_told_only_to_resync_or_to_come_back().await;
    let labels = [("reason", "error")];
    let failed = setting
        .gateway
        .metric("watch_sessions_ended_total", &labels)
        .await;
    assert_eq!(failed, 0, "silence is an end of transport");
}
