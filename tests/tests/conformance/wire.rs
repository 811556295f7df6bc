//! Exact frames, as the corpus writes them.

use krm_stream_protocol::json;
use serde_json::Value;

/// The data of each event, by connection.
pub(crate) fn sections(wire: &str) -> Vec<Vec<String>> {
    let mut sections = Vec::new();
    for line in wire.lines() {
        if line.starts_with(": connection") {
            sections.push(Vec::new());
        } else if let (Some(data), Some(section)) = (line.strip_prefix("data: "), sections.last_mut()) {
            section.push(data.to_owned());
        }
    }
    sections
}

/// Each frame is the same, member by member in order and byte by byte; objects are compared as JSON, and a message `*`
/// stands for any text.
pub(crate) fn assert_same_frames(id: &str, expected: &[Vec<String>], came: &[Vec<String>]) {
    assert_eq!(expected.len(), came.len(), "connections of {id}");
    for (connection, (expected, came)) in expected.iter().zip(came).enumerate() {
        assert_eq!(
            expected.len(),
            came.len(),
            "events of {id}, connection {connection}: {came:#?}"
        );
        for (expected, came) in expected.iter().zip(came) {
            assert_same_frame(id, expected, came);
        }
    }
}

fn assert_same_frame(id: &str, expected: &str, came: &str) {
    let keys = |text: &str| {
        json::members(text.as_bytes())
            .map(|member| member.key.to_vec())
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(expected), keys(came), "{id}: {came}");
    for (wanted, got) in json::members(expected.as_bytes()).zip(json::members(came.as_bytes())) {
        if wanted.key_is("object") {
            let parse = |text: &[u8]| serde_json::from_slice::<Value>(text).expect("an object is JSON");
            assert_eq!(parse(wanted.value), parse(got.value), "{id}: {came}");
        } else if wanted.value != b"\"*\"" {
            assert_eq!(
                String::from_utf8_lossy(wanted.value),
                String::from_utf8_lossy(got.value),
                "{id}: {came}"
            );
        }
    }
    assert!(
        !came.contains(['\r', '\n']),
        "{id}: a data line holds no line end"
    );
}
