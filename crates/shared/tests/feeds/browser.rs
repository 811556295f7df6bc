//! A stream with a conforming consumer at its other end.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use krm_stream_protocol::{
    Consumer, Decision, Moment, Object, Partition, ResourceVersion, SseDecoder, Step, StreamError, Upstream,
    WatchEvent,
};
use krm_stream_shared::{Feeds, Step as ReaderStep};

use crate::support::{ScriptedSession, Stream};

pub(crate) struct Browser {
    pub(crate) stream: Stream,
    decoder: SseDecoder,
    pub(crate) consumer: Consumer,
    pub(crate) wire: Vec<u8>,
    pub(crate) resyncs: usize,
    pub(crate) error: Option<StreamError>,
}

impl Browser {
    /// Joins, and reads nothing yet.
    pub(crate) async fn join(feeds: &Feeds, upstream: &Arc<dyn Upstream>, now: Moment) -> Self {
        Self::begin(
            Stream::new(feeds, Arc::clone(upstream), Partition::per_caller()),
            now,
        )
        .await
    }

    pub(crate) async fn begin(mut stream: Stream, now: Moment) -> Self {
        stream.now = now;
        stream.begin().await.unwrap();
        Self {
            stream,
            decoder: SseDecoder::new(64 << 20),
            consumer: Consumer::new(),
            wire: Vec::new(),
            resyncs: 0,
            error: None,
        }
    }

    /// The transport takes what is pending.
    pub(crate) fn drain(&mut self) {
        while let Some(chunk) = self.stream.outbox.take() {
            self.wire.extend_from_slice(&chunk);
            for event in self.decoder.push(&chunk).unwrap() {
                if let Step::Error { decision, .. } = self.consumer.apply(event.data()).unwrap()
                    && decision == Decision::Continue
                {
                    self.resyncs += 1;
                }
            }
        }
    }

    /// Takes one chunk. Returns whether there was one.
    pub(crate) fn take_one(&mut self) -> bool {
        self.drain();
        match self.stream.poll() {
            Poll::Ready(ReaderStep::Wrote) => {
                self.drain();
                true
            }
            Poll::Ready(ReaderStep::End(error)) => {
                self.error = Some(error);
                false
            }
            Poll::Ready(ReaderStep::NextCycle(_)) | Poll::Pending => {
                self.drain();
                false
            }
        }
    }

    /// Takes all there is.
    pub(crate) fn take_all(&mut self) {
        while self.take_one() {}
    }

    /// The value of each object's only key, by uid.
    pub(crate) fn values(&self) -> Vec<(String, String)> {
        let objects = self.consumer.objects();
        objects
            .map(|object| {
                let value = object.json().split("\"value\":\"").nth(1).unwrap();
                (
                    object.uid().to_owned(),
                    value.split('"').next().unwrap().to_owned(),
                )
            })
            .collect()
    }
}

/// An object with a value that shows, and one that is withheld if the kind is `Secret`.
pub(crate) fn state(kind: &str, uid: &str, version: u64, value: &str, size: usize) -> Object {
    let pad = "x".repeat(size);
    let text = format!(
        r#"{{"kind":"{kind}","apiVersion":"v1","metadata":{{"name":"n-{uid}","namespace":"app","uid":"{uid}","resourceVersion":"{version}","labels":{{"value":"{value}","pad":"{pad}"}}}},"data":{{"hidden":"canary-{value}"}}}}"#
    );
    Object::parse(Bytes::from(text)).unwrap()
}

impl ScriptedSession {
    /// Has a feed of `n` objects `u000`, `u001` and so on, and returns the next version.
    pub(crate) fn fill(&self, kind: &str, n: u64, size: usize) -> u64 {
        for i in 0..n {
            self.send(WatchEvent::Added(state(kind, &uid(i), 10 + i, "first", size)));
        }
        10 + n
    }

    pub(crate) fn boundary(&self, version: u64) {
        self.send(WatchEvent::Bookmark {
            resource_version: Some(ResourceVersion::from(version.to_string().as_str())),
            initial_events_end: true,
        });
    }

    pub(crate) fn modify(&self, kind: &str, uid: &str, version: u64, value: &str) {
        self.send(WatchEvent::Modified(state(kind, uid, version, value, 1)));
    }

    pub(crate) fn delete(&self, kind: &str, uid: &str, version: u64) {
        self.send(WatchEvent::Deleted(state(kind, uid, version, "gone", 1)));
    }
}

pub(crate) fn uid(n: u64) -> String {
    format!("u{n:05}")
}

/// Lets the feed's task apply what was sent; in paused time, this is when all tasks have nothing to do.
pub(crate) async fn applied() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// So many milliseconds after the origin.
pub(crate) fn at(milliseconds: u64) -> Moment {
    Moment::after_origin(Duration::from_millis(milliseconds))
}
