//! What the tests share: a gateway whose seams each test may replace, an upstream that does what it is told, and readers.

mod asked;
mod connection;
mod recorder;
mod scripted;
mod seams;
mod socket;

use std::time::Duration;

use bytes::Bytes;
use krm_stream_protocol::Object;

pub(crate) use asked::{AskedAuthorizer, Questions};
pub(crate) use connection::{Connection, code_of, text_of, type_of};
pub(crate) use recorder::{Recorder, Reports};
pub(crate) use scripted::{OpenRequest, Script, ScriptedSession, ScriptedUpstream};
pub(crate) use seams::{AsCaller, Seam, builder, get, get_as, scope, scope_policy};
pub(crate) use socket::SocketStream;

/// The scope that most tests ask for.
pub(crate) const QUERY: &str = "version=v1&resource=configmaps&namespace=app";

/// A config map of namespace `app` whose uid and name are `uid`.
pub(crate) fn config_map(uid: &str, version: u64, value: &str) -> Object {
    object(format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{uid}","namespace":"app","uid":"{uid}","resourceVersion":"{version}"}},"data":{{"value":"{value}"}}}}"#
    ))
}

/// Small and large objects: large ones are chunks of their own.
pub(crate) fn small_and_large() -> Vec<Object> {
    let sizes = [10, 20_000, 10, 10, 200_000, 10, 50_000, 20_000, 10];
    let named = sizes.into_iter().enumerate();
    named
        .map(|(at, size)| config_map(&format!("uid-{at}"), 1, &"x".repeat(size)))
        .collect()
}

/// A secret of namespace `app` with this one value.
pub(crate) fn secret(uid: &str, version: u64, value: &str) -> Object {
    object(format!(
        r#"{{"kind":"Secret","apiVersion":"v1","metadata":{{"name":"{uid}","namespace":"app","uid":"{uid}","resourceVersion":"{version}"}},"data":{{"value":"{value}"}}}}"#
    ))
}

fn object(text: String) -> Object {
    Object::parse(Bytes::from(text)).unwrap()
}

/// Waits, in the test's time, until this holds.
pub(crate) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(
        tokio::time::timeout(Duration::from_secs(20), wait).await.is_ok(),
        "{what}"
    );
}

/// Lets the stream go as far as it can in this time, in which nothing may come of it but heartbeats.
pub(crate) async fn nothing_comes(connection: &mut Connection, time: Duration) {
    let came = tokio::time::timeout(time, connection.next()).await;
    assert!(came.is_err(), "{came:?}");
}
