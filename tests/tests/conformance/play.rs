//! Plays a scenario: the script of its watch on one side, a browser's connections on the other.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use krm_stream_protocol::{Object, Ordering, Partition, ResourceVersion, SessionEnd, Start, json};
use krm_stream_tests::{Connection, GatewayUnderTest, Script, ScriptedSession, ScriptedUpstream, object};

use crate::scenario::{Bodies, Operation, Scenario};

/// What came.
pub(crate) struct Played {
    /// The data of each event, by connection.
    pub(crate) frames: Vec<Vec<String>>,
    /// What a consumer holds that lived through all connections.
    pub(crate) uids: BTreeSet<String>,
}

struct Player<'a> {
    bodies: &'a Bodies,
    query: String,
    gateway: GatewayUnderTest,
    script: Script,
    session: Option<ScriptedSession>,
    connection: Connection,
    /// How many events each connection is to have.
    expected: std::slice::Iter<'a, usize>,
    frames: Vec<Vec<String>>,
}

/// Plays the scenario and reads as many events from each connection as are expected, and makes sure that no more come.
pub(crate) async fn play(scenario: &Scenario, bodies: &Bodies, expected: &[usize]) -> Played {
    let (upstream, script) = ScriptedUpstream::new();
    let ordering = if scenario.lenient {
        Ordering::Lenient
    } else {
        Ordering::Strict
    };
    // Without a linger time a new connection is a new watch, as the scenarios' lists say.
    let gateway = GatewayUnderTest::with(upstream, Partition::shared("tests"), ordering, Duration::ZERO);
    let query = scenario.query();
    let mut player = Player {
        bodies,
        connection: gateway.connect(&query),
        query,
        gateway,
        script,
        session: None,
        expected: expected.iter(),
        frames: Vec::new(),
    };
    for operation in scenario.watch.iter().flatten() {
        player.perform(operation).await;
    }
    player.finish_connection().await;
    let uids = consumer_of(&player.frames);
    Played {
        frames: player.frames,
        uids,
    }
}

impl Player<'_> {
    async fn perform(&mut self, operation: &Operation) {
        match operation {
            Operation::List {
                bodies,
                resource_version,
            } => self.list(bodies, resource_version.as_deref()).await,
            Operation::Added { body } => {
                let object = self.body(body);
                self.session().added(object);
            }
            Operation::Modified { body } => {
                let object = self.body(body);
                self.session().modified(object);
            }
            Operation::Deleted { body } => {
                let object = self.body(body);
                self.session().deleted(object);
            }
            Operation::Bookmark { resource_version } => self.session().bookmark(resource_version, false),
            Operation::Partial { body } => {
                let partial = self.metadata_only(body);
                self.session().modified(partial);
                self.session = None;
            }
            Operation::Tombstone { body } => {
                let version = version_of(&self.body(body));
                self.session().deleted(object(format!(
                    r#"{{"metadata":{{"resourceVersion":"{version}"}}}}"#
                )));
                self.session = None;
            }
            Operation::Relist { bodies } => {
                self.take_session().end(SessionEnd::Expired);
                self.list(bodies, None).await;
            }
            Operation::Close => {
                // A session that lived is resumed at once.
                self.settle().await;
                self.take_session().end(SessionEnd::Closed);
                let request = self.script.next_open().await;
                assert!(matches!(request.start, Start::After(_)), "it is resumed");
                self.session = Some(request.accept());
            }
            Operation::Disconnect => {
                self.finish_connection().await;
                self.connection = self.gateway.connect(&self.query);
                if let Some(session) = self.session.take() {
                    session.dropped().await;
                }
            }
        }
        // Each step is seen before the next one, so that nothing is coalesced.
        self.settle().await;
    }

    /// Reads what has come, for some seconds of the test's time.
    async fn settle(&mut self) {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(6);
        while let Ok(Some(event)) = tokio::time::timeout_at(deadline, self.connection.next()).await {
            match self.frames.last_mut() {
                Some(frames) => frames.push(event),
                None => self.frames.push(vec![event]),
            }
        }
    }

    async fn list(&mut self, bodies: &[String], version: Option<&str>) {
        let request = tokio::select! {
            request = self.script.next_open() => request,
            // The gateway opens a stream's feed as the stream is read.
            () = read_into(&mut self.connection, &mut self.frames) => panic!("the stream ended before its watch was opened"),
        };
        assert_eq!(
            request.start,
            Start::Fresh,
            "a list is asked for without an old version"
        );
        let mut session = request.accept();
        let objects: Vec<_> = bodies.iter().map(|body| self.body(body)).collect();
        let boundary = version.map_or_else(|| greatest(&objects), str::to_owned);
        for object in objects {
            session.added(object);
        }
        session.boundary(&boundary);
        self.session = Some(session);
    }

    /// The connection ends here; what it was to have has come, and nothing else.
    async fn finish_connection(&mut self) {
        self.settle().await;
        let expected = *self.expected.next().expect("as many connections as are expected");
        let came = self.frames.last().map_or(0, Vec::len);
        assert_eq!(
            came,
            expected,
            "events on the connection: {:#?}",
            self.frames.last()
        );
        // The next connection's frames are its own.
        if self.expected.len() > 0 {
            self.frames.push(Vec::new());
        }
    }

    fn session(&mut self) -> &mut ScriptedSession {
        self.session.as_mut().expect("a session is open")
    }

    fn take_session(&mut self) -> ScriptedSession {
        self.session.take().expect("a session is open")
    }

    fn body(&self, name: &str) -> Object {
        let text = self
            .bodies
            .get(name)
            .unwrap_or_else(|| panic!("there is no body {name}"));
        Object::parse(Bytes::copy_from_slice(text.get().as_bytes())).expect("a body is an object")
    }

    fn metadata_only(&self, name: &str) -> Object {
        let body = self.body(name);
        let metadata = json::last_member(body.json(), "metadata").expect("a body has metadata");
        object(format!(
            r#"{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{}}}"#,
            String::from_utf8_lossy(metadata)
        ))
    }
}

async fn read_into(connection: &mut Connection, frames: &mut Vec<Vec<String>>) {
    while let Some(event) = connection.next().await {
        match frames.last_mut() {
            Some(frames) => frames.push(event),
            None => frames.push(vec![event]),
        }
    }
}

fn version_of(object: &Object) -> String {
    object
        .resource_version()
        .map_or_else(|| "1".to_owned(), |version| version.as_str().to_owned())
}

/// The list's version: the greatest of its items', where they order.
fn greatest(objects: &[Object]) -> String {
    let versions = objects.iter().filter_map(Object::resource_version);
    versions
        .filter(|version| version.is_orderable())
        .fold(ResourceVersion::from("1"), |greatest, version| {
            if version.is_after(&greatest) {
                version.clone()
            } else {
                greatest
            }
        })
        .as_str()
        .to_owned()
}

/// What one consumer holds after all connections, one after the other.
fn consumer_of(connections: &[Vec<String>]) -> BTreeSet<String> {
    let mut consumer = krm_stream_protocol::Consumer::new();
    for frames in connections {
        consumer.reconnected();
        for frame in frames {
            drop(consumer.apply(frame).expect("a conforming consumer takes it"));
        }
    }
    consumer.objects().map(|held| held.uid().to_owned()).collect()
}
