//! What goes wrong, with secrets in the middle of it.

use std::time::Duration;

use bytes::Bytes;
use krm_stream_simulator::{
    Answer, Ending, Fault, RequestMatch, Simulator, Status, StreamAction, StreamPoint,
};
use serde_json::json;
use tokio::time::{sleep, timeout};

/// One thing that goes wrong, and what comes of it.
pub(crate) struct Trouble {
    pub(crate) name: &'static str,
    pub(crate) when: When,
    /// One of these comes over the wire then.
    pub(crate) expected: &'static [&'static str],
}

pub(crate) enum When {
    /// Before the stream is opened, so that its first request meets it.
    AtOpen(Fault),
    /// Once the stream is synced: these bytes come into the open watch.
    Sent(Vec<u8>),
    /// The same; nobody notices, for the watch is resumed.
    SentAndResumed(Vec<u8>),
    /// Once the stream is synced: the open watch does this, and the Secret changes.
    Ordered(StreamAction),
    /// Once the stream is synced: its watch ends, and the request that would resume it meets this.
    AtReopen(Fault),
    /// The same, for that request alone.
    AtFirstReopen(Fault),
}

const WITHIN: Duration = Duration::from_secs(30);
const ERROR: &[&str] = &["\"type\":\"error\""];
const UNAVAILABLE: &[&str] = &["UPSTREAM_UNAVAILABLE"];
const INTERNAL: &[&str] = &["INTERNAL"];
const RESYNC: &[&str] = &["RESYNC_REQUIRED"];
/// The label of the change that comes after the trouble.
const DONE: &[&str] = &["\"step\":\"done\""];
const MARKED: &[&str] = &["\"marked\""];

/// A Secret's line with this in the place of its `data`, whatever that makes of it.
fn line(data: &str) -> Vec<u8> {
    format!(
        r#"{{"type":"MODIFIED","object":{{"kind":"Secret","apiVersion":"v1","metadata":{{"name":"marked","namespace":"shop","uid":"marked","resourceVersion":"900"}},{data}}}}}"#
    )
    .into_bytes()
    .into_iter()
    .chain(*b"\n")
    .collect()
}

fn event(event: &str, object: &str) -> Vec<u8> {
    format!("{{\"type\":\"{event}\",\"object\":{object}}}\n").into_bytes()
}

fn refused(code: u16, message: &str) -> Fault {
    Fault::status(&Status::new(code, message))
}

fn page(code: u16) -> Fault {
    let html = "<html><body>canary-in-a-page Y2FuYXJ5 <a href='/?token=canary-token'>here</a></body></html>";
    Fault::Answer(Answer::text(code, html).header("content-type", "text/html"))
}

fn at_open() -> Vec<(&'static str, Fault, &'static [&'static str])> {
    let elsewhere = "http://127.0.0.1:9/?token=canary-token";
    vec![
        (
            "a rejected token",
            Fault::status(&Status::unauthorized()),
            &["UNAUTHENTICATED"],
        ),
        ("no right", refused(403, "secrets is forbidden"), &["FORBIDDEN"]),
        (
            "no such kind",
            Fault::status(&Status::unknown_resource()),
            &["SCOPE_INVALID"],
        ),
        ("a page of HTML with 500", page(500), UNAVAILABLE),
        ("a page of HTML with 503", page(503), UNAVAILABLE),
        ("a page of HTML with 400", page(400), INTERNAL),
        ("a page of HTML with 403", page(403), &["FORBIDDEN"]),
        ("a page of HTML with 401", page(401), &["UNAUTHENTICATED"]),
        ("a page of HTML with 200", page(200), ERROR),
        ("an empty body", Fault::Answer(Answer::json(200, "")), ERROR),
        ("a text with 400", refused(400, "text-of-upstream"), INTERNAL),
        ("a text with 422", refused(422, "text-of-upstream"), INTERNAL),
        ("a text with 500", refused(500, "text-of-upstream"), UNAVAILABLE),
        (
            "a limit",
            Fault::status(&Status::too_many_requests(7)),
            UNAVAILABLE,
        ),
        ("a redirect", Fault::redirect(302, elsewhere), INTERNAL),
        ("a permanent redirect", Fault::redirect(308, elsewhere), INTERNAL),
        ("a connection that is reset", Fault::ResetConnection, UNAVAILABLE),
        (
            "an encoded answer",
            Fault::Answer(Answer::json(200, "canary").header("content-encoding", "gzip")),
            INTERNAL,
        ),
    ]
}

#[expect(
    clippy::too_many_lines,
    reason = "a table, each line of which is a trouble of its own"
)]
fn sent() -> Vec<(&'static str, Vec<u8>, &'static [&'static str])> {
    let mut torn_character = line(r#""data":{"k":"canary-plain?"}"#);
    if let Some(byte) = torn_character.iter_mut().find(|byte| **byte == b'?') {
        *byte = 0xff;
    }
    let deep = format!(
        r#""data":{{"k":{}"canary-plain"{}}}"#,
        "[".repeat(300),
        "]".repeat(300)
    );
    let unknown = event("PATCHED", r#"{"kind":"Secret","data":{"k":"canary-plain"}}"#);
    let then_marked = line(r#""data":{"k":"canary-plain"}"#);
    let long = format!(r#""data":{{"k":"{}"}}"#, "canary-plain-".repeat(2000));
    vec![
        (
            "a line that ends within a value",
            line(r#""data":{"k":"canary-plain"#),
            ERROR,
        ),
        (
            "a line with an illegal character in a value",
            line("\"data\":{\"k\":\"canary-plain\u{1}\"}"),
            ERROR,
        ),
        (
            "a line with an illegal escape in a value",
            line(r#""data":{"k":"canary-\q"}"#),
            ERROR,
        ),
        ("a line with a torn character in a value", torn_character, ERROR),
        (
            "two documents in a line",
            [line("\"data\":{}"), line(r#""data":{"k":"canary"}"#)]
                .concat()
                .into_iter()
                .filter(|byte| *byte != b'\n')
                .chain(*b"\n")
                .collect(),
            ERROR,
        ),
        (
            "a value without quotes",
            line(r#""data":{"k":canary-plain}"#),
            ERROR,
        ),
        ("a line that is too long", line(&long), ERROR),
        ("a line that is no JSON", b"canary-plain\n".to_vec(), ERROR),
        ("a line that is a string", b"\"canary-plain\"\n".to_vec(), ERROR),
        (
            "an unknown type of event before a known one",
            [unknown, then_marked].concat(),
            MARKED,
        ),
        (
            "a partial object",
            event(
                "MODIFIED",
                r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"s","namespace":"shop","uid":"u","resourceVersion":"900","annotations":{"k":"canary-plain"}},"data":{"k":"canary-plain"}}"#,
            ),
            RESYNC,
        ),
        (
            "a Secret without a uid",
            event(
                "MODIFIED",
                r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","namespace":"shop","resourceVersion":"900"},"data":{"k":"canary-plain"}}"#,
            ),
            RESYNC,
        ),
        (
            "a Secret with an odd name",
            event(
                "MODIFIED",
                r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":5,"namespace":"shop","uid":"u","resourceVersion":"900"},"data":{"k":"canary-plain"}}"#,
            ),
            RESYNC,
        ),
        (
            "a Secret without metadata",
            event(
                "ADDED",
                r#"{"kind":"Secret","apiVersion":"v1","data":{"k":"canary-plain"}}"#,
            ),
            RESYNC,
        ),
        (
            "a tombstone without identity",
            event(
                "DELETED",
                r#"{"kind":"Secret","apiVersion":"v1","metadata":{},"data":{"k":"canary-plain"}}"#,
            ),
            RESYNC,
        ),
        (
            "a Secret of another namespace",
            event(
                "ADDED",
                r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","namespace":"other","uid":"u","resourceVersion":"900"},"data":{"k":"canary-plain"}}"#,
            ),
            ERROR,
        ),
        (
            "a version that does not order",
            event(
                "ADDED",
                r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","namespace":"shop","uid":"u","resourceVersion":"x"},"data":{"k":"canary-plain"}}"#,
            ),
            INTERNAL,
        ),
        (
            "an expiry",
            event(
                "ERROR",
                r#"{"kind":"Status","code":410,"reason":"Expired","message":"text-of-upstream"}"#,
            ),
            RESYNC,
        ),
        ("data that is a string", line(r#""data":"canary-plain""#), MARKED),
        (
            "data that is a list",
            line(r#""data":["canary-plain"],"stringData":[["canary"]]"#),
            MARKED,
        ),
        (
            "data twice",
            line(r#""data":{"k":"canary-plain"},"data":{"l":"Y2FuYXJ5"}"#),
            MARKED,
        ),
        (
            "data under escaped keys",
            line(r#""d\u0061ta":{"k":"canary-plain"},"string\u0044ata":{"k":"canary"}"#),
            MARKED,
        ),
        ("data that is deep", line(&deep), MARKED),
        (
            "a lone surrogate",
            line(r#""data":{"k":"canary\ud800"},"binaryData":{"b":"Y2FuYXJ5"}"#),
            MARKED,
        ),
    ]
}

fn sent_and_resumed() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        (
            "an error with a text",
            event(
                "ERROR",
                r#"{"kind":"Status","code":500,"message":"text-of-upstream"}"#,
            ),
        ),
        (
            "an error that is a Secret",
            event("ERROR", r#"{"kind":"Secret","data":{"k":"canary-plain"}}"#),
        ),
    ]
}

fn ordered() -> Vec<(&'static str, StreamAction)> {
    let cut = |bytes, ending| StreamAction::CutLine { bytes, ending };
    vec![
        ("a line cut within a value", cut(330, Ending::Abort)),
        ("a line cut early", cut(40, Ending::Close)),
        ("a line cut by a reset", cut(300, Ending::Reset)),
        ("a watch that is reset", StreamAction::End(Ending::Reset)),
        ("a watch that breaks off", StreamAction::End(Ending::Abort)),
        ("a watch that ends", StreamAction::End(Ending::Close)),
    ]
}

fn at_reopen() -> Vec<(&'static str, Fault, &'static [&'static str])> {
    vec![
        (
            "a token that is rejected on a reopen",
            Fault::status(&Status::unauthorized()),
            RESYNC,
        ),
        ("a page of HTML with 400 on a reopen", page(400), RESYNC),
        (
            "a redirect on a reopen",
            Fault::redirect(307, "http://127.0.0.1:9/?token=canary-token"),
            RESYNC,
        ),
        (
            "a resumed watch that begins with a torn value",
            Fault::stream(
                StreamPoint::Start,
                StreamAction::Send(Bytes::from(line(r#""data":{"k":"canary-plain"#))),
            ),
            ERROR,
        ),
    ]
}

/// Everything that goes wrong.
pub(crate) fn all() -> Vec<Trouble> {
    let mut all = Vec::new();
    let mut add = |name, when, expected| all.push(Trouble { name, when, expected });
    for (name, fault, expected) in at_open() {
        add(name, When::AtOpen(fault), expected);
    }
    for (name, bytes, expected) in sent() {
        add(name, When::Sent(bytes), expected);
    }
    for (name, bytes) in sent_and_resumed() {
        add(name, When::SentAndResumed(bytes), DONE);
    }
    for (name, action) in ordered() {
        add(name, When::Ordered(action), DONE);
    }
    for (name, fault, expected) in at_reopen() {
        add(name, When::AtReopen(fault), expected);
    }
    // The watch that follows the new list is accepted: before, there is no new snapshot.
    let expired = Fault::status(&Status::expired("1", "2"));
    add("an expiry on a reopen", When::AtFirstReopen(expired), RESYNC);
    all
}

impl When {
    /// Prepares what the first request meets.
    pub(crate) fn before_open(&self, simulator: &Simulator) {
        if let Self::AtOpen(fault) = self {
            simulator.faults().add(secrets().always(), fault.clone());
        }
    }

    /// Brings it about.
    pub(crate) async fn after_synced(&self, simulator: &Simulator, place: &str) {
        // After a list its watch may not have been asked for yet.
        let watched = simulator.wait_for(|counts| counts.open_watches == 1);
        assert!(timeout(WITHIN, watched).await.is_ok(), "{place}: not watched");
        match self {
            Self::AtOpen(_) => {}
            Self::Sent(bytes) => {
                assert_eq!(simulator.inject(&secrets().always(), bytes.clone()), 1);
            }
            Self::Ordered(action) => {
                let before = simulator.counts().watch;
                assert_eq!(simulator.order(&secrets().always(), action.clone()), 1);
                let resumed = simulator.wait_for(|counts| counts.watch > before && counts.open_watches == 1);
                // The order counts from some later line on, so there have to be lines.
                let changing = async {
                    for change in 0.. {
                        patch(simulator, &change.to_string());
                        sleep(Duration::from_millis(50)).await;
                    }
                };
                tokio::select! {
                    _ = timeout(WITHIN, resumed) => {}
                    () = changing => {}
                }
                assert!(simulator.counts().watch > before, "{place}: not resumed");
                patch(simulator, "done");
            }
            Self::SentAndResumed(bytes) => {
                let before = simulator.counts().watch;
                assert_eq!(simulator.inject(&secrets().always(), bytes.clone()), 1);
                let resumed = simulator.wait_for(|counts| counts.watch > before && counts.open_watches == 1);
                assert!(timeout(WITHIN, resumed).await.is_ok(), "{place}: not resumed");
                patch(simulator, "done");
            }
            Self::AtReopen(fault) => {
                simulator.faults().add(resumed().always(), fault.clone());
                simulator.close_watches();
            }
            Self::AtFirstReopen(fault) => {
                simulator.faults().add(resumed(), fault.clone());
                simulator.close_watches();
            }
        }
    }

    pub(crate) const fn comes_before_synced(&self) -> bool {
        match self {
            Self::AtOpen(_) => true,
            Self::Sent(_)
            | Self::SentAndResumed(_)
            | Self::Ordered(_)
            | Self::AtReopen(_)
            | Self::AtFirstReopen(_) => false,
        }
    }
}

fn secrets() -> RequestMatch {
    RequestMatch::any().resource("secrets")
}

fn resumed() -> RequestMatch {
    RequestMatch::resumed_watch().resource("secrets")
}

fn patch(simulator: &Simulator, step: &str) {
    let patch =
        json!({"metadata": {"labels": {"step": step}}, "stringData": {"k": format!("canary-plain-{step}")}});
    simulator.patch("secrets", "shop", "s", &patch).unwrap();
}
