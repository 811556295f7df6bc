//! What the tests share: a gateway whose seams each test may replace, an upstream that does what it is told, and readers.

mod asked;
mod connection;
mod recorder;
mod scripted;
mod seams;
mod socket;

use std::time::Duration;

use bytes::Bytes;
use krm_stream_http::Gateway;
use krm_stream_protocol::Object;

pub(crate) use asked::{AskedAuthorizer, Question, Questions};
pub(crate) use connection::{Connection, code_of, text_of, type_of};
pub(crate) use recorder::{Recorder, Reports};
pub(crate) use scripted::{OpenRequest, Script, ScriptedSession, ScriptedUpstream};
pub(crate) use seams::{AsCaller, Seam, builder, get, get_as, scope, scope_policy};
pub(crate) use socket::SocketStream;

/// Longer than a stream takes for whatever it can do at once.
pub(crate) const MOMENT: Duration = Duration::from_millis(10);

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

/// Lets a stream in, and lets it go as far as it can: it waits for its upstream to open.
pub(crate) async fn is_opening(
    connection: &mut Connection,
    questions: &mut Questions,
    script: &mut Script,
) -> OpenRequest {
    let opening = async {
        questions.allow_next().await;
        script.next_open().await
    };
    let ((), opening) = tokio::join!(nothing_comes(connection, MOMENT), opening);
    opening
}

/// A stream whose reader has taken so many chunks of [`small_and_large`] objects, and takes no more.
pub(crate) async fn stalled_after(taken: usize) -> (Gateway, Connection, Questions, ScriptedSession) {
    let (upstream, mut script) = ScriptedUpstream::new();
    let (authorizer, mut questions) = AskedAuthorizer::new();
    let gateway = builder(&upstream).authorizer(authorizer).build().unwrap();
    let mut connection = get(&gateway, QUERY);
    let opening = is_opening(&mut connection, &mut questions, &mut script).await;
    let session = opening.accept_with(small_and_large(), "1");
    tokio::time::sleep(MOMENT).await;
    // What a consumer would have of it.
    for _ in 0..taken {
        let _ = tokio::time::timeout(MOMENT, connection.chunk_events()).await;
    }
    connection.skip_received();
    (gateway, connection, questions, session)
}

/// Nothing comes of what was written, and the stream is over. The error in its place, where no event was begun.
pub(crate) async fn is_cut_off(connection: &mut Connection, told: &str) -> Option<String> {
    let before = connection.raw().len();
    let last = connection.next().await;
    if before == 0 || connection.raw()[..before].ends_with(b"\n\n") {
        assert_eq!(connection.next().await, None, "{told}");
        return Some(last.unwrap());
    }
    assert_eq!(last, None, "{told}");
    assert_eq!(connection.raw().len(), before, "{told}");
    None
}

/// Lets the stream go as far as it can in this time, in which nothing may come of it but heartbeats.
pub(crate) async fn nothing_comes(connection: &mut Connection, time: Duration) {
    let came = tokio::time::timeout(time, connection.next()).await;
    assert!(came.is_err(), "{came:?}");
}
