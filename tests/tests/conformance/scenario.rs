//! One scenario of the corpus, as it is written.

use std::collections::{BTreeMap, BTreeSet};

use krm_stream_protocol::json;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The objects that scenarios name, verbatim.
pub(crate) type Bodies = BTreeMap<String, Box<RawValue>>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    pub(crate) id: String,
    /// What the scenario is about, in a sentence.
    #[serde(default)]
    #[expect(dead_code, reason = "for whoever reads the scenario")]
    about: String,
    #[serde(default)]
    #[expect(dead_code, reason = "every scenario is for both where it can be")]
    suites: Vec<String>,
    #[serde(default)]
    pub(crate) scope: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) projection: Option<String>,
    #[serde(default)]
    pub(crate) lenient: bool,
    pub(crate) watch: Option<Vec<Operation>>,
    pub(crate) events: Vec<Expected>,
    pub(crate) consumer: Option<ExpectedConsumer>,
}

/// What the upstream does.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum Operation {
    /// Objects, then the bookmark that ends the snapshot.
    List {
        bodies: Vec<String>,
        #[serde(default, rename = "resourceVersion")]
        resource_version: Option<String>,
    },
    Added {
        body: String,
    },
    Modified {
        body: String,
    },
    Deleted {
        body: String,
    },
    Bookmark {
        #[serde(rename = "resourceVersion")]
        resource_version: String,
    },
    /// A metadata-only object in place of an object.
    Partial {
        body: String,
    },
    /// A deletion without identity.
    Tombstone {
        body: String,
    },
    /// Continuity is lost; the same connection goes on with these objects.
    Relist {
        bodies: Vec<String>,
    },
    /// The session ends as every session does, and is resumed.
    Close,
    /// The browser's connection drops; the next one is new.
    Disconnect,
}

/// One event that must be on the wire.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expected {
    #[serde(rename = "type")]
    event_type: String,
    body: Option<String>,
    #[serde(default)]
    redacted: Option<Vec<ExpectedRedaction>>,
    code: Option<String>,
    terminal: Option<bool>,
    /// Of a `deleted` event.
    uid: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ExpectedRedaction {
    path: String,
    rev: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectedConsumer {
    uids: BTreeSet<String>,
    #[serde(default)]
    adopt: Vec<Adopted>,
}

#[derive(Debug, Deserialize)]
struct Adopted {
    after: usize,
    body: String,
}

impl Scenario {
    /// The query of its scope and projection.
    pub(crate) fn query(&self) -> String {
        let fields = self
            .scope
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let projection = self.projection.iter().map(|name| ("projection", name.as_str()));
        fields
            .chain(projection)
            .map(|(name, value)| {
                format!(
                    "{name}={}",
                    value.replace('%', "%25").replace('=', "%3D").replace(' ', "%20")
                )
            })
            .collect::<Vec<_>>()
            .join("&")
    }

    /// Whether the `reset` at this index begins a new connection.
    pub(crate) fn is_reconnect(&self, index: usize) -> bool {
        let is_told = index > 0 && self.events[index - 1].code.as_deref() == Some("RESYNC_REQUIRED");
        index > 0 && !is_told && self.disconnects()
    }

    fn disconnects(&self) -> bool {
        let operations = self.watch.iter().flatten();
        operations
            .filter(|operation| matches!(operation, Operation::Disconnect))
            .count()
            > 0
    }

    /// How many events each connection has.
    pub(crate) fn events_per_connection(&self) -> Vec<usize> {
        let mut counts = vec![0];
        for (index, event) in self.events.iter().enumerate() {
            if event.is_reset() && self.is_reconnect(index) {
                counts.push(0);
            }
            if let Some(count) = counts.last_mut() {
                *count += 1;
            }
        }
        counts
    }

    pub(crate) fn adopted_after(&self, index: usize) -> impl Iterator<Item = &str> {
        let adopted = self.consumer.iter().flat_map(|consumer| &consumer.adopt);
        adopted
            .filter(move |adopted| adopted.after == index)
            .map(|adopted| adopted.body.as_str())
    }

    pub(crate) fn assert_consumer(&self, uids: &BTreeSet<String>) {
        if let Some(consumer) = &self.consumer {
            assert_eq!(uids, &consumer.uids, "what a consumer holds after {}", self.id);
        }
    }

    /// The bodies that the upstream sends.
    fn sent(&self) -> BTreeSet<&str> {
        let mut sent = BTreeSet::new();
        for operation in self.watch.iter().flatten() {
            match operation {
                Operation::List { bodies, .. } | Operation::Relist { bodies } => {
                    sent.extend(bodies.iter().map(String::as_str));
                }
                Operation::Added { body } | Operation::Modified { body } => {
                    sent.insert(body);
                }
                Operation::Deleted { .. }
                | Operation::Bookmark { .. }
                | Operation::Partial { .. }
                | Operation::Tombstone { .. }
                | Operation::Close
                | Operation::Disconnect => {}
            }
        }
        sent
    }

    /// The events that came are the ones that must come; where nothing is withheld or removed, each object is the very
    /// text that the upstream sent.
    pub(crate) fn assert_events(&self, bodies: &Bodies, connections: &[Vec<String>]) {
        let events: Vec<_> = connections.iter().flatten().collect();
        assert_eq!(events.len(), self.events.len(), "{}: {events:#?}", self.id);
        for (index, (came, expected)) in events.iter().zip(&self.events).enumerate() {
            expected.assert_is(&format!("{}, event {index}", self.id), came, bodies, &self.sent());
        }
    }
}

impl Expected {
    pub(crate) fn is_reset(&self) -> bool {
        self.event_type == "reset"
    }

    fn assert_is(&self, place: &str, came: &str, bodies: &Bodies, sent: &BTreeSet<&str>) {
        let member = |name| json::last_member(came.as_bytes(), name);
        let text = |name| {
            member(name)
                .and_then(json::string)
                .map(std::borrow::Cow::into_owned)
        };
        assert_eq!(text("type").as_ref(), Some(&self.event_type), "{place}: {came}");
        assert_eq!(text("code"), self.code, "{place}: {came}");
        if let Some(terminal) = self.terminal {
            assert_eq!(
                member("terminal"),
                Some(terminal.to_string().as_bytes()),
                "{place}: {came}"
            );
        }
        if let Some(uid) = &self.uid {
            let identity = member("identity").unwrap_or_default();
            assert_eq!(
                json::last_member(identity, "uid")
                    .and_then(json::string)
                    .as_deref(),
                Some(uid.as_str()),
                "{place}: {came}"
            );
        }
        if let Some(body) = &self.body {
            let object = String::from_utf8_lossy(member("object").unwrap_or_default()).into_owned();
            if sent.contains(body.as_str()) {
                assert_eq!(object, without_line_ends(bodies[body].get()), "{place}");
            } else {
                // A body that the upstream did not send is what is left of one that it did.
                let parse =
                    |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("an object is JSON");
                assert_eq!(parse(&object), parse(bodies[body].get()), "{place}");
            }
            assert_eq!(
                redactions(member("redacted").unwrap_or_default()),
                self.redactions(),
                "{place}: {came}"
            );
        }
    }

    fn redactions(&self) -> Vec<(String, u64)> {
        self.redacted
            .iter()
            .flatten()
            .map(|redaction| (redaction.path.clone(), redaction.rev))
            .collect()
    }

    /// The event as it would stand on the wire, for a consumer.
    pub(crate) fn to_data(&self, seq: u64, scenario: &Scenario, bodies: &Bodies) -> String {
        let target = scenario.scope.get("target").cloned().unwrap_or_default();
        let object = self.body.as_ref().map_or("null", |body| bodies[body].get());
        match self.event_type.as_str() {
            "reset" => format!(
                r#"{{"seq":{seq},"type":"reset","target":"{target}","scope":{{"target":"{target}"}},"projection":"krm-full/v1"}}"#
            ),
            "synced" => format!(r#"{{"seq":{seq},"type":"synced"}}"#),
            "error" => format!(
                r#"{{"seq":{seq},"type":"error","code":"{}","message":"x","terminal":{}}}"#,
                self.code.as_deref().unwrap_or_default(),
                self.terminal.unwrap_or_default()
            ),
            upsert => format!(r#"{{"seq":{seq},"type":"{upsert}","object":{object},"redacted":[]}}"#),
        }
    }
}

/// What the wire carries of a text that is written over several lines.
fn without_line_ends(text: &str) -> String {
    let mut carried = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['\r', '\n']) {
        let (before, after) = rest.split_at(at);
        carried.push(before.trim_end_matches([' ', '\t']));
        rest = after.trim_start_matches([' ', '\t', '\r', '\n']);
    }
    carried.push(rest);
    carried.concat()
}

fn redactions(text: &[u8]) -> Vec<(String, u64)> {
    json::elements(text)
        .map(|(redaction, _)| {
            let path = json::last_member(redaction, "path")
                .and_then(json::string)
                .unwrap_or_default();
            let rev = json::last_member(redaction, "rev").unwrap_or_default();
            let rev = String::from_utf8_lossy(rev).parse().unwrap_or_default();
            (path.into_owned(), rev)
        })
        .collect()
}
