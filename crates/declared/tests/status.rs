//! The status of the resource over time: what is written, and that it fits the schema's promises.

use krm_stream_declared::{DeclaredStream, DeclaredStreamSpec, DeclaredStreamStatus};
use krm_stream_protocol::{ResourceVersion, SessionEnd, Start};
use krm_stream_status::{Ended, ReadStatus, StreamSummary, Timestamp, WatchStream, plan_write};
use serde_json::json;

fn evaluate(read: Option<&DeclaredStreamStatus>, streams: &[WatchStream], now: i64) -> DeclaredStreamStatus {
    let names = ["a", "b", "c"];
    let summary = StreamSummary::of(names.into_iter().zip(streams.iter().map(WatchStream::state)));
    DeclaredStreamStatus::evaluate(read, 7, &summary, Timestamp::from_unix_seconds(now))
}

fn streaming() -> WatchStream {
    let mut stream = WatchStream::new();
    stream.opened(&Start::Fresh);
    stream.synced();
    stream.lived();
    stream
}

#[test]
fn the_status_has_the_fields_that_the_columns_and_tools_read() {
    let status = evaluate(None, &[streaming(), WatchStream::new()], 0);
    assert_eq!(
        serde_json::to_value(status).unwrap(),
        json!({
            "observedGeneration": 7,
            "conditions": [
                {"type": "Ready", "status": "False", "observedGeneration": 7, "reason": "Replaying",
                    "lastTransitionTime": "1970-01-01T00:00:00Z", "message": "1 of 2 streams are ready; waiting for b"},
                {"type": "Reconciling", "status": "True", "observedGeneration": 7, "reason": "Replaying",
                    "lastTransitionTime": "1970-01-01T00:00:00Z", "message": "1 of 2 streams are ready; waiting for b"},
                {"type": "Stalled", "status": "False", "observedGeneration": 7, "reason": "Replaying",
                    "lastTransitionTime": "1970-01-01T00:00:00Z", "message": ""},
            ],
            "streams": {"summary": "1/2", "total": 2, "ready": 1, "replaying": 1, "blocked": 0, "pendingSample": ["b"]},
        })
    );
}

#[test]
fn a_routine_end_writes_nothing_and_an_expired_version_names_who_waits_only_while_it_does() {
    let version = ResourceVersion::from("1");
    let mut streams = [streaming(), streaming()];
    let ready = evaluate(None, &streams, 0);
    let plan = |read: &DeclaredStreamStatus, desired: &DeclaredStreamStatus| {
        let read = ReadStatus {
            resource_version: &version,
            status: Some(read),
        };
        plan_write(&read, desired).unwrap()
    };

    streams[1].ended(Ended::Session(&SessionEnd::Closed));
    assert_eq!(plan(&ready, &evaluate(Some(&ready), &streams, 60)), None);

    streams[1].ended(Ended::Session(&SessionEnd::Expired));
    let replaying = evaluate(Some(&ready), &streams, 120);
    let patch = plan(&ready, &replaying).unwrap();
    assert_eq!(
        patch.patch().body()["status"]["streams"]["pendingSample"],
        json!(["b"])
    );

    streams[1].synced();
    let patch = plan(&replaying, &evaluate(Some(&replaying), &streams, 180)).unwrap();
    let streams = &patch.patch().body()["status"]["streams"];
    assert!(
        streams.get("pendingSample").unwrap().is_null(),
        "a merge patch removes with null"
    );
}

#[test]
fn a_resource_is_read_as_an_api_server_stores_it() {
    let stored = json!({
        "apiVersion": "krm-stream.github.io/v1alpha1",
        "kind": "DeclaredStream",
        "metadata": {"name": "shop", "generation": 2},
        "spec": {"streams": [
            {"name": "config", "scope": {"version": "v1", "resource": "configmaps", "namespace": "shop"}},
        ]},
        "status": {"observedGeneration": 1},
    });
    let resource: DeclaredStream = serde_json::from_value(stored).unwrap();
    assert_eq!(resource.spec.streams[0].scope.namespace.as_deref(), Some("shop"));
    assert_eq!(resource.status.unwrap().observed_generation, Some(1));
    assert_eq!(
        DeclaredStream::new("empty", DeclaredStreamSpec::default()).status,
        None
    );
}
