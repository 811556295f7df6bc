//! Objects for tests, from their JSON text.

use bytes::Bytes;
use krm_stream_protocol::Object;

/// The object that this text is.
///
/// # Panics
/// If the text is no JSON object.
#[expect(clippy::expect_used, reason = "a test's own text is an object")]
pub fn object(text: impl Into<String>) -> Object {
    Object::parse(Bytes::from(text.into())).expect("a test's own text is an object")
}

/// A config map of namespace `app` whose uid and name are `uid`.
pub fn config_map(uid: &str, version: &str) -> Object {
    config_map_with(uid, version, version)
}

/// A config map of namespace `app` with this value under its one key.
pub fn config_map_with(uid: &str, version: &str, value: &str) -> Object {
    object(format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{uid}","namespace":"app","uid":"{uid}","resourceVersion":"{version}"}},"data":{{"value":"{value}"}}}}"#
    ))
}

/// A secret of namespace `app` with this `data`, an object's JSON.
pub fn secret(uid: &str, version: &str, data: &str) -> Object {
    object(format!(
        r#"{{"kind":"Secret","apiVersion":"v1","metadata":{{"name":"{uid}","namespace":"app","uid":"{uid}","resourceVersion":"{version}"}},"data":{data},"type":"Opaque"}}"#
    ))
}
