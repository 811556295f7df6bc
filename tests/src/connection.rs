//! A browser's connection, in the process: it decodes, reduces and checks the grammar of what it reads.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use krm_stream_http::StreamBody;
use krm_stream_protocol::{Consumer, FrameGrammar, SseDecoder, json};

/// A connection to a gateway. Dropping it is closing the tab.
#[derive(Debug)]
pub struct Connection {
    body: StreamBody,
    decoder: SseDecoder,
    decoded: VecDeque<String>,
    grammar: FrameGrammar,
    consumer: Consumer,
    raw: Vec<u8>,
    is_in_cycle: bool,
}

impl Connection {
    /// Reads the answer to a request of a test's own making.
    pub fn new(body: StreamBody) -> Self {
        Self {
            body,
            decoder: SseDecoder::new(64 << 20),
            decoded: VecDeque::new(),
            grammar: FrameGrammar::new(),
            consumer: Consumer::new(),
            raw: Vec::new(),
            is_in_cycle: false,
        }
    }

    /// The data of the next event; `None` once the stream has ended. Heartbeats are passed over.
    ///
    /// # Panics
    /// If the stream breaks the wire's grammar, or a conforming consumer refuses the event.
    #[expect(clippy::expect_used, reason = "a broken wire fails the test")]
    pub async fn next(&mut self) -> Option<String> {
        while self.decoded.is_empty() {
            let chunk = self.next_chunk().await?;
            let events = self.decoder.push(&chunk).expect("the wire decodes");
            self.decoded
                .extend(events.into_iter().map(|event| event.data().to_owned()));
        }
        let event = self.decoded.pop_front()?;
        self.grammar.check(&event).expect("the order of events is legal");
        drop(
            self.consumer
                .apply(&event)
                .expect("a conforming consumer takes it"),
        );
        match type_of(&event).as_str() {
            "reset" => self.is_in_cycle = true,
            "RESYNC_REQUIRED" => self.is_in_cycle = false,
            _ => {}
        }
        Some(event)
    }

    async fn next_chunk(&mut self) -> Option<Bytes> {
        let frame = self.body.frame().await?;
        let Ok(frame) = frame else {
            fail("the body failed, although nothing bounds its delivery")
        };
        let chunk = frame.into_data().ok()?;
        self.raw.extend_from_slice(&chunk);
        Some(chunk)
    }

    /// The next `count` events.
    ///
    /// # Panics
    /// If the stream ends before, or they do not come within a minute of the test's time.
    pub async fn events(&mut self, count: usize) -> Vec<String> {
        let mut events = Vec::with_capacity(count);
        while events.len() < count {
            match tokio::time::timeout(Duration::from_mins(1), self.next()).await {
                Ok(Some(event)) => events.push(event),
                Ok(None) => fail(&format!("the stream ended after {events:?}")),
                Err(_) => fail(&format!("nothing came after {events:?}")),
            }
        }
        events
    }

    /// The types of the next `count` events; an error's is its code.
    pub async fn types(&mut self, count: usize) -> Vec<String> {
        self.events(count)
            .await
            .iter()
            .map(|event| type_of(event))
            .collect()
    }

    /// Whether no event comes for `time` of the test's time, though the stream is open.
    pub async fn is_quiet_for(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.next()).await.is_err()
    }

    /// Whether the stream ends without another event.
    pub async fn is_over(&mut self) -> bool {
        self.next().await.is_none()
    }

    /// Whether a cycle is under way: none is between `RESYNC_REQUIRED` and the `reset` that follows.
    pub fn is_in_cycle(&self) -> bool {
        self.is_in_cycle
    }

    /// What a conforming consumer holds now.
    pub fn consumer(&self) -> &Consumer {
        &self.consumer
    }

    /// The uids that a conforming consumer holds now, sorted.
    pub fn uids(&self) -> Vec<String> {
        let mut uids: Vec<_> = self
            .consumer
            .objects()
            .map(|held| held.uid().to_owned())
            .collect();
        uids.sort_unstable();
        uids
    }

    /// Every byte that came so far, heartbeats included.
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }
}

/// The type of an event; an error's is its code.
fn type_of(event: &str) -> String {
    let text = |name| json::last_member(event.as_bytes(), name).and_then(json::string);
    text("code")
        .or_else(|| text("type"))
        .unwrap_or_default()
        .into_owned()
}

#[expect(clippy::panic, reason = "a test that waits in vain fails")]
fn fail(message: &str) -> ! {
    panic!("{message}")
}
