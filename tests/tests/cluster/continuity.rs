//! Many routine ends of watches, while much changes and while nothing does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use krm_stream_protocol::{EventType, Scope};
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::api_server::ApiServer;
use crate::expectation::Versions;
use crate::gateway::Gateway;
use crate::objects::{built, limit_range, path, pod_template, replication_controller, resource_quota};
use crate::tab::Tab;
use crate::viewer::Viewer;

/// How many ends each scope must see.
const RECYCLES: u64 = 20;
/// `timeoutSeconds` of the watches of what changes, and of what does not.
const BUSY: u32 = 2;
const QUIET: u32 = 3;
/// One object a scope is created in each of these, an older one is changed and a still older one deleted.
const PACE: Duration = Duration::from_millis(60);
/// How many steps lie between the changes of one object: more time than a watch takes to be opened again. Where it takes
/// more, the next change waits: leaving out a state that a newer one has overtaken would be legal.
const APART: usize = 25;
/// 20 watches of 3 s or a little more, and the time that it takes to open them on a slow machine.
const AT_MOST: Duration = Duration::from_mins(5);

/// A gateway, three tabs on two kinds that nobody else watches by namespace, and what the scopes hold.
struct Setting {
    gateway: Arc<Gateway>,
    scopes: [Scope; 2],
    make: [fn(&str) -> Value; 2],
    tabs: [Tab; 3],
    ended_before: [u64; 2],
}

pub(crate) async fn many_routine_ends_lose_nothing_and_double_nothing(api: &ApiServer) {
    let busy = Setting::of(
        api,
        ["limitranges", "podtemplates"],
        [limit_range, pod_template],
        BUSY,
    )
    .await;
    let quiet = Setting::of(
        api,
        ["resourcequotas", "replicationcontrollers"],
        [resource_quota, replication_controller],
        QUIET,
    )
    .await;
    let is_enough = AtomicBool::new(false);
    let begin = Instant::now();
    let watching = async {
        while !busy.has_recycled(api).await || !quiet.has_recycled(api).await {
            assert!(
                begin.elapsed() < AT_MOST,
                "the API server ends watches at their timeout"
            );
            sleep(Duration::from_millis(250)).await;
        }
        is_enough.store(true, Ordering::SeqCst);
    };
    let (written, ()) = tokio::join!(busy.write(api, &is_enough), watching);

    eprintln!(
        "{:.0} s; busy: {} recycles or more a scope, {written} objects a scope, 3 writes each; quiet: {} or more",
        begin.elapsed().as_secs_f64(),
        busy.recycles(api).await,
        quiet.recycles(api).await,
    );
    let all: Vec<_> = (0..written).map(name).collect();
    busy.saw_exactly_once(api, &all).await;
    quiet.saw_exactly_once(api, &[]).await;
}

impl Setting {
    async fn of(api: &ApiServer, kinds: [&str; 2], make: [fn(&str) -> Value; 2], timeout: u32) -> Self {
        let namespace = api.create_namespace().await;
        let scopes = kinds.map(|kind| built(Scope::builder("v1", kind).namespace(&*namespace)));
        for (scope, make) in scopes.iter().zip(make) {
            api.create(&scope.api_path(), &make("steady")).await;
        }
        let timeout = timeout.to_string();
        let flags = [
            "--allow",
            kinds[0],
            "--allow",
            kinds[1],
            "--watch-timeout",
            &timeout,
        ];
        let gateway = Arc::new(Gateway::start(api, &flags).await);
        let ended_before = [ended(api, kinds[0]).await, ended(api, kinds[1]).await];
        let tabs = [
            Tab::open(&gateway, &scopes[0]).await,
            Tab::open(&gateway, &scopes[0]).await,
            Tab::open(&gateway, &scopes[1]).await,
        ];
        for tab in &tabs {
            tab.until("the snapshot is complete", Viewer::is_synced).await;
        }
        Self {
            gateway,
            scopes,
            make,
            tabs,
            ended_before,
        }
    }

    /// How often the watch of each scope has ended, at least.
    async fn recycles(&self, api: &ApiServer) -> u64 {
        let mut least = u64::MAX;
        for (scope, before) in self.scopes.iter().zip(self.ended_before) {
            least = least.min(ended(api, scope.resource()).await - before);
        }
        least
    }

    /// Whether that is often enough, as both sides count.
    async fn has_recycled(&self, api: &ApiServer) -> bool {
        self.recycles(api).await >= RECYCLES && self.closed().await >= 2 * RECYCLES
    }

    /// How many watches have ended as watches do, as the gateway counts.
    async fn closed(&self) -> u64 {
        let closed = [("reason", "closed")];
        self.gateway.metric("watch_sessions_ended_total", &closed).await
    }

    /// Creates, changes and deletes objects in both scopes, until it is enough; how many in each.
    async fn write(&self, api: &ApiServer, is_enough: &AtomicBool) -> usize {
        let mut clock = interval(PACE);
        // A machine that stood still does not make up for it by many writes at once.
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut step, mut last) = (0, None);
        loop {
            clock.tick().await;
            if last.is_none() && is_enough.load(Ordering::SeqCst) {
                last = Some(step);
            }
            let exists = |step: &usize| last.is_none_or(|last| *step < last);
            let told = [APART, 2 * APART].map(|ago| step.checked_sub(ago).filter(exists));
            tokio::join!(
                has_told(&self.tabs[0], told),
                has_told(&self.tabs[1], told),
                has_told(&self.tabs[2], told),
            );
            for (scope, make) in self.scopes.iter().zip(self.make) {
                if last.is_none() {
                    api.create(&scope.api_path(), &make(&name(step))).await;
                }
                if let Some(older) = step.checked_sub(APART).filter(exists) {
                    let change = json!({"metadata": {"annotations": {"changed": "yes"}}});
                    api.merge_patch(&path(scope, &name(older)), &change).await;
                }
                if let Some(oldest) = step.checked_sub(2 * APART).filter(exists) {
                    api.delete(&path(scope, &name(oldest))).await;
                }
            }
            step += 1;
            if let Some(last) = last
                && step > last + 2 * APART
            {
                return last;
            }
        }
    }

    /// One cycle, no error, and each write of these objects once.
    async fn saw_exactly_once(&self, api: &ApiServer, written: &[String]) {
        for tab in &self.tabs {
            let mut viewer = tab.viewer().await;
            viewer.agrees_with_kubectl(api, Versions::Equal).await;
            for name in written {
                assert_eq!(viewer.story(name), ["added", "modified", "deleted"], "{name}");
            }
            // Nothing else was told: `reset`, the one object of the snapshot, `synced`.
            assert_eq!(
                viewer.events().len(),
                3 + 3 * written.len(),
                "came: {}",
                viewer.summary()
            );
            assert_eq!(viewer.count(EventType::Deleted), written.len());
        }
        // No end was anything but a transport's.
        for reason in ["expired", "error"] {
            let labels = [("reason", reason)];
            let ended = self.gateway.metric("watch_sessions_ended_total", &labels).await;
            assert_eq!(ended, 0, "{reason}");
        }
        let closed = self.closed().await;
        assert!(closed >= 2 * RECYCLES, "{closed}");
    }
}

/// Waits until a tab was told of the creation of the first object, and of the change of the second.
async fn has_told(tab: &Tab, [created, changed]: [Option<usize>; 2]) {
    let wanted = [(created.map(name), 1), (changed.map(name), 2)];
    tab.until("what is overtaken next has been told", |viewer| {
        let mut wanted = wanted.iter();
        wanted.all(|(name, events)| {
            name.as_ref()
                .is_none_or(|name| viewer.story(name).len() >= *events)
        })
    })
    .await;
}

fn name(step: usize) -> String {
    format!("object-{step:05}")
}

/// How many watches of a kind in one namespace have ended.
async fn ended(api: &ApiServer, resource: &str) -> u64 {
    let labels = [("resource", resource), ("scope", "namespace"), ("verb", "WATCH")];
    api.metric("apiserver_request_total", &labels).await
}
