//! An API server in virtual time: requests come from real sessions, answers from a test.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::Frame;
use krm_stream_protocol::{Partition, json};
use krm_stream_tests::{Connection, GatewayUnderTest};
use krm_stream_upstream_kube::{KubeUpstream, KubeUpstreamBuilder, kube};
use tokio::time::Instant;
use tower_service::Service;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// What most connections of these tests ask for.
pub(crate) const APP: &str = "version=v1&resource=configmaps&namespace=app";

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Since the server was made.
    pub(crate) after: Duration,
    query: String,
}

impl Asked {
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find_map(|(key, value)| (key == name).then_some(value))
    }

    pub(crate) fn is_streaming_list(&self) -> bool {
        self.parameter("sendInitialEvents").is_some()
    }

    /// Whether it is a watch that goes on from a version.
    pub(crate) fn is_watch(&self) -> bool {
        self.parameter("watch").is_some() && !self.is_streaming_list()
    }

    /// `streaming list`, `watch VERSION`, `list` or `list TOKEN`.
    pub(crate) fn summary(&self) -> String {
        let version = self.parameter("resourceVersion");
        if self.is_streaming_list() {
            version.map_or_else(
                || "streaming list".to_owned(),
                |at| format!("streaming list {at}"),
            )
        } else if self.is_watch() {
            format!("watch {}", version.unwrap_or_default())
        } else {
            let token = self.parameter("continue");
            let list = token.map_or_else(|| "list".to_owned(), |token| format!("list {token}"));
            version.map_or_else(|| list.clone(), |at| format!("{list} at {at}"))
        }
    }

    /// The `timeoutSeconds` that it asks for.
    pub(crate) fn timeout(&self) -> Duration {
        SECOND * self.parameter("timeoutSeconds").unwrap().parse().unwrap()
    }
}

/// What an answer's body does, step by step; then it ends cleanly.
#[derive(Clone, Debug)]
enum Step {
    Data(Bytes),
    Wait(Duration),
    Hang,
    Break,
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    code: u16,
    headers: Vec<(&'static str, String)>,
    steps: VecDeque<Step>,
}

impl Answer {
    pub(crate) fn new(code: u16, body: impl Into<Bytes>) -> Self {
        Self {
            code,
            headers: Vec::new(),
            steps: VecDeque::from([Step::Data(body.into())]),
        }
    }

    pub(crate) fn ok(body: impl Into<Bytes>) -> Self {
        Self::new(200, body)
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn then(mut self, step: Step) -> Self {
        self.steps.push_back(step);
        self
    }

    pub(crate) fn then_data(self, data: impl Into<Bytes>) -> Self {
        self.then(Step::Data(data.into()))
    }

    pub(crate) fn then_wait(self, time: Duration) -> Self {
        self.then(Step::Wait(time))
    }

    /// The body stays open and says nothing more.
    pub(crate) fn then_hang(self) -> Self {
        self.then(Step::Hang)
    }

    /// The connection breaks.
    pub(crate) fn then_break(self) -> Self {
        self.then(Step::Break)
    }

    fn into_response(self) -> Response<StreamBody<ScriptedBody>> {
        let mut response = Response::builder().status(self.code);
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        let body: ScriptedBody = Box::pin(stream::unfold(self.steps, play));
        response.body(StreamBody::new(body)).unwrap()
    }
}

type Chunk = Result<Frame<Bytes>, std::io::Error>;
type ScriptedBody = Pin<Box<dyn Stream<Item = Chunk> + Send>>;

async fn play(mut steps: VecDeque<Step>) -> Option<(Chunk, VecDeque<Step>)> {
    loop {
        match steps.pop_front()? {
            Step::Data(data) => return Some((Ok(Frame::data(data)), steps)),
            Step::Wait(time) => tokio::time::sleep(time).await,
            Step::Hang => std::future::pending().await,
            Step::Break => return Some((Err(std::io::ErrorKind::ConnectionReset.into()), VecDeque::new())),
        }
    }
}

type Answering = Box<dyn FnMut(&Asked) -> Answer + Send>;

/// The server: what it was asked so far.
#[derive(Clone)]
pub(crate) struct ApiServer {
    began: Instant,
    asked: Arc<Mutex<Vec<Asked>>>,
    answering: Arc<Mutex<Answering>>,
}

impl ApiServer {
    pub(crate) fn new(answer: impl FnMut(&Asked) -> Answer + Send + 'static) -> Self {
        Self {
            began: Instant::now(),
            asked: Arc::default(),
            answering: Arc::new(Mutex::new(Box::new(answer))),
        }
    }

    /// Sessions on it.
    pub(crate) fn upstream(&self) -> KubeUpstreamBuilder {
        KubeUpstream::builder_with_client(kube::Client::new(self.clone(), "default"))
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn summaries(&self) -> Vec<String> {
        self.asked().iter().map(Asked::summary).collect()
    }

    /// When each request after the first `skipped` came, after the one before it.
    pub(crate) fn gaps(&self, skipped: usize) -> Vec<Duration> {
        let asked = self.asked();
        let times: Vec<_> = asked.iter().map(|asked| asked.after).collect();
        times
            .windows(2)
            .map(|pair| pair[1].checked_sub(pair[0]).unwrap())
            .skip(skipped)
            .collect()
    }

    /// The most requests that came within any span of this length.
    pub(crate) fn most_within(&self, span: Duration) -> usize {
        let asked = self.asked();
        let within = |first: &Asked| {
            asked
                .iter()
                .filter(|asked| asked.after >= first.after && asked.after < first.after + span)
                .count()
        };
        asked.iter().map(within).max().unwrap_or_default()
    }
}

impl<B> Service<Request<B>> for ApiServer {
    type Response = Response<StreamBody<ScriptedBody>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let asked = Asked {
            after: self.began.elapsed(),
            query: request.uri().query().unwrap_or_default().to_owned(),
        };
        let answer = (self.answering.lock().unwrap())(&asked);
        self.asked.lock().unwrap().push(asked);
        ready(Ok(answer.into_response()))
    }
}

/// A gateway on such a server.
pub(crate) fn gateway(
    answer: impl FnMut(&Asked) -> Answer + Send + 'static,
) -> (GatewayUnderTest, ApiServer) {
    let server = ApiServer::new(answer);
    let gateway = on(&server);
    (gateway, server)
}

/// A gateway on this server, with one service identity.
pub(crate) fn on(server: &ApiServer) -> GatewayUnderTest {
    let upstream = server.upstream().build().unwrap();
    GatewayUnderTest::build(GatewayUnderTest::builder(upstream, Partition::shared("tests")))
}

/// Reads what comes for so long of the test's time: each event's type, or its error's code.
pub(crate) async fn types_for(connection: &mut Connection, time: Duration) -> Vec<String> {
    let end = Instant::now() + time;
    let mut types = Vec::new();
    while let Ok(Some(event)) = tokio::time::timeout_at(end, connection.next()).await {
        types.push(type_of(&event));
    }
    types
}

/// An event's type; an error's is its code.
pub(crate) fn type_of(event: &str) -> String {
    text(event, &["code"]).or_else(|| text(event, &["type"])).unwrap()
}

/// What a connection was told, in short: `added a`, `deleted b`, the type alone where there is no object.
pub(crate) fn word_of(event: &str) -> String {
    let name = text(event, &["object", "metadata", "name"]).or_else(|| text(event, &["identity", "name"]));
    let kind = type_of(event);
    name.map_or_else(|| kind.clone(), |name| format!("{kind} {name}"))
}

/// The string at this path, found without reading the rest: an object may hold what no parser takes.
fn text(event: &str, path: &[&str]) -> Option<String> {
    let at = path
        .iter()
        .try_fold(event.as_bytes(), |at, name| json::last_member(at, name))?;
    json::string(at).map(String::from)
}

/// The next so many events, in short.
pub(crate) async fn words(connection: &mut Connection, count: usize) -> Vec<String> {
    connection
        .events(count)
        .await
        .iter()
        .map(|event| word_of(event))
        .collect()
}

/// An object as a watch sends it.
pub(crate) fn object(name: &str, version: &str) -> String {
    format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"app","uid":"uid-{name}","resourceVersion":"{version}"}},"data":{{"at":"{version}"}}}}"#
    )
}

/// An object as a typed list sends it.
pub(crate) fn item(name: &str, version: &str) -> String {
    object(name, version).replacen(r#""kind":"ConfigMap","apiVersion":"v1","#, "", 1)
}

/// A line of a watch.
pub(crate) fn line(event: &str, object: &str) -> String {
    format!("{{\"type\":\"{event}\",\"object\":{object}}}\n")
}

pub(crate) fn added(name: &str, version: &str) -> String {
    line("ADDED", &object(name, version))
}

pub(crate) fn modified(name: &str, version: &str) -> String {
    line("MODIFIED", &object(name, version))
}

pub(crate) fn deleted(name: &str, version: &str) -> String {
    line("DELETED", &object(name, version))
}

/// The bookmark that ends the initial events.
pub(crate) fn boundary(version: &str) -> String {
    annotated_bookmark(version, "true")
}

/// A bookmark with this value of the annotation that ends the initial events.
pub(crate) fn annotated_bookmark(version: &str, value: &str) -> String {
    line(
        "BOOKMARK",
        &format!(
            r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"resourceVersion":"{version}","annotations":{{"k8s.io/initial-events-end":"{value}"}}}}}}"#
        ),
    )
}

pub(crate) fn bookmark(version: &str) -> String {
    line(
        "BOOKMARK",
        &format!(r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"}}}}"#),
    )
}

/// A page of a list; `next` is its raw `continue` value.
pub(crate) fn page(version: &str, next: &str, items: &[String]) -> String {
    format!(
        r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}","continue":{next}}},"items":[{}]}}"#,
        items.join(",")
    )
}

/// A `Status`.
pub(crate) fn status(code: u16, reason: &str, message: &str) -> String {
    format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"{message}","reason":"{reason}","code":{code}}}"#
    )
}

/// How an API server without streaming lists answers one.
pub(crate) fn refused_streaming_list() -> Answer {
    Answer::new(
        422,
        status(422, "Invalid", "sendInitialEvents: Forbidden: not enabled"),
    )
}
