//! What the tests share.

pub(crate) mod scripted;
pub(crate) mod socket;
pub(crate) mod transcript;

use std::time::Duration;

use krm_stream_protocol::Scope;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// The ConfigMaps of the namespace `rec`.
pub(crate) fn config_maps() -> Scope {
    Scope::builder("v1", "configmaps")
        .namespace("rec")
        .build()
        .unwrap()
}

/// An object as the API server would send it in a watch.
pub(crate) fn object(name: &str, version: &str) -> String {
    format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"rec","uid":"uid-{name}","resourceVersion":"{version}"}}}}"#
    )
}

/// An item of a typed list: without kind and apiVersion.
pub(crate) fn item(name: &str, version: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"rec","uid":"uid-{name}","resourceVersion":"{version}"}}}}"#
    )
}

/// A line of a watch.
pub(crate) fn line(event: &str, object: &str) -> String {
    format!("{{\"type\":\"{event}\",\"object\":{object}}}\n")
}

/// The bookmark that ends the initial events.
pub(crate) fn boundary(version: &str) -> String {
    line(
        "BOOKMARK",
        &format!(
            r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"resourceVersion":"{version}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}"#
        ),
    )
}

/// An ordinary bookmark.
pub(crate) fn bookmark(version: &str) -> String {
    line(
        "BOOKMARK",
        &format!(r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"}}}}"#),
    )
}

/// A page of a list; `next` is its raw `continue` value.
pub(crate) fn page(version: &str, next: &str, items: &[String]) -> String {
    format!(
        r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}","continue":{next}}},"items":[{}]}}"#,
        items.join(",")
    )
}

/// A `Status` of this code and reason.
pub(crate) fn status(code: u16, reason: &str, message: &str) -> String {
    format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"{message}","reason":"{reason}","code":{code}}}"#
    )
}

/// The answer of an API server that does not know streaming lists.
pub(crate) fn refused_streaming_list() -> String {
    r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled","reason":"Invalid","details":{"group":"meta.k8s.io","kind":"ListOptions","causes":[{"reason":"FieldValueForbidden","message":"Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled","field":"sendInitialEvents"}]},"code":422}"#.to_owned()
}
