//! What a feed must hold, from what it was sent.

use std::collections::{BTreeMap, BTreeSet};

use krm_stream_protocol::{Object, WatchEvent, json};

/// The objects that a feed has for its streams, by uid, each with its value.
#[derive(Clone, Debug, Default)]
pub struct FeedView {
    visible: BTreeMap<String, String>,
    /// The new snapshot of a feed that was complete before; it replaces everything at its boundary.
    aside: Option<BTreeMap<String, String>>,
    /// What was seen since the snapshot began to be read again.
    seen: Option<BTreeSet<String>>,
    is_complete: bool,
    /// Counts what was taken in.
    tick: u64,
    /// When the snapshot was complete.
    boundary: u64,
    /// When each visible object came, or came back.
    since: BTreeMap<String, u64>,
}

impl FeedView {
    /// How much was taken in so far.
    pub const fn tick(&self) -> u64 {
        self.tick
    }

    /// The objects that are visible now and were all the time since `tick`, or since the snapshot was complete.
    pub fn lived_since(&self, tick: u64) -> impl Iterator<Item = &String> {
        let tick = tick.max(self.boundary);
        self.since
            .iter()
            .filter(move |(_, since)| **since <= tick)
            .map(|(uid, _)| uid)
    }

    /// Takes note of who came and who left.
    fn count(&mut self) {
        self.tick += 1;
        self.since.retain(|uid, _| self.visible.contains_key(uid));
        for uid in self.visible.keys() {
            self.since.entry(uid.clone()).or_insert(self.tick);
        }
    }

    /// What streams are given of it.
    pub const fn visible(&self) -> &BTreeMap<String, String> {
        &self.visible
    }

    /// Whether it had a complete snapshot; streams are served from it even while another is being built.
    pub const fn is_complete(&self) -> bool {
        self.is_complete
    }

    pub(super) fn begin_snapshot(&mut self) {
        self.seen = None;
        if self.is_complete {
            self.aside = Some(BTreeMap::new());
        } else {
            self.visible.clear();
            self.count();
        }
    }

    pub(super) fn restart_snapshot(&mut self) {
        match &mut self.aside {
            Some(aside) => aside.clear(),
            None => self.seen = Some(BTreeSet::new()),
        }
    }

    pub(super) fn reach_boundary(&mut self) {
        self.is_complete = true;
        if let Some(aside) = self.aside.take() {
            self.visible = aside;
            // Another epoch: whoever is in it began with it.
            self.since.clear();
        }
        if let Some(seen) = self.seen.take() {
            self.visible.retain(|uid, _| seen.contains(uid));
        }
        self.count();
        self.boundary = self.tick;
    }

    pub(super) fn take(&mut self, event: &WatchEvent) {
        let state = self.aside.as_mut().unwrap_or(&mut self.visible);
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                let (uid, value) = content(object);
                if let Some(seen) = &mut self.seen {
                    seen.insert(uid.clone());
                }
                state.insert(uid, value);
            }
            WatchEvent::Deleted(object) => {
                state.remove(&content(object).0);
            }
            WatchEvent::Bookmark { .. } | WatchEvent::SnapshotRestarted | WatchEvent::Unknown => {}
        }
        self.count();
    }
}

fn content(object: &Object) -> (String, String) {
    let uid = object.identity().map(|identity| identity.uid.to_string());
    let value = json::last_member(object.json(), "data")
        .and_then(|data| json::last_member(data, "value"))
        .and_then(json::string);
    (uid.unwrap_or_default(), value.unwrap_or_default().into_owned())
}
