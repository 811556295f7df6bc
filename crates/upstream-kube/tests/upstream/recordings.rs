//! What a real API server sent, byte for byte.

use std::path::PathBuf;

use krm_stream_protocol::{
    Object, OpenError, ResourceVersion, Scope, SessionItem, Start, Upstream as _, UpstreamErrorKind,
    WatchEvent, json,
};

use crate::support::scripted::{Answer, upstream};
use crate::support::transcript::{next, read};

fn recording(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

fn scope(resource: &str) -> Scope {
    match resource {
        "deployments" => Scope::builder("v1", resource).group("apps"),
        "oddities" => Scope::builder("v1", "oddities").group("example.org"),
        _ => Scope::builder("v1", resource),
    }
    .build()
    .unwrap()
}

fn object_of(event: &WatchEvent) -> Option<&Object> {
    match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
            Some(object)
        }
        WatchEvent::Bookmark { .. } | WatchEvent::SnapshotRestarted | WatchEvent::Unknown => None,
    }
}

#[tokio::test(start_paused = true)]
async fn every_recorded_watch_decodes_with_its_objects_unchanged() {
    for resource in ["configmaps", "deployments", "secrets", "oddities"] {
        let text = recording(&format!("watchlist-{resource}.jsonl"));
        for size in [1, 100, text.len()] {
            let body = text.clone();
            let (upstream, _) = upstream(move |_| Answer::ok(body.clone()).in_chunks_of(size));
            let mut session = upstream.open(&scope(resource), Start::Fresh).await.unwrap();
            let mut boundaries = 0;
            for line in text.lines() {
                let SessionItem::Event(event) = next(&mut *session).await else {
                    panic!("{resource} ended before {line}");
                };
                let recorded = json::last_member(line.as_bytes(), "object").unwrap();
                match (object_of(&event), &event) {
                    (Some(object), _) => {
                        assert_eq!(object.json(), recorded);
                        assert!(object.identity().is_some() && object.resource_version().is_some());
                    }
                    (
                        None,
                        WatchEvent::Bookmark {
                            resource_version,
                            initial_events_end,
                        },
                    ) => {
                        assert!(resource_version.is_some() && line.contains("BOOKMARK"));
                        boundaries += u32::from(*initial_events_end);
                    }
                    (None, other) => panic!("{other:?}"),
                }
            }
            assert_eq!(boundaries, 1, "{resource}");
            assert!(matches!(next(&mut *session).await, SessionItem::End(_)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_recorded_list_decodes_with_its_items_unchanged_behind_their_kind() {
    for (name, resource, kind) in [
        (
            "list-deployments.json",
            "deployments",
            r#"{"kind":"Deployment","apiVersion":"apps/v1","#,
        ),
        (
            "list-secrets.json",
            "secrets",
            r#"{"kind":"Secret","apiVersion":"v1","#,
        ),
        (
            "list-secrets-page1.json",
            "secrets",
            r#"{"kind":"Secret","apiVersion":"v1","#,
        ),
        ("list-oddities.json", "oddities", ""),
    ] {
        let text = recording(name);
        let body = text.clone();
        let (upstream, _) = upstream(move |request| {
            if request.is_streaming_list() {
                Answer::new(405, "")
            } else if request.is_watch() || request.parameter("continue").is_some() {
                Answer::ok(r#"{"metadata":{"resourceVersion":"222"}}"#)
            } else {
                Answer::ok(body.clone())
            }
        });
        let mut session = upstream.open(&scope(resource), Start::Fresh).await.unwrap();
        let items = json::last_member(text.as_bytes(), "items").unwrap();
        let mut count = 0;
        for (recorded, _) in json::elements(items) {
            let SessionItem::Event(WatchEvent::Added(object)) = next(&mut *session).await else {
                panic!("{name}: an object");
            };
            let expected = if kind.is_empty() {
                recorded.to_vec()
            } else {
                [kind.as_bytes(), &recorded[1..]].concat()
            };
            assert_eq!(object.json(), &expected);
            assert!(object.identity().is_some());
            count += 1;
        }
        assert!(count > 0, "{name}");
        let SessionItem::Event(WatchEvent::Bookmark {
            resource_version,
            initial_events_end: true,
        }) = next(&mut *session).await
        else {
            panic!("{name}: the boundary");
        };
        let metadata = json::last_member(text.as_bytes(), "metadata").unwrap();
        let version = json::string(json::last_member(metadata, "resourceVersion").unwrap()).unwrap();
        assert_eq!(resource_version.unwrap().as_str(), version);
    }
}

#[tokio::test(start_paused = true)]
async fn every_recorded_error_is_classed() {
    for (name, code, expected) in [
        ("status-400-bad-selector.json", 400, "rejected"),
        ("status-401.json", 401, "unauthenticated"),
        ("status-404-no-group.txt", 404, "not found"),
        ("status-404-no-resource.json", 404, "not found"),
        ("status-500-bad-resource-version.json", 500, "unavailable"),
        ("status-503-paths-not-installed.json", 503, "unavailable"),
        (
            "status-504-too-large-resource-version.json",
            504,
            "version too large",
        ),
    ] {
        let body = recording(name);
        let (upstream, _) = upstream(move |_| Answer::new(code, body.clone()));
        let start = Start::After(ResourceVersion::from("1"));
        assert_eq!(
            read(&upstream, &scope("configmaps"), start).await,
            [format!("not opened: {expected}")],
            "{name}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_recorded_refusal_carries_kubernetes_own_text_and_the_recorded_hint_is_read() {
    let body = recording("status-403.json");
    let hint = recording("status-503-paths-not-installed.json");
    let (forbidden, _) = upstream(move |_| Answer::new(403, body.clone()));
    let Err(OpenError::Failed(error)) = forbidden.open(&scope("configmaps"), Start::Fresh).await else {
        panic!("refused");
    };
    let UpstreamErrorKind::Forbidden {
        message: Some(message),
    } = error.kind()
    else {
        panic!("forbidden");
    };
    assert_eq!(
        &**message,
        r#"configmaps is forbidden: User "gateway" cannot watch resource "configmaps" in API group "" in the namespace "rec""#
    );
    let (unavailable, _) = upstream(move |_| Answer::new(503, hint.clone()));
    let Err(OpenError::Failed(error)) = unavailable.open(&scope("configmaps"), Start::Fresh).await else {
        panic!("refused");
    };
    assert_eq!(error.retry_after().unwrap().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn the_recorded_expiry_ends_the_session() {
    let body = recording("watch-expired.jsonl");
    let (upstream, _) = upstream(move |_| Answer::ok(body.clone()));
    let start = Start::After(ResourceVersion::from("1"));
    assert_eq!(read(&upstream, &scope("configmaps"), start).await, ["expired"]);
}
