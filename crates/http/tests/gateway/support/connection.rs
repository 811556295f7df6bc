//! A browser's connection, in the process.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use krm_stream_http::StreamBody;
use krm_stream_protocol::{FrameGrammar, SseDecoder, json};

/// Reads a stream and checks the order of its events. Dropping it is closing the tab.
#[derive(Debug)]
pub(crate) struct Connection {
    body: StreamBody,
    decoder: SseDecoder,
    decoded: VecDeque<String>,
    grammar: FrameGrammar,
    raw: Vec<u8>,
    received: usize,
}

impl Connection {
    pub(crate) fn new(body: StreamBody) -> Self {
        Self {
            body,
            decoder: SseDecoder::new(64 << 20),
            decoded: VecDeque::new(),
            grammar: FrameGrammar::new(),
            raw: Vec::new(),
            received: 0,
        }
    }

    /// The next piece of the body, heartbeats included.
    pub(crate) async fn chunk(&mut self) -> Option<Bytes> {
        let frame = self.body.frame().await?;
        let chunk = frame.unwrap().into_data().unwrap();
        self.raw.extend_from_slice(&chunk);
        Some(chunk)
    }

    /// Reads one piece of the body, and remembers the events that it completes. `None` at the end.
    pub(crate) async fn chunk_events(&mut self) -> Option<()> {
        let chunk = self.chunk().await?;
        for event in self.decoder.push(&chunk).unwrap() {
            self.grammar.check(event.data()).unwrap();
            self.decoded.push_back(event.data().to_owned());
            self.received += 1;
        }
        Some(())
    }

    /// The data of the next event.
    pub(crate) async fn next(&mut self) -> Option<String> {
        while self.decoded.is_empty() {
            self.chunk_events().await?;
        }
        self.decoded.pop_front()
    }

    /// How many events were received, whether they were looked at or not.
    pub(crate) fn received(&self) -> usize {
        self.received
    }

    /// Forgets the events that were not looked at.
    pub(crate) fn skip_received(&mut self) {
        self.decoded.clear();
    }

    /// The next `count` events.
    pub(crate) async fn events(&mut self, count: usize) -> Vec<String> {
        let mut events = Vec::with_capacity(count);
        while events.len() < count {
            let event = tokio::time::timeout(Duration::from_mins(5), self.next()).await;
            let Ok(Some(event)) = event else {
                panic!("{event:?} after {events:?}");
            };
            events.push(event);
        }
        events
    }

    /// The types of the next `count` events; an error's is its code.
    pub(crate) async fn types(&mut self, count: usize) -> Vec<String> {
        self.events(count)
            .await
            .iter()
            .map(|event| type_of(event))
            .collect()
    }

    /// The one event of a stream that has only one.
    pub(crate) async fn only_event(mut self) -> String {
        let event = self.events(1).await.remove(0);
        assert_eq!(self.next().await, None, "nothing follows {event}");
        event
    }

    /// Every byte so far.
    pub(crate) fn raw(&self) -> &[u8] {
        &self.raw
    }
}

/// The type of an event; an error's is its code.
pub(crate) fn type_of(event: &str) -> String {
    text_of(event, "code")
        .or_else(|| text_of(event, "type"))
        .unwrap_or_default()
}

/// The code of an event that is an error.
pub(crate) fn code_of(event: &str) -> String {
    text_of(event, "code").unwrap_or_else(|| panic!("{event} is no error"))
}

/// A string member of an event.
pub(crate) fn text_of(event: &str, name: &str) -> Option<String> {
    json::last_member(event.as_bytes(), name)
        .and_then(json::string)
        .map(Cow::into_owned)
}
