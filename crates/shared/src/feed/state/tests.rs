//! How upstream events change what a feed knows.

use bytes::Bytes;
use krm_stream_projection::{DigestKey, Projected, Projection};
use krm_stream_protocol::{Object, Scope};

use super::*;
use crate::sweep::{Frame, Sink, Sweep};

/// The connection of a stream that takes nothing, so that tombstones are kept for it.
struct Nowhere;

impl Sink<Arc<Identity>, Held> for Nowhere {
    fn has_room(&self) -> bool {
        false
    }

    fn push(&mut self, _: Frame<'_, Arc<Identity>, Held>) {}
}

pub(crate) fn upsert(uid: &str, version: &str, value: &str) -> Change {
    upsert_of(
        "configmaps",
        format!(
            r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"uid":"{uid}","name":"n-{uid}","resourceVersion":"{version}"}},"data":{{"k":"{value}"}}}}"#
        ),
    )
}

/// The change that this object's text is, in a scope of this resource.
pub(crate) fn upsert_of(resource: &str, text: String) -> Change {
    let object = Object::parse(Bytes::from(text)).unwrap();
    let scope = Scope::builder("v1", resource).build().unwrap();
    let projected = Projection::full()
        .project(&scope, &object, &DigestKey::new([7; 32]))
        .unwrap();
    Change::Upsert {
        identity: Arc::clone(object.identity().unwrap()),
        version: object.resource_version().cloned(),
        held: Held::kept(projected),
    }
}

pub(crate) fn delete(uid: &str, version: &str) -> Change {
    match upsert(uid, version, "") {
        Change::Upsert {
            identity, version, ..
        } => Change::Delete { identity, version },
        Change::Delete { .. } => unreachable!(),
    }
}

fn state(ordering: Ordering, streams_snapshots: bool) -> FeedState {
    let settings = FeedSettings {
        ordering,
        ..FeedSettings::default()
    };
    FeedState::new(&settings, streams_snapshots)
}

fn strict() -> FeedState {
    state(Ordering::Strict, false)
}

fn uids(state: &FeedState) -> Vec<String> {
    state
        .changelog
        .objects()
        .map(|object| object.identity.uid.to_string())
        .collect()
}

#[test]
fn within_a_cycle_no_older_state_of_a_uid_is_taken() {
    let mut state = strict();
    let mut behind = Sweep::new();
    behind.begin_cycle(&state.changelog, &mut Nowhere);
    assert_eq!(state.apply(upsert("a", "5", "five")), Applied::Changed);
    assert_eq!(state.apply(upsert("a", "4", "four")), Applied::Dropped);
    assert_eq!(state.apply(upsert("a", "5", "again")), Applied::Dropped);
    assert_eq!(state.apply(delete("a", "4")), Applied::Dropped);
    assert_eq!(
        state.apply(delete("a", "5")),
        Applied::Changed,
        "some servers delete with the last version"
    );
    assert_eq!(
        state.apply(upsert("a", "5", "late")),
        Applied::Dropped,
        "a tombstone keeps the version"
    );
    assert_eq!(state.apply(upsert("a", "6", "back")), Applied::Changed);
    assert_eq!(state.apply(delete("unknown", "9")), Applied::Dropped);
}

#[test]
fn lenient_ordering_takes_everything() {
    let mut state = state(Ordering::Lenient, false);
    assert_eq!(state.apply(upsert("a", "5", "five")), Applied::Changed);
    assert_eq!(state.apply(upsert("a", "4", "four")), Applied::Changed);
}

#[test]
fn a_state_that_differs_in_its_version_alone_is_suppressed_but_raises_the_version() {
    let mut state = strict();
    state.apply(upsert("a", "5", "same"));
    let head = state.changelog.head();
    assert_eq!(state.apply(upsert("a", "6", "same")), Applied::Suppressed);
    assert_eq!(state.changelog.head(), head);
    assert_eq!(state.apply(upsert("a", "6", "other")), Applied::Dropped);
}

#[test]
fn a_snapshot_that_is_read_again_deletes_what_it_lacks_at_the_boundary() {
    let mut state = strict();
    state.begin_snapshot();
    state.apply(upsert("a", "1", "x"));
    state.apply(upsert("b", "2", "x"));
    state.restart_snapshot();
    assert_eq!(
        state.apply(upsert("a", "1", "x")),
        Applied::Dropped,
        "each object once"
    );
    state.apply(upsert("c", "3", "x"));
    assert!(state.reach_boundary().is_none());
    assert_eq!(uids(&state), ["a", "c"]);
}

#[test]
fn a_lost_feed_serves_its_old_state_until_the_new_snapshot_is_complete() {
    let mut state = strict();
    state.apply(upsert("a", "1", "x"));
    state.reach_boundary();
    assert!(state.begin_snapshot().is_none());
    assert!(!state.changelog.is_continuous());
    assert_eq!(state.apply(upsert("b", "9", "x")), Applied::Aside);
    state.restart_snapshot();
    assert_eq!(state.apply(upsert("c", "9", "x")), Applied::Aside);
    assert_eq!(uids(&state), ["a"]);
    assert!(state.reach_boundary().is_some());
    assert_eq!(uids(&state), ["c"]);
    assert!(state.changelog.is_continuous());
}

#[test]
fn a_cut_before_the_first_boundary_begins_another_epoch() {
    let mut state = strict();
    assert!(state.begin_snapshot().is_none(), "nothing was sent yet");
    state.apply(upsert("a", "1", "x"));
    let epoch = state.changelog.epoch();
    assert!(state.begin_snapshot().is_some());
    assert_eq!(state.changelog.epoch(), epoch + 1);
    assert!(uids(&state).is_empty());
}

#[test]
fn an_isolated_feed_streams_its_new_snapshot_and_keeps_bytes_only_until_they_are_taken() {
    let mut state = state(Ordering::Strict, true);
    let isolated = |version: &str| match upsert("a", version, "x") {
        Change::Upsert {
            identity,
            version,
            held: Held::Kept(projected),
        } => Change::Upsert {
            identity,
            version,
            held: Held::until_taken(Projected::clone(&projected)),
        },
        other => other,
    };
    state.apply(isolated("1"));
    state.reach_boundary();
    let take = |state: &FeedState| {
        state
            .changelog
            .payload_of("a")
            .unwrap()
            .send(|projected| projected.object().len())
    };
    assert!(take(&state).is_some());
    assert!(take(&state).is_none());
    assert_eq!(
        state.apply(isolated("2")),
        Applied::Suppressed,
        "the digest stays"
    );
    assert!(take(&state).is_none(), "what was taken is not kept again");
    assert!(state.begin_snapshot().is_some());
    assert!(state.changelog.is_continuous());
}
