//! Nothing secret is said to anyone: not on the wire, not in a log at its most talkative, not to diagnostics, an observer,
//! the metrics or whoever prints a value for debugging.
//!
//! A whole gateway reads Secrets whose every value is a canary, with credentials that are canaries, through everything that
//! can go wrong; then all that was said is searched for them.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

#[path = "trace/canaries.rs"]
mod canaries;
#[path = "trace/served.rs"]
mod served;
#[path = "trace/troubles.rs"]
mod troubles;

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use krm_stream_simulator::{Rule, Simulator, User};
use krm_stream_tests::ConsumerClient;
use krm_stream_upstream_kube::{KubeUpstream, kube};
use serde_json::json;
use tokio::time::timeout;

use crate::canaries::{CANARY, Written, find};
use crate::served::{Served, Sharing};
use crate::troubles::Trouble;

const SECRETS: &str = "version=v1&resource=secrets&namespace=shop";
const TOKEN: &str = "canary-token-of-the-gateway";
const PATIENCE: Duration = Duration::from_mins(1);
/// How many troubles are gone through at once.
const AT_ONCE: usize = 24;
/// Shorter than the longest line that is sent.
const MAX_LINE_BYTES: usize = 8 * 1024;

/// Where everything is written, and where each part of it is, so that a finding can be traced.
#[derive(Clone, Default)]
struct Said {
    log: Written,
    to_host: Written,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_secret_is_said_to_anyone_whatever_goes_wrong() {
    let said = Said::default();
    let log = said.log.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_span_events(tracing_subscriber::fmt::format::FmtSpan::FULL)
        .with_ansi(false)
        .with_writer(move || log.clone())
        .init();

    let mut runs = Vec::new();
    for sharing in [Sharing::Shared, Sharing::PerCaller, Sharing::Isolated] {
        for streaming_lists in [true, false] {
            for trouble in troubles::all() {
                runs.push((sharing, streaming_lists, trouble));
            }
        }
    }
    let count = runs.len();
    stream::iter(runs)
        .for_each_concurrent(AT_ONCE, |(sharing, streaming_lists, trouble)| {
            let said = said.clone();
            async move { run(sharing, streaming_lists, &trouble, &said).await }
        })
        .await;

    let log = said.log.text();
    for who in ["hyper_util::client", "h2::", "krm_stream"] {
        assert!(log.contains(who), "the log of {who} is there to be searched");
    }
    for span in ["feed", "stream"] {
        let fields = fields_of(&log, span);
        assert!(!fields.is_empty(), "the log tells what is done in a {span}");
        for field in fields {
            assert!(is_number_of_a_stream(field), "{span}{{{field}}}");
        }
    }
    let to_host = said.to_host.text();
    assert!(to_host.contains("UpstreamSessionOpened") && to_host.contains("krm_stream_streams_open"));
    assert_eq!(find(&log), None, "in the log of {count} runs");
    assert_eq!(find(&to_host), None, "in what the host is told in {count} runs");
}

#[test]
fn a_canary_is_found_however_it_is_spelled() {
    for value in ["canary-plain", "xcanary-plain", "xxcanary-plain"] {
        let encoded = base64(value.as_bytes());
        let escaped = format!("{:?}", value.as_bytes());
        let digits = value
            .bytes()
            .fold(String::new(), |digits, byte| digits + &format!("{byte:02X}"));
        for text in [value.to_owned(), value.to_uppercase(), encoded, escaped, digits] {
            assert!(find(&format!("nothing\nthen {text} in it")).is_some(), "{text}");
        }
    }
    assert_eq!(find("nothing of the kind"), None);
}

/// What stands between the braces of each span of this name.
fn fields_of<'a>(log: &'a str, span: &str) -> BTreeSet<&'a str> {
    let begin = format!("{span}{{");
    log.match_indices(&begin)
        .filter(|(at, _)| log[..*at].ends_with([' ', ':']))
        .filter_map(|(at, _)| log[at + begin.len()..].split('}').next())
        .collect()
}

/// Nothing of an object, a caller or a scope.
fn is_number_of_a_stream(fields: &str) -> bool {
    fields
        .strip_prefix("stream=")
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[test]
fn a_span_with_more_than_a_number_in_it_is_found() {
    let log =
        "DEBUG feed{stream=7}: one\nDEBUG stream{stream=8}:feed{stream=7 scope=a}: two\nTRACE upstream{x}";
    assert_eq!(fields_of(log, "stream"), BTreeSet::from(["stream=8"]));
    let found: Vec<bool> = fields_of(log, "feed")
        .into_iter()
        .map(is_number_of_a_stream)
        .collect();
    assert_eq!(found, [true, false]);
    for fields in ["", "stream=", "stream=ada", "7"] {
        assert!(!is_number_of_a_stream(fields), "{fields}");
    }
}

async fn run(sharing: Sharing, streaming_lists: bool, trouble: &Trouble, said: &Said) {
    let place = format!(
        "{} ({sharing:?}, streaming lists: {streaming_lists})",
        trouble.name
    );
    let simulator = simulator(streaming_lists).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, TOKEN).unwrap();
    let upstream = upstream(&simulator, sharing, file.to_str().unwrap());
    let served = Served::start(upstream.clone(), sharing, &said.to_host).await;
    trouble.when.before_open(&simulator);
    let mut client = served.open("ada", SECRETS).await;
    if !trouble.when.comes_before_synced() {
        until(&mut client, &["\"synced\""], &place).await;
        trouble.when.after_synced(&simulator, &place).await;
    }
    until(&mut client, trouble.expected, &place).await;
    simulator.faults().clear();
    if trouble.when.comes_before_synced() {
        // What may be heard later, when it is well again.
        let text = timeout(PATIENCE, served.read_http2("bob", SECRETS, "\"type\":\""))
            .await
            .unwrap();
        assert_eq!(find(&text), None, "{place}");
    }
    let raw = String::from_utf8_lossy(client.raw()).into_owned();
    assert_eq!(find(&raw), None, "on the wire of {place}");
    assert!(!raw.contains("text-of-upstream"), "{place}");
    assert_eq!(
        find(&format!("{client:?} {:?}", client.consumer())),
        None,
        "{place}"
    );
    said.to_host.shown(&upstream);
    said.to_host.shown(&served.shown());
}

/// Reads until one of these parts came.
async fn until(client: &mut ConsumerClient, parts: &[&str], place: &str) {
    let reading = async {
        loop {
            let raw = String::from_utf8_lossy(client.raw());
            if parts.iter().any(|part| raw.contains(part)) {
                return;
            }
            let next = client.next().await;
            let ended = matches!(next, Ok(None) | Err(_));
            assert!(
                !ended,
                "{place}: no {parts:?} in {}",
                String::from_utf8_lossy(client.raw())
            );
        }
    };
    let came = timeout(PATIENCE, reading).await;
    assert!(
        came.is_ok(),
        "{place}: no {parts:?} in {}",
        String::from_utf8_lossy(client.raw())
    );
}

/// A simulator with a Secret, `s`, whose every value is a canary.
async fn simulator(streaming_lists: bool) -> Simulator {
    let simulator = Simulator::builder()
        .streaming_lists(streaming_lists)
        .start()
        .await
        .unwrap();
    let access = simulator.access();
    access.add_token(TOKEN, User::new("gateway"));
    access.add_rule(Rule::allow());
    let applied = json!({"kind": "Secret", "stringData": {"k": "canary-plain"}}).to_string();
    let secret = json!({
        "metadata": {
            "name": "s", "namespace": "shop",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": applied},
        },
        "data": {"l": base64(b"canary-plain"), "m": base64(b"xcanary-plain"), "n": base64(b"xxcanary-plain")},
        "stringData": {"k": "canary-plain"},
    });
    simulator.create("secrets", secret).unwrap();
    simulator
}

/// The gateway's credential is a token, or a file with one.
fn upstream(simulator: &Simulator, sharing: Sharing, file: &str) -> KubeUpstream {
    let mut config = kube::Config::new(simulator.url().parse().unwrap());
    if sharing == Sharing::PerCaller {
        config.auth_info.token = Some(TOKEN.to_owned().into());
    } else {
        config.auth_info.token_file = Some(file.to_owned());
    }
    config.headers.push((
        "x-host-key".parse().unwrap(),
        format!("{CANARY}-of-the-host").parse().unwrap(),
    ));
    KubeUpstream::builder(config)
        .max_line_bytes(MAX_LINE_BYTES)
        .build()
        .unwrap()
}

/// RFC 4648, with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0_usize, |bits, at| {
            (bits << 8) | usize::from(*group.get(at).unwrap_or(&0))
        });
        for digit in 0..4 {
            text.push(if digit <= group.len() {
                char::from(DIGITS[(bits >> (18 - 6 * digit)) & 63])
            } else {
                '='
            });
        }
    }
    text
}
