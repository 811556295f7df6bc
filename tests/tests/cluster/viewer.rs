//! Somebody who watches a scope through the gateway.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use krm_stream_projection::Projection;
use krm_stream_protocol::{ErrorCode, EventType, HeldObject, ReportedError, Scope};
use krm_stream_tests::{ConsumerClient, ConsumerClientError, ReceivedEvent};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::api_server::ApiServer;
use crate::expectation::{self, Shown, Versions};
use crate::wait::WITHIN;

/// A stream that has brought nothing for this long is taken to be at the head, and is compared.
const QUIET: Duration = Duration::from_millis(100);
/// How long a stream may take to show what kubectl has shown, before kubectl is asked again.
const LAG: Duration = Duration::from_secs(5);

pub(crate) struct Viewer {
    client: ConsumerClient,
    scope: Scope,
    projection: Arc<Projection>,
}

impl Viewer {
    pub(crate) fn new(client: ConsumerClient, scope: Scope, projection: Arc<Projection>) -> Self {
        Self {
            client,
            scope,
            projection,
        }
    }

    pub(crate) const fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Opens the stream anew; what is held stays held until the new cycle says otherwise.
    pub(crate) async fn reopen(&mut self, address: &Uri) -> Result<(), ConsumerClientError> {
        self.client.reopen(address, &[]).await
    }

    /// Reads on until the condition holds.
    pub(crate) async fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + WITHIN;
        while !holds(self) {
            let has_come = self.read_before(deadline, what).await;
            assert!(
                has_come,
                "not within {WITHIN:?}: {what}; came: {}",
                self.summary()
            );
        }
    }

    /// Reads on until the snapshot is complete.
    pub(crate) async fn until_synced(&mut self) {
        self.until("the snapshot is complete", Self::is_synced).await;
    }

    /// Reads on until the object of this name is held, and is as wanted.
    pub(crate) async fn until_shows(&mut self, name: &str, is_wanted: impl Fn(&Value) -> bool) {
        let what = format!("{name} is shown as wanted");
        self.until(&what, |viewer| {
            viewer.object(name).is_some_and(|object| is_wanted(&object))
        })
        .await;
    }

    /// Reads on until the object of this name has gone.
    pub(crate) async fn until_gone(&mut self, name: &str) {
        let what = format!("{name} has gone");
        self.until(&what, |viewer| viewer.held(name).is_none()).await;
    }

    /// Reads the stream of a refusal to its end: one terminal error and nothing else.
    pub(crate) async fn until_refused(mut self) -> ReportedError {
        self.until_over().await;
        match self.client.received() {
            [event] => event.error().filter(|error| error.is_terminal()).cloned(),
            _ => None,
        }
        .unwrap_or_else(|| panic!("expected one terminal error, came: {}", self.summary()))
    }

    /// Reads the stream to its end, which is a terminal error.
    pub(crate) async fn until_ended(&mut self) -> ReportedError {
        self.until_over().await;
        let last = self.events().last().and_then(ReceivedEvent::error);
        last.filter(|error| error.is_terminal())
            .cloned()
            .unwrap_or_else(|| panic!("expected a terminal error at the end, came: {}", self.summary()))
    }

    async fn until_over(&mut self) {
        let end = Instant::now() + WITHIN;
        let is_over = self.take_in_until(end).await;
        assert!(is_over, "the stream goes on; came: {}", self.summary());
    }

    /// Takes in what comes before `end`; whether the stream, or its connection, is over then.
    pub(crate) async fn take_in_until(&mut self, end: Instant) -> bool {
        loop {
            match timeout_at(end, self.client.next()).await {
                Err(_) => return false,
                Ok(Ok(Some(_))) => {}
                Ok(Ok(None) | Err(ConsumerClientError::Connection(_))) => return true,
                Ok(Err(error)) => panic!("{error}; {}", self.summary()),
            }
        }
    }

    /// Reads on until it is known whether the stream was refused as `FORBIDDEN`, or begins.
    pub(crate) async fn is_forbidden(&mut self) -> bool {
        self.until("the first event has come", |viewer| !viewer.events().is_empty())
            .await;
        self.events()[0]
            .error()
            .is_some_and(|error| error.code() == Some(ErrorCode::Forbidden))
    }

    /// The object of this name as it is held.
    pub(crate) fn held(&self, name: &str) -> Option<&HeldObject> {
        let latest = self
            .events()
            .iter()
            .rev()
            .find(|event| event.name() == Some(name))?;
        self.client.consumer().get(latest.uid()?)
    }

    pub(crate) fn object(&self, name: &str) -> Option<Value> {
        let held = self.held(name)?;
        Some(serde_json::from_str(held.json()).expect("an object is JSON"))
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.client.consumer().is_synced()
    }

    /// How often an error of this code came.
    pub(crate) fn count_errors(&self, code: ErrorCode) -> usize {
        let errors = self.events().iter().filter_map(ReceivedEvent::error);
        errors.filter(|error| error.code() == Some(code)).count()
    }

    /// How many heartbeats came.
    pub(crate) fn heartbeats(&self) -> usize {
        String::from_utf8_lossy(self.raw())
            .matches(": heartbeat\n")
            .count()
    }

    pub(crate) fn count_held(&self) -> usize {
        self.client.consumer().len()
    }

    /// All events so far.
    pub(crate) fn events(&self) -> &[ReceivedEvent] {
        self.client.received()
    }

    /// All bytes so far.
    pub(crate) fn raw(&self) -> &[u8] {
        self.client.raw()
    }

    pub(crate) fn count(&self, event_type: EventType) -> usize {
        let events = self.events().iter();
        events.filter(|event| event.event_type() == event_type).count()
    }

    /// The types of the events of objects of this name.
    pub(crate) fn story(&self, name: &str) -> Vec<&'static str> {
        let events = self.events().iter();
        events
            .filter(|event| event.name() == Some(name))
            .map(|event| event.event_type().as_str())
            .collect()
    }

    /// The types of all events.
    pub(crate) fn types(&self) -> Vec<&'static str> {
        let events = self.events().iter();
        events.map(|event| event.event_type().as_str()).collect()
    }

    /// The end of a case: what is held is what `kubectl get -o json` prints of the scope, under the same projection;
    /// and one cycle without an error was enough.
    pub(crate) async fn agrees_with_kubectl(&mut self, api: &ApiServer, versions: Versions) {
        self.comes_to_agree_with_kubectl(api, versions).await;
        assert_eq!(self.count(EventType::Reset), 1, "came: {}", self.summary());
        assert_eq!(self.count(EventType::Error), 0, "came: {}", self.summary());
    }

    /// What is held in the end is what `kubectl get -o json` prints of the scope, whatever came before.
    pub(crate) async fn comes_to_agree_with_kubectl(&mut self, api: &ApiServer, versions: Versions) {
        let deadline = Instant::now() + WITHIN;
        loop {
            let expected = expectation::ask(api, &self.scope, &self.projection, versions).await;
            if self.comes_to_hold(&expected, versions).await {
                break;
            }
            assert!(
                Instant::now() < deadline,
                "what is held is not what kubectl prints: {}; came: {}",
                expectation::difference(&self.shown(versions), &expected),
                self.summary()
            );
        }
        let begin: Value = serde_json::from_str(self.events()[0].data()).expect("an event is JSON");
        assert_eq!(begin["projection"], self.projection.name().as_str());
        assert_eq!(
            begin["scope"],
            serde_json::to_value(&self.scope).expect("a scope is JSON")
        );
        assert!(self.is_synced(), "came: {}", self.summary());
    }

    async fn comes_to_hold(&mut self, expected: &BTreeMap<String, Shown>, versions: Versions) -> bool {
        let deadline = Instant::now() + LAG;
        loop {
            while Instant::now() < deadline
                && self
                    .read_before(Instant::now() + QUIET, "the end of the case")
                    .await
            {}
            if self.shown(versions) == *expected {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
        }
    }

    fn shown(&self, versions: Versions) -> BTreeMap<String, Shown> {
        let objects = self.client.consumer().objects();
        objects
            .map(|object| (object.uid().to_owned(), Shown::held(object, versions)))
            .collect()
    }

    /// Takes the next event in; `false` if none came in time.
    async fn read_before(&mut self, deadline: Instant, what: &str) -> bool {
        let is_over = match timeout_at(deadline, self.client.next()).await {
            Err(_) => return false,
            Ok(Ok(event)) => event.is_none(),
            Ok(Err(error)) => panic!(
                "the stream failed before this: {what}: {error}; {}",
                self.summary()
            ),
        };
        assert!(
            !is_over,
            "the stream ended before this: {what}; came: {}",
            self.summary()
        );
        true
    }

    /// The events so far, without what the objects hold; of many, the last.
    pub(crate) fn summary(&self) -> String {
        const SHOWN: usize = 40;
        let events = self.events();
        let last = &events[events.len().saturating_sub(SHOWN)..];
        format!("{} events, the last of them {last:?}", events.len())
    }
}
