//! A stream as a client reads it.

use std::collections::VecDeque;
use std::time::Duration;

use http::{Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use krm_stream_protocol::{FrameGrammar, SseDecoder};
use serde_json::Value;
use tokio::time::timeout;

use crate::demo::{Demo, Header};

const WITHIN: Duration = Duration::from_secs(30);
const EVENT_BYTES: usize = 1024 * 1024;

pub(crate) struct Stream {
    response: Response<Incoming>,
    decoder: SseDecoder,
    grammar: FrameGrammar,
    pending: VecDeque<Value>,
    text: String,
}

impl Stream {
    pub(crate) async fn open(demo: &Demo, query: &str, headers: &[Header]) -> Self {
        Self::of(demo.send(&format!("/resource-stream/v1?{query}"), headers).await)
    }

    pub(crate) async fn open_http2(demo: &Demo, query: &str) -> Self {
        Self::of(demo.send_http2(&format!("/resource-stream/v1?{query}")).await)
    }

    pub(crate) fn of(response: Response<Incoming>) -> Self {
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            response,
            decoder: SseDecoder::new(EVENT_BYTES),
            grammar: FrameGrammar::default(),
            pending: VecDeque::new(),
            text: String::new(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.response.headers()[name].to_str().unwrap()
    }

    /// All that has been received so far.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The next event; each is checked against the grammar of the wire.
    pub(crate) async fn next(&mut self) -> Value {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return event;
            }
            let frame = timeout(WITHIN, self.response.body_mut().frame())
                .await
                .expect("an event within the time")
                .expect("the stream goes on")
                .expect("the connection holds");
            let Ok(bytes) = frame.into_data() else { continue };
            self.text.push_str(std::str::from_utf8(&bytes).unwrap());
            for event in self.decoder.push(&bytes).unwrap() {
                self.grammar.check(event.data()).unwrap();
                self.pending
                    .push_back(serde_json::from_str(event.data()).unwrap());
            }
        }
    }

    /// Reads on to the first event that is looked for.
    pub(crate) async fn until(&mut self, is_looked_for: impl Fn(&Value) -> bool) -> Value {
        loop {
            let event = self.next().await;
            if is_looked_for(&event) {
                return event;
            }
        }
    }

    /// Whether the connection ends, in whatever way, within the time.
    pub(crate) async fn ends(&mut self) -> bool {
        timeout(WITHIN, async {
            while let Some(Ok(_)) = self.response.body_mut().frame().await {}
        })
        .await
        .is_ok()
    }
}
